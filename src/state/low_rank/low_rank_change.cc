// Approximates a change by a few products of a column and a row: docs/format/deltas.md,
// "low_rank_delta". The products come from a truncated singular value decomposition, bits are spent
// on them where they remove most error, and then the result is made with the reader's own
// arithmetic: the errors that the file records, and the digest, are those of what will come out.
// Unlike other changes, the matrix and its base are whole in memory here.

#include "state/low_rank/low_rank_change.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/lossy/code_packing.h"
#include "codec/lossy/low_rank.h"
#include "codec/lossy/quantize.h"
#include "format/extent.h"
#include "format/low_rank.h"
#include "state/low_rank/matrix_change.h"
#include "state/low_rank/truncated_svd.h"
#include "state/quantize/bit_allocation.h"

namespace thalia::state {
namespace {

constexpr unsigned kMaxBits = codec::kMaxQuantizedBits;

using Vector = std::span<const double>;

double dot(Vector a, Vector b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// A vector as codes of so many bits, and the numbers that the codes stand for.
struct Coded {
  codec::UniformScale scale;
  std::vector<std::uint8_t> codes;
  std::vector<double> restored;
};

Coded code(Vector vector, unsigned bits) {
  Coded out;
  const ByteSpan bytes = std::as_bytes(vector);
  // Always has a value: the vectors are finite and far from the ends of f64.
  out.scale = codec::uniform_scale(DType::f64, bytes, bits).value_or(codec::UniformScale{});
  out.codes.resize(vector.size());
  out.restored.resize(vector.size());
  codec::quantize(DType::f64, bytes, bits, out.scale, out.codes);
  codec::dequantize(DType::f64, out.codes, out.scale,
                    std::as_writable_bytes(std::span(out.restored)));
  return out;
}

// The squared error of a product for each width of its codes. The products are nearly orthogonal to
// each other, so that their errors add up.
Distortions product_errors(Vector left, Vector right) {
  Distortions errors{};
  const double norm = dot(left, left) * dot(right, right);
  errors[0] = norm;
  for (unsigned bits = 1; bits <= kMaxBits; ++bits) {
    const std::vector<double> a = code(left, bits).restored, b = code(right, bits).restored;
    // |x - y|² of two products of vectors, by inner products alone; rounding may make it negative.
    errors[bits] = std::max(0.0, norm - 2 * dot(left, a) * dot(right, b) + dot(a, a) * dot(b, b));
  }
  return errors;
}

void append(std::vector<std::byte>& out, ByteSpan bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_codes(std::vector<std::byte>& out, unsigned bits,
                  const std::vector<std::uint8_t>& codes) {
  const std::size_t begin = out.size();
  out.resize(begin + codec::packed_bytes(codes.size(), bits));
  codec::pack_codes(bits, codes, MutableByteSpan(out).subspan(begin));
}

// The products that got bits: as the payload's arrays after its header, and as factors.
struct Products {
  std::vector<std::byte> arrays;
  codec::LowRankFactors factors;
  std::uint64_t code_length = 0;
};

Products store_products(const TruncatedSvd& svd, std::span<const std::uint8_t> widths,
                        std::uint64_t rows, std::uint64_t columns) {
  Products out;
  out.factors.rows = rows;
  out.factors.columns = columns;
  std::vector<std::byte> parameters, codes;
  for (std::uint64_t k = 0; k < svd.rank; ++k) {
    // Left out: it removes less error than its bits are worth.
    if (widths[k] == 0) continue;
    const Coded left = code(Vector(svd.left).subspan(k * rows, rows), widths[k]);
    const Coded right = code(Vector(svd.right).subspan(k * columns, columns), widths[k]);
    const double four[] = {left.scale.minimum, left.scale.scale, right.scale.minimum,
                           right.scale.scale};
    out.arrays.push_back(static_cast<std::byte>(widths[k]));
    append(parameters, std::as_bytes(std::span(four)));
    append_codes(codes, widths[k], left.codes);
    append_codes(codes, widths[k], right.codes);
    out.factors.left.insert(out.factors.left.end(), left.restored.begin(), left.restored.end());
    out.factors.right.insert(out.factors.right.end(), right.restored.begin(), right.restored.end());
    ++out.factors.rank;
  }
  out.arrays.resize(format::align_up(out.arrays.size(), 8));
  append(out.arrays, parameters);
  append(out.arrays, codes);
  out.code_length = codes.size();
  return out;
}

}  // namespace

void check_low_rank(const LowRankOptions& options) {
  const auto refuse = [](const char* option, std::string value, std::string bound) {
    fail_argument(ErrorCode::bad_argument, option, std::move(value), std::move(bound));
  };
  if (!(options.bits_per_element > 0 && options.bits_per_element <= 64))
    refuse("bits_per_element", fmt::format("{}", options.bits_per_element), "above 0, up to 64");
  if (options.max_rank == 0) refuse("max_rank", "0", "1 or more");
  if (!(options.max_relative_error >= 0 && options.max_relative_error <= 1))
    refuse("max_relative_error", fmt::format("{}", options.max_relative_error), "0 to 1");
  if (options.max_generations == std::uint16_t{0}) refuse("max_generations", "0", "1 or more");
}

std::optional<LowRankChange> low_rank_change(DType dtype, const Shape& shape, ByteSpan base,
                                             ByteSpan now, const LowRankOptions& options,
                                             LossyGeneration generation, unsigned threads) {
  const std::uint64_t rows = shape[0], columns = shape[1];
  const std::uint64_t width = dtype_bits(dtype) / 8, elements = now.size() / width;
  TruncatedSvd svd;
  {
    const auto changed = matrix_change({dtype, base}, {dtype, now});
    if (!changed) return std::nullopt;
    // The difference is freed before the products are made.
    svd = truncated_svd(*changed, rows, columns, options.max_rank, kSvdSeed);
  }
  std::vector<Distortions> errors(svd.rank);
  parallel_for(svd.rank, threads, [&](std::size_t k) {
    errors[k] = product_errors(Vector(svd.left).subspan(k * rows, rows),
                               Vector(svd.right).subspan(k * columns, columns));
  });
  const auto cost = [&](std::uint64_t, unsigned bits) {
    return 8.0 * static_cast<double>(codec::packed_bytes(rows, bits) +
                                     codec::packed_bytes(columns, bits));
  };
  const std::vector<std::uint8_t> widths =
      spend_bits(errors, cost, options.bits_per_element * static_cast<double>(elements));
  const Products products = store_products(svd, widths, rows, columns);
  if (products.factors.rank == 0) return std::nullopt;

  LowRankChange out{.result = std::vector<std::byte>(base.begin(), base.end())};
  add_products(dtype, products.factors, out.result, threads);
  codec::QuantizationLoss lost, change;
  codec::measure_quantization(dtype, now, out.result, lost);
  codec::measure_quantization(dtype, now, base, change);
  const double relative =
      change.squared_errors.sum > 0 ? root_of_ratio(lost.squared_errors, change.squared_errors) : 1;
  if (!(relative <= options.max_relative_error) || !std::isfinite(lost.largest_error))
    return std::nullopt;

  format::LowRankHeader header{};
  header.rank = static_cast<std::uint32_t>(products.factors.rank);
  header.lossy_generation = generation.number;
  header.max_lossy_generations = generation.most;
  header.code_length = products.code_length;
  header.max_error = std::bit_cast<std::uint64_t>(lost.largest_error);
  const double rms_error = lost.rms_error();
  header.rms_error = std::bit_cast<std::uint64_t>(rms_error);
  header.relative_error = std::bit_cast<std::uint64_t>(relative);
  append(out.payload, std::as_bytes(std::span(&header, 1)));
  append(out.payload, products.arrays);
  out.report = {{.dtype = dtype,
                 .bits = 8.0 * static_cast<double>(products.code_length) /
                         static_cast<double>(products.factors.rank * (rows + columns)),
                 .max_error = lost.largest_error,
                 .rms_error = rms_error,
                 .relative_error = relative},
                rows,
                columns,
                header.rank,
                out.payload.size()};
  return out;
}

}  // namespace thalia::state
