// Random numbers that any program can make: SHA-256 of what they are for and what they depend on.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace thalia::store {

/// SHA-256(purpose ‖ each number as u64, little-endian ‖ text), as four words, little-endian.
std::array<std::uint64_t, 4> seeded_words(std::string_view purpose,
                                          std::initializer_list<std::uint64_t> numbers,
                                          std::string_view text = {});

}  // namespace thalia::store
