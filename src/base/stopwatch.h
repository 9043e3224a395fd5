// How long something took, as results say it.
#pragma once

#include <chrono>

namespace thalia {

/// Runs from its construction on.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace thalia
