// The name that somebody who mistyped one probably meant.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thalia {

/// Of the names that it is offered, the one with the fewest letters inserted, left out, changed or
/// swapped with their neighbour; none where that takes more than a third of the longer name (but at
/// least one). Names beyond the first 10,000 are not looked at.
class Suggestion {
 public:
  /// Borrows the name.
  explicit Suggestion(std::string_view mistyped) : mistyped_(mistyped) {}

  void offer(std::string_view name);
  /// False once it has been offered as many names as it looks at.
  bool is_open() const noexcept { return offered_ < kMost; }
  /// Empty where there is none.
  const std::string& best() const noexcept { return best_; }
  /// What to put behind a message: ", did you mean 'NAME'?", or nothing.
  std::string text() const;

 private:
  static constexpr std::size_t kMost = 10'000;

  std::string_view mistyped_;
  std::string best_;
  std::size_t fewest_ = 0;
  std::size_t offered_ = 0;
};

}  // namespace thalia
