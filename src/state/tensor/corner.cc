// Growth makes a tensor larger along any dimensions at once; this file moves the old elements and
// numbers the new ones. Elements are handled in runs that are consecutive in both shapes. A fill is
// asked for each new element exactly once, by its number in the new shape, and so its answer does
// not depend on how the work is cut. Memory is the new tensor and one piece of numbers.

#include "state/tensor/corner.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "format/payload.h"
#include "io/memory/allocation_limit.h"
#include "state/tensor/bit_runs.h"
#include "state/tensor/element_numbers.h"
#include "state/tensor/sparse_elements.h"

namespace thalia::state {
namespace {

// Numbers that a fill writes at a time: 512 KiB of doubles.
constexpr std::uint64_t kCornerPiece = 1 << 16;

// The corner of one shape in another, as runs of elements that follow each other in both.
class Corner {
 public:
  Corner(const Shape& outer, const Shape& inner) : outer_(outer), inner_(inner) {
    // Dimensions from `whole_` on have equal extents: a run goes on through them.
    whole_ = outer.rank();
    while (whole_ > 0 && outer[whole_ - 1] == inner[whole_ - 1]) --whole_;
    std::uint64_t stride = 1;
    std::uint64_t inner_stride = 1;
    for (unsigned d = outer.rank(); d-- > 0;) {
      strides_[d] = stride;
      inner_strides_[d] = inner_stride;
      stride *= outer[d];
      inner_stride *= inner[d];
    }
    outer_count_ = stride;
    inner_count_ = inner_stride;
  }

  // visit(first of outer, first of inner, count) for each run inside the corner.
  template <typename Visit>
  void visit_inside(const Visit& visit) const {
    if (inner_count_ == 0) return;
    if (whole_ == 0) return visit(std::uint64_t{0}, std::uint64_t{0}, outer_count_);
    inside(0, 0, 0, visit);
  }
  // visit(first of outer, count) for each run outside, in ascending order.
  template <typename Visit>
  void visit_outside(const Visit& visit) const {
    if (outer_count_ == 0 || whole_ == 0) return;
    outside(0, 0, visit);
  }

 private:
  // Steps through the dimensions before `whole_ - 1`; along that one the corner is a single run.
  template <typename Visit>
  void inside(unsigned d, std::uint64_t at, std::uint64_t inner_at, const Visit& visit) const {
    if (d + 1 == whole_) return visit(at, inner_at, inner_[d] * strides_[d]);
    for (std::uint64_t i = 0; i < inner_[d]; ++i)
      inside(d + 1, at + i * strides_[d], inner_at + i * inner_strides_[d], visit);
  }
  // At each dimension first what lies within the corner's extent, then the rest after it:
  // ascending. `whole_` is within the rank, which gcc 14 does not see where it inlines one call in
  // the other.
  template <typename Visit>
  void outside(unsigned d, std::uint64_t at, const Visit& visit) const {
    if (d + 1 < std::min(whole_, Shape::kMaxRank)) {
      for (std::uint64_t i = 0; i < inner_[d]; ++i) outside(d + 1, at + i * strides_[d], visit);
    }
    const std::uint64_t more = outer_[d] - inner_[d];
    if (more > 0) visit(at + inner_[d] * strides_[d], more * strides_[d]);
  }

  const Shape& outer_;
  const Shape& inner_;
  unsigned whole_ = 0;
  std::array<std::uint64_t, Shape::kMaxRank> strides_{};
  std::array<std::uint64_t, Shape::kMaxRank> inner_strides_{};
  std::uint64_t outer_count_ = 0;
  std::uint64_t inner_count_ = 0;
};

// Calls use(first, numbers) for the numbers of a run, in pieces.
template <typename Use>
void in_pieces(const ElementFill& fill, std::uint64_t first, std::uint64_t count, const Use& use) {
  std::vector<double> numbers;
  for (std::uint64_t end = first + count; first < end; first += numbers.size()) {
    numbers.resize(std::min(kCornerPiece, end - first));
    fill(first, numbers);
    use(first, std::span<const double>(numbers));
  }
}

Tensor grown_dense(const Tensor& old, const Shape& shape, const ElementFill& fill) {
  Tensor larger = Tensor::zeros(old.dtype(), shape);
  const MutableByteSpan bytes = larger.mutable_bytes();
  const std::uint64_t bits = dtype_bits(old.dtype());
  const Corner corner(shape, old.shape());
  if (fill) {
    // A type that holds numbers has whole bytes: bits / 8 is exact.
    corner.visit_outside([&](std::uint64_t first, std::uint64_t count) {
      in_pieces(fill, first, count, [&](std::uint64_t at, std::span<const double> numbers) {
        write_numbers(old.dtype(), numbers,
                      bytes.subspan(at * bits / 8, numbers.size() * bits / 8));
      });
    });
  }
  corner.visit_inside([&](std::uint64_t at, std::uint64_t old_at, std::uint64_t count) {
    copy_bits(old.bytes(), old_at * bits, bytes, at * bits, count * bits);
  });
  return larger;
}

// Where an element of one shape is in another, both having at least its indices.
std::uint64_t moved(std::uint64_t position, const Shape& from, const Shape& to) {
  std::uint64_t at = 0;
  std::uint64_t stride = 1;
  for (unsigned d = from.rank(); d-- > 0; position /= from[d]) {
    at += position % from[d] * stride;
    stride *= to[d];
  }
  return at;
}

bool is_inside(std::uint64_t position, const Shape& shape, const Shape& inner) {
  for (unsigned d = shape.rank(); d-- > 0; position /= shape[d]) {
    if (position % shape[d] >= inner[d]) return false;
  }
  return true;
}

// Merges two ascending lists that have no position in common.
SparseElements merged(const SparseElements& a, const SparseElements& b, std::size_t width) {
  SparseElements both;
  both.positions.reserve(a.positions.size() + b.positions.size());
  both.values.reserve(a.values.size() + b.values.size());
  const auto take = [&](const SparseElements& from, std::size_t i) {
    both.positions.push_back(from.positions[i]);
    const auto value = from.values.begin() + static_cast<std::ptrdiff_t>(i * width);
    both.values.insert(both.values.end(), value, value + static_cast<std::ptrdiff_t>(width));
  };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.positions.size() || j < b.positions.size()) {
    const bool from_a =
        j == b.positions.size() || (i < a.positions.size() && a.positions[i] < b.positions[j]);
    from_a ? take(a, i++) : take(b, j++);
  }
  return both;
}

SparseElements filled_outside(const Tensor& old, const Shape& shape, const ElementFill& fill) {
  SparseElements added;
  const std::size_t width = dtype_bits(old.dtype()) / 8;
  std::vector<std::byte> bytes;
  const std::array<std::byte, 16> zero{};
  Corner(shape, old.shape()).visit_outside([&](std::uint64_t first, std::uint64_t count) {
    in_pieces(fill, first, count, [&](std::uint64_t at, std::span<const double> numbers) {
      bytes.resize(numbers.size() * width);
      write_numbers(old.dtype(), numbers, bytes);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::byte* value = bytes.data() + i * width;
        // Compared as bits: a drawn -0.0 is stored.
        if (std::memcmp(value, zero.data(), width) == 0) continue;
        added.positions.push_back(at + i);
        added.values.insert(added.values.end(), value, value + width);
      }
    });
  });
  return added;
}

