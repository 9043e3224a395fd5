// What one file of a chain stores for a tensor, decompressed when it is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "container/file/open_file.h"
#include "container/read/chunk_reader.h"
#include "format/tensor.h"
#include "io/memory/allocation_limit.h"
#include "io/system/process.h"
#include "state/delta/partwise_bytes.h"

namespace thalia::state {

/// The logical bytes that a tensor's entry describes. Borrows the file. Immutable but for the
/// chunks that it remembers; any number of threads.
class StoredTensorBytes final : public PartwiseBytes {
 public:
  /// What it remembers counts in `budget`, which it borrows. @throws FormatError if the chunks
  /// are wrong.
  StoredTensorBytes(const detail::OpenFile& file, std::uint32_t number, io::MemoryBudget& budget);

  std::uint64_t size() const noexcept override { return entry_.logical_length; }
  bool is_raw() const noexcept { return !chunks_; }
  /// Bytes that are decoded at a time; 1 if it lies raw.
  std::uint64_t piece_bytes() const noexcept { return chunks_ ? chunks_->chunk_bytes() : 1; }
  /// Bytes of a raw tensor where they lie in the file, verified.
  ByteSpan view(std::uint64_t begin, std::uint64_t length) const;
  /// Takes any place, not only multiples of 16.
  void read(std::uint64_t begin, MutableByteSpan out) const override;
  ByteSpan part(std::uint64_t begin, std::uint64_t length,
                std::vector<std::byte>& buffer) const override;
  void prefetch(std::uint64_t begin, std::uint64_t length) const override;

  const detail::OpenFile& file() const noexcept { return file_; }
  const format::TensorEntry& entry() const noexcept { return entry_; }
  io::MemoryBudget& budget() const noexcept { return budget_; }

 private:
  using Decoded = std::shared_ptr<const std::vector<std::byte>>;
  struct Remembered {
    std::uint32_t chunk;
    Decoded bytes;
  };
  Decoded decoded(std::uint32_t chunk) const;
  /// null if it is not remembered.
  Decoded remembered(std::uint32_t chunk) const;
  std::uint64_t most_remembered() const;

  const detail::OpenFile& file_;
  const format::TensorEntry& entry_;
  io::MemoryBudget& budget_;
  std::optional<container::ChunkReader> chunks_;
  // Anybody who reads less than a chunk mostly wants the rest of it next.
  mutable io::ThreadLock lock_;
  mutable std::vector<Remembered> remembered_;  ///< the latest first
  mutable bool counted_ = false;                ///< whether room for them was taken
};

}  // namespace thalia::state
