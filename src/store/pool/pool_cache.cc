// A miss is read with the cache locked: of two threads that want one model, one reads it. A file's
// name has its version, and no version comes twice; so what lies at a path by now is the model that
// was opened, unless somebody put another file there, or it is gone.
#include <algorithm>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "container/file/open_file.h"
#include "io/file/posix_file.h"
#include "state/delta/file_chain.h"
#include "store/load/checked_file.h"
#include "thalia/files.h"
#include "thalia/store/pool.h"

namespace thalia {
namespace {

bool is_current(const ChainReader& chain, const std::filesystem::path& path) {
  return io::is_at_path(state::files_of(chain).file(0).mapping().fd(), path);
}

}  // namespace

PoolCache::PoolCache(std::size_t capacity, ReadOptions options)
    : capacity_(capacity), options_(std::move(options)) {
  check_option("capacity", capacity, 1, 1u << 20);
}

ChainReader PoolCache::get(const PoolMember& member) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(slots_, member.path, &Slot::path);
  if (found != slots_.end()) {
    if (is_current(found->chain, member.path)) {
      ++hits_;
      slots_.splice(slots_.begin(), slots_, found);
      return slots_.front().chain;
    }
    slots_.erase(found);
  }
  ++misses_;
  LoadOptions load;
  load.read = options_;
  ChainReader chain = store::open_chain_checked(
      store::RunFiles(folder_of(member.path)), member.path, load,
      member.is_anchor ? store::MissingDigest::refuse : store::MissingDigest::warn);
  slots_.push_front({member.path, chain});
  if (slots_.size() > capacity_) slots_.pop_back();
  return chain;
}

std::size_t PoolCache::size() const {
  const std::lock_guard lock(mutex_);
  return slots_.size();
}

std::uint64_t PoolCache::hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}

std::uint64_t PoolCache::misses() const {
  const std::lock_guard lock(mutex_);
  return misses_;
}

}  // namespace thalia
