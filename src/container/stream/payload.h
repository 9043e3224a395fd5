// A tensor on its way from the file to its memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "container/stream/plan.h"
#include "format/chunk.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::container {

/// Memory for a tensor's bytes.
struct StreamPlace {
  MutableByteSpan bytes{};         ///< borrowed
  std::shared_ptr<void> memory{};  ///< keeps them alive, if they are not the caller's
};

/// Internally synchronised: parts may come from several threads, each part once.
class StreamPayload {
 public:
  /// @param out for the tensor's result_bytes. @param codes for the logical bytes of a tensor that
  /// is restored, until it is; else empty.
  StreamPayload(const StreamPlan& plan, const StreamTensor& tensor, StreamPlace out,
                StreamPlace codes);

  /// The memory for the bytes [begin, end) of the file, if they are all this raw tensor's; else an
  /// empty span. For chunks always empty.
  MutableByteSpan place_of(std::uint64_t begin, std::uint64_t end) const;

  /// Takes this tensor's part of a piece of the file and decodes the chunks that are complete with
  /// it. If blocks are verified, those of the piece are already, and what is wrong is noted in
  /// doubt(). A piece that was read to place_of() is there already. @throws as decode_stored().
  void accept(std::uint64_t offset, ByteSpan piece);

  /// Notes that one of the tensor's units has been accepted whole. @return true for the last one.
  bool finish_unit() noexcept;
  /// After the last unit. @throws IntegrityError if the tensor is verified by its CRC-32 and that
  /// differs.
  void check_crc();

  /// After that, of a quantized tensor: checks its arrays, and restores its elements on up to
  /// `threads` threads if that was asked for. @throws FormatError.
  void finish_quantized(unsigned threads);

  /// Notes a block whose leaf is wrong and in which a part of the tensor lies.
  void doubt(std::uint64_t block);
  std::optional<std::uint64_t> doubted_block() const;
  /// Whether what came has the digests of the file's verified tables: the tensor's own, or for
  /// chunks those of each chunk, which decoding has checked.
  bool has_digests() const;

  /// Notes what is wrong with the tensor; the first error stays. error() is null while there is
  /// none.
  void fail(std::exception_ptr error);
  std::exception_ptr error() const;

  const StreamPlace& out() const noexcept { return out_; }
  /// The arrays in out(), where codes were asked for.
  const std::optional<QuantizedView>& quantized() const noexcept { return quantized_view_; }

 private:
  // A chunk that lies in several pieces.
  struct Split {
    std::vector<std::byte> stored;
    std::uint64_t missing;
  };
  struct PieceCrc {
    std::uint64_t offset;
    std::uint64_t length;
    std::uint32_t crc32;
  };
  void accept_raw(std::uint64_t offset, ByteSpan piece);
  void accept_chunks(std::uint64_t offset, ByteSpan piece);
  void decode(std::size_t chunk, ByteSpan stored) const;

  const StreamTensor& tensor_;
  const std::span<const format::ChunkEntry> chunks_;
  const bool verifies_;
  const StreamQuantized* const quantized_;  ///< null if it is not quantized
  const bool restores_;
  StreamPlace out_;
  StreamPlace codes_;
  const MutableByteSpan logical_;  ///< the tensor's logical bytes: in one of the two
  std::optional<QuantizedView> quantized_view_;
  std::atomic<std::uint32_t> units_left_;
  mutable std::mutex mutex_;
  std::unordered_map<std::size_t, Split> split_;
  std::vector<PieceCrc> crcs_;
  std::optional<std::uint64_t> doubted_block_;
  std::exception_ptr error_;
};

}  // namespace thalia::container
