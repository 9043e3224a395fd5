// Spends a number of bits on groups of weights so that the sum of squared errors is small. For
// every group and every width from 0 to 8 bits the error is measured by quantizing, not estimated.
// Then a greedy choice takes the steps that remove most error per bit; on the lower convex hulls of
// the groups that is the optimum, up to what the last steps leave of the budget. Ties are broken by
// group and width, and threads only measure: the result depends on the numbers alone.

#include "state/quantize/bit_allocation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "base/parallel.h"
#include "codec/float/conversion.h"
#include "codec/lossy/code_packing.h"
#include "codec/lossy/quantize.h"

namespace thalia::state {
namespace {

constexpr unsigned kWidths = codec::kMaxQuantizedBits + 1;
// Elements that a thread takes at a time: whole groups, at least one.
constexpr std::uint64_t kAllocationTurn = 65536;

// Measures one group after the other and reuses its buffers. One object for each thread.
class GroupErrors {
 public:
  explicit GroupErrors(DType dtype) : dtype_(dtype) {}

  std::optional<Distortions> measure(ByteSpan group, std::span<const double> importance) {
    take(group);
    Distortions errors{};
    for (unsigned bits = 1; bits < kWidths; ++bits) {
      const auto scale = codec::uniform_scale(dtype_, group, bits);
      // No scale means that the ends lie too far apart for one step at so few bits. With the most
      // bits it means that there is a number that is not finite, or no width fits.
      if (!scale && bits == codec::kMaxQuantizedBits) return std::nullopt;
      errors[bits] = scale ? error(group, bits, *scale, importance) : HUGE_VAL;
    }
    // 0 bits: the whole group becomes its mean.
    const double mean = group_mean(dtype_, group, importance);
    std::fill(codes_.begin(), codes_.end(), std::uint8_t{0});
    codec::dequantize(dtype_, codes_, {mean, 0}, restored_);
    errors[0] = distance(importance);
    return errors;
  }

  // The numbers that error() is about.
  void take(ByteSpan group) {
    const std::size_t count = group.size() / (dtype_bits(dtype_) / 8);
    codes_.resize(count);
    restored_.resize(group.size());
    numbers_.resize(count);
    results_.resize(count);
    codec::convert_elements(dtype_, DType::f64, group, std::as_writable_bytes(std::span(numbers_)));
  }

  // Goes through the same code as the stored payload, its rounding included.
  double error(ByteSpan group, unsigned bits, codec::UniformScale scale,
               std::span<const double> importance) {
    codec::quantize(dtype_, group, bits, scale, codes_);
    codec::dequantize(dtype_, codes_, scale, restored_);
    return distance(importance);
  }

 private:
  double distance(std::span<const double> importance) {
    codec::convert_elements(dtype_, DType::f64, restored_,
                            std::as_writable_bytes(std::span(results_)));
    double sum = 0;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const double error = numbers_[i] - results_[i];
      sum += error * error * (importance.empty() ? 1 : importance[i]);
    }
    return sum;
  }

  DType dtype_;
  std::vector<std::uint8_t> codes_;
  std::vector<std::byte> restored_;
  std::vector<double> numbers_, results_;
};

// From one width of a group to the next on the lower convex hull of its errors. Gains of one group
// fall from step to step, so that sorting by gain keeps its steps in order.
struct Step {
  double gain = 0;  ///< error taken away for each unit of what it costs
  double cost = 0;
  std::uint64_t group = 0;
  std::uint8_t from = 0;
  std::uint8_t to = 0;
};

}  // namespace

std::vector<std::uint8_t> spend_bits(
    std::span<const Distortions> errors,
    const std::function<double(std::uint64_t group, unsigned bits)>& cost, double budget) {
  std::vector<Step> steps;
  for (std::uint64_t group = 0; group < errors.size(); ++group) {
    for (unsigned from = 0;;) {
      Step best;
      for (unsigned to = from + 1; to < kWidths; ++to) {
        const double more = cost(group, to) - cost(group, from);
        const double gain = (errors[group][from] - errors[group][to]) / more;
        // The longest step of those with equal gains: the points between are on the same edge of
        // the hull. A step that costs nothing, as in a group of one element, has an infinite gain.
        if (gain > 0 && gain >= best.gain) {
          best = {gain, more, group, static_cast<std::uint8_t>(from),
                  static_cast<std::uint8_t>(to)};
        }
      }
      if (best.to == 0) break;
      steps.push_back(best);
      from = best.to;
    }
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    if (a.gain != b.gain) return a.gain > b.gain;
    return a.group != b.group ? a.group < b.group : a.from < b.from;
  });
  std::vector<std::uint8_t> widths(errors.size());
  for (const Step& step : steps) {
    // A step that no longer fits is skipped, with the later ones of its group; cheaper steps of
    // others may still fit.
    if (widths[step.group] != step.from || step.cost > budget) continue;
    widths[step.group] = step.to;
    budget -= step.cost;
  }
  return widths;
}

