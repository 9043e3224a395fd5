// Structs that may grow. Each begins with its size as the caller's header has it, so that an older
// caller gets along with this library: members that its struct lacks are 0. And a newer one with an
// older library, unless it asks for what that does not know.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/fail.h"
#include "c/arguments.h"

namespace thalia::c {

/// The size of a struct when it was first published, which no caller's is below. A struct that
/// grows keeps it: specialise this with the number.
template <typename Struct>
inline constexpr std::size_t kFirstSize = sizeof(Struct);

// Larger than any of them will be: more is a size that was never set.
inline constexpr std::size_t kLargestStruct = 4096;

template <typename Struct>
std::size_t checked_size(const Struct& theirs, std::string_view argument) {
  const std::size_t size = theirs.size;
  if (size < kFirstSize<Struct> || size > kLargestStruct) {
    fail_argument(ErrorCode::bad_argument, fmt::format("{}.size", argument), std::to_string(size),
                  fmt::format("the sizeof of the struct, which is {}", sizeof(Struct)));
  }
  return size;
}

/// A struct that the caller has filled in, or the default if there is none.
template <typename Struct>
Struct taken(const Struct* theirs, std::string_view argument) {
  Struct ours{};
  if (theirs == nullptr) return ours;
  const std::size_t size = checked_size(*theirs, argument);
  const auto* bytes = reinterpret_cast<const std::byte*>(theirs);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != std::byte{0}) {
      fail_argument(ErrorCode::bad_argument, argument, fmt::format("something at byte {}", i),
                    "0 in members that this version of the library does not know");
    }
  }
  std::memcpy(&ours, bytes, std::min(size, sizeof(Struct)));
  return ours;
}

/// Fills in a struct of the caller's, as far as that goes.
template <typename Struct>
void give(Struct& theirs, Struct ours, std::string_view argument) {
  const std::size_t size = checked_size(theirs, argument);
  ours.size = size;
  auto* bytes = reinterpret_cast<std::byte*>(&theirs);
  std::memcpy(bytes, &ours, std::min(size, sizeof(Struct)));
  if (size > sizeof(Struct)) std::memset(bytes + sizeof(Struct), 0, size - sizeof(Struct));
}

/// An option that the caller left at 0 stays at its default.
template <typename Option, typename Number>
void set_unless_zero(Option& option, Number number) {
  if (number != 0) option = number;
}

}  // namespace thalia::c
