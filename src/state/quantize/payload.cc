// Quantizes the elements of one tensor: docs/format/format.md, "quantized". Groups are independent,
// and each is quantized, packed and restored again at once, so that the losses and the checksum
// that the file records are those of what a reader will get. Threads take turns of fixed size, and
// sums are kept by turn and added in order: bytes and reports are the same for any number of
// threads.

#include "state/quantize/payload.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "codec/float/conversion.h"
#include "codec/lossy/code_packing.h"
#include "codec/lossy/quantize.h"
#include "format/payload.h"
#include "integrity/content_hash.h"
#include "state/quantize/bit_allocation.h"

namespace thalia::state {
namespace {

// Elements that a thread takes at a time: several groups, or one larger one, piece by piece. A
// multiple of 8, so that every piece's codes begin at a whole byte.
constexpr std::uint64_t kTurn = 65536;

class GroupEncoder {
 public:
  GroupEncoder(DType dtype, ByteSpan dense, std::uint64_t group_size, unsigned bits,
               std::span<const std::uint8_t> widths, std::span<const double> importance)
      : dtype_(dtype),
        dense_(dense),
        group_size_(group_size),
        bits_(bits),
        widths_(widths),
        importance_(importance),
        restored_(dense.size()) {}

  // Fills the arrays, all of whose bytes are zero. False if a group cannot be quantized.
  bool run(const format::QuantizedParts& parts, MutableByteSpan out, unsigned threads) {
    if (!widths_.empty())
      std::memcpy(out.data() + parts.widths.offset, widths_.data(), widths_.size());
    // Where each group's codes begin: widths differ, so that threads cannot compute it alone.
    std::vector<std::uint64_t> starts(parts.groups + 1);
    for (std::uint64_t group = 0; group < parts.groups; ++group)
      starts[group + 1] = starts[group] + codec::packed_bytes(size_of(group), width(group));
    const std::uint64_t in_turn = std::max<std::uint64_t>(1, kTurn / group_size_);
    const std::uint64_t turns = (parts.groups + in_turn - 1) / in_turn;
    losses_.resize(turns);
    squares_.resize(turns);
    std::atomic<bool> fits = true;
    const MutableByteSpan codes = out.subspan(parts.codes.offset, parts.codes.length);
    parallel_for(turns, threads, [&](std::size_t turn) {
      const std::uint64_t end = std::min(parts.groups, (turn + 1) * in_turn);
      for (std::uint64_t group = turn * in_turn; group < end && fits; ++group) {
        const auto scale = scale_of(group);
        if (!scale) {
          fits = false;
          return;
        }
        store_parameter(out.subspan(parts.minima.offset), group, scale->minimum);
        store_parameter(out.subspan(parts.scales.offset), group, scale->scale);
        encode(turn, group, *scale,
               codes.subspan(starts[group], starts[group + 1] - starts[group]));
      }
    });
    return fits;
  }

  ByteSpan restored() const { return restored_; }
  codec::QuantizationLoss loss() const {
    codec::QuantizationLoss sum;
    for (const codec::QuantizationLoss& loss : losses_) sum.add(loss);
    return sum;
  }
  SquareSum squared_numbers() const {
    SquareSum sum;
    for (const SquareSum& squares : squares_) sum.add(squares);
    return sum;
  }

 private:
  std::uint64_t element_bytes() const { return dtype_bits(dtype_) / 8; }
  std::uint64_t elements() const { return dense_.size() / element_bytes(); }
  std::uint64_t size_of(std::uint64_t group) const {
    return std::min(group_size_, elements() - group * group_size_);
  }
  unsigned width(std::uint64_t group) const { return widths_.empty() ? bits_ : widths_[group]; }
  ByteSpan group_bytes(std::uint64_t group) const {
    return dense_.subspan(group * group_size_ * element_bytes(), size_of(group) * element_bytes());
  }

  // A group of 0 bits has no codes: its minimum is its mean and its step 0.
  std::optional<codec::UniformScale> scale_of(std::uint64_t group) const {
    if (width(group) != 0) return codec::uniform_scale(dtype_, group_bytes(group), width(group));
    return codec::UniformScale{
        group_mean(dtype_, group_bytes(group),
                   importance_.empty() ? importance_
                                       : importance_.subspan(group * group_size_, size_of(group))),
        0};
  }

  // In the type that the format prescribes for the parameters of this element type.
  void store_parameter(MutableByteSpan array, std::uint64_t group, double parameter) const {
    if (codec::parameter_dtype(dtype_) == DType::f64) {
      std::memcpy(array.data() + group * sizeof parameter, &parameter, sizeof parameter);
    } else {
      const auto narrow = static_cast<float>(parameter);
      std::memcpy(array.data() + group * sizeof narrow, &narrow, sizeof narrow);
    }
  }

