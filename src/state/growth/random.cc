// Drawn weights, docs/format/growth.md, "Drawn weights". Each number is a function of the seed, the
// names and the element's own indices: no generator has a state that order could change. A matrix
// that grows twice by ten neurons therefore gets the weights of one that grows once by twenty
// (xavier aside, which depends on the shape), on any number of threads and any machine.

#include "state/growth/random.h"

#include <cmath>
#include <span>

#include "base/fail.h"
#include "format/little_endian.h"
#include "integrity/sha256.h"

namespace thalia::state {
namespace {

std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

std::uint32_t word_at(const std::uint8_t* bytes) {
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | std::uint32_t{bytes[3]} << 24;
}

// What a number in [0, 1) becomes: (number * stretch + shift) * scale. The stretch is 1 or 2 and
// hence exact, so that a compiler which fuses multiplication and addition gets the same result, and
// the product with the scale is the only rounding.
struct Range {
  double stretch = 1;
  double shift = 0;
  double scale = 0;

  double operator()(double number) const { return (number * stretch + shift) * scale; }
};

Range range_of(const GrowthOptions& options, const Shape& shape, std::uint64_t fan_in) {
  if (options.initialization != WeightInit::xavier) return {.scale = options.scale.value_or(0.3)};
  // Glorot and Bengio, 2010: rows plus columns of the grown matrix.
  const double fans = static_cast<double>(shape[0]) + static_cast<double>(fan_in);
  const double bound = options.scale.value_or(1.0) * std::sqrt(6 / fans);
  return {.stretch = 2, .shift = -1, .scale = bound};
}

}  // namespace

void check_growth_options(const GrowthOptions& options) {
  if (!(options.sparsity >= 0 && options.sparsity <= 1)) {
    fail_argument(ErrorCode::bad_argument, "sparsity", fmt::format("{}", options.sparsity),
                  "0 to 1");
  }
  if (options.scale && !std::isfinite(*options.scale))
    fail_argument(ErrorCode::bad_argument, "scale", fmt::format("{}", *options.scale), "finite");
}

PhiloxKey growth_key(std::uint64_t seed, std::string_view region, std::string_view path) {
  const format::le64 seed_bytes = seed;
  // Without the zero byte "ab" + "c" and "a" + "bc" would have one key. No region's name holds one.
  const std::byte end{0};
  integrity::Sha256 hash;
  hash.update(std::as_bytes(std::span(&seed_bytes, 1)));
  hash.update(std::as_bytes(std::span(region))).update({&end, 1});
  const Digest256 digest = hash.update(std::as_bytes(std::span(path))).finish();
  return {word_at(digest.bytes), word_at(digest.bytes + 4)};
}

ElementFill random_weights(const GrowthOptions& options, std::string_view region,
                           std::string_view path, const Shape& shape) {
  std::uint64_t row_length = 1;
  for (const std::uint64_t extent : shape.extents().subspan(1)) row_length *= extent;
  const PhiloxKey key = growth_key(options.seed, region, path);
  const Range range = range_of(options, shape, row_length);
  const double made = options.initialization == WeightInit::sparse_random ? options.sparsity : 1.0;
  return [=](std::uint64_t first, std::span<double> values) {
    std::uint64_t row = first / row_length;
    std::uint64_t column = first % row_length;
    for (double& value : values) {
      const PhiloxCounter bits = philox({low(row), high(row), low(column), high(column)}, key);
      // One word decides whether the synapse is made, two others give its weight: the two do not
      // depend on each other.
      const bool is_made = static_cast<double>(bits[0]) * 0x1p-32 < made;
      value = is_made ? range(unit_interval(bits[1], bits[2])) : 0.0;
      if (++column < row_length) continue;
      column = 0;
      ++row;
    }
  };
}

}  // namespace thalia::state
