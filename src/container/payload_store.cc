#include "container/payload_store.h"

#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/posix_file.h"

namespace thalia::container {

PayloadStore::PayloadStore(Draft& draft, ChunkTarget target)
    : draft_(draft), target_(std::move(target)), layout_(draft), streams_(draft.tensors.size()) {
  if (!compressing()) place_raw();
}

void PayloadStore::place_raw() {
  for (const std::uint32_t i : layout_.file_order()) {
    DraftTensor& tensor = draft_.tensors[i];
    tensor.stored_offset = layout_.begin_tensor(i);
    tensor.stored_length = tensor.logical_length;
    layout_.end_tensor(tensor.stored_length);
  }
  layout_.finish();
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
  if (!streams_[id]) streams_[id] = std::make_unique<Stream>();
  Stream& stream = *streams_[id];
  if (piece.size() > tensor.logical_length - stream.written) {
    fail_argument(ErrorCode::size_mismatch, "payload",
                  fmt::format("{} bytes for tensor '{}' after {}", piece.size(),
                              printable(tensor.spec.name), stream.written),
                  std::to_string(tensor.logical_length));
  }
  if (compressing()) {
    write_compressed(id, piece);
  } else {
    io::pwrite_all(target_.fd, tensor.stored_offset + stream.written, piece, target_.path);
  }
  stream.hasher.update(piece);
  stream.written += piece.size();
  if (stream.written == tensor.logical_length) {
    tensor.digest = {stream.hasher.crc32(), stream.hasher.content_hash()};
    tensor.digested = true;
    if (compressing()) end(id);
  }
}

void PayloadStore::write_compressed(std::uint32_t id, ByteSpan piece) {
  if (!open_ || layout_.file_order()[next_] != id) {
    if (open_) fail_incomplete(layout_.file_order()[next_]);
    advance_to(id);
    begin(id);
  }
  open_->append(piece);
}

void PayloadStore::begin(std::uint32_t id) {
  draft_.tensors[id].stored_offset = layout_.begin_tensor(id);
  open_ = std::make_unique<ChunkStream>(target_, draft_.tensors[id].stored_offset);
}

void PayloadStore::end(std::uint32_t id) {
  DraftTensor& tensor = draft_.tensors[id];
  tensor.stored_length = open_->finish();
  tensor.chunks = open_->take_chunks();
  layout_.end_tensor(tensor.stored_length);
  open_.reset();
  ++next_;
}

// Stores the borrowed payloads that lie before `tensor` in the file (all of them for the number of
// tensors).
void PayloadStore::advance_to(std::uint32_t id) {
  while (next_ < layout_.file_order().size() && layout_.file_order()[next_] != id) {
    const std::uint32_t current = layout_.file_order()[next_];
    const DraftTensor& tensor = draft_.tensors[current];
    if (tensor.streamed) fail_incomplete(current);
    begin(current);
    for (const ByteSpan piece : tensor.pieces) open_->append(piece);
    end(current);
  }
  if (next_ == layout_.file_order().size() && id < draft_.tensors.size()) {
    fail_argument(ErrorCode::wrong_state, "tensor",
                  fmt::format("'{}', which lies before one that was written",
                              printable(draft_.tensors[id].spec.name)),
                  "when compressing, the order of the file: regions, then roles, as declared");
  }
}

void PayloadStore::finish() {
  for (std::uint32_t i = 0; i < draft_.tensors.size(); ++i) {
    const DraftTensor& tensor = draft_.tensors[i];
    if (tensor.streamed && (!streams_[i] || streams_[i]->written != tensor.logical_length))
      fail_incomplete(i);
  }
  if (!compressing()) return;
  advance_to(static_cast<std::uint32_t>(draft_.tensors.size()));
  layout_.finish();
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
