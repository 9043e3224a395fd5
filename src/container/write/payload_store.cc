// Two ways, chosen by compressing(). Raw: all tensors are placed at once, so streamed payloads may
// come in any order, even interleaved; each gets a sink that gathers whole extents. Compressed (and
// for deltas): a payload's offset is known only when everything before it is stored, so
// payloads must come in the order of the file, one after the other, through one pipeline and one
// sink.
//
// After finish(), each payload byte was put in a whole extent, or is in the image: borrowed, kept
// in the tail buffer, or noted as written. An error leaves the store unusable; its owner discards
// the file then.
#include "container/write/payload_store.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia::container {

namespace {

std::uint64_t logical_bytes(const FilePlan& plan) {
  std::uint64_t sum = 0;
  for (const TensorPlan& tensor : plan.tensors) sum += tensor.logical_length;
  return sum;
}

// Gaps only where the size of blocks follows from the file's. A compressed file's length is not
// known beforehand, so gaps are measured by what has been placed so far. A delta is small, and
// useless without its base: gaps would cost more than they save.
BlockGaps gaps_of(const FilePlan& plan, const SaveOptions& options) {
  if (options.checksum != ChecksumType::block_tree || options.block_log2 || plan.delta) return {};
  return BlockGaps(options.compression.codec == Codec::none ? logical_bytes(plan) : 0);
}

}  // namespace

PayloadStore::PayloadStore(FilePlan& plan, int fd, const std::filesystem::path& path,
                           const SaveOptions& options)
    : plan_(plan),
      options_(options),
      progress_(options.work.progress, logical_bytes(plan)),
      layout_(plan, gaps_of(plan, options)),
      image_(fd, path, plan.delta ? plan.delta->prefix.size() : 0),
      extents_(image_, logical_bytes(plan), options),
      shares_(options.work),
      tail_(image_, shares_.tails),
      streams_(plan.tensors.size()),
      sinks_left_(shares_.gathered / extents_.extent_bytes()) {
  if (compressing()) {
    queue_ = extents_.make_queue();
    sink_ = std::make_unique<PayloadSink>(extents_, queue_, tail_, true);
    const std::uint64_t sink_bytes = extents_.can_put() ? extents_.extent_bytes() : 0;
    pipeline_ =
        std::make_unique<ChunkPipeline>(plan_, layout_, *sink_, options_, progress_,
                                        shares_.gathered - std::min(shares_.gathered, sink_bytes));
  } else {
    // Borrowed payloads are not touched here: they are part of the image, and are hashed and
    // written in one pass.
    place_tensors(plan_, layout_);
  }
}

void PayloadStore::write(std::uint32_t id, ByteSpan piece) {
  Stream* const stream = begin_write(id, piece.size());
  if (stream == nullptr) return;
  if (compressing()) {
    pipeline_->append(id, piece);
  } else {
    write_raw(plan_.tensors[id], *stream, piece);
  }
  // Hashed in the caller's order, which is the tensor's: the piece is not kept for later.
  stream->hasher.update(piece);
  end_write(id, *stream, piece.size());
}

void PayloadStore::write(std::uint32_t id, std::vector<std::byte>& piece,
                         const integrity::PieceDigest& digest) {
  const std::uint64_t size = piece.size();
  assert(digest.length == size);
  Stream* const stream = begin_write(id, size);
  if (stream == nullptr) return;
  if (compressing()) {
    pipeline_->take(id, piece);
  } else {
    write_raw(plan_.tensors[id], *stream, piece);
  }
  stream->pieces.push_back(digest);
  end_write(id, *stream, size);
}

PayloadStore::Stream* PayloadStore::begin_write(std::uint32_t id, std::uint64_t size) {
  if (id >= plan_.tensors.size()) {
    fail_argument(ErrorCode::bad_argument, "tensor", std::to_string(id),
                  fmt::format("one of the {} that add_tensor returned", plan_.tensors.size()));
  }
  TensorPlan& tensor = plan_.tensors[id];
  if (!tensor.streamed) {
    // A tensor without bytes needs no stream; writing nothing to it is no error.
    if (size == 0 && tensor.logical_length == 0) return nullptr;
    fail_argument(ErrorCode::wrong_state, "tensor",
                  fmt::format("'{}', whose payload was given when it was declared",
                              printable(tensor.spec.name)),
                  "a tensor declared without a payload");
  }
  Stream& stream = stream_of(id);
  if (size > tensor.logical_length - stream.written) {
    fail_argument(ErrorCode::size_mismatch, "payload",
                  fmt::format("{} bytes for tensor '{}' after {}", size,
                              printable(tensor.spec.name), stream.written),
                  std::to_string(tensor.logical_length));
  }
  if (compressing() && stream.written == 0) advance_to(id);
  return &stream;
}

