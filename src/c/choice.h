// Numbers of options in C and the enumerators that they stand for: by their place in a list that
// begins with the default, so that an option at 0 is at its default. Lists grow at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fail.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::c {

inline constexpr std::array kAccesses{Access::mapped, Access::copied, Access::writable};
inline constexpr std::array kIoModes{IoMode::automatic, IoMode::buffered, IoMode::direct};
inline constexpr std::array kChecksums{ChecksumType::block_tree, ChecksumType::none,
                                       ChecksumType::sha256, ChecksumType::crc32};
inline constexpr std::array kNeuronTypes{NeuronType::none, NeuronType::lif,
                                         NeuronType::conductance_lif};

/// @throws UsageError (bad_argument) naming the option.
template <typename Enum, std::size_t count>
Enum chosen(const std::array<Enum, count>& choices, std::uint32_t number, std::string_view option) {
  check_option(option, number, 0, count - 1);
  return choices[number];
}

/// The number of an enumerator; it is one of the list.
template <typename Enum, std::size_t count>
std::uint32_t number_of(const std::array<Enum, count>& choices, Enum value) noexcept {
  std::uint32_t number = 0;
  while (number + 1 < count && choices[number] != value) ++number;
  return number;
}

/// A code of the format. @throws UsageError (bad_argument) if it has none of that number.
template <typename Enum>
Enum code(std::uint32_t number, std::uint32_t count, std::string_view option) {
  check_option(option, number, 0, count - 1);
  return static_cast<Enum>(number);
}

inline bool flag(std::uint32_t number, std::string_view option) {
  check_option(option, number, 0, 1);
  return number == 1;
}

}  // namespace thalia::c
