#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syncopate/spec/run_spec.h"

// Which settings a run heeds, by the tables of strategies, codecs, optimizers, schedules and tasks.
namespace syncopate::spec {

/// Why the setting with this dotted name does nothing in such a run, in a sentence; none: it is heeded.
/// Throws ConfigError for an unknown setting, strategy or task.
std::optional<std::string> no_effect(const RunSpec& spec, const std::string& setting);

/// Throws ConfigError for the first of the settings that does nothing. For those that somebody gave, equal to
/// the default or not: a setting that passes in silence looks as if it did something.
void require_effect(const RunSpec& spec, const std::vector<std::string>& given);

/// The same of the flags (without dashes) of a command that uses a model of the task.
void require_effect_on_task(const std::string& task, const std::vector<std::string>& flags);

/// Sets the settings with these dotted names to their defaults.
void set_to_defaults(RunSpec& spec, const std::vector<std::string>& names);

/// Sets to its default what such a run does not heed, save what was `given`: a recorded spec may be another
/// strategy's.
void drop_unheeded(RunSpec& spec, const std::vector<std::string>& given);

/// What to tell about a run of so many steps whose workers would average in the middle of none of them;
/// empty: nothing.
std::string rare_averages(const RunSpec& spec, int64_t steps);

}  // namespace syncopate::spec