Tensor grown_sparse(const Tensor& old, const Shape& shape, const ElementFill& fill) {
  SparseElements elements = sparse_elements(old);
  for (std::uint64_t& position : elements.positions) position = moved(position, old.shape(), shape);
  if (fill) {
    elements = merged(elements, filled_outside(old, shape, fill), dtype_bits(old.dtype()) / 8);
  }
  return sparse_tensor(old, shape, elements);
}

// Checks the memory that growth takes against the limits, since shapes come from files. A dense
// tensor holds every new element, and a fill looks at each of them even if the tensor is sparse.
// Without a fill a sparse tensor takes only the row pointers of a csr and the elements that it had.
void check_growth(const Tensor& old, const Shape& shape, bool filled) {
  std::optional<std::uint64_t> all = shape.byte_length(old.dtype());
  std::optional<std::uint64_t> before = old.shape().byte_length(old.dtype());
  if (!old.is_dense() && !filled) {
    TensorLayout layout = old.layout();
    layout.shape = shape;
    layout.wide_indices = layout.wide_indices || !format::narrow_indices_fit(layout);
    all = format::payload_length(layout);
    before = old.bytes().size();
  }
  const std::uint64_t most = all.value_or(~std::uint64_t{0});
  io::MemoryBudget({}, old.bytes().size())
      .take("tensor", most - std::min(most, before.value_or(0)));
}

void require_fit(const Shape& inner, const Shape& outer) {
  if (fits_into(inner, outer)) return;
  fail_argument(ErrorCode::size_mismatch, "shape", inner.to_string(),
                "of the same rank as, and nowhere larger than " + outer.to_string());
}

}  // namespace

bool fits_into(const Shape& inner, const Shape& outer) noexcept {
  return std::ranges::equal(inner.extents(), outer.extents(), std::less_equal<>());
}

Tensor grown(const Tensor& old, const Shape& shape, const ElementFill& fill) {
  require_fit(old.shape(), shape);
  if (old.shape() == shape) return old;
  require_countable(shape);
  check_growth(old, shape, static_cast<bool>(fill));
  if (fill) {
    // Writes one number, so that a type that holds none fails before the work begins.
    std::array<std::byte, 8> element{};
    const double zero = 0;
    write_numbers(old.dtype(), {&zero, 1},
                  MutableByteSpan(element).first(std::min(dtype_bits(old.dtype()) / 8, 8U)));
  }
  return old.is_dense() ? grown_dense(old, shape, fill) : grown_sparse(old, shape, fill);
}

Tensor with_corner(const Tensor& whole, const Tensor& corner) {
  require_fit(corner.shape(), whole.shape());
  if (corner.dtype() != whole.dtype()) {
    fail_argument(ErrorCode::dtype_mismatch, "dtype", std::string(dtype_name(corner.dtype())),
                  std::string(dtype_name(whole.dtype())));
  }
  if (!whole.is_dense()) {
    SparseElements inner = sparse_elements(corner);
    for (std::uint64_t& position : inner.positions)
      position = moved(position, corner.shape(), whole.shape());
    const std::size_t width = dtype_bits(whole.dtype()) / 8;
    const SparseElements all = sparse_elements(whole);
    SparseElements outside;
    for (std::size_t i = 0; i < all.positions.size(); ++i) {
      if (is_inside(all.positions[i], whole.shape(), corner.shape())) continue;
      outside.positions.push_back(all.positions[i]);
      const std::byte* value = all.values.data() + i * width;
      outside.values.insert(outside.values.end(), value, value + width);
    }
    return sparse_tensor(whole, whole.shape(), merged(outside, inner, width));
  }
  Tensor result = whole;
  const Tensor dense = corner.to_dense();
  const std::uint64_t bits = dtype_bits(whole.dtype());
  const MutableByteSpan bytes = result.mutable_bytes();
  Corner(whole.shape(), corner.shape())
      .visit_inside([&](std::uint64_t at, std::uint64_t inner_at, std::uint64_t count) {
        copy_bits(dense.bytes(), inner_at * bits, bytes, at * bits, count * bits);
      });
  return result;
}

}  // namespace thalia::state
