// Elements are decoded into blocks that stay in the first cache, and go through each block twice:
// for its counts, range and mean, and for the distances from that mean. Sums of a block are kept in
// lanes (codec/float/sums.h); lanes, blocks and pieces are added up in one order.
#include "thalia/state/tensor_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "base/dtype_facts.h"
#include "base/fail.h"
#include "base/parallel.h"
#include "codec/float/conversion.h"
#include "state/tensor/dense_pieces.h"
#include "state/tensor/element_decoder.h"

namespace thalia {
namespace {

constexpr std::size_t kBlock = 1024;
constexpr double kMost = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const codec::FloatKernels& kernels() {
  static const codec::FloatKernels& fastest =
      codec::float_kernels(codec::fastest_instruction_set());
  return fastest;
}

struct Facts {
  TensorStatistics counts{.min = kInfinity, .max = -kInfinity};
  double sum = 0;  // of the finite ones
};

// Whole blocks, nearly all of which have nothing but finite numbers: then the sum is finite too.
bool plain_facts(const double* x, double least, Facts& out) {
  // Zeros are below the least subnormal number, and so below any limit.
  const double limit = std::max(least, std::numeric_limits<double>::denorm_min());
  codec::NumberRange range;
  kernels().range(x, kBlock, limit, range);
  if (!(std::fabs(range.sum) <= kMost)) return false;
  out.sum = range.sum;
  out.counts.min = range.min;
  out.counts.max = range.max;
  if (range.below > 0)
    out.counts.zeros = static_cast<std::uint64_t>(std::count(x, x + kBlock, 0.0));
  out.counts.subnormal = range.below - out.counts.zeros;
  return true;
}

Facts facts_of(const double* x, std::size_t count, double least) {
  Facts out;
  out.counts.elements = count;
  if (count == kBlock && plain_facts(x, least, out)) return out;
  out.sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double size = std::fabs(x[i]);
    out.counts.nan += x[i] != x[i];
    out.counts.infinite += size == kInfinity;
    out.counts.zeros += x[i] == 0;
    out.counts.subnormal += size < least && x[i] != 0;
    if (!(size <= kMost)) continue;
    out.sum += x[i];
    out.counts.min = std::min(out.counts.min, x[i]);
    out.counts.max = std::max(out.counts.max, x[i]);
  }
  return out;
}

// The squared distances of the finite ones; `all`: all are.
double squares_of(const double* x, std::size_t count, double mean, bool all) {
  const std::size_t whole = all ? count / codec::kSumLanes * codec::kSumLanes : 0;
  double squares = kernels().squares(x, whole, mean);
  for (std::size_t i = whole; i < count; ++i)
    if (std::fabs(x[i]) <= kMost) squares += (x[i] - mean) * (x[i] - mean);
  return squares;
}

struct Moments {
  long double mean = 0;
  long double squares = 0;
};

// For numbers whose sum or squares an f64 does not hold.
Moments wide_moments(const double* x, std::size_t count, std::uint64_t finite) {
  Moments out;
  for (std::size_t i = 0; i < count; ++i)
    if (std::isfinite(x[i])) out.mean += x[i];
  out.mean /= static_cast<long double>(finite);
  for (std::size_t i = 0; i < count; ++i)
    if (std::isfinite(x[i])) out.squares += (x[i] - out.mean) * (x[i] - out.mean);
  return out;
}

double at_most_f64(long double number) {
  return static_cast<double>(std::min<long double>(number, kMost));
}

}  // namespace

void StatisticsTally::merge(const TensorStatistics& counts, long double mean,
                            long double squares) noexcept {
  const auto before = static_cast<long double>(counts_.finite());
  const auto finite = static_cast<long double>(counts.finite());
  if (before == 0) {
    mean_ = mean;
    squares_ = squares;
    counts_.min = counts.min;
    counts_.max = counts.max;
  } else if (finite > 0) {
    const long double share = finite / (before + finite);
    const long double apart = mean - mean_;
    mean_ += apart * share;
    squares_ += squares + apart * apart * share * before;
    counts_.min = std::min(counts_.min, counts.min);
    counts_.max = std::max(counts_.max, counts.max);
  }
  counts_.elements += counts.elements;
  counts_.zeros += counts.zeros;
  counts_.subnormal += counts.subnormal;
  counts_.nan += counts.nan;
  counts_.infinite += counts.infinite;
}

void StatisticsTally::add_block(const double* elements, std::size_t count) noexcept {
  Facts facts = facts_of(elements, count, least_normal(dtype_));
  TensorStatistics& counts = facts.counts;
  const std::uint64_t finite = counts.finite();
  if (finite == 0) {
    counts.min = counts.max = 0;
    return merge(counts, 0, 0);
  }
  Moments moments{.mean = facts.sum / static_cast<double>(finite)};
  moments.squares = squares_of(elements, count, static_cast<double>(moments.mean), finite == count);
  // Numbers with squares this small may have lost some of them.
  constexpr double kLeastSquares = 0x1p-900;
  if (!(std::fabs(facts.sum) <= kMost) || !(moments.squares <= kMost) ||
      (moments.squares < kLeastSquares && counts.min < counts.max))
    moments = wide_moments(elements, count, finite);
  merge(counts, moments.mean, moments.squares);
}

