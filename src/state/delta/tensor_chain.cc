// One tensor as a chain makes it: docs/format/deltas.md, "Resolving". find() goes down from the top
// to the first link that has the tensor whole, and collects the changes above it; read() then
// applies them from the lowest up. Each link is checked against the one above it (content hash,
// kind, shape) before a byte is read, since the files may come from anywhere. Where a base has
// another shape or type, the chain below is a tensor of its own that is fitted.
#include "state/delta/tensor_chain.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "container/read/quantized_arrays.h"
#include "container/read/tensor_reading.h"
#include "format/delta.h"
#include "format/payload.h"
#include "format/quantized.h"
#include "format/tensor.h"
#include "integrity/content_hash.h"
#include "io/memory/allocation_limit.h"
#include "io/system/process.h"
#include "state/delta/converted_base.h"
#include "state/delta/held_base.h"
#include "state/delta/partwise_bytes.h"
#include "state/delta/stored_bytes.h"

namespace thalia::state {
namespace {

// The elements of a quantized tensor as the logical bytes of a dense one. docs/format/deltas.md,
// "Tensors of a delta".
//
// A quantized tensor as the base of a change: its codes stay in memory, small as they are, and
// elements are restored as they are asked for. QuantizedArrays restores whole pieces, so that a
// part of one goes through a buffer.

/// The codes are in memory from the first read on; elements are restored when they are asked for.
/// Borrows the file. Immutable but for that; any number of threads.
class RestoredBytes final : public PartwiseBytes {
 public:
  /// `number` is that of a tensor that tensor_view() accepted; its codes count in `budget`, which
  /// it borrows. @throws FormatError.
  RestoredBytes(const detail::OpenFile& file, std::uint32_t number, io::MemoryBudget& budget);

  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t begin, MutableByteSpan out) const override;
  void prefetch(std::uint64_t begin, std::uint64_t length) const override {
    static_cast<void>(length);
    if (begin == 0) stored_.prefetch(0, stored_.size());  // all codes are read at once
  }

 private:
  const container::QuantizedArrays& arrays() const;

  StoredTensorBytes stored_;
  std::uint64_t width_;
  std::uint64_t size_;
  mutable io::Once once_;
  mutable std::vector<std::byte> decoded_;
  mutable std::optional<container::QuantizedArrays> arrays_;
};

RestoredBytes::RestoredBytes(const detail::OpenFile& file, std::uint32_t number,
                             io::MemoryBudget& budget)
    : stored_(file, number, budget),
      width_(dtype_bits(stored_.entry().dtype) / 8),
      size_(*format::shape_of(stored_.entry()).element_count() * width_) {}

const container::QuantizedArrays& RestoredBytes::arrays() const {
  once_.run([&] {
    const detail::OpenFile& file = stored_.file();
    const format::TensorEntry& entry = stored_.entry();
    if (!stored_.is_raw()) stored_.budget().take("payload", stored_.size());
    const ByteSpan codes = stored_.part(0, stored_.size(), decoded_);
    arrays_.emplace(entry, file.quantized_tensor(entry), codes);
  });
  return *arrays_;
}

void RestoredBytes::read(std::uint64_t begin, MutableByteSpan out) const {
  if (out.empty()) return;
  const container::QuantizedArrays& own = arrays();
  const std::uint64_t piece_bytes = container::QuantizedArrays::kPieceElements * width_;
  std::vector<std::byte> whole;
  while (!out.empty()) {
    const std::uint64_t piece = begin / piece_bytes;
    const std::uint64_t into = begin % piece_bytes;
    const std::uint64_t length = own.piece_elements(piece) * width_;
    const std::uint64_t part = std::min<std::uint64_t>(length - into, out.size());
    if (part == length) {
      own.restore(piece, out.first(part));
    } else {
      whole.resize(length);
      own.restore(piece, whole);
      std::memcpy(out.data(), whole.data() + into, part);
    }
    begin += part;
    out = out.subspan(part);
  }
}

// What comes out of one file's tensor, whether or not its payload is in that file.
struct Description {
  ChainTensor tensor;
  std::optional<std::uint32_t> crc32;    ///< if it is stated
  std::optional<Digest128> base_hash{};  ///< if it needs a base, and says which
};

Description describe(const detail::OpenFile& file, const TensorView& view, std::uint32_t number) {
  Description out{.tensor = {.layout = view.layout(),
                             .logical_bytes = view.logical_bytes(),
                             .content_hash = view.content_hash()},
                  .crc32 = view.crc32()};
  if (container::is_plain(view.encoding())) return out;
  if (view.encoding() == Encoding::quantized) {  // dense, as it comes out
    const format::QuantizedSideData& side = file.quantized_tensor(file.tensor_entry(number));
    out.tensor.layout.encoding = Encoding::dense;
    out.tensor.logical_bytes = view.dense_bytes();
    out.tensor.content_hash = side.content_hash;
    out.crc32 = side.crc32;
    return out;
  }
  if (!container::needs_base(view.encoding()) || file.mapping().before().empty())
    container::fail_unresolved(view.encoding());
  const format::DeltaTensor& side = file.delta_tensor(number);
  out.tensor.layout = format::layout_of(side, view.dtype(), view.shape());
  out.tensor.logical_bytes = side.logical_length;
  out.tensor.content_hash = side.content_hash;
  out.crc32.reset();
  // Nothing else says of what an unchanged tensor is the same.
  if (view.encoding() == Encoding::same_as_base) out.base_hash = side.content_hash;
  if ((side.flags & format::kDeltaBrief) != 0) return out;
  out.base_hash = side.base_content_hash;
  out.crc32 = side.crc32;
  return out;
}

std::string layout_text(const TensorLayout& layout) {
  return fmt::format("{} {} {} with nnz {}", encoding_name(layout.encoding),
                     dtype_name(layout.dtype), layout.shape.to_string(), layout.nnz);
}

// Checks a tensor against what the link above says of its base.
void check_base(const Description& base, const Description& upper, Encoding change) {
  const TensorLayout& own = base.tensor.layout;
  const TensorLayout& result = upper.tensor.layout;
  if (upper.base_hash && base.tensor.content_hash != *upper.base_hash) {
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "the base's tensor is not the one that the delta was taken against",
                         {.section = "directory", .field = "base_content_hash"});
  }
  const bool both = base.crc32 && upper.crc32;
  if (change == Encoding::same_as_base && both && *base.crc32 != *upper.crc32) {
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "unchanged, with another CRC-32 than its base",
                         {.section = "directory",
                          .field = "crc32",
                          .value = fmt::format("{:#010x}", *upper.crc32),
                          .bound = fmt::format("{:#010x}", *base.crc32)});
  }
  // These take the base as it is; the others may fit it, if it is dense.
  const bool whole = change == Encoding::same_as_base || change == Encoding::low_rank_delta ||
                     change == Encoding::step_delta;
  const bool fits =
      whole || result.encoding != Encoding::dense ? own == result : can_be_fitted(own, result);
  if (!fits) {
    throw FormatError(ErrorCode::inconsistent, "a change of a tensor that is of another kind",
                      {.section = "directory",
                       .field = "shape",
                       .value = layout_text(own),
                       .bound = layout_text(result)});
  }
}

