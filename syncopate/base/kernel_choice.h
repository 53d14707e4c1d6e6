#pragma once

#include <initializer_list>
#include <vector>

#include "syncopate/base/instruction_set.h"

namespace syncopate {

/// Picks among tables of kernels that were compiled for several instruction sets. For a kernel_choice.cpp
/// alone: what is compiled with a set's flags must not see inline code that the rest of the program shares.
template <typename Kernels>
class KernelChoice {
 public:
  struct Built {
    InstructionSet needs;
    const Kernels* table;
  };

  /// `built`: what this build holds, the plainest first. This CPU's widest is chosen.
  KernelChoice(std::initializer_list<Built> built) {
    for (const Built& each : built) {
      if (widest_instruction_set() >= each.needs) supported_.push_back(each.table);
    }
    chosen_ = supported_.back();
  }

  const std::vector<const Kernels*>& supported() const { return supported_; }
  const Kernels& chosen() const { return *chosen_; }
  void choose(const Kernels& set) { chosen_ = &set; }

 private:
  std::vector<const Kernels*> supported_;
  const Kernels* chosen_;
};

}  // namespace syncopate