  void encode(std::size_t turn, std::uint64_t group, codec::UniformScale scale,
              MutableByteSpan out) {
    const unsigned bits = width(group);
    const std::uint64_t count = size_of(group);
    std::vector<std::uint8_t> codes(std::min(count, kTurn));
    std::vector<double> numbers(codes.size());
    for (std::uint64_t i = 0; i < count; i += kTurn) {
      const std::uint64_t n = std::min(kTurn, count - i);
      const std::span some = std::span(codes).first(n);
      const std::uint64_t at = (group * group_size_ + i) * element_bytes();
      const ByteSpan before = dense_.subspan(at, n * element_bytes());
      const MutableByteSpan after = MutableByteSpan(restored_).subspan(at, before.size());
      if (bits != 0) {
        codec::quantize(dtype_, before, bits, scale, some);
        codec::pack_codes(bits, some, out.subspan(i / 8 * bits, codec::packed_bytes(n, bits)));
      }
      codec::dequantize(dtype_, some, scale, after);
      codec::measure_quantization(dtype_, before, after, losses_[turn]);
      const std::span wide = std::span(numbers).first(n);
      codec::convert_elements(dtype_, DType::f64, before, std::as_writable_bytes(wide));
      squares_[turn].add(squares_of(wide));
    }
  }

  // Scaled where the squares would overflow or vanish (SquareSum).
  static SquareSum squares_of(std::span<const double> numbers) {
    double largest = 0;
    for (const double number : numbers) largest = std::max(largest, std::fabs(number));
    const auto sum = [&](double factor) {
      double squares = 0;
      for (const double number : numbers) squares += number * factor * (number * factor);
      return squares;
    };
    return square_sum(largest, sum(1), sum);
  }

  DType dtype_;
  ByteSpan dense_;
  std::uint64_t group_size_;
  unsigned bits_;
  std::span<const std::uint8_t> widths_;
  std::span<const double> importance_;
  std::vector<std::byte> restored_;
  std::vector<codec::QuantizationLoss> losses_;  ///< by turn, so that threads change no sum
  std::vector<SquareSum> squares_;
};

}  // namespace

std::optional<QuantizedPayload> quantize_payload(DType dtype, const Shape& shape, ByteSpan dense,
                                                 const QuantizationOptions& options,
                                                 std::span<const double> importance,
                                                 LossyGeneration generation, unsigned threads) {
  const std::uint64_t elements = dense.size() / (dtype_bits(dtype) / 8);
  // A fraction of a bit per element is only possible with groups of different widths.
  const bool adaptive =
      options.adaptive || !importance.empty() || options.bits != std::floor(options.bits);
  std::vector<std::uint8_t> widths;
  if (adaptive) {
    auto allocated =
        allocate_bits(dtype, dense, options.group_size, options.bits, importance, threads);
    if (!allocated) return std::nullopt;
    widths = *std::move(allocated);
  }
  // The format's way to say that each group has a width of its own.
  const auto bits = adaptive ? 0U : static_cast<unsigned>(options.bits);
  const std::uint64_t group_size =
      options.group_size == 0 ? std::max<std::uint64_t>(1, elements) : options.group_size;
  std::uint64_t code_length = adaptive ? 0 : format::quantized_code_length(elements, bits);
  for (std::uint64_t group = 0; group < widths.size(); ++group) {
    code_length += codec::packed_bytes(
        std::min<std::uint64_t>(group_size, elements - group * group_size), widths[group]);
  }
  const auto parts = format::quantized_parts(dtype, shape, bits, options.group_size, code_length);
  QuantizedPayload payload;
  payload.bytes.resize(parts->length);
  GroupEncoder encoding(dtype, dense, group_size, bits, widths, importance);
  if (!encoding.run(*parts, payload.bytes, threads)) return std::nullopt;

  // The digest of the restored elements, so that deltas and readers can check what comes out.
  const integrity::ContentDigest digest = integrity::content_digest(encoding.restored(), threads);
  const codec::QuantizationLoss loss = encoding.loss();
  const double rms_error = loss.rms_error();
  format::QuantizedSideData& side = payload.side = {};
  side.bits = static_cast<std::uint8_t>(bits);
  side.lossy_generation = generation.number;
  side.max_lossy_generations = generation.most;
  side.group_size = options.group_size;
  side.crc32 = digest.crc32;
  side.code_length = code_length;
  side.max_error = std::bit_cast<std::uint64_t>(loss.largest_error);
  side.rms_error = std::bit_cast<std::uint64_t>(rms_error);
  side.content_hash = digest.hash;

  QuantizedTensorReport& report = payload.report;
  report.dtype = dtype;
  report.elements = elements;
  report.bits =
      elements == 0 ? 0 : 8.0 * static_cast<double>(code_length) / static_cast<double>(elements);
  report.dense_bytes = dense.size();
  report.quantized_bytes = payload.bytes.size();
  report.max_error = loss.largest_error;
  report.rms_error = rms_error;
  const SquareSum squares = encoding.squared_numbers();
  if (loss.squared_errors.sum > 0 && squares.sum > 0)
    report.relative_error = root_of_ratio(loss.squared_errors, squares);
  return payload;
}

}  // namespace thalia::state
