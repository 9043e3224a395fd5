// Sums of numbers that a file claims: they may be any, and their sum may not wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace thalia {

/// Once it has passed 2^64 - 1 it has no value any more, whatever is added.
class CheckedSum {
 public:
  CheckedSum& operator+=(std::uint64_t number) noexcept {
    passed_ |= __builtin_add_overflow(sum_, number, &sum_);
    return *this;
  }
  CheckedSum& operator+=(const CheckedSum& other) noexcept {
    passed_ |= other.passed_;
    return *this += other.sum_;
  }
  std::optional<std::uint64_t> value() const noexcept {
    return passed_ ? std::nullopt : std::optional(sum_);
  }
  /// For messages.
  std::string to_string() const { return passed_ ? "more than 2^64 - 1" : std::to_string(sum_); }

 private:
  std::uint64_t sum_ = 0;
  bool passed_ = false;
};

}  // namespace thalia
