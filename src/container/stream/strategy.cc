// Chooses once, before the first read, from what the kernel, the file system and the page cache
// allow. Direct reads pay if the disk is what limits; bytes in the page cache are copied faster
// than they are read again. A denial is never an error: the next slower way is taken, and
// fallback() says why. docs/contribute/design.md, "Streaming".
#include "container/stream/strategy.h"

#include <algorithm>

#include "base/parallel.h"
#include "io/direct/direct_file.h"
#include "io/direct/uring.h"

namespace thalia::container {
namespace {

// Below this, a load is over before a queue of reads pays for its setup.
constexpr std::uint64_t kDirectReadThreshold = 1 << 20;
// Units that are looked up in the page cache before the strategy is chosen: an estimate, whatever
// the file's length.
constexpr std::size_t kResidencySamples = 64;

}  // namespace

ReadStrategy::ReadStrategy(const detail::OpenFile& file, const StreamPlan& plan,
                           const StreamOptions& options)
    : source_{file.mapping().fd(), -1, file.mapping().path()},
      memory_bytes_(options.work.memory_bytes.value_or(kDefaultMemoryBytes)) {
  // Who asks for direct reads gets them for pages in the cache, too.
  if (options.io != IoMode::direct) cache_.emplace(source_.fd, file.header().file_length);
  const bool pays = plan.total_bytes >= kDirectReadThreshold && !io::is_in_memory(source_.fd) &&
                    !is_mostly_cached(plan);
  if (options.io == IoMode::direct || (options.io == IoMode::automatic && pays)) open_direct();
  share(plan, options);
}

ReadStrategy::ReadStrategy(const detail::OpenFile& file, const StreamPlan& plan,
                           const StreamOptions& options, const char* fallback)
    : source_{file.mapping().fd(), -1, file.mapping().path()},
      memory_bytes_(options.work.memory_bytes.value_or(kDefaultMemoryBytes)) {
  if (options.io == IoMode::direct) fallback_ = fallback;
  share(plan, options);
}

void ReadStrategy::open_direct() {
  direct_fd_ = io::open_direct(source_.fd, io::DirectAccess::read);
  if (!direct_fd_) {
    fallback_ = "the file system has no O_DIRECT";
    return;
  }
  source_.direct_fd = direct_fd_.get();
  memory_alignment_ = io::direct_memory_alignment(direct_fd_.get());
  if (!io::Uring::create(1)) {
    waits_ = io::ReadMethod::threads;
    fallback_ = "io_uring is not available or denied; threads read instead";
  }
}

bool ReadStrategy::is_mostly_cached(const StreamPlan& plan) const {
  if (!cache_) return false;
  const std::size_t step = plan.units.size() / kResidencySamples + 1;
  std::size_t looked_up = 0;
  std::size_t found = 0;
  for (std::size_t i = 0; i < plan.units.size(); i += step, ++looked_up) {
    const StreamUnit& unit = plan.units[i];
    if (is_cached(unit.begin, std::min(unit.end - unit.begin, kStreamExtent))) ++found;
  }
  // If nearly all is cached, a ring and its buffers would be set up for a few reads.
  return found * 10 >= looked_up * 9;
}

void ReadStrategy::share(const StreamPlan& plan, const StreamOptions& options) {
  // At most half of the memory is for buffers, so that the other half is left for tensors.
  const std::uint64_t extents = plan.total_bytes / kStreamExtent + 1;
  const std::uint64_t affordable = memory_bytes_ / 2 / kStreamExtent;
  workers_ = static_cast<unsigned>(
      std::min<std::uint64_t>({resolve_threads(options.work.threads), extents, affordable}));
  const std::uint64_t depth = std::min<std::uint64_t>(options.queue_depth, affordable) / workers_;
  // A worker that has room for all units at once would leave nothing to the others.
  depth_ = static_cast<unsigned>(
      std::clamp<std::uint64_t>(depth, 1, (extents + workers_ - 1) / workers_));
}

std::uint64_t ReadStrategy::tensor_bytes() const noexcept {
  const std::uint64_t buffers =
      std::uint64_t{workers_} * (is_direct() ? depth_ : 1) * kStreamExtent;
  return memory_bytes_ - std::min(memory_bytes_, buffers);
}

}  // namespace thalia::container
