// One tensor of a state, made of what the files of a chain store of it. docs/deltas.md,
// "Resolving".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/delta/byte_source.h"
#include "model/delta/chain_stage.h"
#include "model/delta/file_chain.h"
#include "model/delta/stored_bytes.h"
#include "thalia/delta.h"

namespace thalia::model {

/// Borrows the chain of files. Immutable but for what it remembers; any number of threads.
class TensorChain final : public ByteSource {
 public:
  /// The tensor as link `top` and those below it have it; nullopt where that link has none.
  /// @throws FormatError, IntegrityError, naming the file.
  static std::optional<TensorChain> find(const FileChain& files, std::size_t top,
                                         const TensorKey& key);
  TensorChain(TensorChain&&) noexcept;
  ~TensorChain() override;

  const ChainTensor& result() const noexcept { return result_; }
  std::uint32_t crc32() const noexcept { return crc32_; }
  std::uint64_t size() const noexcept override { return result_.logical_bytes; }
  /// True if it lies raw in one file; view() hands it out.
  bool is_in_place() const noexcept;
  ByteSpan view() const;

  /// Takes the part through all links, from the one that has it whole upwards.
  void read(std::uint64_t begin, MutableByteSpan out) const override;
  ByteSpan part(std::uint64_t begin, std::uint64_t length,
                std::vector<std::byte>& buffer) const override;
  /// All of it. @param check whether what comes out is held against the content hash.
  void read_all(MutableByteSpan out, unsigned threads, bool check) const;

 private:
  TensorChain();
  std::uint64_t piece_bytes() const;

  ChainTensor result_;
  std::uint32_t crc32_ = 0;
  std::vector<std::unique_ptr<ChainStage>> stages_;  ///< the lowest last
  std::unique_ptr<StoredBytes> whole_;               ///< what the lowest stage changes,
  std::shared_ptr<const ByteSource> made_;  ///< or this where it is of another shape, or quantized
};

}  // namespace thalia::model
