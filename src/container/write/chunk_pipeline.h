// Payloads in, compressed chunks out: chunks are digested and compressed by a pool of threads while
// those before them are on their way to the disk. docs/format/format.md, "Chunks".
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/ordered_pool.h"
#include "container/plan/file_plan.h"
#include "container/plan/layout.h"
#include "container/write/payload_digest.h"
#include "container/write/payload_sink.h"
#include "container/write/progress.h"
#include "format/chunk.h"
#include "thalia/options.h"

namespace thalia::container {

/// Stores the payloads of a plan in file order, one after the other. Externally synchronised.
class ChunkPipeline {
 public:
  /// All are borrowed. Holds as many chunks as `memory_bytes` allow, and at least one.
  ChunkPipeline(FilePlan& plan, Layout& layout, PayloadSink& sink, const SaveOptions& options,
                ProgressMeter& progress, std::uint64_t memory_bytes);

  /// The next tensor in file order, whole, from borrowed memory that is not touched until finish().
  /// What is in chunks already is stored as it is. @throws what storing an earlier one throws.
  void add(std::uint32_t tensor);
  /// The next tensor in file order, in pieces; the last one completes it.
  void append(std::uint32_t tensor, ByteSpan piece);
  /// The same. A piece that is a whole chunk is taken, and other memory left in its place.
  void take(std::uint32_t tensor, std::vector<std::byte>& piece);
  /// Waits until everything is stored. @throws IoError, CancelledError.
  void finish();

 private:
  struct Chunk {
    std::uint32_t tensor;
    std::uint64_t begin;  ///< of its logical bytes
    std::uint32_t length;
    format::ChunkEntry entry;
    std::vector<std::byte> stored;
  };
  /// Neighbouring chunks, so that small tensors are not a hand-over each.
  struct Job {
    std::size_t count = 0;  ///< of `chunks` that are in use: the others keep their memory
    std::vector<Chunk> chunks;
    std::uint64_t raw_bytes = 0;
    std::vector<std::byte> streamed;  ///< logical bytes of the one chunk that was streamed
  };

  static std::uint64_t job_bytes(const SaveOptions& options);
  static std::size_t capacity(const SaveOptions& options, std::uint64_t memory_bytes);
  Job& open_job();
  void add_stored(std::uint32_t tensor);
  void add_chunk(Job& job, std::uint32_t tensor, std::uint64_t begin);
  void submit();
  void encode(Job& job);
  void store_oldest();
  void store(const Chunk& chunk);

  FilePlan& plan_;
  Layout& layout_;
  const SaveOptions& options_;
  PayloadDigest digest_;
  PayloadSink& sink_;
  ProgressMeter& progress_;
  std::uint64_t streamed_ = 0;  ///< bytes given of the tensor that is being streamed
  bool job_open_ = false;
  OrderedPool<Job> pool_;  ///< destroyed first: its threads use the rest
};

}  // namespace thalia::container
