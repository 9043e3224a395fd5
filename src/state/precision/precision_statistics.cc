// Counts tensors and bytes by element type. Sums stop at 2^64 - 1 instead of wrapping: lengths may
// come from files.

#include "thalia/state/precision.h"

#include <algorithm>
#include <limits>

#include "json/writer.h"

namespace thalia {
namespace {

constexpr std::array<std::string_view, kPrecisionKindCount> kNames{"fp32", "fp16", "bf16",
                                                                   "fp64", "int",  "other"};

std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
  return a + std::min(b, std::numeric_limits<std::uint64_t>::max() - a);
}

}  // namespace

std::string_view precision_kind_name(PrecisionKind kind) noexcept {
  return kNames[static_cast<std::size_t>(kind)];
}

PrecisionKind precision_kind_of(DType dtype) noexcept {
  if (dtype == DType::f32) return PrecisionKind::fp32;
  if (dtype == DType::f16) return PrecisionKind::fp16;
  if (dtype == DType::bf16) return PrecisionKind::bf16;
  if (dtype == DType::f64) return PrecisionKind::fp64;
  // As the original program counts: its "int" has the signed types alone.
  const bool is_signed =
      dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  return is_signed ? PrecisionKind::integer : PrecisionKind::other;
}

void PrecisionStatistics::add(DType dtype, std::uint64_t logical_bytes) noexcept {
  Share& share = shares_[static_cast<std::size_t>(precision_kind_of(dtype))];
  share.count = capped_sum(share.count, 1);
  share.bytes = capped_sum(share.bytes, logical_bytes);
}

PrecisionStatistics::Share PrecisionStatistics::total() const noexcept {
  Share total;
  for (const Share& share : shares_) {
    total.count = capped_sum(total.count, share.count);
    total.bytes = capped_sum(total.bytes, share.bytes);
  }
  return total;
}

double PrecisionStatistics::percent(PrecisionKind kind) const noexcept {
  const std::uint64_t all = total().bytes;
  // The share is of bytes, not of tensors: a few large ones are what matters on disk.
  if (all == 0) return 0;
  return 100 * static_cast<double>(share(kind).bytes) / static_cast<double>(all);
}

std::string PrecisionStatistics::to_json() const {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (std::size_t i = 0; i < kPrecisionKindCount; ++i) {
    const auto kind = static_cast<PrecisionKind>(i);
    json.key(kNames[i]).begin_object().member("count", share(kind).count);
    json.member("bytes", share(kind).bytes).member("percent", percent(kind)).end_object();
  }
  json.key("total").begin_object().member("count", total().count);
  json.member("bytes", total().bytes).end_object().end_object();
  return text;
}

}  // namespace thalia
