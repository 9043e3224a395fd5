#include "state/precision/rounding.h"

namespace thalia::state {

void add_loss(RoundingLoss& rounding, std::string_view tensor, const codec::ConversionLoss& before,
              const codec::ConversionLoss& now) {
  const auto add = [&](RoundedNumbers& numbers, std::uint64_t codec::ConversionLoss::*count) {
    numbers.count += now.*count - before.*count;
    if (now.*count <= numbers.worst_count) return;
    numbers.worst_count = now.*count;
    numbers.worst = tensor;
  };
  add(rounding.infinite, &codec::ConversionLoss::infinite);
  add(rounding.nan, &codec::ConversionLoss::nan);
  add(rounding.zeroed, &codec::ConversionLoss::zeroed);
  add(rounding.subnormal, &codec::ConversionLoss::subnormal);
  if (now.largest_error <= rounding.largest_error) return;
  rounding.largest_error = now.largest_error;
  rounding.largest_error_tensor = tensor;
}

}  // namespace thalia::state
