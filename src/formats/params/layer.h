// The layer that a parameter belongs to, by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace thalia::formats::params {

/// As ParamInfo::layer. nullopt also for a number of 2^64 and more.
std::optional<std::uint64_t> layer_of(std::string_view name) noexcept;

}  // namespace thalia::formats::params
