// How a stream reads: past the page cache or through it, by whom, and how much at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "container/file/open_file.h"
#include "container/stream/plan.h"
#include "io/direct/direct_reader.h"
#include "io/file/page_cache.h"
#include "io/system/unique_fd.h"
#include "thalia/stream.h"

namespace thalia::container {

/// Immutable once made.
class ReadStrategy {
 public:
  ReadStrategy(const detail::OpenFile& file, const StreamPlan& plan, const StreamOptions& options);
  /// For a plan whose units are not read from `file` but made, in memory and on threads. @param
  /// fallback why reads that should be direct are not.
  ReadStrategy(const detail::OpenFile& file, const StreamPlan& plan, const StreamOptions& options,
               const char* fallback);

  const io::ReadFile& source() const noexcept { return source_; }
  bool is_direct() const noexcept { return source_.direct_fd >= 0; }
  io::ReadMethod waits() const noexcept { return waits_; }
  /// What the addresses of direct reads are a multiple of.
  std::size_t memory_alignment() const noexcept { return memory_alignment_; }
  /// True if an extent is better read through the page cache.
  bool is_cached(std::uint64_t offset, std::uint64_t length) const noexcept {
    return cache_ && cache_->holds(offset, length);
  }
  unsigned workers() const noexcept { return workers_; }
  unsigned depth() const noexcept { return depth_; }  ///< reads in flight of each worker
  /// The bytes of the options' memory that the buffers of all workers leave for tensors.
  std::uint64_t tensor_bytes() const noexcept;
  /// Why this is not the strategy that was asked for; empty if it is.
  const std::string& fallback() const noexcept { return fallback_; }

 private:
  void open_direct();
  bool is_mostly_cached(const StreamPlan& plan) const;
  void share(const StreamPlan& plan, const StreamOptions& options);

  io::ReadFile source_;
  io::UniqueFd direct_fd_;
  io::ReadMethod waits_ = io::ReadMethod::ring;
  std::size_t memory_alignment_ = 1;
  std::optional<io::PageCacheView> cache_;
  const std::uint64_t memory_bytes_;
  unsigned workers_ = 1;
  unsigned depth_ = 1;
  std::string fallback_;
};

}  // namespace thalia::container
