// What an operation is expected to leave: learned in a run without a crash.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "crash/call_log.h"
#include "crash/folder.h"
#include "crash/operation.h"

namespace thalia::crash {

/// The name of what was there when an operation began.
inline constexpr const char* kBefore = "what was there before";

struct Learned {
  Tree before;
  std::map<std::string, std::string> contents;  ///< what observe() says, by names that were told
  std::string last;                             ///< the name that was told last

  /// The name of what was observed, those of `first` before all others; empty if it has none.
  std::string name_of(const std::string& observed, const std::vector<std::string>& first) const;
  /// By Operation::fault().
  std::string fault_of(const Operation& operation, const std::string& observed,
                       const std::vector<std::string>& allowed) const;
};
Learned learn(const Operation& operation);

/// What may be found after a crash at a place of the log: what was promised last, and what was
/// attempted since.
std::vector<std::string> allowed_at(const CallLog& log, std::size_t place);

}  // namespace thalia::crash
