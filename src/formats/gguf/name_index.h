// Which of many names one is, and whether two are equal. Sorted rather than hashed: names that a
// file makes collide do not slow it down.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace thalia::formats::gguf {

class NameIndex {
 public:
  static constexpr std::size_t kEntryBytes = sizeof(std::string_view) + sizeof(std::size_t);

  NameIndex() = default;
  /// Borrows the names, which `name_of` takes from the elements.
  template <typename Range, typename NameOf>
  NameIndex(const Range& range, const NameOf& name_of) {
    sorted_.reserve(std::size(range));
    std::size_t i = 0;
    for (const auto& element : range) sorted_.emplace_back(name_of(element), i++);
    std::sort(sorted_.begin(), sorted_.end());
  }

  /// The position of the name in the range.
  std::optional<std::size_t> find(std::string_view name) const noexcept {
    const auto found = std::ranges::lower_bound(sorted_, name, {}, &Entry::first);
    if (found == sorted_.end() || found->first != name) return std::nullopt;
    return found->second;
  }
  /// The position of one whose name an earlier one has, too.
  std::optional<std::size_t> repeated() const noexcept {
    const auto twice = std::ranges::adjacent_find(sorted_, {}, &Entry::first);
    if (twice == sorted_.end()) return std::nullopt;
    return std::next(twice)->second;
  }

 private:
  using Entry = std::pair<std::string_view, std::size_t>;
  std::vector<Entry> sorted_;
};

}  // namespace thalia::formats::gguf
