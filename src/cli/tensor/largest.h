// Which of many are shown if there is no room for all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace thalia::cli {

/// For each size whether it is among the `most` largest; of equal ones the first.
template <typename Size>
std::vector<bool> among_largest(const std::vector<Size>& sizes, std::size_t most) {
  std::vector<std::size_t> places(sizes.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<bool> taken(sizes.size(), false);
  for (std::size_t i = 0; i < std::min(most, places.size()); ++i) taken[places[i]] = true;
  return taken;
}

}  // namespace thalia::cli
