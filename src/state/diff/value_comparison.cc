// Compares two tensors element by element, in pieces of about 256 KiB that any thread may take.
// Sides that can be are read slice by slice, so that memory stays small however large the tensors
// are; the others are loaded whole by the first piece and freed by the last. A csr and a dense
// tensor are compared as what they mean: elements that are not stored are 0. Only f64 and integers
// of 64 bits are compared in full; smaller types become f64 without loss.

#include "state/diff/value_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <utility>

#include "state/tensor/dense_pieces.h"
#include "state/tensor/element_decoder.h"
#include "state/tensor/sparse_entries.h"

namespace thalia::state {
namespace {

constexpr std::uint64_t kPieceBytes = 256 << 10;  // of the wider side; both fit into a core's cache
// Entries of a piece if both sides are sparse.
constexpr std::uint64_t kPieceEntries = 16 << 10;
constexpr std::size_t kBlock = 1024;  // elements decoded at once

// The part that both have; nullopt if they have different ranks.
std::optional<Shape> common_corner(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return std::nullopt;
  std::array<std::uint64_t, Shape::kMaxRank> extents{};
  for (unsigned d = 0; d < a.rank(); ++d) extents[d] = std::min(a[d], b[d]);
  return Shape(std::span<const std::uint64_t>(extents.data(), a.rank()));
}

// Walks the entries of one side from one position up to another and decodes a block at a time.
template <typename T>
class EntryCursor {
 public:
  EntryCursor(const SparseEntries& entries, std::uint64_t begin, std::uint64_t end)
      : entries_(entries), next_(entries.first_at(begin)), end_(end) {
    refill();
  }
  bool done() const { return at_ == size_ || positions_[at_] >= end_; }
  std::uint64_t position() const { return positions_[at_]; }
  T value() const { return values_[at_]; }
  void advance() {
    if (++at_ == size_) refill();
  }

 private:
  void refill() {
    at_ = 0;
    size_ = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, entries_.count() - next_));
    if (size_ == 0) return;
    entries_.positions(next_, std::span(positions_).first(size_));
    decode_elements<T>(entries_.dtype(), entries_.values(), next_, std::span(values_).first(size_));
    next_ += size_;
  }

  const SparseEntries& entries_;
  std::uint64_t next_;
  std::uint64_t end_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::array<std::uint64_t, kBlock> positions_;
  std::array<T, kBlock> values_;
};

}  // namespace

struct ValueComparison::Loaded {
  struct One {
    std::optional<Tensor> dense{};
    std::optional<SparseEntries> sparse{};

    void load(const ComparedTensor& tensor) {
      if (!tensor.load) return;
      Tensor whole = tensor.load();
      if (tensor.sparse) {
        sparse.emplace(std::move(whole));
      } else {
        dense = std::move(whole);
      }
    }
  };
  One before;
  One after;

  const SparseEntries& longer() const {
    return before.sparse->count() < after.sparse->count() ? *after.sparse : *before.sparse;
  }
};

ValueComparison::ValueComparison(ComparedTensor before, ComparedTensor after,
                                 const Tolerance& tolerance)
    : before_(std::move(before)), after_(std::move(after)), tolerance_(tolerance) {
  plan();
  tallies_.resize(pieces_);
  left_ = pieces_;
}

ValueComparison::~ValueComparison() = default;