std::shared_ptr<io::MemoryBudget> budget_of(const FileChain& files) {
  return std::make_shared<io::MemoryBudget>(files.options().read.input.limits, files.disk_bytes());
}

}  // namespace

TensorChain::TensorChain() = default;
TensorChain::TensorChain(TensorChain&&) noexcept = default;
TensorChain::~TensorChain() = default;

std::optional<TensorChain> TensorChain::find(const FileChain& files, std::size_t top,
                                             const TensorKey& key) {
  return find(files, top, key, budget_of(files));
}

std::optional<TensorChain> TensorChain::find(const FileChain& files, std::size_t top,
                                             const TensorKey& key,
                                             std::shared_ptr<io::MemoryBudget> budget) {
  TensorChain chain;
  chain.budget_ = std::move(budget);
  std::optional<Description> upper;
  Encoding change = Encoding::dense;
  for (std::size_t i = top; i < files.size(); ++i) {
    const detail::OpenFile& file = files.file(i);
    const auto place = files.link(i).find(key);
    if (!place && !upper) return std::nullopt;
    const bool ends = container::with_names(file, key.region, key.name, [&] {
      if (!place) {
        throw FormatError(ErrorCode::inconsistent, "the base has no such tensor",
                          {.section = "directory"});
      }
      const TensorView view = file.tensor_view(place->region, place->number);
      const Description found = describe(file, view, place->number);
      if (upper) check_base(found, *upper, change);
      if (!upper) {
        chain.result_ = found.tensor;
        chain.crc32_ = found.crc32;
      }
      if (upper && found.tensor.layout != upper->tensor.layout) {
        // From here down it is a chain of its own, in its own shape; changes above apply to what is
        // fitted.
        chain.made_ =
            fitted(std::make_shared<const TensorChain>(*find(files, i, key, chain.budget_)),
                   found.tensor.layout, upper->tensor.layout);
        return true;
      }
      if (container::is_plain(view.encoding())) {
        chain.whole_ = std::make_unique<StoredTensorBytes>(file, place->number, *chain.budget_);
        return true;
      }
      if (view.encoding() == Encoding::quantized) {
        chain.made_ = std::make_shared<RestoredBytes>(file, place->number, *chain.budget_);
        return true;
      }
      if (view.encoding() != Encoding::same_as_base)
        chain.stages_.push_back(std::make_unique<ChainStage>(file, place->number, *chain.budget_));
      upper = found;
      change = view.encoding();
      return false;
    });
    if (ends) return chain;
  }
  if (files.held() != nullptr && upper) {
    container::with_names(files.file(files.size() - 1), key.region, key.name, [&] {
      const std::optional<HeldBytes> found = files.held()->find(key);
      if (!found) {
        throw FormatError(ErrorCode::inconsistent, "the base has no such tensor",
                          {.section = "directory"});
      }
      const Description base{.tensor = found->tensor, .crc32 = found->crc32};
      check_base(base, *upper, change);
      const TensorLayout& layout = upper->tensor.layout;
      chain.made_ = base.tensor.layout == layout ? found->bytes
                                                 : fitted(found->bytes, base.tensor.layout, layout);
    });
    return chain;
  }
  // A full file has plain tensors only: describe() refuses others.
  throw FormatError(ErrorCode::inconsistent, "a chain without a full file", {.section = "delta"});
}

