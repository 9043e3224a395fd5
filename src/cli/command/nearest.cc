#include "cli/command/nearest.h"

#include <algorithm>
#include <vector>

namespace thalia::cli {
namespace {

// Optimal string alignment distance: inserting, leaving out or changing a letter counts one, and so
// does swapping two neighbours. Three rows of the table are enough.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  // A word this long is not a typing mistake, and would take long to compare.
  if (word.size() > 64) return {};
  std::string_view best;
  std::size_t fewest = 0;
  for (const std::string_view candidate : candidates) {
    const std::size_t steps = distance(word, candidate);
    // A third of the letters may be wrong; beyond that a suggestion is a guess.
    const std::size_t bound = std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3);
    if (steps <= bound && (best.empty() || steps < fewest)) {
      best = candidate;
      fewest = steps;
    }
  }
  return best;
}

}  // namespace thalia::cli
