#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syncopate/record/append_file.h"
#include "syncopate/record/record.h"

// Event files as TensorBoard reads them: TFRecords (a length, its checksum, a message, its checksum) of the
// protocol-buffer message `Event`, of which a few fields are encoded here.
namespace syncopate::record {

uint32_t crc32c(std::string_view bytes);         ///< Castagnoli's
uint32_t masked_crc32c(std::string_view bytes);  ///< as a TFRecord has it
std::string tf_record(std::string_view message);

using Scalars = std::vector<std::pair<std::string, double>>;  ///< by tag: "train/loss"

// Messages of `Event`.
std::string version_event(double wall_time);
std::string start_event(double wall_time, int64_t step);  ///< readers forget what they have from there on
/// Values are stored as single precision; those that are no numbers are left out.
std::string scalars_event(double wall_time, int64_t step, const Scalars& scalars);

Scalars scalars_of(const StepRecord& record);
Scalars scalars_of(const EvalRecord& record);

/// The event files in a folder, which is made if it is not there. Throws DataError.
class EventFolder {
 public:
  /// Of a run that begins: what is there of an earlier one goes. Of one that resumes after step
  /// `resumes_after`: events of later steps are cut off, and the run goes on in a file of its own.
  EventFolder(std::filesystem::path folder, std::optional<int64_t> resumes_after);
  bool had_events() const { return had_events_; }  ///< some of before were kept
  void write(int64_t step, const Scalars& scalars);

 private:
  bool had_events_ = false;
  std::unique_ptr<AppendFile> file_;
};

/// How many bytes of an event file hold whole, sound records up to and with that step.
size_t bytes_up_to(std::string_view events, int64_t step);

}  // namespace syncopate::record
