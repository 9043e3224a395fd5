// One tensor of a state, made of what the files of a chain store of it. docs/format.md,
// "Resolving".
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "container/chunk_reader.h"
#include "container/sparse_delta.h"
#include "model/file_chain.h"
#include "thalia/delta.h"

namespace thalia::model {

/// What a file stores for a tensor, decompressed: the logical bytes that its entry describes.
/// Borrows the file. Immutable; any number of threads.
class StoredBytes {
 public:
  /// @throws FormatError where the chunks are wrong.
  StoredBytes(const detail::OpenFile& file, std::uint32_t number);

  std::uint64_t size() const noexcept { return entry_.logical_length; }
  bool is_raw() const noexcept { return !chunks_; }
  /// Bytes that are decoded at a time; 1 where it lies raw.
  std::uint64_t piece_bytes() const noexcept { return chunks_ ? chunks_->chunk_bytes() : 1; }
  /// Of what is raw: in the file, verified.
  ByteSpan view(std::uint64_t begin, std::uint64_t length) const;
  /// [begin, begin + out.size()).
  void read(std::uint64_t begin, MutableByteSpan out) const;

  const detail::OpenFile& file() const noexcept { return file_; }
  const format::TensorEntry& entry() const noexcept { return entry_; }

 private:
  const detail::OpenFile& file_;
  const format::TensorEntry& entry_;
  std::optional<container::ChunkReader> chunks_;
};

class FittedBase;

/// Borrows the chain of files. Immutable but for what it has read; any number of threads.
class TensorChain {
 public:
  /// The tensor as link `top` and those below it have it; nullopt where that link has none.
  /// @throws FormatError, IntegrityError, naming the file.
  static std::optional<TensorChain> find(const FileChain& files, std::size_t top,
                                         const TensorKey& key);
  TensorChain(TensorChain&&) noexcept;
  ~TensorChain();

  const ChainTensor& result() const noexcept { return result_; }
  std::uint32_t crc32() const noexcept { return crc32_; }
  std::uint64_t size() const noexcept { return result_.logical_bytes; }
  /// It lies raw in one file: view() hands it out.
  bool is_in_place() const noexcept;
  /// Index of that file in the chain.
  std::size_t bottom() const noexcept { return bottom_; }
  ByteSpan view() const;

  /// [begin, begin + out.size()); both are multiples of 16, but for the tensor's end.
  void read(std::uint64_t begin, MutableByteSpan out) const;
  /// All of it. @param check whether what comes out is held against the content hash.
  void read_all(MutableByteSpan out, unsigned threads, bool check) const;
  /// All of it in memory of its own. @throws FormatError (limit_exceeded).
  std::shared_ptr<const std::vector<std::byte>> materialise(unsigned threads) const;

 private:
  struct Stage;
  explicit TensorChain(const FileChain& files);
  std::uint64_t piece_bytes() const;

  const FileChain* files_;
  ChainTensor result_;
  std::uint32_t crc32_ = 0;
  std::size_t bottom_ = 0;
  std::vector<std::unique_ptr<Stage>> stages_;  ///< the lowest last
  std::unique_ptr<StoredBytes> whole_;          ///< what the lowest stage changes,
  std::unique_ptr<FittedBase> fitted_;          ///< or this where it had another shape
};

/// A base's tensor in another shape, or in its own. Any number of threads.
class FittedBase {
 public:
  FittedBase(TensorChain base, const Shape& shape, unsigned threads)
      : base_(std::move(base)), shape_(shape), threads_(threads) {}

  const TensorChain& base() const noexcept { return base_; }
  /// As TensorChain::read().
  void read(std::uint64_t begin, MutableByteSpan out) const;

 private:
  TensorChain base_;
  Shape shape_;
  unsigned threads_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const std::vector<std::byte>> memory_;  ///< where it is not in place
  mutable ByteSpan bytes_;
};

/// True where a dense tensor of one layout can be made from one of the other by putting elements in
/// their places.
bool can_be_fitted(const TensorLayout& base, const TensorLayout& result) noexcept;

}  // namespace thalia::model
