// Errors: one exception type with a stable code and a context; a subclass only where a caller would
// act differently.
//
//   IoError           the operating system said no (errno)
//   FormatError       bytes that break docs/format/format.md, or a limit of ReadOptions
//   IntegrityError    bytes that are well formed and not the ones that were written
//   UnsupportedError  well formed, and not something this version can do
//   UsageError        the caller's mistake: a wrong name, dtype, size or order of calls
//   CancelledError    the caller asked for it to end
//
// Kinds that carry facts of their own: MissingBaseError and StorageError are IoErrors,
// CompressionError is a FormatError, UnsupportedDtypeError an UnsupportedError, ShapeMismatchError
// a UsageError.
//
// what() reads `path: section.field at offset: got V, bound B`, as far as the parts are known. The
// text may change; the code and the context are the interface.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "thalia/types.h"

namespace thalia {

/// Stable: numbers are never reused. 1xx operating system, 2xx format, 3xx integrity, 4xx
/// unsupported, 5xx usage, 6xx ended on request; 7xx belongs to thalia/c.h.
enum class ErrorCode : int {
  io = 100,
  storage = 101,
  bad_magic = 200,
  truncated = 201,
  out_of_bounds = 202,
  bad_value = 203,
  limit_exceeded = 204,
  bad_json = 205,
  bad_name = 206,
  inconsistent = 207,
  bad_compression = 208,
  checksum_mismatch = 300,
  unsupported_version = 400,
  unsupported_feature = 401,
  unsupported_dtype = 402,
  not_found = 500,
  duplicate = 501,
  dtype_mismatch = 502,
  size_mismatch = 503,
  bad_argument = 504,
  wrong_state = 505,
  shape_mismatch = 506,
  exists = 507,
  cancelled = 600,
};

/// The code's name as it is above: "bad_magic". Static storage.
std::string_view error_code_name(ErrorCode code) noexcept;

/// What is known about where an error lies. Empty strings and nullopt mean "not known" or "does not
/// apply".
struct ErrorContext {
  std::string path;
  std::string section;  ///< header, metadata, region_index, region, connectivity, directory,
                        ///< integrity, checksum, …
  std::string field;  ///< the field's name in docs/format/format.md, or the option's or argument's
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
  /// What the context says of value and bound: "got 9, expected 1 to 8". Empty without both.
  std::string details() const;
  const char* what() const noexcept override { return text_.c_str(); }

  /// Fill in what a lower layer could not know; what is known already is kept. For use while
  /// unwinding.
  void add_path(std::string_view path);
  /// In place of `hidden`, a file that the caller knows nothing of.
  void replace_path(std::string_view hidden, std::string_view path);
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

 protected:
  IoError(ErrorCode code, std::string_view operation, int errno_value, ErrorContext context);

 private:
  std::string operation_;
  int errno_value_;
};

/// What a delta was taken against is nowhere to be found.
class MissingBaseError : public IoError {
 public:
  /// `base` is a path or a key, as the delta names it. context().value may list the places tried.
  explicit MissingBaseError(std::string base, ErrorContext context = {});
  const std::string& base() const noexcept { return base_; }

 private:
  std::string base_;
};

/// A storage backend (thalia/storage.h) could not do what was asked of it.
class StorageError : public IoError {
 public:
  /// `operation` is put, get, erase, …; errno_value is EIO where a backend knows no better.
  StorageError(std::string_view operation, std::string key, int errno_value,
               ErrorContext context = {});
  const std::string& key() const noexcept { return key_; }

 private:
  std::string key_;
};

class FormatError : public Error {
  using Error::Error;
};

/// Compressed bytes that do not decode. Code bad_compression.
class CompressionError : public FormatError {
 public:
  /// `codec` as in docs/format/format.md: zstd, lz4, …
  CompressionError(std::string codec, std::string message, ErrorContext context = {});
  const std::string& codec() const noexcept { return codec_; }

 private:
  std::string codec_;
};

class IntegrityError : public Error {
 public:
  using Error::Error;
  /// The two checksums, in hexadecimal, if it is about checksums.
  const std::string& expected() const noexcept { return context().bound; }
  const std::string& actual() const noexcept { return context().value; }
};

class UnsupportedError : public Error {
  using Error::Error;
};

/// An element type that a format, or this version, lacks. Code unsupported_dtype.
class UnsupportedDtypeError : public UnsupportedError {
 public:
  /// `dtype` as the file or the caller spells it.
  explicit UnsupportedDtypeError(std::string dtype, std::string message = "unknown dtype",
                                 ErrorContext context = {});
  const std::string& dtype() const noexcept { return dtype_; }

 private:
  std::string dtype_;
};

class UsageError : public Error {
  using Error::Error;
};

/// A tensor of another shape than asked for. Code shape_mismatch.
class ShapeMismatchError : public UsageError {
 public:
  ShapeMismatchError(const Shape& expected, const Shape& actual, std::string message = {},
                     ErrorContext context = {});
  const Shape& expected() const noexcept { return expected_; }
  const Shape& actual() const noexcept { return actual_; }

 private:
  Shape expected_;
  Shape actual_;
};

class CancelledError : public Error {
  using Error::Error;
};

}  // namespace thalia
