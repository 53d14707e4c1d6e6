#pragma once

namespace syncopate::comm {

/// What an exchange carries.
enum class Payload { kControl, kGradients, kParameters, kActivations };
inline constexpr int kPayloads = 4;

const char* name_of(Payload payload);  ///< "gradients"

/// Who starts an exchange says what it carries: what this thread starts while a Carrying lives carries that,
/// anything else is control (losses, counts, flags). The innermost counts.
class Carrying {
 public:
  explicit Carrying(Payload payload);
  ~Carrying();
  Carrying(const Carrying&) = delete;
  Carrying& operator=(const Carrying&) = delete;

  static Payload now();  ///< of this thread

 private:
  Payload before_;
};

}  // namespace syncopate::comm
