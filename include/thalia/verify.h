// verify: everything that can be wrong with a .thalia file, collected. docs/format/verifying.md,
// "Findings".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/error.h"
#include "thalia/options.h"

namespace thalia {

enum class Severity {
  error,    ///< the file breaks the format, or bytes are not the ones that were written
  warning,  ///< readable and whole, but worth a look: debris after the end, a newer minor version
};

std::string_view severity_name(Severity severity) noexcept;  ///< "error", "warning"

/// One thing found. Strings are empty, and length is 0, if they do not apply.
struct Finding {
  Severity severity = Severity::error;
  ErrorCode code = ErrorCode::bad_value;  ///< that of the error a reader would meet
  std::string section;  ///< header, metadata, region_index, region, connectivity, directory,
                        ///< commit_record, integrity, checksum, padding, payload, delta, file,
                        ///< wrapper, side_file
  std::string field;    ///< as in docs/format/format.md, or a part of a payload
  std::string region;
  std::string tensor;
  std::uint64_t offset = 0;  ///< absolute, of the first byte concerned
  std::uint64_t length = 0;
  std::string message;
};

struct VerifyReport {
  std::vector<Finding> findings;
  std::uint64_t suppressed = 0;         ///< findings beyond VerifyOptions::max_findings
  std::uint64_t suppressed_errors = 0;  ///< of these, those of severity error
  /// The bytes that were compared with a checksum; 0 if none were.
  std::uint64_t bytes_checked = 0;
  std::uint32_t regions = 0;
  std::uint32_t tensors = 0;
  /// Tensors whose bytes were compared with a checksum. The others may have changed unnoticed:
  /// their format has no checksums, the file was written without, or VerifyOptions::quick was set.
  std::uint32_t tensors_compared = 0;
  double seconds = 0;
  /// Names, tables and bounds were checked, and no element of any tensor.
  bool structure_only() const noexcept {
    return tensors_compared == 0 && (tensors != 0 || bytes_checked == 0);
  }
  /// No finding of severity error, and none suppressed.
  bool ok() const noexcept;
};

/// Maps or copies the file and checks structure, padding, checksums, every tensor's CRC-32 and
/// content hash, names, JSON and sparse indices. Damage is reported, never thrown; each finding in
/// a payload names its region and tensor. For a side file, its own checksums are checked, and the
/// header and block tree of its source.
///
/// @throws IoError where the file cannot be opened or mapped; FormatError (limit_exceeded);
/// CancelledError.
VerifyReport verify(const std::filesystem::path& path, const VerifyOptions& options = {});

}  // namespace thalia
