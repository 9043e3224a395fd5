#include "container/payload_digest.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "container/sparse_check.h"
#include "format/payload.h"
#include "integrity/crc32.h"
#include "thalia/format/constants.h"

namespace thalia::container {
namespace {

// Calls `visit` with the parts of a payload's pieces that make up [begin, end) of its logical
// bytes.
template <typename Visit>
void visit_range(std::span<const ByteSpan> pieces, std::uint64_t begin, std::uint64_t end,
                 Visit visit) {
  std::uint64_t at = 0;
  for (const ByteSpan piece : pieces) {
    const std::uint64_t from = std::max(begin, at);
    const std::uint64_t to = std::min<std::uint64_t>(end, at + piece.size());
    if (from < to) visit(piece.subspan(from - at, to - from));
    at += piece.size();
  }
}

// An index array of a payload: in place where it lies whole and aligned in one piece, else a copy.
template <typename Index>
class IndexArray {
 public:
  IndexArray(std::span<const ByteSpan> pieces, format::Extent extent) {
    visit_range(pieces, extent.offset, extent.offset + extent.length, [&](ByteSpan part) {
      const bool aligned = reinterpret_cast<std::uintptr_t>(part.data()) % alignof(Index) == 0;
      if (part.size() == extent.length && aligned) {
        view_ = {reinterpret_cast<const Index*>(part.data()), part.size() / sizeof(Index)};
        return;
      }
      copy_.resize(extent.length / sizeof(Index));
      std::memcpy(reinterpret_cast<std::byte*>(copy_.data()) + filled_, part.data(), part.size());
      filled_ += part.size();
      view_ = copy_;
    });
  }
  std::span<const Index> view() const { return view_; }

 private:
  std::vector<Index> copy_;
  std::size_t filled_ = 0;
  std::span<const Index> view_;
};

template <typename Index>
void check_indices(const DraftTensor& tensor) {
  const TensorSpec& spec = tensor.spec;
  std::optional<std::string> fault;
  if (spec.encoding == Encoding::csr) {
    const auto parts = *format::csr_parts(spec.dtype, spec.shape, spec.nnz, spec.wide_indices);
    const IndexArray<Index> pointers(tensor.pieces, parts.row_pointers);
    const IndexArray<Index> columns(tensor.pieces, parts.indices);
    fault = find_csr_fault<Index>(spec.shape, spec.nnz, pointers.view(), columns.view());
  } else {
    const auto parts = *format::coo_parts(spec.dtype, spec.shape, spec.nnz, spec.wide_indices);
    const IndexArray<Index> indices(tensor.pieces, parts.indices);
    fault = find_coo_fault<Index>(spec.shape, spec.nnz, indices.view());
  }
  if (fault) {
    throw UsageError(ErrorCode::bad_argument, *fault,
                     {.field = "indices", .tensor = printable(spec.name)});
  }
}

struct Piece {
  std::uint32_t tensor;
  std::uint64_t begin;
  std::uint64_t length;
  std::uint32_t crc32 = 0;
  Digest128 digest{};
};

void digest_piece(const DraftTensor& tensor, Piece& piece, integrity::Xxh3& hasher) {
  unsigned parts = 0;
  visit_range(tensor.pieces, piece.begin, piece.begin + piece.length, [&](ByteSpan part) {
    piece.crc32 = integrity::crc32(part, piece.crc32);
    if (part.size() == piece.length) {
      piece.digest = integrity::xxh3_128(part);
    } else {
      if (parts++ == 0) hasher.reset();
      hasher.update(part);
    }
  });
  if (parts != 0) piece.digest = hasher.finish();
}

}  // namespace

void digest_borrowed_payloads(Draft& draft, unsigned threads) {
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> sparse;
  for (std::uint32_t i = 0; i < draft.tensors.size(); ++i) {
    const DraftTensor& tensor = draft.tensors[i];
    if (tensor.streamed) continue;
    if (draft.is_sparse(i) && !tensor.pieces.empty()) sparse.push_back(i);
    for (std::uint64_t at = 0; at < tensor.logical_length; at += format::kContentPiece) {
      pieces.push_back({i, at, std::min(format::kContentPiece, tensor.logical_length - at)});
    }
    if (tensor.logical_length == 0) draft.tensors[i].digest.hash = integrity::xxh3_128({});
  }
  parallel_for(sparse.size(), threads, [&](std::size_t i) {
    const DraftTensor& tensor = draft.tensors[sparse[i]];
    tensor.spec.wide_indices ? check_indices<std::uint64_t>(tensor)
                             : check_indices<std::uint32_t>(tensor);
  });
  // Runs of pieces, so that a hundred thousand small tensors are not a hundred thousand hand-overs.
  constexpr std::size_t kRun = 16;
  parallel_for((pieces.size() + kRun - 1) / kRun, threads, [&](std::size_t run) {
    integrity::Xxh3 hasher;
    for (std::size_t i = run * kRun; i < std::min(pieces.size(), (run + 1) * kRun); ++i) {
      digest_piece(draft.tensors[pieces[i].tensor], pieces[i], hasher);
    }
  });
  std::vector<Digest128> digests;
  for (std::size_t i = 0; i < pieces.size();) {
    const std::uint32_t tensor = pieces[i].tensor;
    integrity::ContentDigest& digest = draft.tensors[tensor].digest;
    digests.clear();
    for (; i < pieces.size() && pieces[i].tensor == tensor; ++i) {
      digest.crc32 = integrity::crc32_combine(digest.crc32, pieces[i].crc32, pieces[i].length);
      digests.push_back(pieces[i].digest);
    }
    digest.hash = integrity::xxh3_128(as_byte_span(digests));
  }
}

}  // namespace thalia::container