void ValueComparison::plan() {
  shape_ = before_.shape;
  if (before_.shape != after_.shape) {
    const auto corner = common_corner(before_.shape, after_.shape);
    if (!corner) {
      skipped_ = "ranks differ";
      return;
    }
    // Indices of sparse tensors would have to be moved first; grown tensors are dense as a rule.
    if (before_.load || after_.load) {
      skipped_ = before_.sparse || after_.sparse ? "shapes of sparse tensors differ"
                                                 : "shapes of restored tensors differ";
      return;
    }
    shape_ = *corner;
  }
  elements_ = *shape_.element_count();
  const unsigned bits = std::max(dtype_bits(before_.dtype), dtype_bits(after_.dtype));
  both_sparse_ = before_.sparse && after_.sparse;
  if (both_sparse_) {
    // By entries and not by elements: a sparse shape may have 2^60 elements.
    const std::uint64_t entries = std::max(before_.entries, after_.entries);
    pieces_ = entries / kPieceEntries + (entries % kPieceEntries != 0);
  } else {
    pieces_ = DensePieces(shape_, kPieceBytes * 8 / bits).count();
  }
  if (pieces_ > 0) piece_bytes_ = (before_.read_bytes + after_.read_bytes) / pieces_;
}

void ValueComparison::load() {
  auto loaded = std::make_unique<Loaded>();
  loaded->before.load(before_);
  loaded->after.load(after_);
  loaded_ = std::move(loaded);
}

void ValueComparison::compare(std::uint64_t piece) {
  if (before_.load || after_.load) loading_.run([this] { load(); });
  const DType a = before_.dtype;
  const DType b = after_.dtype;
  // Integers of 64 bits as integers if both are: as doubles those beyond 2^53 would look alike.
  if (dtype_is_complex(a) || dtype_is_complex(b)) {
    tallies_[piece] = compare_as<std::complex<double>>(piece);
  } else if (a == DType::i64 && b == DType::i64) {
    tallies_[piece] = compare_as<std::int64_t>(piece);
  } else if (a == DType::u64 && b == DType::u64) {
    tallies_[piece] = compare_as<std::uint64_t>(piece);
  } else {
    tallies_[piece] = compare_as<double>(piece);
  }
  // The last piece frees the sides: other comparisons are still to come.
  if (--left_ == 0) loaded_.reset();
}

template <typename T>
DifferenceTally ValueComparison::compare_as(std::uint64_t piece) const {
  return both_sparse_ ? compare_sparse<T>(piece) : compare_dense<T>(piece);
}

namespace {

// A piece of one side: its bytes, or a cursor over the entries that lie in it.
template <typename T>
class Side {
 public:
  /// `dense` and `sparse`: what was loaded of it.
  Side(const ComparedTensor& tensor, const Tensor* dense, const SparseEntries* sparse,
       const DensePieces::Piece& piece)
      : dtype_(tensor.dtype) {
    if (sparse) {
      cursor_.emplace(*sparse, piece.first, piece.first + piece.elements);
      at_ = piece.first;
    } else if (dense) {
      bytes_ = dense->bytes();
      first_ = piece.first;
    } else {
      const std::span ranges(piece.ranges.data(), tensor.shape.rank());
      own_.resize((piece.elements * dtype_bits(dtype_) + 7) / 8);
      tensor.read(ranges, own_);
      bytes_ = own_;
    }
  }

  // `first` has to go on where the last call ended: a cursor only moves forward.
  void decode(std::uint64_t first, std::span<T> out) {
    if (!cursor_) return decode_elements<T>(dtype_, bytes_, first_ + first, out);
    // What is not stored is 0.
    std::fill(out.begin(), out.end(), T{});
    for (; !cursor_->done() && cursor_->position() - at_ < out.size(); cursor_->advance())
      out[cursor_->position() - at_] = cursor_->value();
    at_ += out.size();
  }

 private:
  DType dtype_;
  std::vector<std::byte> own_;
  ByteSpan bytes_;
  std::uint64_t first_ = 0;  ///< element of bytes_ that the piece begins with
  std::optional<EntryCursor<T>> cursor_;
  std::uint64_t at_ = 0;
};

const Tensor* pointer_to(const std::optional<Tensor>& tensor) {
  return tensor ? &*tensor : nullptr;
}
const SparseEntries* pointer_to(const std::optional<SparseEntries>& entries) {
  return entries ? &*entries : nullptr;
}

}  // namespace

