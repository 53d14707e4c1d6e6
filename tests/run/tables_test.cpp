// What has a name in a run stands in two tables: what it is called and how it behaves in `spec`, how it is
// made beside the classes. They must agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/nn/bert/bert_config.h"
#include "syncopate/nn/gpt/gpt_config.h"
#include "syncopate/nn/resnet/resnet_config.h"
#include "syncopate/optim/schedule.h"
#include "syncopate/parallel/make.h"
#include "syncopate/run/options.h"
#include "syncopate/spec/strategies.h"
#include "syncopate/spec/tasks.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::run {
namespace {

using Names = std::vector<std::string>;

/// The settings of a group ("strategy"), without its name.
std::set<std::string> settings_of(const std::string& group) {
  spec::RunSpec spec;
  const Fields fields = spec.fields();
  std::set<std::string> found;
  for (const Fields::Field& field : fields.all()) {
    if (field.name.starts_with(group + ".")) found.insert(field.name.substr(group.size() + 1));
  }
  found.erase("name");
  return found;
}

/// What the entries of a table heed, together.
template <typename Info>
std::set<std::string> heeded(const std::vector<Info>& table) {
  std::set<std::string> all;
  for (const Info& info : table) all.insert(info.settings.begin(), info.settings.end());
  return all;
}

TEST(Tables, EveryNamedThingCanBeMade) {
  EXPECT_EQ(spec::strategy_names(), parallel::strategy_names());
  EXPECT_EQ(spec::codec_names(), parallel::compression_names());
  EXPECT_EQ(spec::optimizer_names(), optim::optimizer_names());
  EXPECT_EQ(spec::schedule_names(), optim::schedule_names());
  EXPECT_EQ(spec::scaling_names(), optim::scaling_names());
  for (size_t i = 0; i < spec::precision_names().size(); ++i) {
    EXPECT_EQ(tensor::name_of(static_cast<tensor::Precision>(i)), spec::precision_names()[i]);
  }
  EXPECT_THROW(parallel::make_strategy({.name = "dpp"}, *comm::open_alone()), ConfigError);
  EXPECT_THROW(spec::strategy_info("dpp"), ConfigError);
}

TEST(Tables, EveryTaskHasAFamilyThatMakesIt) {
  Names known, made;
  for (const spec::TaskFamily& family : spec::task_families()) known.emplace_back(family.name);
  for (const tasks::Family& family : tasks::families()) made.emplace_back(family.name);
  EXPECT_EQ(known, made);
  for (const std::string& task : spec::task_names()) EXPECT_NE(tasks::family_of(task).make, nullptr) << task;
  EXPECT_THROW(tasks::family_of("rtee"), ConfigError);
}

TEST(Tables, PresetsOfAFamilyAreThoseOfItsModels) {
  EXPECT_EQ(spec::task_family("rte").models, nn::preset_names());
  EXPECT_EQ(spec::task_family("mlm").models, nn::preset_names());
  EXPECT_EQ(spec::task_family("squad").models, nn::preset_names());
  EXPECT_EQ(spec::task_family("clm").models, nn::gpt_preset_names());
  EXPECT_EQ(spec::task_family("cifar10").models, nn::resnet_preset_names());
}

TEST(Tables, TraitsOfAStrategyAreThoseOfItsObject) {
  auto groups = comm::open_in_process(1, std::chrono::seconds(10));
  for (const spec::StrategyInfo& info : spec::strategies()) {
    if (info.has_servers) continue;  // needs servers to be made; the laws run it
    spec::RunSpec spec;
    spec.strategy.name = info.name;
    const auto made = parallel::make_strategy(strategy_options(spec, 10), *groups[0]);
    EXPECT_EQ(made.free != nullptr, info.rhythm == spec::Rhythm::kFree) << info.name;
    EXPECT_EQ(made.strategy->traits().replicas_differ, info.rhythm == spec::Rhythm::kLocal) << info.name;
    EXPECT_EQ(made.strategy->updates_locally(0), info.rhythm != spec::Rhythm::kTogether) << info.name;
    EXPECT_EQ(made.free != nullptr, spec.runs_free()) << info.name;
  }
}

TEST(Tables, CodecsAndOptimizersBehaveAsTheyAreDescribed) {
  std::set<bool> seen;
  for (const spec::CodecInfo& info : spec::codecs()) {
    EXPECT_EQ(parallel::feeds_back(std::string(info.name)), info.feeds_back) << info.name;
    seen.insert(info.feeds_back);
  }
  for (const spec::OptimizerInfo& info : spec::optimizers()) {
    EXPECT_EQ(optim::needs_whole_tensors(std::string(info.name)), info.whole_tensors) << info.name;
  }
  EXPECT_EQ(seen.size(), 2u) << "some do and some do not";
}

TEST(Tables, EverySettingIsHeededBySomebody) {
  EXPECT_EQ(heeded(spec::strategies()), settings_of("strategy"));
  EXPECT_EQ(heeded(spec::codecs()), settings_of("codec"));
  const std::set<std::string> optim = settings_of("optim");
  std::set<std::string> seen;
  for (const auto& some : {heeded(spec::optimizers()), heeded(spec::schedules()), heeded(spec::scalings())}) {
    for (const std::string& name : some) {
      EXPECT_TRUE(optim.contains(name)) << name;
      EXPECT_TRUE(seen.insert(name).second) << name << " belongs to things of two kinds";
    }
  }
}

TEST(Tables, SettingsOfTasksAreThere) {
  spec::RunSpec spec;
  const Fields fields = spec.fields();
  std::set<std::string> owned;
  for (const spec::TaskFamily& family : spec::task_families()) {
    for (const auto& own : family.own_settings) {
      EXPECT_EQ(std::count(family.tasks.begin(), family.tasks.end(), own.first), 1) << own.first;
    }
    for (const std::string& task : family.tasks) {
      for (const std::string& name : spec::settings_of_task(task)) {
        EXPECT_EQ(fields.find(name).name, name) << "in full";
        owned.insert(name);
      }
    }
  }
  // Whatever else the tasks and models have, every one of them heeds: a new setting belongs here or there.
  const std::set<std::string> common{"task.data",  "task.shuffle",    "task.limit",     "task.test_limit",
                                     "model.name", "model.init_from", "task.validation"};
  for (const Fields::Field& field : fields.all()) {
    if (!field.name.starts_with("task.") && !field.name.starts_with("model.")) continue;
    EXPECT_TRUE(field.name == "task.name" || owned.contains(field.name) != common.contains(field.name))
        << field.name;
  }
}

/// What no run could use is refused by the settings before a run, and by the library where it is used alone.
TEST(Tables, SettingsAndOptionsRefuseTheSame) {
  struct Bad {
    const char* strategy;
    std::vector<std::string> settings;
  };
  const std::vector<Bad> bad{{"local-sgd", {"strategy.every=0"}},
                             {"local-sgd", {"strategy.delay=8"}},
                             {"local-sgd", {"strategy.post_local_start=-1"}},
                             {"diloco", {"strategy.fragments=3"}},
                             {"diloco", {"strategy.fragments=0"}},
                             {"diloco", {"strategy.fragments=2", "strategy.moments=reset"}},
                             {"diloco", {"strategy.mixing=1"}},
                             {"diloco", {"strategy.outer_lr=0"}},
                             {"diloco", {"strategy.outer_momentum=1"}},
                             {"ddp", {"strategy.bucket_mib=0"}},
                             {"ddp", {"strategy.first_bucket_mib=-1"}},
                             {"ddp", {"codec.name=top-k", "codec.ratio=0"}},
                             {"ddp", {"codec.name=power-sgd", "codec.rank=0"}}};
  const auto group = comm::open_alone();
  for (const Bad& each : bad) {
    spec::RunSpec spec;
    spec.strategy.name = each.strategy;
    spec.complete();
    EXPECT_NO_THROW(spec.validate());
    EXPECT_NO_THROW(parallel::make_strategy(strategy_options(spec, 10), *group));
    for (const std::string& setting : each.settings) spec.fields().set_assignment(setting);
    EXPECT_THROW(spec.validate(), ConfigError) << each.settings.front();
    EXPECT_THROW(parallel::make_strategy(strategy_options(spec, 10), *group), ConfigError)
        << each.settings.front();
  }
}

}  // namespace
}  // namespace syncopate::run
