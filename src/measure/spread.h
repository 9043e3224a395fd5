// Median and range of repeated runs.
#pragma once

#include <algorithm>
#include <vector>

namespace thalia::measure {

struct Spread {
  double median = 0, least = 0, most = 0;
};

/// @param values one or more.
inline Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

}  // namespace thalia::measure
