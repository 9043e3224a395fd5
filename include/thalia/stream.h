// StreamReader: many tensors, or all, from the file into memory as fast as the disk gives them,
// handed out one by one as they arrive.
//
//   thalia::Reader reader = thalia::Reader::open("model.thalia");
//   for (thalia::StreamedTensor& tensor : thalia::StreamReader(reader))
//     upload(tensor.tensor.name(), tensor.bytes);
//
// A mapping reads what is touched, page by page; a stream knows what comes next and keeps the disk
// busy. docs/contribute/design.md, "Streaming".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "thalia/detail/held.h"
#include "thalia/error.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/region.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

/// In which order tensors are handed out.
enum class StreamOrder {
  as_asked,      ///< the first one asked for is read and comes first
  file,          ///< as they lie in the file, which is the fastest
  as_completed,  ///< read as they lie in the file, handed out once they are there
};

/// What is handed out of a quantized tensor.
enum class StreamedQuantized {
  restored,  ///< its elements, in the type that they had: dense
  codes,     ///< its arrays as they lie in the file, for who computes with codes or restores them
};

struct StreamOptions {
  /// automatic: past the page cache, except for extents that are in it already; less than 1 MiB in
  /// all goes through it. direct: past it, or, if that is denied, through it. StreamResult says
  /// what was done.
  IoMode io = IoMode::automatic;
  StreamOrder order = StreamOrder::as_asked;
  StreamedQuantized quantized = StreamedQuantized::restored;
  /// Where a tensor's bytes go: exactly `bytes` of writable memory, in use until the tensor was
  /// handed out or the stream is destroyed; an empty span for the stream's own memory. Called once
  /// for each tensor that has bytes, when its turn to be read comes, from a thread of the stream,
  /// never concurrently with itself. It may wait for the memory of tensors that it was called for
  /// before: those are still handed out meanwhile. Two things it must not wait for: tensors that
  /// come after another one, which was not read yet, because as_asked reads what is asked for
  /// within 32 MiB in the file's order; and tensors that share a block of the block tree of more
  /// than 1 MiB, which is never whole in memory and proves nothing before its end. Memory on a
  /// multiple of 4096 (on most disks 512) is read into without a copy.
  std::function<MutableByteSpan(const TensorView&, std::uint64_t bytes)> destination{};
  /// Reads in flight, all threads together, 1 to 1024.
  unsigned queue_depth = 16;
  /// Called by next() with a damaged tensor, in its turn, and what is wrong with it; the stream
  /// goes on with the next one, and what is in the tensor's memory is not to be used. None: the
  /// stream ends with that error. A file that shrinks or a disk that fails ends the stream in any
  /// case.
  std::function<void(const TensorView&, const Error&)> damaged{};
  /// memory_bytes limits buffers, and tensors in the stream's own memory that were read ahead or
  /// are still held after they were handed out. While next() waits, those that were handed out do
  /// not count, because the caller cannot drop them then. A single tensor, with its codes if it
  /// is restored, or compressed chunk that needs more gets more. Progress counts the bytes of the
  /// file to read, and is called from threads of the stream. A stop ends next().
  Work work{};
};

/// One tensor that has arrived, whole and checked.
struct StreamedTensor {
  TensorView tensor;
  std::size_t index = 0;  ///< its place among those asked for
  /// What `bytes` are: the tensor's layout; dense if it was restored.
  TensorLayout layout{};
  MutableByteSpan bytes{};         ///< the logical bytes, or what was restored
  std::shared_ptr<void> memory{};  ///< keeps `bytes` alive; empty if they are the caller's
  /// The arrays in `bytes`, where codes were asked for and the tensor is quantized.
  std::optional<QuantizedView> quantized{};
};

struct StreamResult {
  std::uint64_t tensors = 0;     ///< handed out
  std::uint64_t damaged = 0;     ///< passed over
  std::uint64_t bytes_read = 0;  ///< of the file
  double seconds = 0;            ///< from the first read to the last tensor handed out
  IoMode io = IoMode::buffered;  ///< direct where some of it was read past the page cache
  std::string io_fallback{};     ///< why it is not what was asked for; empty if it is
};

/// Reads tensors of an open file in large extents, checks each as ReadOptions::verification says
/// (blocks of the block tree as they pass; without a tree, CRC-32s), decodes on all threads and
/// hands them out. The mapping's payload pages are not touched. Externally synchronised; the
/// tensors handed out may be used and dropped on any thread.
///
/// Reading starts with the constructor. An error of any thread is thrown by next(), with tensor and
/// region; from then on nothing is handed out, and no memory is written to any more. Damaged
/// tensors alone may be passed over: StreamOptions::damaged.
///
/// A delta has its tensors in several files: ChainReader::stream() of thalia/state/delta.h.
///
/// The tables are read as the Reader reads them. A file that shrinks after the constructor has
/// returned is a FormatError (truncated).
class StreamReader {
 public:
  /// Everything, connections included, as it lies in the file; as_asked is the file's order.
  /// @throws UsageError for options out of bounds or tensors of another Reader; FormatError,
  /// IntegrityError, UnsupportedError, IoError.
  explicit StreamReader(const Reader& reader, const StreamOptions& options = {});
  /// Some regions: as_asked, one region after the other, the tensors of each as they lie in the
  /// file.
  StreamReader(const Reader& reader, std::span<const RegionView> regions,
               const StreamOptions& options = {});
  /// Some tensors, in any order, even repeatedly. Neighbours in the file that are asked for soon
  /// after each other are read together.
  StreamReader(const Reader& reader, std::span<const TensorView> tensors,
               const StreamOptions& options = {});
  /// Ends what runs and waits for it: the callers' memory is not written to afterwards. In a forked
  /// child, which has not the stream's threads, nothing.
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;

  /// Waits for the next tensor; nullopt once all were handed out.
  /// @throws IoError, FormatError, IntegrityError, UnsupportedError, CancelledError, what
  /// `destination` or `progress` threw; the same again at each further call. UsageError
  /// (wrong_state) in a forked child, and while another call of next() runs, whose callback or
  /// thread it is: that changes nothing.
  std::optional<StreamedTensor> next();

  /// next() until the end. What `callback` throws ends the stream first.
  void for_each(const std::function<void(StreamedTensor)>& callback);

  /// An input range over what next() returns; a tensor is dropped when the next is asked for,
  /// unless it was moved from.
  class Iterator {
   public:
    using value_type = StreamedTensor;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(StreamReader& stream) : stream_(&stream) {}
    StreamedTensor& operator*() const noexcept { return *stream_->current_; }
    StreamedTensor* operator->() const noexcept { return &*stream_->current_; }
    Iterator& operator++() {
      stream_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) noexcept {
      return it.at_end();
    }

   private:
    bool at_end() const noexcept { return !stream_->current_; }
    StreamReader* stream_ = nullptr;
  };
  Iterator begin() {
    advance();
    return Iterator(*this);
  }
  static std::default_sentinel_t end() noexcept { return {}; }

  /// Complete once next() has returned nullopt or thrown.
  StreamResult result() const;

 private:
  friend struct detail::Inside;
  class Impl;
  explicit StreamReader(std::unique_ptr<Impl> impl);
  void advance() {
    current_.reset();  // its memory first: the next one may need it
    current_ = next();
  }
  detail::Owned<Impl> impl_;
  std::optional<StreamedTensor> current_;
};

}  // namespace thalia
