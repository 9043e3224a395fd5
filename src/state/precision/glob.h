// Patterns for paths.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalia::state {

/// True if `glob` matches all of `path`, or all that follows one of its separators. '*' stands for
/// any characters, separators included, '?' for one. '.' and '/' are the same separator in both.
/// Takes time in proportion to the product of the lengths at most.
bool matches_path(std::string_view glob, std::string_view path) noexcept;

/// The names that a tensor goes by in patterns. Borrows them.
struct TensorNames {
  std::string_view path;    ///< in the state: "regions.cortex.weights.w_ff"
  std::string_view region;  ///< empty: it is a matrix of a connection
  std::string_view name;

  /// REGION/NAME, as tensors are printed; the path if there is no region.
  std::string shown() const;
  /// True if the pattern fits the path, or REGION/NAME.
  bool fit(std::string_view glob) const;
};

/// Finds patterns that fit no tensor of a file: anybody who wrote one meant something else. Borrows
/// the option's name. Externally synchronised.
class PatternUse {
 public:
  PatternUse(const char* option, std::vector<std::string> globs)
      : option_(option), unused_(std::move(globs)) {}

  bool is_empty() const noexcept { return unused_.empty(); }
  void see(const TensorNames& tensor);
  /// The pattern fits something that it was not seen to fit.
  void mark_used(std::string_view glob);
  /// Checks the patterns against all that was seen. @throws UsageError (not_found) naming a pattern
  /// that fits nothing of it, and what it may have been meant to be: a tensor, or one of `others`.
  void check(const std::vector<std::string>& others = {}) const;

 private:
  const char* option_;
  std::vector<std::string> unused_;
  std::vector<std::string> names_;  ///< some of those seen, as they are printed
};

}  // namespace thalia::state
