// A run that is saved into, for those who save and who publish.
#pragma once

#include <string_view>

#include "c/arguments.h"
#include "c/sized.h"
#include "thalia/c/run.h"
#include "thalia/store/writer.h"

struct thalia_run_writer {
  thalia::RunWriter writer;
};

namespace thalia::c {

inline RunWriter& saving(thalia_run_writer* run) {
  return required(run, "run").writer;
}

/// A struct that no result can be given in is refused before the call does anything.
template <typename Struct>
void check_optional(const Struct* out, std::string_view argument) {
  if (out != nullptr) checked_size(*out, argument);
}

}  // namespace thalia::c
