// Where verify collects what it finds, from several threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "thalia/error.h"
#include "thalia/verify.h"

namespace thalia::container {

class Findings {
 public:
  explicit Findings(std::uint64_t most) : most_(most) {}

  /// A finding that was added before is not added again: several checks may come upon one fault.
  void add(Finding finding);
  /// An error as a finding; region and tensor are filled in where the error does not know them.
  void add(const Error& error, std::string_view region = {}, std::string_view tensor = {});

  /// Runs a check. What it throws becomes a finding; a passed limit and a stop go on to the caller.
  ///
  /// @return true where nothing was thrown.
  template <typename Check>
  bool check(Check action, std::string_view region = {}, std::string_view tensor = {}) {
    try {
      action();
      return true;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::limit_exceeded || error.code() == ErrorCode::cancelled) throw;
      add(error, region, tensor);
      return false;
    }
  }

  /// Moves all findings, by offset, into the report. To be called once.
  void deliver(VerifyReport& report);

 private:
  std::mutex mutex_;
  std::uint64_t most_;
  std::uint64_t suppressed_ = 0;
  std::uint64_t suppressed_errors_ = 0;
  std::vector<Finding> findings_;
  std::unordered_set<std::string> said_;  ///< of these
};

}  // namespace thalia::container
