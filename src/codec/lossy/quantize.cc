// The arithmetic of docs/format/format.md, "quantized", in f64 for every type. The restored numbers
// are part of the format, as a verifier compares their CRC-32, so every operation is rounded on its
// own, and none is fused. Elements are converted to f64 a block at a time; nothing is allocated.
#include "codec/lossy/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "codec/float/conversion.h"
#include "codec/float/environment.h"
#include "codec/float/range.h"

namespace thalia::codec {
namespace {

// Elements that are converted to f64 at a time; they stay in the first cache.
constexpr std::size_t kNumberBlock = 1024;
// Sums and extremes are kept in eight independent lanes, so that the compiler can use vectors: it
// may not reorder the additions of a single sum. The order is thus fixed, and the same everywhere.
constexpr std::size_t kLanes = 8;

using Numbers = std::array<double, kNumberBlock>;

void check_bits(unsigned bits) {
  if (bits >= 1 && bits <= kMaxQuantizedBits) return;
  fail_argument(ErrorCode::bad_argument, "bits", std::to_string(bits),
                fmt::format("1 to {}", kMaxQuantizedBits));
}

std::size_t checked_elements(DType dtype, ByteSpan group) {
  return checked_count(dtype, dtype, group.size(), group.size());
}

void check_codes(std::size_t elements, std::size_t codes) {
  if (elements == codes) return;
  fail_argument(ErrorCode::size_mismatch, "codes", std::to_string(codes),
                fmt::format("{}, one an element", elements));
}

// Calls action(numbers, first, count) for one block after the other.
template <typename Action>
void in_blocks(DType dtype, ByteSpan group, Action action) {
  const std::size_t width = dtype_bits(dtype) / 8;
  const std::size_t total = group.size() / width;
  alignas(64) Numbers numbers;
  for (std::size_t i = 0; i < total; i += kNumberBlock) {
    const std::size_t count = std::min(kNumberBlock, total - i);
    convert_elements(dtype, DType::f64, group.subspan(i * width, count * width),
                     std::as_writable_bytes(std::span(numbers).first(count)));
    action(numbers, i, count);
  }
}

struct Extremes {
  std::array<double, kLanes> least, greatest;
  std::array<double, kLanes> strange;  // NaN where a number was NaN or infinite, else 0

  Extremes() {
    least.fill(std::numeric_limits<double>::infinity());
    greatest.fill(-std::numeric_limits<double>::infinity());
    strange.fill(0);
  }
  void add(std::size_t lane, double number) noexcept {
    least[lane] = number < least[lane] ? number : least[lane];
    greatest[lane] = number > greatest[lane] ? number : greatest[lane];
    // 0 times a NaN or an infinity is NaN, which stays in the sum: one test at the end suffices.
    strange[lane] += number * 0.0;
  }
};

// The least scale of the parameters' type with levels × scale >= range; nullopt if none is
// finite.
template <typename Parameter>
std::optional<double> least_scale(double range, double levels) {
  const double quotient = range / levels;
  if (quotient > static_cast<double>(std::numeric_limits<Parameter>::max())) return std::nullopt;
  auto scale = static_cast<Parameter>(quotient);
  // Rounded down, it leaves the greatest number beyond the last step.
  if (static_cast<double>(scale) * levels < range)
    scale = std::nextafter(scale, std::numeric_limits<Parameter>::infinity());
  if (!std::isfinite(scale)) return std::nullopt;
  return static_cast<double>(scale);
}

}  // namespace

double QuantizationLoss::rms_error() const noexcept {
  return squared_errors.root_mean(count);
}

void QuantizationLoss::add(const QuantizationLoss& other) noexcept {
  largest_error = std::max(largest_error, other.largest_error);
  squared_errors.add(other.squared_errors);
  count += other.count;
}

std::optional<UniformScale> uniform_scale(DType dtype, ByteSpan group, unsigned bits) {
  check_bits(bits);
  if (checked_elements(dtype, group) == 0) return UniformScale{};
  const StandardEnvironment environment;
  Extremes extremes;
  in_blocks(dtype, group, [&](const Numbers& numbers, std::size_t, std::size_t count) {
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) extremes.add(lane, numbers[i + lane]);
    for (; i < count; ++i) extremes.add(0, numbers[i]);
  });
  double strange = 0;
  for (const double lane : extremes.strange) strange += lane;
  if (std::isnan(strange)) return std::nullopt;
  const double least = *std::min_element(extremes.least.begin(), extremes.least.end());
  const double greatest = *std::max_element(extremes.greatest.begin(), extremes.greatest.end());
  // -0.0 + 0.0 is 0.0: the sign of a zero must not depend on which zero came first.
  UniformScale result{.minimum = least + 0.0};
  if (least == greatest) return result;
  const double levels = static_cast<double>((1U << bits) - 1);
  const double range = greatest - least;
  const auto scale = parameter_dtype(dtype) == DType::f64 ? least_scale<double>(range, levels)
                                                          : least_scale<float>(range, levels);
  if (!scale) return std::nullopt;
  result.scale = *scale;
  return result;
}

