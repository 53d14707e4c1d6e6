#include "syncopate/plan/job.h"

#include <gtest/gtest.h>

namespace syncopate::plan {
namespace {

TEST(Job, ADeviceHasTheMachineOfTheProfileToItself) {
  sim::Profile profile;
  profile.times = {{.batch = 8, .forward_s = 0.01, .backward_s = 0.02, .update_s = 0.002}};
  profile.parameters = {{.name = std::string("w"), .shape = {16, 16}}};
  profile.workers = 2;                                                        // at once, of a thread each
  EXPECT_NEAR(job_from_profile(profile, 8).work(8).backward_s, 0.02, 1e-12);  // on who knows how many cores
  profile.cores = 2;
  const StageWork work = job_from_profile(profile, 8).work(8);
  EXPECT_NEAR(work.forward_s, 0.005, 1e-12);
  EXPECT_NEAR(work.backward_s, 0.01, 1e-12);
  EXPECT_NEAR(work.update_s, 0.001, 1e-12);
}

}  // namespace
}  // namespace syncopate::plan
