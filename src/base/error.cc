// An error's text is composed again whenever a layer adds what it knows: path, section, region,
// tensor. The innermost layer knows best, so what is set stays. All text that may come from a file
// is made printable here, once, so that no message can move a terminal's cursor or hide a line.
#include "thalia/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "thalia/detail/held.h"
#include "thalia/text.h"

namespace thalia {
namespace {

std::string shown(std::string_view text) {
  return printable(text, std::string_view::npos);
}

}  // namespace

void detail::fail_moved() {
  throw UsageError(ErrorCode::wrong_state, "the object was moved from");
}

std::string_view error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::io:
      return "io";
    case ErrorCode::storage:
      return "storage";
    case ErrorCode::bad_magic:
      return "bad_magic";
    case ErrorCode::truncated:
      return "truncated";
    case ErrorCode::out_of_bounds:
      return "out_of_bounds";
    case ErrorCode::bad_value:
      return "bad_value";
    case ErrorCode::limit_exceeded:
      return "limit_exceeded";
    case ErrorCode::bad_json:
      return "bad_json";
    case ErrorCode::bad_name:
      return "bad_name";
    case ErrorCode::inconsistent:
      return "inconsistent";
    case ErrorCode::bad_compression:
      return "bad_compression";
    case ErrorCode::checksum_mismatch:
      return "checksum_mismatch";
    case ErrorCode::unsupported_version:
      return "unsupported_version";
    case ErrorCode::unsupported_feature:
      return "unsupported_feature";
    case ErrorCode::unsupported_dtype:
      return "unsupported_dtype";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::duplicate:
      return "duplicate";
    case ErrorCode::dtype_mismatch:
      return "dtype_mismatch";
    case ErrorCode::size_mismatch:
      return "size_mismatch";
    case ErrorCode::bad_argument:
      return "bad_argument";
    case ErrorCode::wrong_state:
      return "wrong_state";
    case ErrorCode::shape_mismatch:
      return "shape_mismatch";
    case ErrorCode::exists:
      return "exists";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string message, ErrorContext context)
    : code_(code), message_(std::move(message)), context_(std::move(context)) {
  message_ = shown(message_);
  context_.value = shown(context_.value);
  context_.bound = shown(context_.bound);
  compose();
}

void Error::add_path(std::string_view path) {
  if (context_.path.empty()) context_.path = path;
  compose();
}
void Error::replace_path(std::string_view hidden, std::string_view path) {
  if (context_.path == hidden) context_.path = path;
  compose();
}
void Error::add_section(std::string_view section) {
  if (context_.section.empty()) context_.section = section;
  compose();
}
void Error::add_region(std::string_view region) {
  if (context_.region.empty()) context_.region = region;
  compose();
}
void Error::add_tensor(std::string_view tensor) {
  if (context_.tensor.empty()) context_.tensor = tensor;
  compose();
}

// The form of every message: "path: section.field at offset (region R, tensor T): message: got V,
// expected B". Parts that are empty are left out with their punctuation.
void Error::compose() {
  const ErrorContext& c = context_;
  std::string where = c.section;
  if (!c.field.empty()) where += (where.empty() ? "" : ".") + c.field;
  if (c.offset) where += fmt::format("{}at offset {}", where.empty() ? "" : " ", *c.offset);
  std::string owner;
  if (!c.region.empty()) owner = fmt::format("region '{}'", c.region);
  if (!c.tensor.empty()) owner += fmt::format("{}tensor '{}'", owner.empty() ? "" : ", ", c.tensor);
  if (!owner.empty()) where += where.empty() ? owner : " (" + owner + ")";

  text_.clear();
  for (const std::string& part : {c.path, where, message_, details()}) {
    if (part.empty()) continue;
    if (!text_.empty()) text_ += ": ";
    text_ += part;
  }
  text_ = shown(text_);  // names and paths too, which are in the context as they are
}

std::string Error::details() const {
  const std::string& bound = context_.bound;
  std::string text = context_.value.empty() ? "" : "got " + context_.value;
  if (bound.empty()) return text;
  if (!text.empty()) text += ", ";
  // A limit's value is a bare number, which alone would read as if exactly that were expected.
  const bool is_most = code_ == ErrorCode::limit_exceeded &&
                       bound.find_first_not_of("0123456789") == std::string::npos;
  return text + (is_most ? "expected at most " : "expected ") + bound;
}

IoError::IoError(std::string_view operation, int errno_value, ErrorContext context)
    : IoError(ErrorCode::io, operation, errno_value, std::move(context)) {}

IoError::IoError(ErrorCode code, std::string_view operation, int errno_value, ErrorContext context)
    : Error(code,
            fmt::format("{} failed: {} (errno {})", operation, std::strerror(errno_value),
                        errno_value),
            std::move(context)),
      operation_(operation),
      errno_value_(errno_value) {}

MissingBaseError::MissingBaseError(std::string base, ErrorContext context)
    : IoError("open its base", ENOENT, std::move(context)), base_(std::move(base)) {}

StorageError::StorageError(std::string_view operation, std::string key, int errno_value,
                           ErrorContext context)
    : IoError(ErrorCode::storage, operation, errno_value, std::move(context)),
      key_(std::move(key)) {}

CompressionError::CompressionError(std::string codec, std::string message, ErrorContext context)
    : FormatError(ErrorCode::bad_compression, std::move(message), std::move(context)),
      codec_(std::move(codec)) {}

UnsupportedDtypeError::UnsupportedDtypeError(std::string dtype, std::string message,
                                             ErrorContext context)
    : UnsupportedError(ErrorCode::unsupported_dtype, std::move(message), std::move(context)),
      dtype_(std::move(dtype)) {}

namespace {

ErrorContext with_shapes(ErrorContext context, const Shape& expected, const Shape& actual) {
  if (context.value.empty()) context.value = actual.to_string();
  if (context.bound.empty()) context.bound = expected.to_string();
  return context;
}

}  // namespace

ShapeMismatchError::ShapeMismatchError(const Shape& expected, const Shape& actual,
                                       std::string message, ErrorContext context)
    : UsageError(ErrorCode::shape_mismatch, std::move(message),
                 with_shapes(std::move(context), expected, actual)),
      expected_(expected),
      actual_(actual) {}

}  // namespace thalia
