// Errors: one exception type with a stable code and a context; a subclass only where a caller would
// act differently.
//
//   IoError           the operating system said no (errno)
//   FormatError       bytes that break docs/format.md, or a limit of ReadOptions
//   IntegrityError    bytes that are well formed and not the ones that were written
//   UnsupportedError  well formed, and not something this version can do
//   UsageError        the caller's mistake: a wrong name, dtype, size or order of calls
//   CancelledError    the caller asked for it to end
//
// what() reads `path: section.field at offset: got V, bound B`, as far as the parts are known. The
// text may change; the code and the context are the interface.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace thalia {

/// Stable: numbers are never reused. 1xx operating system, 2xx format, 3xx integrity, 4xx
/// unsupported, 5xx usage, 6xx ended on request.
enum class ErrorCode : int {
  io = 100,
  bad_magic = 200,
  truncated = 201,
  out_of_bounds = 202,
  bad_value = 203,
  limit_exceeded = 204,
  bad_json = 205,
  bad_name = 206,
  inconsistent = 207,
  checksum_mismatch = 300,
  unsupported_version = 400,
  unsupported_feature = 401,
  not_found = 500,
  duplicate = 501,
  dtype_mismatch = 502,
  size_mismatch = 503,
  bad_argument = 504,
  wrong_state = 505,
  cancelled = 600,
};

/// The code's name as it stands above: "bad_magic". Static storage.
std::string_view error_code_name(ErrorCode code) noexcept;

/// What is known about where an error lies. Empty strings and nullopt mean "not known" or "does not
/// apply".
struct ErrorContext {
  std::string path;
  std::string section;  ///< header, metadata, region_index, region, connectivity, directory,
                        ///< integrity, checksum, …
  std::string field;    ///< the field's name in docs/format.md, or the option's or argument's
  std::string region;
  std::string tensor;
  std::optional<std::uint64_t> offset;  ///< absolute, in bytes from the start of the file
  std::string value;                    ///< what was found
  std::string bound;                    ///< what would have been right
};

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, ErrorContext context = {});

  ErrorCode code() const noexcept { return code_; }
  const ErrorContext& context() const noexcept { return context_; }
  /// The sentence without the context.
  const std::string& message() const noexcept { return message_; }
  const char* what() const noexcept override { return text_.c_str(); }

  /// Fill in what a lower layer could not know; what is known already is kept. For use while
  /// unwinding.
  void add_path(std::string_view path);
  void add_section(std::string_view section);
  void add_region(std::string_view region);
  void add_tensor(std::string_view tensor);

 private:
  void compose();
  ErrorCode code_;
  std::string message_;
  ErrorContext context_;
  std::string text_;
};

class IoError : public Error {
 public:
  /// `operation` is the system call or step that failed ("pwrite", "fsync"), `errno_value` its
  /// errno.
  IoError(std::string_view operation, int errno_value, ErrorContext context = {});
  int errno_value() const noexcept { return errno_value_; }
  const std::string& operation() const noexcept { return operation_; }

 private:
  std::string operation_;
  int errno_value_;
};

class FormatError : public Error {
  using Error::Error;
};
class IntegrityError : public Error {
  using Error::Error;
};
class UnsupportedError : public Error {
  using Error::Error;
};
class UsageError : public Error {
  using Error::Error;
};
class CancelledError : public Error {
  using Error::Error;
};

}  // namespace thalia
