// One tensor of a state, made of what the files of a chain store of it. docs/format/deltas.md,
// "Resolving".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "format/constants.h"
#include "integrity/content_hash.h"
#include "io/memory/allocation_limit.h"
#include "state/delta/chain_stage.h"
#include "state/delta/file_chain.h"
#include "state/delta/partwise_bytes.h"
#include "state/delta/stored_bytes.h"
#include "thalia/state/delta.h"

namespace thalia::state {

/// Pieces of the content hash of so many bytes.
constexpr std::uint64_t content_pieces(std::uint64_t bytes) noexcept {
  return bytes / format::kContentPiece + (bytes % format::kContentPiece != 0);
}

/// Borrows the chain of files. Immutable but for what it remembers; any number of threads.
class TensorChain final : public PartwiseBytes {
 public:
  /// The tensor as link `top` and those below it have it; nullopt if that link has none.
  /// @throws FormatError, IntegrityError, naming the file.
  static std::optional<TensorChain> find(const FileChain& files, std::size_t top,
                                         const TensorKey& key);
  /// The same, counting in the budget of a chain above it.
  static std::optional<TensorChain> find(const FileChain& files, std::size_t top,
                                         const TensorKey& key,
                                         std::shared_ptr<io::MemoryBudget> budget);
  TensorChain(TensorChain&&) noexcept;
  ~TensorChain() override;

  const ChainTensor& result() const noexcept { return result_; }
  /// What reading this tensor may take, whatever it is made of: against the bytes of all files of
  /// the chain, as a small delta may well change a large tensor.
  io::MemoryBudget& budget() const noexcept { return *budget_; }
  /// nullopt where a delta does not state it.
  std::optional<std::uint32_t> crc32() const noexcept { return crc32_; }
  std::uint64_t size() const noexcept override { return result_.logical_bytes; }
  /// True if it lies raw in one file; view() hands it out.
  bool is_in_place() const noexcept;
  bool is_at_hand() const noexcept override { return is_in_place(); }
  ByteSpan view() const;

  /// Takes the part through all links, from the one that has it whole upwards.
  void read(std::uint64_t begin, MutableByteSpan out) const override;
  ByteSpan part(std::uint64_t begin, std::uint64_t length,
                std::vector<std::byte>& buffer) const override;
  void prefetch(std::uint64_t begin, std::uint64_t length) const override;
  /// All of it. @param check whether what comes out is held against the content hash.
  void read_all(MutableByteSpan out, unsigned threads, bool check) const;

  /// Bytes that are best made at a time, a multiple of a piece of the content hash.
  std::uint64_t piece_bytes() const;
  /// Whether what comes out can be checked by its content hash alone: bytes that one file stores
  /// whole are verified as its blocks or chunks.
  bool is_made() const noexcept { return !stages_.empty() || !whole_; }
  /// read(), and the digests of the pieces of 1 MiB while they are in the cache; `begin` is a
  /// multiple of that. None where `digests` is empty.
  void make(std::uint64_t begin, MutableByteSpan out,
            std::span<integrity::PieceDigest> digests) const;
  /// @param digests of all pieces. @throws IntegrityError if they are not the tensor's.
  void check(std::span<const integrity::PieceDigest> digests) const;

 private:
  TensorChain();
  /// A part that the stages need not widen.
  void read_chunks(std::uint64_t begin, MutableByteSpan out) const;

  std::shared_ptr<io::MemoryBudget> budget_;  ///< shared with what it is made of
  ChainTensor result_;
  std::optional<std::uint32_t> crc32_;
  std::vector<std::unique_ptr<ChainStage>> stages_;  ///< the lowest last
  std::unique_ptr<StoredTensorBytes> whole_;         ///< what the lowest stage changes,
  std::shared_ptr<const PartwiseBytes> made_;  ///< or this if it is of another shape, or quantized
};

/// The tensor of the chain's top that `view` names. @throws UsageError (not_found).
TensorChain find_tensor(const FileChain& files, const TensorView& view);
TensorChain find_tensor(const FileChain& files, const TensorView& view,
                        std::shared_ptr<io::MemoryBudget> budget);

}  // namespace thalia::state
