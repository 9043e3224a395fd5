#include "base/suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/utf8.h"

namespace thalia {
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

void Suggestion::offer(std::string_view name) {
  // A name this long is not a typing mistake, and would take long to compare.
  constexpr std::size_t kLongest = 64;
  if (++offered_ > kMost || mistyped_.size() > kLongest || name.size() > 2 * kLongest) return;
  const std::size_t longer = std::max(mistyped_.size(), name.size());
  // A third of the letters may be wrong; beyond that a suggestion is a guess.
  const std::size_t bound = std::max<std::size_t>(1, longer / 3);
  if (longer - std::min(mistyped_.size(), name.size()) > bound) return;
  const std::size_t steps = distance(mistyped_, name);
  if (steps > bound || (!best_.empty() && steps >= fewest_)) return;
  best_ = name;
  fewest_ = steps;
}

std::string Suggestion::text() const {
  return best_.empty() ? "" : fmt::format(", did you mean '{}'?", printable(best_));
}

}  // namespace thalia
