// A progress bar on the terminal for work that takes longer than a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "thalia/options.h"

namespace thalia::cli {

/// Draws to standard error, in one line that is wiped at the end. It draws nothing in the first
/// second, and nothing at all unless both standard error and standard output are terminals.
/// Externally synchronised.
class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ProgressBar(std::string_view label);
  /// For a test: draws through `sink` into `columns`, on the time that `now` tells.
  ProgressBar(std::string_view label, unsigned columns, std::function<void(std::string_view)> sink,
              std::function<Clock::time_point()> now);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(std::uint64_t done, std::uint64_t total);
  /// Wipes the bar, before something else is printed.
  void finish();
  /// For the options of the library; must not be called once this bar is gone. Empty if nothing
  /// would be drawn.
  Progress callback();

 private:
  std::string line(std::uint64_t done, std::uint64_t total, Clock::duration elapsed) const;

  std::string label_;
  unsigned columns_ = 80;
  std::function<void(std::string_view)> sink_;
  std::function<Clock::time_point()> now_;
  Clock::time_point start_;
  Clock::time_point next_;
  bool drawn_ = false;
};

}  // namespace thalia::cli