void PayloadStore::end_write(std::uint32_t id, Stream& stream, std::uint64_t size) {
  TensorPlan& tensor = plan_.tensors[id];
  stream.written += size;
  progress_.add(size);
  if (stream.written == tensor.logical_length) {
    tensor.digest = stream.pieces.empty() ? integrity::ContentDigest{stream.hasher.crc32(),
                                                                     stream.hasher.content_hash()}
                                          : integrity::join_pieces(stream.pieces);
    stream.pieces = {};
    if (compressing()) {
      ++next_;
    } else {
      end_raw(tensor, stream);
    }
  }
}

PayloadStore::Stream& PayloadStore::stream_of(std::uint32_t id) {
  if (streams_[id]) return *streams_[id];
  streams_[id] = std::make_unique<Stream>();
  Stream& stream = *streams_[id];
  if (compressing()) return stream;
  if (!queue_) queue_ = extents_.make_queue();
  // A sink holds one extent. When all that memory allows are in use, the stream gets none, and its
  // pieces go through the page cache.
  if (!idle_sinks_.empty()) {
    stream.sink = std::move(idle_sinks_.back());
    idle_sinks_.pop_back();
  } else if (sinks_left_ > 0) {
    --sinks_left_;
    stream.sink = std::make_unique<PayloadSink>(extents_, queue_, tail_, false);
  }
  if (stream.sink) stream.sink->begin(plan_.tensors[id].stored_offset);
  return stream;
}

void PayloadStore::write_raw(const TensorPlan& tensor, Stream& stream, ByteSpan piece) {
  if (stream.sink) {
    stream.sink->append(piece);
  } else {
    image_.write_at(tensor.stored_offset + stream.written, piece);
  }
}

void PayloadStore::end_raw(const TensorPlan& tensor, Stream& stream) {
  if (stream.sink) {
    stream.sink->finish();
    idle_sinks_.push_back(std::move(stream.sink));
  } else {
    // The extents around are hashed later, and read these bytes back.
    image_.add_written(tensor.stored_offset, tensor.stored_length);
  }
}

// Stores the borrowed payloads that lie before tensor `id` in the file; for the number of tensors,
// all of them. The streamed ones before it must be complete: nothing can be put before it
// later.
void PayloadStore::advance_to(std::uint32_t id) {
  for (; next_ < layout_.file_order().size() && layout_.file_order()[next_] != id; ++next_) {
    const std::uint32_t current = layout_.file_order()[next_];
    if (plan_.tensors[current].streamed) fail_incomplete(current);
    pipeline_->add(current);
  }
  if (next_ == layout_.file_order().size() && id < plan_.tensors.size()) {
    fail_argument(ErrorCode::wrong_state, "tensor",
                  fmt::format("'{}', which lies before one that was written",
                              printable(plan_.tensors[id].spec.name)),
                  "when compressing, the order of the file: regions, then roles, as declared");
  }
}

void PayloadStore::check_complete() const {
  for (std::uint32_t i = 0; i < plan_.tensors.size(); ++i) {
    const TensorPlan& tensor = plan_.tensors[i];
    if (tensor.streamed && (!streams_[i] || streams_[i]->written != tensor.logical_length))
      fail_incomplete(i);
  }
}

// The pipeline first: storing its last chunks fills the queue.
void PayloadStore::drain() {
  if (pipeline_) pipeline_->finish();
  if (queue_) queue_->drain();
}

void PayloadStore::finish() {
  check_complete();
  if (compressing()) {
    advance_to(static_cast<std::uint32_t>(plan_.tensors.size()));
  }
  // The last stored length is known once the pipeline is empty, and only then where the layout
  // ends. What held them has served: finalize() has the memory for a queue of each of its threads.
  drain();
  if (compressing()) layout_.finish();
  pipeline_.reset();
  sink_.reset();
  idle_sinks_.clear();
  queue_.reset();
}

void PayloadStore::fail_incomplete(std::uint32_t id) const {
  const TensorPlan& tensor = plan_.tensors[id];
  const std::uint64_t written = streams_[id] ? streams_[id]->written : 0;
  fail_argument(ErrorCode::size_mismatch, "payload",
                fmt::format("{} bytes for tensor '{}'", written, printable(tensor.spec.name)),
                fmt::format("{}, all of them before {}", tensor.logical_length,
                            compressing() ? "the next tensor in file order, or commit" : "commit"));
}

}  // namespace thalia::container
