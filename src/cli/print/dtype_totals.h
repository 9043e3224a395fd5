// How many tensors and bytes a file has of each dtype.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "json/writer.h"
#include "thalia/dtype.h"

namespace thalia::cli {

class DTypeTotals {
 public:
  void add(DType dtype, std::uint64_t bytes) {
    Total& total = totals_[static_cast<std::uint8_t>(dtype)];
    ++total.tensors;
    total.bytes += bytes;
  }
  /// "12 f32 (3.4 MiB), 1 bool (16 B)", most bytes first; "none".
  std::string to_string() const;
  /// [{"dtype", "tensors", "bytes"}, …] in the same order, as a value.
  void add_json(JsonWriter& json) const;

 private:
  struct Total {
    std::uint64_t tensors = 0;
    std::uint64_t bytes = 0;
  };
  std::array<Total, kDTypeCount> totals_{};

  template <typename Visit>
  void for_each(const Visit& visit) const;
};

}  // namespace thalia::cli
