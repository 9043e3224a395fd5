// The word that somebody who mistyped one probably meant.
#pragma once

#include <span>
#include <string_view>

namespace thalia::cli {

/// The candidate with the fewest letters inserted, left out, changed or swapped with their
/// neighbour; empty where that takes more than a third of the longer word (but at least one).
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace thalia::cli
