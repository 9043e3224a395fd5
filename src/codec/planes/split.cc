// The filters over whole chunks: planes that follow each other in one span. The kernels do the
// splitting; differences are taken here, a block at a time, so that they need no second chunk's
// worth of memory. A span has no alignment: words are accessed by types that have none.
#include "codec/planes/split.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "codec/planes/split_kernels.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

// Words of a block: their differences stay in the first cache between the two passes.
constexpr std::size_t kSplitBlock = 1024;

template <typename Byte>
void point_at_planes(Byte* start, std::size_t width, std::size_t count, Byte** planes) {
  for (std::size_t k = 0; k < width; ++k) planes[k] = start + k * count;
}

template <typename Byte>
void advance(Byte** planes, std::size_t width, std::size_t count) {
  for (std::size_t k = 0; k < width; ++k) planes[k] += count;
}

// Also copies the bytes after the last whole word, which stay where they are.
void check_sizes([[maybe_unused]] std::size_t width, ByteSpan from, MutableByteSpan to) {
  assert((width == 2 || width == 4 || width == 8) && from.size() == to.size());
  const std::size_t rest = from.size() % width;
  if (rest != 0) std::memcpy(to.data() + to.size() - rest, from.data() + from.size() - rest, rest);
}

template <typename T>
void split_differences(ByteSpan raw, MutableByteSpan out, VectorSet set) {
  using Stored = format::LittleEndian<T>;
  const auto split = plane_kernels(set).of(sizeof(T), false).split;
  const std::size_t count = raw.size() / sizeof(T);
  const auto* words = reinterpret_cast<const Stored*>(raw.data());
  std::byte* planes[sizeof(T)];
  point_at_planes(out.data(), sizeof(T), count, planes);
  // Word 0 is stored as it is: its difference from 0. Unsigned arithmetic wraps, so that any words
  // have differences and any differences a sum.
  T before = 0;
  Stored block[kSplitBlock];
  for (std::size_t i = 0; i < count; i += kSplitBlock) {
    const std::size_t n = std::min(kSplitBlock, count - i);
    block[0] = static_cast<T>(words[i] - before);
    for (std::size_t j = 1; j < n; ++j) block[j] = static_cast<T>(words[i + j] - words[i + j - 1]);
    before = words[i + n - 1];
    split(reinterpret_cast<const std::byte*>(block), n, planes);
    advance(planes, sizeof(T), n);
  }
}

template <typename T>
void join_differences(ByteSpan stored, MutableByteSpan raw, VectorSet set) {
  using Stored = format::LittleEndian<T>;
  const auto join = plane_kernels(set).of(sizeof(T), false).join;
  const std::size_t count = raw.size() / sizeof(T);
  auto* words = reinterpret_cast<Stored*>(raw.data());
  const std::byte* planes[sizeof(T)];
  point_at_planes(stored.data(), sizeof(T), count, planes);
  T sum = 0;
  Stored block[kSplitBlock];
  for (std::size_t i = 0; i < count; i += kSplitBlock) {
    const std::size_t n = std::min(kSplitBlock, count - i);
    join(planes, n, reinterpret_cast<std::byte*>(block));
    advance(planes, sizeof(T), n);
    for (std::size_t j = 0; j < n; ++j) words[i + j] = sum = static_cast<T>(sum + block[j]);
  }
}

}  // namespace

#ifdef __x86_64__
const PlaneKernels& plane_kernels(VectorSet set) noexcept {
  return set == VectorSet::avx512 ? kAvx512Planes
         : set == VectorSet::avx2 ? kAvx2Planes
                                  : kPortablePlanes;
}
#else
const PlaneKernels& plane_kernels(VectorSet) noexcept {
  return kPortablePlanes;
}
#endif

void split_planes(std::size_t width, ByteSpan raw, MutableByteSpan out, VectorSet set) {
  check_sizes(width, raw, out);
  const std::size_t count = raw.size() / width;
  std::byte* planes[kMaxPlanes];
  point_at_planes(out.data(), width, count, planes);
  plane_kernels(set).of(width, false).split(raw.data(), count, planes);
}

void join_planes(std::size_t width, ByteSpan stored, MutableByteSpan raw, VectorSet set) {
  check_sizes(width, stored, raw);
  const std::size_t count = raw.size() / width;
  const std::byte* planes[kMaxPlanes];
  point_at_planes(stored.data(), width, count, planes);
  plane_kernels(set).of(width, false).join(planes, count, raw.data());
}

void split_difference_planes(std::size_t width, ByteSpan raw, MutableByteSpan out, VectorSet set) {
  assert(width != 2);
  check_sizes(width, raw, out);
  if (width == 4) return split_differences<std::uint32_t>(raw, out, set);
  split_differences<std::uint64_t>(raw, out, set);
}

void join_difference_planes(std::size_t width, ByteSpan planes, MutableByteSpan raw,
                            VectorSet set) {
  assert(width != 2);
  check_sizes(width, planes, raw);
  if (width == 4) return join_differences<std::uint32_t>(planes, raw, set);
  join_differences<std::uint64_t>(planes, raw, set);
}

}  // namespace thalia::codec
