// Where anybody who verifies collects what it finds: a file of any format, a part of a model, a
// base.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/stopwatch.h"
#include "thalia/error.h"
#include "thalia/verify.h"

namespace thalia::container {

/// About the file as a whole.
Finding finding_of_file(Severity severity, ErrorCode code, std::string message);

/// Findings, as many as VerifyOptions::max_findings, and what else the report says. Several threads
/// may add findings and run check(); all else is externally synchronised.
class Findings {
 public:
  explicit Findings(std::uint64_t most) : most_(most) {}

  /// A finding that was added before is not added again: several checks may come upon one fault.
  void add(Finding finding);
  /// An error as a finding; region and tensor are filled in if the error does not know them.
  void add(const Error& error, std::string_view region = {}, std::string_view tensor = {});
  /// The findings of a part, each with this text before its message, and what is counted.
  void add_report(const VerifyReport& part, const std::string& in_front = {});

  /// Runs a check. What it throws becomes a finding; a passed limit and a stop go on to the caller.
  ///
  /// @return true if nothing was thrown.
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
  /// The same of work on a file that the user named: what the system refuses, and what the library
  /// lacks, says nothing about the file, and goes on too.
  template <typename Work>
  void find(const Work& work) {
    try {
      work();
    } catch (const FormatError& error) {
      if (error.code() == ErrorCode::limit_exceeded) throw;
      add(error);
    } catch (const IntegrityError& error) {
      add(error);
    }
  }
  /// The same of one that another file names: that it cannot be read, or is not one, is a finding.
  template <typename Work>
  void find_of_named(const Work& work) {
    try {
      find(work);
    } catch (const IoError& error) {
      add(error);
    } catch (const UsageError& error) {
      add(error);
    }
  }

  /// All but findings and seconds is the caller's.
  VerifyReport& counts() noexcept { return report_; }
  bool ok() const noexcept { return report_.ok(); }
  /// By offset, where threads added them in no order.
  void sort();
  /// With the time since this was made.
  VerifyReport finish() &&;

 private:
  Stopwatch watch_;
  std::mutex mutex_;
  std::uint64_t most_;
  VerifyReport report_;
  std::unordered_set<std::string> said_;  ///< of its findings
};

}  // namespace thalia::container
