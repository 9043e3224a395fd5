// The name that somebody who mistyped one probably meant.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "thalia/error.h"

namespace thalia {

/// The name, among those offered, with the fewest letters inserted, left out, changed or swapped
/// with their neighbour; none if that takes more than a third of the longer name (but at least
/// one). Names beyond the first 10,000 are not looked at.
class Suggestion {
 public:
  /// Borrows the name.
  explicit Suggestion(std::string_view mistyped) : mistyped_(mistyped) {}

  void offer(std::string_view name);
  /// False once it has been offered as many names as it looks at.
  bool is_open() const noexcept { return offered_ < kMost; }
  /// Empty if there is none.
  const std::string& best() const noexcept { return best_; }
  /// What to put after a message: ", did you mean 'NAME'?", or nothing.
  std::string text() const;

 private:
  static constexpr std::size_t kMost = 10'000;

  std::string_view mistyped_;
  std::string best_;
  std::size_t fewest_ = 0;
  std::size_t offered_ = 0;
};

/// The text() of a Suggestion to which `offer_names` has offered what there is.
/// Empty if that throws: names that cannot be read do not hide that one is missing.
template <typename OfferNames>
std::string suggestion_text(std::string_view mistyped, const OfferNames& offer_names) {
  Suggestion suggestion(mistyped);
  try {
    offer_names(suggestion);
  } catch (const Error&) {
    return {};
  }
  return suggestion.text();
}

/// The same for the names that `name_of` takes from the elements of a range.
template <typename Range, typename NameOf = std::identity>
std::string suggestion_among(std::string_view mistyped, const Range& range,
                             const NameOf& name_of = {}) {
  return suggestion_text(mistyped, [&](Suggestion& suggestion) {
    for (const auto& element : range) suggestion.offer(std::invoke(name_of, element));
  });
}

}  // namespace thalia