void StatisticsTally::add(ByteSpan bytes, std::uint64_t count) {
  const std::uint64_t most = bytes.size() * 8 / dtype_bits(dtype_);
  if (count > most || (most - count) * dtype_bits(dtype_) >= 8) {
    fail_argument(ErrorCode::size_mismatch, "count", std::to_string(count),
                  fmt::format("{}, which {} bytes hold", most, bytes.size()));
  }
  std::array<double, kBlock> block;
  std::array<std::complex<double>, kBlock> numbers;
  for (std::uint64_t first = 0; first < count; first += kBlock) {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, count - first));
    if (dtype_is_complex(dtype_)) {
      state::decode_elements(dtype_, bytes, first, std::span(numbers).first(length));
      for (std::size_t i = 0; i < length; ++i) block[i] = std::abs(numbers[i]);
    } else if (codec::is_convertible(dtype_)) {
      const std::size_t width = dtype_bits(dtype_) / 8;
      codec::convert_elements(dtype_, DType::f64, bytes.subspan(first * width, length * width),
                              std::as_writable_bytes(std::span(block).first(length)));
    } else {
      state::decode_elements(dtype_, bytes, first, std::span(block).first(length));
    }
    add_block(block.data(), length);
  }
}

void StatisticsTally::add_zeros(std::uint64_t count) noexcept {
  merge({.elements = count, .zeros = count}, 0, 0);
}

void StatisticsTally::add(const StatisticsTally& other) noexcept {
  merge(other.counts_, other.mean_, other.squares_);
}

TensorStatistics StatisticsTally::result() const noexcept {
  TensorStatistics out = counts_;
  const auto finite = static_cast<long double>(out.finite());
  if (finite == 0) return out;
  out.mean = static_cast<double>(mean_);
  out.deviation = at_most_f64(std::sqrt(squares_ / finite));
  out.norm = at_most_f64(std::sqrt(squares_ + finite * mean_ * mean_));
  return out;
}

TensorStatistics statistics_of(const Tensor& tensor) {
  StatisticsTally tally(tensor.dtype());
  // A sparse tensor may have more than 2^64.
  const std::uint64_t elements = tensor.shape().element_count().value_or(~std::uint64_t{0});
  if (tensor.is_dense()) {
    tally.add(tensor.bytes(), elements);
  } else {
    tally.add(tensor.values(), tensor.nnz());
    tally.add_zeros(elements - tensor.nnz());
  }
  return tally.result();
}

namespace {

// Buffers of threads that come and go, as many as work at the same time.
class Buffers {
 public:
  std::vector<std::byte> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return {};
    std::vector<std::byte> buffer = std::move(idle_.back());
    idle_.pop_back();
    return buffer;
  }
  void give_back(std::vector<std::byte> buffer) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> idle_;
};

// A piece of one of many tensors.
struct Part {
  std::size_t tensor = 0;
  std::uint64_t piece = 0;
  StatisticsTally tally;
};

state::DensePieces pieces_of(const SlicedTensor& tensor) {
  // Pieces have one size, whatever the number of threads: they are added up in their order.
  constexpr std::uint64_t kPieceBits = 8 * (2 << 20);
  return {tensor.shape, std::max<std::uint64_t>(1, kPieceBits / dtype_bits(tensor.dtype))};
}

void measure(const SlicedTensor& tensor, Part& part, Buffers& buffers) {
  const state::DensePieces::Piece piece = pieces_of(tensor)[part.piece];
  std::vector<std::byte> buffer = buffers.take();
  buffer.resize((piece.elements * dtype_bits(tensor.dtype) + 7) / 8);
  tensor.read(std::span(piece.ranges).first(tensor.shape.rank()), buffer);
  part.tally.add(buffer, piece.elements);
  buffers.give_back(std::move(buffer));
}

}  // namespace

std::vector<TensorStatistics> statistics_of(std::span<const SlicedTensor> tensors,
                                            const Work& work) {
  constexpr std::size_t kTogether = 1024;  // tallies in memory
  std::vector<StatisticsTally> totals;
  std::vector<Part> parts;
  Buffers buffers;
  const auto measure_parts = [&] {
    parallel_for(parts.size(), work.threads, [&](std::size_t i) {
      stop_if_cancelled(work.cancel);
      measure(tensors[parts[i].tensor], parts[i], buffers);
    });
    for (const Part& part : parts) totals[part.tensor].add(part.tally);
    parts.clear();
  };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    totals.emplace_back(tensors[i].dtype);
    for (std::uint64_t piece = 0; piece < pieces_of(tensors[i]).count(); ++piece) {
      parts.push_back({i, piece, StatisticsTally(tensors[i].dtype)});
      if (parts.size() == kTogether) measure_parts();
    }
  }
  measure_parts();
  std::vector<TensorStatistics> out;
  for (const StatisticsTally& total : totals) out.push_back(total.result());
  return out;
}

}  // namespace thalia
