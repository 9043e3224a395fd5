// What comes from C and goes to C: pointers that must not be NULL, memory, texts.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/fail.h"
#include "thalia/c/reader.h"
#include "thalia/types.h"

namespace thalia::c {

inline void require(const void* pointer, std::string_view argument) {
  if (pointer == nullptr) {
    fail_argument(ErrorCode::bad_argument, argument, "NULL", "a pointer that leads somewhere");
  }
}

/// @throws UsageError (bad_argument) that names the argument if it is NULL.
template <typename Object>
Object& required(Object* pointer, std::string_view argument) {
  require(pointer, argument);
  return *pointer;
}

inline std::string_view required_text(const char* text, std::string_view argument) {
  require(text, argument);
  return text;
}

/// Where a new handle goes; NULL until there is one.
template <typename Handle>
Handle*& emptied(Handle** out, std::string_view argument) {
  Handle*& place = required(out, argument);
  place = nullptr;
  return place;
}

/// No bytes may lie at NULL.
inline ByteSpan memory_at(const void* data, std::size_t bytes, std::string_view argument) {
  if (bytes != 0) require(data, argument);
  return {static_cast<const std::byte*>(data), bytes};
}
inline MutableByteSpan memory_at(void* data, std::size_t bytes, std::string_view argument) {
  if (bytes != 0) require(data, argument);
  return {static_cast<std::byte*>(data), bytes};
}

inline thalia_text to_text(std::string_view text) noexcept {
  return {.data = text.data(), .length = text.size()};
}

}  // namespace thalia::c
