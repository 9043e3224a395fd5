// Many threads and no lock: extents are taken from a counter in file order, and each has an atomic
// count of what it still lacks. The thread that takes that to zero writes it. No thread ever waits
// for another, so a slow disk or a large tensor cannot make a deadlock. The decrements are acq_rel:
// the writer of an extent sees the headers that others completed. docs/contribute/design.md, "One
// pass".
#include "container/write/extent_scheduler.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/fail.h"
#include "base/parallel.h"
#include "integrity/content_hash.h"

namespace thalia::container {
namespace {

// For fewer extents than these, starting another thread takes longer than they do; where others use
// the machine, until it has its turn.
constexpr std::uint64_t kExtentsOfThread = 4;

// An extent lacks its turn, in which its pieces of payload are digested, and the digest of each
// tensor whose header lies in it. The thread that digests the last piece of such a tensor comes
// soon, because pieces follow each other as extents do. Extents with tables lack the digests of all
// tensors.
class ExtentScheduler {
 public:
  ExtentScheduler(ExtentWriter& extents, PayloadDigest& payloads, const LateBytes& late,
                  const SaveOptions& options, ProgressMeter& progress)
      : extents_(extents),
        payloads_(payloads),
        late_(late),
        options_(options),
        progress_(progress),
        count_(extents.extent_count()),
        waiting_(std::make_unique<std::atomic<std::uint32_t>[]>(count_)),
        open_tensors_(payloads.tensors().size()) {
    for (std::uint64_t extent = 0; extent < count_; ++extent) waiting_[extent] = 1;  // its turn
    for (const std::uint32_t tensor : payloads.tensors()) ++waiting_[extent_of_header(tensor)];
    if (open_tensors_ != 0) {
      for (std::uint64_t extent = first_table_extent(); extent < count_; ++extent)
        ++waiting_[extent];
    } else {
      late_.complete_tables();
    }
  }

  void run() {
    const unsigned workers = resolve_threads(
        options_.work.threads,
        std::min((count_ + kExtentsOfThread - 1) / kExtentsOfThread, extents_.most_writers()));
    std::atomic<std::uint64_t> next{0};
    parallel_for(workers, workers, [&](std::size_t) {
      Worker worker{extents_.make_last_queue(workers), {}};
      for (std::uint64_t extent;
           (extent = next.fetch_add(1, std::memory_order_relaxed)) < count_;) {
        try {
          take_turn(extent, worker);
        } catch (...) {
          next.store(count_, std::memory_order_relaxed);  // the other threads stop too
          throw;
        }
      }
      if (worker.queue) worker.queue->drain();
    });
  }

 private:
  struct Worker {
    WriteQueue queue;
    integrity::Xxh3 hasher;
  };

  std::uint64_t extent_of_header(std::uint32_t tensor) const {
    return late_.header_offset(tensor) / extents_.extent_bytes();
  }
  std::uint64_t first_table_extent() const { return late_.tables_offset / extents_.extent_bytes(); }

  void take_turn(std::uint64_t extent, Worker& worker) {
    stop_if_cancelled(options_.work.cancel);
    const std::uint64_t begin = extent * extents_.extent_bytes();
    const std::size_t end = payloads_.first_piece(begin + extents_.extent_bytes());
    std::uint64_t done = payloads_.known_bytes(begin, begin + extents_.extent_bytes());
    for (std::size_t piece = payloads_.first_piece(begin); piece < end; ++piece) {
      const auto tensor = payloads_.digest(piece, worker.hasher);
      done += payloads_.length(piece);
      if (!tensor) continue;
      late_.complete_header(*tensor);
      // The header lies in this extent or in one before, whose turn is past.
      release(extent_of_header(*tensor), worker);
      if (open_tensors_.fetch_sub(1, std::memory_order_acq_rel) == 1) release_tables(worker);
    }
    release(extent, worker);
    progress_.add(done);
  }

  void release_tables(Worker& worker) {
    late_.complete_tables();
    for (std::uint64_t extent = first_table_extent(); extent < count_; ++extent)
      release(extent, worker);
  }

  void release(std::uint64_t extent, Worker& worker) {
    if (waiting_[extent].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    extents_.write(extent, worker.queue);
    if (late_.written) late_.written(extent);
  }

  ExtentWriter& extents_;
  PayloadDigest& payloads_;
  const LateBytes& late_;
  const SaveOptions& options_;
  ProgressMeter& progress_;
  const std::uint64_t count_;
  const std::unique_ptr<std::atomic<std::uint32_t>[]> waiting_;  ///< by extent: what it lacks
  std::atomic<std::size_t> open_tensors_;
};

}  // namespace

void write_extents(ExtentWriter& extents, PayloadDigest& payloads, const LateBytes& late,
                   const SaveOptions& options, ProgressMeter& progress) {
  ExtentScheduler(extents, payloads, late, options, progress).run();
}

}  // namespace thalia::container
