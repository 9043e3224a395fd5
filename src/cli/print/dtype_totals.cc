#include "cli/print/dtype_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/print/print.h"

namespace thalia::cli {

template <typename Visit>
void DTypeTotals::for_each(const Visit& visit) const {
  std::array<std::uint8_t, kDTypeCount> order;
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  // Stable, so that dtypes with equal bytes keep the order of their codes.
  std::stable_sort(order.begin(), order.end(), [&](std::uint8_t a, std::uint8_t b) {
    return totals_[a].bytes > totals_[b].bytes;
  });
  for (const std::uint8_t code : order) {
    if (totals_[code].tensors > 0) visit(dtype_name(static_cast<DType>(code)), totals_[code]);
  }
}

std::string DTypeTotals::to_string() const {
  std::string text;
  for_each([&](std::string_view name, const Total& total) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {} ({})", grouped(total.tensors), name, human_bytes(total.bytes));
  });
  return text.empty() ? "none" : text;
}

void DTypeTotals::add_json(JsonWriter& json) const {
  json.begin_array();
  for_each([&](std::string_view name, const Total& total) {
    json.begin_object().member("dtype", name).member("tensors", total.tensors);
    json.member("bytes", total.bytes).end_object();
  });
  json.end_array();
}

}  // namespace thalia::cli
