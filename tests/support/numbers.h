// Reproducible numbers of tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/bytes.h"

namespace thalia::test {

/// Near to normal: sums of twelve uniform numbers, less six.
inline std::vector<double> normal_numbers(std::size_t count, double sigma, std::uint64_t seed = 1) {
  const auto bytes = random_bytes(count * 24, seed);
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    double sum = -6;
    for (std::size_t k = 0; k < 12; ++k) {
      const std::size_t at = (i * 12 + k) * 2;
      sum +=
          (std::to_integer<int>(bytes[at]) * 256 + std::to_integer<int>(bytes[at + 1])) / 65536.0;
    }
    numbers[i] = sum * sigma;
  }
  return numbers;
}

}  // namespace thalia::test
