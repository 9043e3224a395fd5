#include "state/precision/glob.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"

namespace thalia::state {
namespace {

// Names that are kept for suggestions: half of what a Suggestion looks at.
constexpr std::size_t kMostNames = 5'000;

bool is_separator(char c) {
  return c == '.' || c == '/';
}

// '/' and '.' match each other: paths of states have dots, those of other programs slashes.
bool same(char pattern, char c) {
  return pattern == '?' || pattern == c || (is_separator(pattern) && is_separator(c));
}

}  // namespace

bool matches_path(std::string_view glob, std::string_view path) noexcept {
  // Greedy matching without recursion. Before the first '*' a mismatch moves the start to the next
  // separator of the path. After a '*' a mismatch lets the last '*' take one character more, and
  // never an earlier one: what was before the last '*' already took as little of the path as it
  // could.
  std::size_t g = 0, p = 0, start = 0, after_star = std::string_view::npos, star_end = 0;
  while (true) {
    if (p == path.size()) {
      while (g < glob.size() && glob[g] == '*') ++g;
      if (g == glob.size()) return true;
    } else if (g < glob.size() && glob[g] == '*') {
      after_star = ++g;
      star_end = p;
      continue;
    } else if (g < glob.size() && same(glob[g], path[p])) {
      ++g;
      ++p;
      continue;
    }
    if (after_star != std::string_view::npos) {
      if (star_end == path.size()) return false;
      g = after_star;
      p = ++star_end;
      continue;
    }
    while (start < path.size() && !is_separator(path[start])) ++start;
    if (start == path.size()) return false;
    p = ++start;
    g = 0;
  }
}

std::string TensorNames::shown() const {
  return region.empty() ? std::string(path) : fmt::format("{}/{}", region, name);
}

bool TensorNames::fit(std::string_view glob) const {
  if (matches_path(glob, path)) return true;
  return !region.empty() && matches_path(glob, shown());
}

void PatternUse::see(const TensorNames& tensor) {
  std::erase_if(unused_, [&](const std::string& glob) { return tensor.fit(glob); });
  if (unused_.empty() || names_.size() == kMostNames) return;
  names_.push_back(tensor.shown());
}

void PatternUse::mark_used(std::string_view glob) {
  std::erase(unused_, glob);
}

void PatternUse::check(const std::vector<std::string>& others) const {
  if (unused_.empty()) return;
  const std::string& glob = unused_[0];
  const std::string hint = suggestion_text(glob, [&](Suggestion& suggestion) {
    for (const std::string& name : others) suggestion.offer(name);
    for (const std::string& name : names_) {
      suggestion.offer(name);
      // A tensor is known by its name alone, too.
      suggestion.offer(std::string_view(name).substr(name.find('/') + 1));
    }
  });
  if (!hint.empty()) {
    throw UsageError(ErrorCode::not_found,
                     fmt::format("no tensor fits '{}'{}", printable(glob), hint),
                     {.field = option_});
  }
  const std::string bound =
      names_.empty() ? "no pattern: there are no tensors"
                     : fmt::format("a pattern of a tensor, such as '{}'", printable(names_[0]));
  fail_argument(ErrorCode::not_found, option_, fmt::format("'{}'", printable(glob)), bound,
                "the pattern fits no tensor");
}

}  // namespace thalia::state
