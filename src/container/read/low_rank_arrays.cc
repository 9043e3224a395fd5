// Reads the factors of a low_rank_delta from bytes that nobody has checked. The order matters:
// header, then the place of each array, then the widths and the length of the codes that they ask
// for, then the limit, and only then is anything allocated. The codes have at least one bit for
// each number, so memory is at most 64 times the bytes of the payload. docs/format/deltas.md,
// "low_rank_delta".
#include "container/read/low_rank_arrays.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "codec/lossy/code_packing.h"
#include "codec/lossy/quantize.h"
#include "format/extent.h"

namespace thalia::container {
namespace {

constexpr std::size_t kPieceCodes = 4096;  // a multiple of 8: each piece begins at a byte

class Reading {
 public:
  Reading(const format::TensorEntry& entry, ByteSpan logical)
      : offset_(entry.stored_offset), logical_(logical) {
    factors_.rows = entry.shape[0];
    factors_.columns = entry.shape[1];
  }

  codec::LowRankFactors run(io::MemoryBudget& budget) {
    if (logical_.size() < sizeof header_)
      fail("logical_length", logical_.size(), fmt::format("{} or more", sizeof header_));
    std::memcpy(&header_, logical_.data(), sizeof header_);
    check_header();
    const std::uint64_t parameters = format::align_up(sizeof header_ + factors_.rank, 8);
    const std::uint64_t codes = parameters + factors_.rank * format::kLowRankParameterLength;
    if (codes > logical_.size() || logical_.size() - codes != header_.code_length)
      fail("code_length", header_.code_length,
           fmt::format("what is left of {} bytes", logical_.size()));
    check_codes();
    // Padding between widths and parameters.
    for (std::uint64_t at = sizeof header_ + factors_.rank; at < parameters; ++at) {
      if (logical_[at] != std::byte{0}) fail("padding", at, "zero");
    }
    budget.take("payload", factors_.rank * (factors_.rows + factors_.columns), sizeof(double));
    factors_.left.resize(factors_.rank * factors_.rows);
    factors_.right.resize(factors_.rank * factors_.columns);
    ByteSpan rest = logical_.subspan(codes);
    for (std::uint64_t k = 0; k < factors_.rank; ++k) {
      // Minimum and scale of the left codes, then of the right codes.
      double four[4];
      std::memcpy(four, logical_.data() + parameters + k * sizeof four, sizeof four);
      for (const double parameter : four) {
        if (!std::isfinite(parameter)) fail("parameters", k, "finite numbers");
      }
      if (four[1] < 0 || four[3] < 0) fail("parameters", k, "scales of 0 or more");
      restore(width(k), {four[0], four[1]}, rest,
              std::span(factors_.left).subspan(k * factors_.rows, factors_.rows));
      restore(width(k), {four[2], four[3]}, rest,
              std::span(factors_.right).subspan(k * factors_.columns, factors_.columns));
    }
    return std::move(factors_);
  }

 private:
  void check_header() {
    factors_.rank = header_.rank;
    const std::uint64_t most = std::min(factors_.rows, factors_.columns);
    if (factors_.rank > most) fail("rank", factors_.rank, fmt::format("at most {}", most));
    if (header_.lossy_generation == 0 || header_.lossy_generation > header_.max_lossy_generations)
      fail("lossy_generation", header_.lossy_generation,
           fmt::format("1 to {}", std::uint16_t{header_.max_lossy_generations}));
    const auto check_error = [&](const char* field, std::uint64_t bits) {
      const double error = std::bit_cast<double>(bits);
      if (!(std::isfinite(error) && error >= 0)) fail(field, bits, "0 or more, and finite");
    };
    check_error("max_error", header_.max_error);
    check_error("rms_error", header_.rms_error);
    check_error("relative_error", header_.relative_error);
    if (std::any_of(std::begin(header_.zero_28), std::end(header_.zero_28),
                    [](std::uint8_t byte) { return byte != 0; }))
      fail("zero_28", 1, "zero");
  }

  unsigned width(std::uint64_t k) const {
    return std::to_integer<unsigned>(logical_[sizeof header_ + k]);
  }

  // Widths, and the bytes that they take together.
  void check_codes() const {
    std::uint64_t left = header_.code_length;
    for (std::uint64_t k = 0; k < factors_.rank; ++k) {
      if (width(k) == 0 || width(k) > codec::kMaxQuantizedBits) fail("widths", width(k), "1 to 8");
      for (const std::uint64_t count : {factors_.rows, factors_.columns}) {
        // There is a component, so both dimensions are 1 or more. Shapes of floats have less than
        // 2^64 bytes, so packed_bytes() does not overflow.
        const std::uint64_t bytes = codec::packed_bytes(count, width(k));
        if (bytes > left) fail("code_length", header_.code_length, "what the widths ask for");
        left -= bytes;
      }
    }
    if (left != 0) fail("code_length", header_.code_length, "what the widths ask for");
  }

  void restore(unsigned bits, codec::UniformScale scale, ByteSpan& rest,
               std::span<double> out) const {
    const std::uint64_t bytes = codec::packed_bytes(out.size(), bits);
    // Unused bits of the last byte have to be zero: equal tensors have equal bytes.
    const unsigned used = static_cast<unsigned>(out.size() % 8 * bits % 8);
    if (const auto last = std::to_integer<unsigned>(rest[bytes - 1]);
        used != 0 && last >> used != 0)
      fail("codes", last, fmt::format("{} bits in use, the others zero", used));
    // In pieces, so that no memory is taken but that of the numbers, which the limit counts.
    std::array<std::uint8_t, kPieceCodes> codes;
    while (!out.empty()) {
      const auto piece = std::span(codes).first(std::min(codes.size(), out.size()));
      codec::unpack_codes(bits, rest.first(codec::packed_bytes(piece.size(), bits)), piece);
      codec::dequantize(DType::f64, piece, scale, std::as_writable_bytes(out.first(piece.size())));
      rest = rest.subspan(codec::packed_bytes(piece.size(), bits));
      out = out.subspan(piece.size());
    }
  }

  [[noreturn]] void fail(const char* field, std::uint64_t value, std::string bound) const {
    fail_field(ErrorCode::bad_value, "payload", field, offset_, std::to_string(value),
               std::move(bound));
  }

  std::uint64_t offset_;
  ByteSpan logical_;
  format::LowRankHeader header_{};
  codec::LowRankFactors factors_;
};

}  // namespace

codec::LowRankFactors read_low_rank(const format::TensorEntry& entry, ByteSpan logical,
                                    io::MemoryBudget& budget) {
  return Reading(entry, logical).run(budget);
}

}  // namespace thalia::container
