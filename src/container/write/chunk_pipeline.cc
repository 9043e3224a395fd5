// Threads of the pool encode jobs in any order; the calling thread alone submits, and stores them
// in the order of submission. So layout, sink and plan.chunks are touched by one thread, and a
// chunk's offset is known when it is stored. A full pool makes the caller store the oldest job
// first: this limits memory, and lets compressing and writing overlap. docs/contribute/design.md,
// "One pass".
#include "container/write/chunk_pipeline.h"

#include <algorithm>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/plan/chunk_layout.h"
#include "container/write/chunk_encoder.h"

namespace thalia::container {
namespace {

// A job has at least so many bytes, if there are: handing over costs more than encoding a small
// tensor.
constexpr std::uint64_t kJobBytes = 256 * 1024;

}  // namespace

ChunkPipeline::ChunkPipeline(FilePlan& plan, Layout& layout, PayloadSink& sink,
                             const SaveOptions& options, ProgressMeter& progress,
                             std::uint64_t memory_bytes)
    : plan_(plan),
      layout_(layout),
      options_(options),
      digest_(plan, layout.file_order()),
      sink_(sink),
      progress_(progress),
      pool_(options.work.threads, capacity(options, memory_bytes),
            [this](Job& job) { encode(job); }) {}

// A job holds what was streamed and what it became, hence twice its bytes. What does not shrink is
// given a little more room at first.
std::uint64_t ChunkPipeline::job_bytes(const SaveOptions& options) {
  const std::uint64_t raw = std::max<std::uint64_t>(options.compression.chunk_bytes, 2 * kJobBytes);
  return 2 * raw + raw / 64;
}

// Three jobs a thread: one being encoded, one waiting, one done and waiting for its turn.
std::size_t ChunkPipeline::capacity(const SaveOptions& options, std::uint64_t memory_bytes) {
  const std::uint64_t affordable = std::max<std::uint64_t>(memory_bytes / job_bytes(options), 1);
  return std::min<std::size_t>(affordable, 3 * std::size_t{resolve_threads(options.work.threads)});
}

ChunkPipeline::Job& ChunkPipeline::open_job() {
  if (!job_open_) {
    if (pool_.full()) store_oldest();
    Job& job = pool_.next();
    // Chunks keep their memory for those that come next. Where small and large ones change places,
    // all would become large in the end.
    std::uint64_t kept = job.streamed.capacity();
    for (const Chunk& chunk : job.chunks) kept += chunk.stored.capacity();
    if (kept > job_bytes(options_)) job = Job{};
    job.count = 0;
    job.raw_bytes = 0;
    job_open_ = true;
  }
  return pool_.next();
}

void ChunkPipeline::submit() {
  if (!job_open_) return;
  job_open_ = false;
  pool_.submit();
}

void ChunkPipeline::add_chunk(Job& job, std::uint32_t tensor, std::uint64_t begin) {
  if (job.count == job.chunks.size()) job.chunks.emplace_back();
  Chunk& chunk = job.chunks[job.count++];
  chunk.tensor = tensor;
  chunk.begin = begin;
  chunk.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      options_.compression.chunk_bytes, plan_.tensors[tensor].logical_length - begin));
  job.raw_bytes += chunk.length;
}

void ChunkPipeline::add(std::uint32_t tensor) {
  if (plan_.tensors[tensor].in_chunks) return add_stored(tensor);
  std::uint64_t begin = 0;
  do {  // a tensor without bytes is a chunk too, so that it gets its place in order
    Job& job = open_job();
    add_chunk(job, tensor, begin);
    begin += options_.compression.chunk_bytes;
    if (job.raw_bytes >= kJobBytes) submit();
  } while (begin < plan_.tensors[tensor].logical_length);
}

// Copied from another file: compressed, digested and checked there.
void ChunkPipeline::add_stored(std::uint32_t id) {
  finish();  // its place is after theirs
  TensorPlan& tensor = plan_.tensors[id];
  tensor.stored_offset = layout_.begin_tensor(id);
  tensor.move_chunks(tensor.stored_offset);
  sink_.begin(tensor.stored_offset);
  for (const ByteSpan piece : tensor.pieces) sink_.append(piece);
  sink_.finish();
  layout_.end_tensor(tensor.stored_length);
  progress_.add(tensor.logical_length);
}

