#include "model/tensor_chain.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "container/tensor_reading.h"
#include "integrity/content_hash.h"
#include "model/byte_xor.h"
#include "model/fitted_base.h"

namespace thalia::model {
namespace {

// What a thread makes at a time: fits into a cache.
constexpr std::uint64_t kPiece = 1 << 20;

// What a tensor of one file comes out as, whether or not its payload is in that file.
struct Description {
  ChainTensor tensor;
  std::uint32_t crc32;
  Digest128 base_hash;  ///< where it needs a base
};

Description describe(const detail::OpenFile& file, const TensorView& view, std::uint32_t number) {
  Description out{.tensor = {.layout = {view.dtype(), view.shape(), view.encoding(), view.nnz(),
                                        view.wide_indices()},
                             .logical_bytes = view.logical_bytes(),
                             .content_hash = view.content_hash()},
                  .crc32 = view.crc32(),
                  .base_hash = {}};
  if (container::is_plain(view.encoding())) return out;
  if (!container::needs_base(view.encoding()) || file.mapping().before().empty())
    container::fail_unresolved(view.encoding());
  const format::DeltaTensor& side = file.delta_tensor(number);
  out.tensor.layout.encoding = static_cast<Encoding>(side.encoding);
  out.tensor.layout.nnz = side.nnz;
  out.tensor.layout.wide_indices = side.flags != 0;
  out.tensor.logical_bytes = side.logical_length;
  std::memcpy(out.tensor.content_hash.bytes, side.content_hash, sizeof side.content_hash);
  std::memcpy(out.base_hash.bytes, side.base_content_hash, sizeof side.base_content_hash);
  out.crc32 = side.crc32;
  return out;
}

std::string layout_text(const TensorLayout& layout) {
  return fmt::format("{} {} {} with nnz {}", encoding_name(layout.encoding),
                     dtype_name(layout.dtype), layout.shape.to_string(), layout.nnz);
}

// A tensor against the one that the link above takes it for.
void check_base(const Description& base, const Description& upper, Encoding change) {
  const TensorLayout& own = base.tensor.layout;
  const TensorLayout& result = upper.tensor.layout;
  if (base.tensor.content_hash != upper.base_hash) {
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "the base's tensor is not the one that the delta was taken against",
                         {.section = "directory", .field = "base_content_hash"});
  }
  const bool fits = change == Encoding::same_as_base || result.encoding != Encoding::dense
                        ? own == result
                        : can_be_fitted(own, result);
  if (!fits) {
    throw FormatError(ErrorCode::inconsistent, "a change of a tensor that is of another kind",
                      {.section = "directory",
                       .field = "shape",
                       .value = layout_text(own),
                       .bound = layout_text(result)});
  }
}

}  // namespace

bool can_be_fitted(const TensorLayout& base, const TensorLayout& result) noexcept {
  if (base == result) return true;
  return base.encoding == Encoding::dense && result.encoding == Encoding::dense &&
         base.dtype == result.dtype && base.shape.rank() == result.shape.rank() &&
         !dtype_is_packed(base.dtype);
}

StoredBytes::StoredBytes(const detail::OpenFile& file, std::uint32_t number)
    : file_(file), entry_(file.tensor_entry(number)) {
  if (entry_.chunk_count != 0) chunks_.emplace(file, entry_);
}

ByteSpan StoredBytes::view(std::uint64_t begin, std::uint64_t length) const {
  return file_.verified_payload(entry_, entry_.stored_offset + begin, length);
}

