// A transposition in blocks: the innermost index of the one order and that of the other run inside
// a block, so that each cache line that it touches is used whole. All other indices run around it.
#include "formats/npz/elements.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace thalia::formats::npz {
namespace {

constexpr std::uint64_t kBlock = 32;

// One index: how often it runs, and how many elements a step is on both sides.
struct Axis {
  std::uint64_t extent;
  std::uint64_t from_step;
  std::uint64_t to_step;
};

// `first` steps by one element in `from`, `last` in `to`. A width of 0 is known at run time only.
template <std::size_t kWidth>
void move_plane(const std::byte* from, std::byte* to, const Axis& first, const Axis& last,
                std::size_t run_time_width) {
  const std::size_t width = kWidth != 0 ? kWidth : run_time_width;
  for (std::uint64_t i0 = 0; i0 < first.extent; i0 += kBlock) {
    const std::uint64_t i_end = std::min(first.extent, i0 + kBlock);
    for (std::uint64_t j0 = 0; j0 < last.extent; j0 += kBlock) {
      const std::uint64_t j_end = std::min(last.extent, j0 + kBlock);
      for (std::uint64_t i = i0; i < i_end; ++i) {
        for (std::uint64_t j = j0; j < j_end; ++j) {
          std::memcpy(to + (i * first.to_step + j) * width, from + (i + j * last.from_step) * width,
                      width);
        }
      }
    }
  }
}

void move_plane_of(std::size_t width, const std::byte* from, std::byte* to, const Axis& first,
                   const Axis& last) {
  switch (width) {
    case 1:
      return move_plane<1>(from, to, first, last, width);
    case 2:
      return move_plane<2>(from, to, first, last, width);
    case 4:
      return move_plane<4>(from, to, first, last, width);
    case 8:
      return move_plane<8>(from, to, first, last, width);
    case 16:
      return move_plane<16>(from, to, first, last, width);
    default:
      return move_plane<0>(from, to, first, last, width);
  }
}

// The axes of more than one step, with their steps.
std::vector<Axis> axes_of(const Shape& shape) {
  std::vector<Axis> axes;
  std::uint64_t step = 1;
  for (const std::uint64_t extent : shape.extents()) {
    if (extent > 1) axes.push_back({extent, step, 1});
    step *= extent;
  }
  step = 1;
  for (std::size_t k = axes.size(); k-- > 0;) {
    axes[k].to_step = step;
    step *= axes[k].extent;
  }
  return axes;
}

}  // namespace

void to_row_major(ByteSpan column_major, const Shape& shape, std::size_t width,
                  MutableByteSpan row_major) {
  if (column_major.empty()) return;
  const std::vector<Axis> axes = axes_of(shape);
  if (axes.size() < 2) {
    std::copy(column_major.begin(), column_major.end(), row_major.begin());
    return;
  }
  const std::span<const Axis> between(axes.begin() + 1, axes.end() - 1);
  std::vector<std::uint64_t> index(between.size(), 0);
  std::uint64_t from = 0, to = 0;
  while (true) {
    move_plane_of(width, column_major.data() + from * width, row_major.data() + to * width,
                  axes.front(), axes.back());
    std::size_t k = 0;
    for (; k < between.size(); ++k) {
      from += between[k].from_step;
      to += between[k].to_step;
      if (++index[k] < between[k].extent) break;
      from -= between[k].extent * between[k].from_step;
      to -= between[k].extent * between[k].to_step;
      index[k] = 0;
    }
    if (k == between.size()) return;
  }
}

void to_column_major(ByteSpan row_major, const Shape& shape, std::size_t width,
                     MutableByteSpan column_major) {
  // Read with its indices turned around, the one order is the other.
  std::vector<std::uint64_t> extents(shape.extents().rbegin(), shape.extents().rend());
  to_row_major(row_major, Shape(extents), width, column_major);
}

}  // namespace thalia::formats::npz