void ChunkPipeline::append(std::uint32_t tensor, ByteSpan piece) {
  const std::uint64_t length = plan_.tensors[tensor].logical_length;
  while (!piece.empty()) {
    const std::uint64_t begin = streamed_ - streamed_ % options_.compression.chunk_bytes;
    // A streamed chunk gathers its bytes here, in a job of its own, until it is whole.
    if (streamed_ == begin) {
      submit();  // its job holds nothing else
      Job& job = open_job();
      add_chunk(job, tensor, begin);
      job.streamed.clear();
      job.streamed.reserve(job.raw_bytes);
    }
    const std::uint64_t end = std::min(begin + options_.compression.chunk_bytes, length);
    const ByteSpan part = piece.first(std::min<std::uint64_t>(piece.size(), end - streamed_));
    std::vector<std::byte>& bytes = pool_.next().streamed;
    bytes.insert(bytes.end(), part.begin(), part.end());
    piece = piece.subspan(part.size());
    streamed_ += part.size();
    if (streamed_ == end) submit();
  }
  if (streamed_ == length) streamed_ = 0;
}

// What is left in its place has its size from before, so that filling it again costs no zeros.
void ChunkPipeline::take(std::uint32_t tensor, std::vector<std::byte>& piece) {
  const std::uint64_t chunk_bytes = options_.compression.chunk_bytes;
  const std::uint64_t left = plan_.tensors[tensor].logical_length - streamed_;
  if (streamed_ % chunk_bytes != 0 || piece.size() != std::min(chunk_bytes, left))
    return append(tensor, piece);
  submit();
  Job& job = open_job();
  add_chunk(job, tensor, streamed_);
  job.streamed.swap(piece);
  submit();
  streamed_ = left == job.raw_bytes ? 0 : streamed_ + job.raw_bytes;
}

void ChunkPipeline::finish() {
  submit();
  while (!pool_.empty()) store_oldest();
}

// On a thread of the pool. It reads the plan's specs and pieces, which do not change meanwhile. It
// writes to its job, to the digests of its own pieces, and, with a tensor's last piece, to that
// tensor's digest. Streamed payloads are digested by the store.
void ChunkPipeline::encode(Job& job) {
  integrity::Xxh3 hasher;
  std::vector<std::byte> joined;
  for (std::size_t i = 0; i < job.count; ++i) {
    Chunk& chunk = job.chunks[i];
    const TensorPlan& tensor = plan_.tensors[chunk.tensor];
    ByteSpan raw = job.streamed;
    if (!tensor.streamed) {
      digest_.digest_from(chunk.tensor, chunk.begin, chunk.begin + chunk.length, hasher);
      raw = joined_range(tensor.pieces, chunk.begin, chunk.begin + chunk.length, joined);
    }
    // A level belongs to the codec that it was given for.
    const Codec codec = tensor.codec.value_or(options_.compression.codec.value());
    const int level = codec == options_.compression.codec ? options_.compression.level : 0;
    chunk.entry =
        encode_entry(codec, level, chunk_layout(tensor, chunk.begin, chunk.begin + chunk.length),
                     raw, chunk.stored);
  }
}

void ChunkPipeline::store_oldest() {
  stop_if_cancelled(options_.work.cancel);
  const Job& job = pool_.front();
  for (std::size_t i = 0; i < job.count; ++i) store(job.chunks[i]);
  pool_.pop();
}

void ChunkPipeline::store(const Chunk& chunk) {
  TensorPlan& tensor = plan_.tensors[chunk.tensor];
  if (chunk.begin == 0) {
    tensor.stored_offset = layout_.begin_tensor(chunk.tensor);
    tensor.stored_length = 0;
    sink_.begin(tensor.stored_offset);
  }
  if (chunk.length != 0) {
    tensor.chunks.push_back(chunk.entry);
    tensor.chunks.back().offset = tensor.stored_offset + tensor.stored_length;
    tensor.stored_length += chunk.stored.size();
    sink_.append(chunk.stored);
  }
  // Streamed bytes were counted when they came.
  if (!tensor.streamed) progress_.add(chunk.length);
  if (chunk.begin + chunk.length < tensor.logical_length) return;
  sink_.finish();
  layout_.end_tensor(tensor.stored_length);
  // Chunks that are stored as they are lie one after the other: without entries that is a raw
  // payload.
  if (all_stored(tensor.chunks)) tensor.chunks.clear();
}

}  // namespace thalia::container