template <typename T>
DifferenceTally ValueComparison::compare_dense(std::uint64_t number) const {
  const unsigned bits = std::max(dtype_bits(before_.dtype), dtype_bits(after_.dtype));
  const DensePieces::Piece piece = DensePieces(shape_, kPieceBytes * 8 / bits)[number];
  static const Loaded nothing{};
  const Loaded& loaded = loaded_ ? *loaded_ : nothing;
  Side<T> before(before_, pointer_to(loaded.before.dense), pointer_to(loaded.before.sparse), piece);
  Side<T> after(after_, pointer_to(loaded.after.dense), pointer_to(loaded.after.sparse), piece);
  DifferenceTally tally;
  std::array<T, kBlock> a;
  std::array<T, kBlock> b;
  for (std::uint64_t first = 0; first < piece.elements; first += kBlock) {
    const std::size_t count =
        static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, piece.elements - first));
    before.decode(first, std::span(a).first(count));
    after.decode(first, std::span(b).first(count));
    tally.add(std::span<const T>(a).first(count), std::span<const T>(b).first(count), tolerance_);
  }
  return tally;
}

// Pieces are cut at entries of the longer side, at most kPieceEntries of it in each. Both sides are
// then walked in order of position, and a position that only one has is compared with 0.
template <typename T>
DifferenceTally ValueComparison::compare_sparse(std::uint64_t piece) const {
  const SparseEntries& longer = loaded_->longer();
  const std::uint64_t begin = piece == 0 ? 0 : longer.position(piece * kPieceEntries);
  const std::uint64_t end =
      piece + 1 == pieces_ ? elements_ : longer.position((piece + 1) * kPieceEntries);
  EntryCursor<T> before(*loaded_->before.sparse, begin, end);
  EntryCursor<T> after(*loaded_->after.sparse, begin, end);
  DifferenceTally tally;
  std::array<T, kBlock> a;
  std::array<T, kBlock> b;
  while (!before.done() || !after.done()) {
    std::size_t count = 0;
    for (; count < kBlock && (!before.done() || !after.done()); ++count) {
      const std::uint64_t at = before.done()  ? after.position()
                               : after.done() ? before.position()
                                              : std::min(before.position(), after.position());
      a[count] = b[count] = T{};
      if (!before.done() && before.position() == at) {
        a[count] = before.value();
        before.advance();
      }
      if (!after.done() && after.position() == at) {
        b[count] = after.value();
        after.advance();
      }
    }
    tally.add(std::span<const T>(a).first(count), std::span<const T>(b).first(count), tolerance_);
  }
  return tally;
}

namespace {

double at_most_f64(long double number) {
  return static_cast<double>(std::min<long double>(number, std::numeric_limits<double>::max()));
}

}  // namespace

ValueDiff ValueComparison::result() const {
  if (!skipped_.empty()) return {.skipped = skipped_};
  DifferenceTally sum;
  for (const DifferenceTally& tally : tallies_) sum.add(tally);
  ValueDiff diff{.compared = shape_,
                 .elements = elements_,
                 .differing = sum.differing,
                 .not_finite = sum.not_finite,
                 .max_difference = sum.max_difference};
  if (elements_ > sum.not_finite)
    diff.rms_difference = sum.squares.root_mean(elements_ - sum.not_finite);
  if (sum.before_squares > 0) {
    const long double squares =
        std::ldexp(static_cast<long double>(sum.squares.sum), 2 * sum.squares.scale);
    diff.relative_difference = at_most_f64(std::sqrt(squares / sum.before_squares));
  }
  if (sum.before_squares > 0 && sum.after_squares > 0) {
    const long double cosine =
        sum.products / (std::sqrt(sum.before_squares) * std::sqrt(sum.after_squares));
    diff.cosine = static_cast<double>(std::clamp<long double>(cosine, -1, 1));
  }
  return diff;
}

}  // namespace thalia::state