double group_mean(DType dtype, ByteSpan group, std::span<const double> importance) {
  std::vector<double> numbers(group.size() / (dtype_bits(dtype) / 8));
  codec::convert_elements(dtype, DType::f64, group, std::as_writable_bytes(std::span(numbers)));
  double weights = 0;
  for (const double weight : importance) weights += weight;
  const bool alike = !(weights > 0);
  const double count = alike ? static_cast<double>(numbers.size()) : weights;
  double mean = 0;
  // Divided before adding: the sum alone may exceed what f64 holds.
  for (std::size_t i = 0; i < numbers.size(); ++i)
    mean += numbers[i] * ((alike ? 1 : importance[i]) / count);
  if (codec::parameter_dtype(dtype) == DType::f64) return mean;
  return static_cast<double>(static_cast<float>(mean));
}

std::optional<Distortions> uniform_errors(DType dtype, ByteSpan dense,
                                          std::span<const double> importance, unsigned threads) {
  std::array<std::optional<codec::UniformScale>, kWidths> scales;
  for (unsigned bits = 1; bits < kWidths; ++bits)
    scales[bits] = codec::uniform_scale(dtype, dense, bits);
  if (!scales.back()) return std::nullopt;
  const std::uint64_t width = dtype_bits(dtype) / 8;
  const std::uint64_t elements = dense.size() / width;
  std::vector<Distortions> turns(elements / kAllocationTurn + (elements % kAllocationTurn != 0));
  parallel_for(turns.size(), threads, [&](std::size_t turn) {
    const std::uint64_t first = turn * kAllocationTurn;
    const std::uint64_t count = std::min(kAllocationTurn, elements - first);
    const ByteSpan part = dense.subspan(first * width, count * width);
    GroupErrors measure(dtype);
    measure.take(part);
    for (unsigned bits = 1; bits < kWidths; ++bits) {
      turns[turn][bits] =
          scales[bits]
              ? measure.error(part, bits, *scales[bits],
                              importance.empty() ? importance : importance.subspan(first, count))
              : HUGE_VAL;
    }
  });
  Distortions sum{};
  sum[0] = HUGE_VAL;
  for (const Distortions& turn : turns)
    for (unsigned bits = 1; bits < kWidths; ++bits) sum[bits] += turn[bits];
  return sum;
}

std::optional<std::vector<std::uint8_t>> allocate_bits(DType dtype, ByteSpan dense,
                                                       std::uint32_t group_size, double mean_bits,
                                                       std::span<const double> importance,
                                                       unsigned threads) {
  const std::uint64_t width = dtype_bits(dtype) / 8;
  const std::uint64_t elements = dense.size() / width;
  const std::uint64_t groups = elements / group_size + (elements % group_size != 0);
  const auto size_of = [&](std::uint64_t group) {
    return std::min<std::uint64_t>(group_size, elements - group * group_size);
  };
  std::vector<Distortions> errors(groups);
  std::atomic<bool> finite = true;
  const std::uint64_t in_turn = std::max<std::uint64_t>(1, kAllocationTurn / group_size);
  parallel_for((groups + in_turn - 1) / in_turn, threads, [&](std::size_t turn) {
    GroupErrors measure(dtype);
    const std::uint64_t end = std::min(groups, (turn + 1) * in_turn);
    for (std::uint64_t group = turn * in_turn; group < end; ++group) {
      const std::uint64_t first = group * group_size;
      const auto found = measure.measure(
          dense.subspan(first * width, size_of(group) * width),
          importance.empty() ? importance : importance.subspan(first, size_of(group)));
      if (!found) finite = false;
      errors[group] = found.value_or(Distortions{});
    }
  });
  if (!finite) return std::nullopt;

  // Codes of a group begin at a whole byte, so that its cost is rounded up to bytes, in bits.
  const auto cost = [&](std::uint64_t group, unsigned bits) {
    return 8.0 * static_cast<double>(codec::packed_bytes(size_of(group), bits));
  };
  return spend_bits(errors, cost, mean_bits * static_cast<double>(elements));
}

}  // namespace thalia::state
