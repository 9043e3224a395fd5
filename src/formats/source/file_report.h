// What verification finds wrong with a file of any format.
#pragma once

#include <exception>
#include <string>

#include "base/stopwatch.h"
#include "formats/source/opened_file.h"
#include "thalia/error.h"
#include "thalia/options.h"
#include "thalia/verify.h"

namespace thalia::formats {

/// About the file as a whole.
Finding finding_of_file(Severity severity, ErrorCode code, std::string message);

/// Collects findings, as many as the options say. Externally synchronised.
class FileReport {
 public:
  explicit FileReport(const VerifyOptions& options) : most_(options.max_findings) {}

  void add(Finding finding);
  /// An error that `work` throws about the file is a finding. Others are thrown on: limits,
  /// cancelling, and what the system refuses say nothing about it.
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
  /// The same, and so is a file that cannot be read or is none: of one that another names.
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
  /// Findings and counts of a part of the file.
  void add(const VerifyReport& part);

  VerifyReport& counts() noexcept { return report_; }
  bool ok() const noexcept { return report_.ok(); }
  /// With the time since this was made.
  VerifyReport finish() &&;

 private:
  void add(const Error& error);

  Stopwatch watch_;
  std::uint64_t most_;
  VerifyReport report_;
};

/// Every tensor of a file that is open; unless `quick`.
void check_tensors(const OpenedFile& source, const VerifyOptions& options, FileReport& report);

/// How a room verifies a file. `resolve`: of a .thalia delta also all that it is based on; other
/// deltas are nothing without that. @throws what says nothing about the file: IoError,
/// UnsupportedError, CancelledError, FormatError (limit_exceeded).
using VerifyFormat = VerifyReport (*)(const std::filesystem::path& path, const OpenOptions& options,
                                      const VerifyOptions& verify, bool resolve);

}  // namespace thalia::formats