void StoredBytes::read(std::uint64_t begin, MutableByteSpan out) const {
  if (out.empty()) return;
  if (!chunks_) {
    const ByteSpan bytes = view(begin, out.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  std::vector<std::byte> decoded;
  while (!out.empty()) {
    const auto chunk = static_cast<std::uint32_t>(begin / chunks_->chunk_bytes());
    const std::uint64_t into = begin % chunks_->chunk_bytes();
    const std::uint64_t length = chunks_->raw_length(chunk);
    const std::uint64_t part = std::min<std::uint64_t>(length - into, out.size());
    if (part == length) {
      chunks_->decode(chunk, out.first(part));
    } else {
      if (const auto most = file_.options().limits.max_allocation_bytes; length > most)
        fail_limit("payload", "max_allocation_bytes", length, most);
      decoded.resize(length);
      chunks_->decode(chunk, decoded);
      std::memcpy(out.data(), decoded.data() + into, part);
    }
    begin += part;
    out = out.subspan(part);
  }
}

// The change of one link.
struct TensorChain::Stage {
  Stage(const detail::OpenFile& file, std::uint32_t number)
      : stored(file, number), encoding(static_cast<Encoding>(stored.entry().encoding)) {}

  const container::SparseDelta& list() const {
    std::call_once(once, [&] {
      const std::uint64_t length = stored.size();
      ByteSpan logical;
      if (stored.is_raw()) {
        logical = stored.view(0, length);
      } else {
        if (const auto most = stored.file().options().limits.max_allocation_bytes; length > most)
          fail_limit("payload", "max_allocation_bytes", length, most);
        memory.resize(length);
        stored.read(0, memory);
        logical = memory;
      }
      elements = container::check_sparse_delta(stored.entry(), logical);
    });
    return elements;
  }

  void apply(std::uint64_t begin, MutableByteSpan out) const {
    if (encoding == Encoding::sparse_delta) {
      const container::SparseDelta& changed = list();
      changed.apply(begin / changed.width, out);
    } else if (stored.is_raw()) {
      xor_into(out, stored.view(begin, out.size()));
    } else {
      const auto difference = std::make_unique_for_overwrite<std::byte[]>(out.size());
      stored.read(begin, {difference.get(), out.size()});
      xor_into(out, {difference.get(), out.size()});
    }
  }

  StoredBytes stored;
  Encoding encoding;
  mutable std::once_flag once;
  mutable std::vector<std::byte> memory;
  mutable container::SparseDelta elements;
};

TensorChain::TensorChain(const FileChain& files) : files_(&files) {}
TensorChain::TensorChain(TensorChain&&) noexcept = default;
TensorChain::~TensorChain() = default;

std::optional<TensorChain> TensorChain::find(const FileChain& files, std::size_t top,
                                             const TensorKey& key) {
  TensorChain chain(files);
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
      chain.bottom_ = i;
      if (upper && found.tensor.layout.shape != upper->tensor.layout.shape) {
        chain.fitted_ = std::make_unique<FittedBase>(
            *find(files, i, key), upper->tensor.layout.shape, files.options().read.threads);
        return true;
      }
      if (container::is_plain(view.encoding())) {
        chain.whole_ = std::make_unique<StoredBytes>(file, place->number);
        return true;
      }
      if (view.encoding() != Encoding::same_as_base)
        chain.stages_.push_back(std::make_unique<Stage>(file, place->number));
      upper = found;
      change = view.encoding();
      return false;
    });
    if (ends) return chain;
  }
  // A full file has plain tensors only: describe() refuses others.
  throw FormatError(ErrorCode::inconsistent, "a chain without a full file", {.section = "delta"});
}

bool TensorChain::is_in_place() const noexcept {
  return stages_.empty() && whole_ && whole_->is_raw();
}

ByteSpan TensorChain::view() const {
  return whole_->view(0, size());
}

void TensorChain::read(std::uint64_t begin, MutableByteSpan out) const {
  if (whole_) {
    whole_->read(begin, out);
  } else {
    fitted_->read(begin, out);
  }
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) (*stage)->apply(begin, out);
}

// As a rule all links have chunks of one size, so that none is decoded twice.
std::uint64_t TensorChain::piece_bytes() const {
  std::uint64_t piece = whole_ ? whole_->piece_bytes() : 1;
  for (const auto& stage : stages_) {
    if (stage->encoding == Encoding::xor_base) piece = std::max(piece, stage->stored.piece_bytes());
  }
  piece = std::max(piece, kPiece);
  return format::align_up(piece, 16);
}

void TensorChain::read_all(MutableByteSpan out, unsigned threads, bool check) const {
  const std::uint64_t piece = piece_bytes();
  const std::uint64_t count = out.size() / piece + (out.size() % piece != 0);
  parallel_for(count, threads, [&](std::size_t i) {
    const std::uint64_t begin = i * piece;
    read(begin, out.subspan(begin, std::min<std::uint64_t>(piece, out.size() - begin)));
  });
  if (!check || (stages_.empty() && whole_)) return;
  if (integrity::content_digest(out, threads).hash != result_.content_hash) {
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "what the chain makes of the tensor is not what was saved",
                         {.section = "payload", .field = "content_hash"});
  }
}

std::shared_ptr<const std::vector<std::byte>> TensorChain::materialise(unsigned threads) const {
  if (const auto most = files_->options().read.limits.max_allocation_bytes; size() > most)
    fail_limit("payload", "max_allocation_bytes", size(), most);
  auto out = std::make_shared<std::vector<std::byte>>(size());
  read_all(*out, threads, false);
  return out;
}

void FittedBase::read(std::uint64_t begin, MutableByteSpan out) const {
  const TensorLayout& layout = base_.result().layout;
  if (layout.shape == shape_) return base_.read(begin, out);
  std::call_once(once_, [&] {
    if (base_.is_in_place()) {
      bytes_ = base_.view();
    } else {
      memory_ = base_.materialise(threads_);
      bytes_ = *memory_;
    }
  });
  fit_elements(bytes_, layout.shape, shape_, dtype_bits(layout.dtype) / 8, begin, out);
}

}  // namespace thalia::model