TensorChain find_tensor(const FileChain& files, const TensorView& view) {
  return find_tensor(files, view, budget_of(files));
}

TensorChain find_tensor(const FileChain& files, const TensorView& view,
                        std::shared_ptr<io::MemoryBudget> budget) {
  const detail::OpenFile& file = files.file(0);
  const std::string_view region = Reader::region_name(view);
  auto found =
      TensorChain::find(files, 0, tensor_key(file, region, view.name()), std::move(budget));
  if (found) return *std::move(found);
  throw UsageError(ErrorCode::not_found, "no such tensor",
                   {.path = file.mapping().path().string(),
                    .region = printable(region),
                    .tensor = printable(view.name())});
}

bool TensorChain::is_in_place() const noexcept {
  return stages_.empty() && whole_ && whole_->is_raw();
}

ByteSpan TensorChain::view() const {
  return whole_->view(0, size());
}

ByteSpan TensorChain::part(std::uint64_t begin, std::uint64_t length,
                           std::vector<std::byte>& buffer) const {
  return is_in_place() ? whole_->part(begin, length, buffer)
                       : PartwiseBytes::part(begin, length, buffer);
}

void TensorChain::read(std::uint64_t begin, MutableByteSpan out) const {
  // Chunks of all stages have powers of two of elements: where the widest ends, all end.
  std::uint64_t from = begin, to = begin + out.size();
  for (const auto& stage : stages_) stage->widen(from, to);
  if (from == begin && to == begin + out.size()) return read_chunks(begin, out);
  std::vector<std::byte> chunks(to - from);
  read_chunks(from, chunks);
  std::memcpy(out.data(), chunks.data() + (begin - from), out.size());
}

void TensorChain::read_chunks(std::uint64_t begin, MutableByteSpan out) const {
  const PartwiseBytes& lowest = whole_ ? static_cast<const PartwiseBytes&>(*whole_) : *made_;
  std::vector<std::byte> scratch;
  auto stage = stages_.rbegin();
  if (stage != stages_.rend() && (*stage)->takes_base()) {
    // Where it lies, if that is in memory: it is not copied first.
    std::vector<std::byte> base;
    (*stage)->apply(begin, lowest.part(begin, out.size(), base), out, scratch);
    ++stage;
  } else {
    lowest.read(begin, out);
  }
  for (; stage != stages_.rend(); ++stage) (*stage)->apply(begin, out, scratch);
}

void TensorChain::prefetch(std::uint64_t begin, std::uint64_t length) const {
  if (whole_) {
    whole_->prefetch(begin, length);
  } else {
    made_->prefetch(begin, length);
  }
  for (const auto& stage : stages_) stage->prefetch(begin, length);
}

// The largest chunk of any link. Links have chunks of one size as a rule, and no chunk is then
// decoded twice.
std::uint64_t TensorChain::piece_bytes() const {
  std::uint64_t piece = whole_ ? whole_->piece_bytes() : 1;
  for (const auto& stage : stages_) piece = std::max(piece, stage->piece_bytes());
  return format::align_up(piece, format::kContentPiece);
}

void TensorChain::make(std::uint64_t begin, MutableByteSpan out,
                       std::span<integrity::PieceDigest> digests) const {
  read(begin, out);
  integrity::PieceHasher hasher;
  ByteSpan left = out;
  for (integrity::PieceDigest& digest : digests) {
    const ByteSpan piece = left.first(std::min<std::uint64_t>(left.size(), format::kContentPiece));
    hasher.update(piece);
    digest = hasher.finish();
    left = left.subspan(piece.size());
  }
}

void TensorChain::check(std::span<const integrity::PieceDigest> digests) const {
  const integrity::ContentDigest made = integrity::join_pieces(digests);
  const auto fail = [](const char* field) {
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "what the chain makes of the tensor is not what was saved",
                         {.section = "payload", .field = field});
  };
  if (made.hash != result_.content_hash) fail("content_hash");
  if (crc32_ && made.crc32 != *crc32_) fail("crc32");
}

void TensorChain::read_all(MutableByteSpan out, unsigned threads, bool check) const {
  const std::uint64_t piece = piece_bytes();
  std::vector<integrity::PieceDigest> digests;
  if (check && is_made()) digests.resize(content_pieces(out.size()));
  parallel_for(out.size() / piece + (out.size() % piece != 0), threads, [&](std::size_t i) {
    const std::uint64_t begin = i * piece;
    const MutableByteSpan part =
        out.subspan(begin, std::min<std::uint64_t>(piece, out.size() - begin));
    make(begin, part,
         digests.empty() ? std::span<integrity::PieceDigest>()
                         : std::span(digests).subspan(begin / format::kContentPiece,
                                                      content_pieces(part.size())));
  });
  if (check && is_made()) this->check(digests);
}

}  // namespace thalia::state
