// Patterns for paths.
#pragma once

#include <string_view>

namespace thalia::model {

/// True if `glob` matches all of `path`, or all that follows one of its separators. '*' stands for
/// any characters, separators included, '?' for one. '.' and '/' are the same separator in both.
/// Takes time in proportion to the product of the lengths at most.
bool matches_path(std::string_view glob, std::string_view path) noexcept;

}  // namespace thalia::model
