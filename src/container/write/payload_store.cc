#include "container/write/payload_store.h"

#include <utility>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia::container {

namespace {

// Of the memory that the options allow: payload ends that are kept, and extents that are gathered;
// the rest is for queues and chunks.
constexpr std::uint64_t kKeptShare = 4;
constexpr std::uint64_t kGatheredShare = 4;

std::uint64_t logical_bytes(const Draft& draft) {
  std::uint64_t sum = 0;
  for (const DraftTensor& tensor : draft.tensors) sum += tensor.logical_length;
  return sum;
}

// A delta is small, and of no use without its base: what it has of that is better than gaps.
BlockGaps gaps_of(const Draft& draft, const SaveOptions& options) {
  if (options.checksum != ChecksumType::block_tree || options.block_log2 || draft.delta) return {};
  return BlockGaps(options.compression.codec == Codec::store ? logical_bytes(draft) : 0);
}

}  // namespace

PayloadStore::PayloadStore(Draft& draft, int fd, const std::filesystem::path& path,
                           const SaveOptions& options)
    : draft_(draft),
      options_(options),
      progress_(options.work.progress, logical_bytes(draft)),
      layout_(draft, gaps_of(draft, options)),
      image_(fd, path, draft.delta ? draft.delta->container_offset : 0),
      extents_(image_, logical_bytes(draft), options),
      tail_(image_, options.work.memory_bytes / kKeptShare),
      streams_(draft.tensors.size()),
      sinks_left_(options.work.memory_bytes / kGatheredShare / extents_.extent_bytes()) {
  if (compressing()) {
    queue_ = extents_.make_queue(2);
    sink_ = std::make_unique<PayloadSink>(extents_, queue_, tail_);
    pipeline_ = std::make_unique<ChunkPipeline>(draft_, layout_, *sink_, options_, progress_);
  } else {
    place_tensors(draft_, layout_);
  }
}

void PayloadStore::write(std::uint32_t id, ByteSpan piece) {
  if (id >= draft_.tensors.size()) {
    fail_argument(ErrorCode::bad_argument, "tensor", std::to_string(id),
                  fmt::format("one of the {} that add_tensor returned", draft_.tensors.size()));
  }
  DraftTensor& tensor = draft_.tensors[id];
  if (!tensor.streamed) {
    if (piece.empty() && tensor.logical_length == 0) return;
    fail_argument(ErrorCode::wrong_state, "tensor",
                  fmt::format("'{}', whose payload was given when it was declared",
                              printable(tensor.spec.name)),
                  "a tensor declared without a payload");
  }
  Stream& stream = stream_of(id);
  if (piece.size() > tensor.logical_length - stream.written) {
    fail_argument(ErrorCode::size_mismatch, "payload",
                  fmt::format("{} bytes for tensor '{}' after {}", piece.size(),
                              printable(tensor.spec.name), stream.written),
                  std::to_string(tensor.logical_length));
  }
  if (compressing()) {
    write_compressed(id, piece);
  } else {
    write_raw(tensor, stream, piece);
  }
  stream.hasher.update(piece);
  stream.written += piece.size();
  progress_.add(piece.size());
  if (stream.written == tensor.logical_length) {
    tensor.digest = {stream.hasher.crc32(), stream.hasher.content_hash()};
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
  if (!queue_) queue_ = extents_.make_queue(2);
  if (!idle_sinks_.empty()) {
    stream.sink = std::move(idle_sinks_.back());
    idle_sinks_.pop_back();
  } else if (sinks_left_ > 0) {
    --sinks_left_;
    stream.sink = std::make_unique<PayloadSink>(extents_, queue_, tail_);
  }
  if (stream.sink) stream.sink->begin(draft_.tensors[id].stored_offset);
  return stream;
}

void PayloadStore::write_raw(const DraftTensor& tensor, Stream& stream, ByteSpan piece) {
  if (stream.sink) {
    stream.sink->append(piece);
  } else {
    image_.write_at(tensor.stored_offset + stream.written, piece);
  }
}

void PayloadStore::end_raw(const DraftTensor& tensor, Stream& stream) {
  if (stream.sink) {
    stream.sink->finish();
    idle_sinks_.push_back(std::move(stream.sink));
  } else {
    image_.add_written(tensor.stored_offset, tensor.stored_length);
  }
}

void PayloadStore::write_compressed(std::uint32_t id, ByteSpan piece) {
  if (streams_[id]->written == 0) advance_to(id);
  pipeline_->append(id, piece);
}

// Stores the borrowed payloads that lie before `tensor` in the file (all of them for the number of
// tensors).
void PayloadStore::advance_to(std::uint32_t id) {
  for (; next_ < layout_.file_order().size() && layout_.file_order()[next_] != id; ++next_) {
    const std::uint32_t current = layout_.file_order()[next_];
    if (draft_.tensors[current].streamed) fail_incomplete(current);
    pipeline_->add(current);
  }
  if (next_ == layout_.file_order().size() && id < draft_.tensors.size()) {
    fail_argument(ErrorCode::wrong_state, "tensor",
                  fmt::format("'{}', which lies before one that was written",
                              printable(draft_.tensors[id].spec.name)),
                  "when compressing, the order of the file: regions, then roles, as declared");
  }
}

void PayloadStore::check_complete() const {
  for (std::uint32_t i = 0; i < draft_.tensors.size(); ++i) {
    const DraftTensor& tensor = draft_.tensors[i];
    if (tensor.streamed && (!streams_[i] || streams_[i]->written != tensor.logical_length))
      fail_incomplete(i);
  }
}

void PayloadStore::settle() {
  if (pipeline_) pipeline_->finish();
  if (queue_) queue_->drain();
}

void PayloadStore::finish() {
  check_complete();
  if (compressing()) {
    advance_to(static_cast<std::uint32_t>(draft_.tensors.size()));
  }
  settle();
  if (compressing()) layout_.finish();
  queue_.reset();
}

void PayloadStore::fail_incomplete(std::uint32_t id) const {
  const DraftTensor& tensor = draft_.tensors[id];
  const std::uint64_t written = streams_[id] ? streams_[id]->written : 0;
  fail_argument(ErrorCode::size_mismatch, "payload",
                fmt::format("{} bytes for tensor '{}'", written, printable(tensor.spec.name)),
                fmt::format("{}, all of them before {}", tensor.logical_length,
                            compressing() ? "the next tensor in file order, or commit" : "commit"));
}

}  // namespace thalia::container
