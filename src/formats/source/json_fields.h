// Members of the JSON headers of files, read strictly.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "json/reader.h"
#include "thalia/types.h"

namespace thalia::formats {

[[noreturn]] inline void fail_header(ErrorCode code, std::string_view field, std::string value,
                                     std::string bound, std::string message = {}) {
  throw FormatError(code, std::move(message),
                    {.section = "header",
                     .field = std::string(field),
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

inline void require_kind(const json::Value& value, json::Kind kind, std::string_view field) {
  if (value.kind() == kind) return;
  fail_header(ErrorCode::bad_value, field, std::string(json::kind_name(value.kind())),
              std::string(json::kind_name(kind)));
}

inline std::uint64_t read_integer(json::Value& value, std::string_view field) {
  require_kind(value, json::Kind::number, field);
  const auto number = value.unsigned_integer();
  if (!number) {
    fail_header(ErrorCode::bad_value, field, printable(value.token()), "a whole number below 2^64");
  }
  return *number;
}

inline std::string read_text(json::Value& value, std::string_view field) {
  require_kind(value, json::Kind::string, field);
  return std::string(value.string());
}

/// A shape of up to 8 extents. @throws UnsupportedError for more.
Shape read_shape(json::Value& value);

/// An object of tensors, of which no two have one name: calls `read` with each. Its errors name the
/// tensor. @throws FormatError (limit_exceeded) for more than `max_tensors`.
void read_tensors(json::Value& value, std::string_view field, std::uint64_t max_tensors,
                  const json::MemberVisitor& read);

/// The members of one object that a format knows; those it does not know are passed over.
class KnownMembers {
 public:
  void once(std::string_view field) {
    if (!seen_.emplace(field).second)
      fail_header(ErrorCode::inconsistent, field, "", "", "the key is there twice");
  }
  void need(std::string_view field) const {
    if (!seen_.contains(field))
      fail_header(ErrorCode::bad_value, field, "", "", "the key is missing");
  }

 private:
  std::set<std::string, std::less<>> seen_;
};

}  // namespace thalia::formats