void quantize(DType dtype, ByteSpan group, unsigned bits, UniformScale scale,
              std::span<std::uint8_t> codes) {
  check_bits(bits);
  check_codes(checked_elements(dtype, group), codes.size());
  if (!(scale.scale > 0)) {
    std::fill(codes.begin(), codes.end(), std::uint8_t{0});
    return;
  }
  const StandardEnvironment environment;
  const double levels = static_cast<double>((1U << bits) - 1);
  const double minimum = scale.minimum, step = scale.scale;
  in_blocks(dtype, group, [&](const Numbers& numbers, std::size_t first, std::size_t count) {
    std::uint8_t* const out = codes.data() + first;
    for (std::size_t i = 0; i < count; ++i) {
      double steps = (numbers[i] - minimum) / step;
      steps = steps > 0 ? steps : 0;  // NaN too
      steps = steps < levels ? steps : levels;
      // Adding a half before cutting would round up a number just below a half, as the sum is
      // rounded.
      const int whole = static_cast<int>(steps);
      out[i] = static_cast<std::uint8_t>(whole + (steps - whole >= 0.5 ? 1 : 0));
    }
  });
}

void dequantize(DType dtype, std::span<const std::uint8_t> codes, UniformScale scale,
                MutableByteSpan group) {
  check_codes(checked_elements(dtype, group), codes.size());
  const StandardEnvironment environment;
  const std::size_t width = dtype_bits(dtype) / 8;
  const double minimum = scale.minimum, step = scale.scale, largest = largest_finite(dtype);
  alignas(64) Numbers numbers;
  for (std::size_t i = 0; i < codes.size(); i += kNumberBlock) {
    const std::size_t count = std::min(kNumberBlock, codes.size() - i);
    const std::uint8_t* const in = codes.data() + i;
    for (std::size_t k = 0; k < count; ++k) {
      const double number = minimum + static_cast<double>(in[k]) * step;
      numbers[k] = number > largest ? largest : number < -largest ? -largest : number;
    }
    convert_elements(DType::f64, dtype, std::as_bytes(std::span(numbers).first(count)),
                     group.subspan(i * width, count * width));
  }
}

void measure_quantization(DType dtype, ByteSpan before, ByteSpan after, QuantizationLoss& loss) {
  const std::size_t total = checked_elements(dtype, before);
  if (after.size() != before.size()) {
    fail_argument(ErrorCode::size_mismatch, "after", fmt::format("{} bytes", after.size()),
                  std::to_string(before.size()));
  }
  const StandardEnvironment environment;
  const std::size_t width = dtype_bits(dtype) / 8;
  std::array<double, kLanes> largest{};
  alignas(64) Numbers restored;
  // Squares of f64 may overflow or vanish; square_sum() calls this again with another factor then.
  // The largest error is taken from the first call, with factor 1.
  const auto squares_of = [&](double factor) {
    std::array<double, kLanes> squares{};
    // A factor below 1 is applied before the subtraction, as the distance of two f64 may be beyond
    // f64. One above 1 is applied to the error, since it could take the numbers beyond f64.
    const double first_factor = std::min(factor, 1.0), then = std::max(factor, 1.0);
    const auto add = [&](std::size_t lane, double a, double b) {
      const double error = std::fabs(a * first_factor - b * first_factor);
      largest[lane] = error > largest[lane] ? error : largest[lane];
      squares[lane] += error * then * (error * then);
    };
    in_blocks(dtype, before, [&](const Numbers& numbers, std::size_t first, std::size_t count) {
      convert_elements(dtype, DType::f64, after.subspan(first * width, count * width),
                       std::as_writable_bytes(std::span(restored).first(count)));
      std::size_t i = 0;
      for (; i + kLanes <= count; i += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane)
          add(lane, numbers[i + lane], restored[i + lane]);
      for (; i < count; ++i) add(0, numbers[i], restored[i]);
    });
    double sum = 0;
    for (const double lane : squares) sum += lane;
    return sum;
  };
  const double plain = squares_of(1);
  QuantizationLoss added{.largest_error = *std::max_element(largest.begin(), largest.end()),
                         .count = total};
  added.squared_errors = square_sum(added.largest_error, plain, squares_of);
  loss.add(added);
}

}  // namespace thalia::codec
