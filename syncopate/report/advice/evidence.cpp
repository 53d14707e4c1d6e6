#include "syncopate/report/advice/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

std::string limit_text(const Claims& claims) {
  return claims.group().measure().percent
             ? std::string("the one point that is tolerated here")
             : fmt::format("the {:.2f} (2 %) that are tolerated here", claims.loss_limit());
}

}  // namespace

std::string evidence_text(const ArmGroup& group, const ArmResult& arm) {
  if (&arm == group.base()) return "the baseline";
  return fmt::format("difference {}, {}", difference_text(group.measure(), *arm.to_base),
                     seeds_text(arm.to_base->n));
}

std::string small_loss_text(const Claims& claims, const ArmResult& arm) {
  const bool percent = claims.group().measure().percent;
  const double unit = percent ? 100 : 1;
  const Difference& d = *arm.to_base;
  return fmt::format("loses {:.2f}{} (± {:.2f}, {}), less than {}", unit * std::abs(d.mean),
                     percent ? " points" : "", unit * d.half(), seeds_text(d.n), limit_text(claims));
}

std::string kept_text(const Claims& claims, const ArmResult& arm) {
  if (claims.is_worse(arm)) return "it " + small_loss_text(claims, arm);
  const char* quality = claims.is_better(arm) ? "and better"
                        : arm.to_base->same   ? "with the same quality"
                                              : "nothing lost";
  return fmt::format("{} ({})", quality, evidence_text(claims.group(), arm));
}

std::string needed_text(const Claims& claims, const ArmResult& arm) {
  const Difference& d = *arm.to_base;
  const double lost = claims.loss(d.mean), room = claims.loss_limit() - lost;
  std::optional<int64_t> seeds;
  for (const double margin : {room, lost}) {
    if (!(margin > 0)) continue;
    const auto count = seeds_needed(margin, d.sd);
    if (count && (!seeds || *count < *seeds)) seeds = count;
  }
  if (!seeds) return "no number of seeds that one would run could tell";
  return fmt::format("about {} more would tell", seeds_text(std::max<int64_t>(1, *seeds - d.n)));
}

}  // namespace syncopate::report
