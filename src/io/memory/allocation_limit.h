// What ReadLimits::max_allocation_bytes allows: what the caller said, or what suits the file and
// the machine. What one call allocates is one sum, whatever it is made of.
// docs/contribute/security.md, "Limits".
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "thalia/options.h"

namespace thalia::io {

/// Bytes that may be allocated for what `stored_bytes` of a file claim to hold. Unless the caller
/// has set max_allocation_bytes: the larger of 1 GiB and 64 times the stored bytes, and at most
/// three quarters of the memory that there is.
std::uint64_t allocation_limit(const ReadLimits& limits, std::uint64_t stored_bytes) noexcept;

/// For what is not in memory at once: bytes that reading all of a file would make, each after the
/// other, out of `stored_bytes` that it has. As many as may be allocated, and always 64 times the
/// stored bytes, however little memory there is. @throws FormatError (limit_exceeded), naming
/// max_allocation_bytes.
void check_work(std::string_view section, std::uint64_t bytes, const ReadLimits& limits,
                std::uint64_t stored_bytes);

/// @throws FormatError (limit_exceeded), naming max_file_bytes, where a file of `bytes` is larger.
void check_file_bytes(std::string_view section, std::uint64_t bytes, const ReadLimits& limits);

/// For JSON texts of untrusted files: compares `bytes` of text with max_json_bytes, and the memory
/// that reading them takes with the limit on allocations. @throws FormatError (limit_exceeded).
void check_json_length(std::string_view section, std::uint64_t bytes, const ReadLimits& limits,
                       std::uint64_t stored_bytes);

/// Made where a call begins, and handed to all that it calls: readers allocate through it, and
/// through nothing else, what has a size that a file decides (tests/structure/rules.py). What was
/// taken counts until the call ends, as its parts are in memory together. Any number of threads.
class MemoryBudget {
 public:
  /// @param stored_bytes on disk, of all that the call reads: compressed if it is compressed.
  /// @param held what the file that the call reads from has in memory already.
  MemoryBudget(const ReadLimits& limits, std::uint64_t stored_bytes,
               std::uint64_t held = 0) noexcept
      : most_(allocation_limit(limits, stored_bytes)), taken_(held) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// Counts memory that is about to be allocated. @throws FormatError (limit_exceeded), naming
  /// max_allocation_bytes, where all together is more than the limit.
  void take(std::string_view section, std::uint64_t bytes);
  /// The same of `count` elements.
  void take(std::string_view section, std::uint64_t count, std::uint64_t element_bytes);
  /// Elements, all of them zero. @throws as take().
  template <typename T>
  std::vector<T> vector(std::string_view section, std::uint64_t count) {
    take(section, count, sizeof(T));
    return std::vector<T>(count);
  }
  /// A copy. @throws as take().
  template <typename T, typename Elements>
  std::vector<T> vector_of(std::string_view section, const Elements& elements) {
    take(section, elements.size(), sizeof(T));
    return std::vector<T>(elements.begin(), elements.end());
  }

  std::uint64_t most() const noexcept { return most_; }
  std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

 private:
  std::uint64_t most_;  ///< asked for once: the system is asked how much memory there is
  std::atomic<std::uint64_t> taken_;
};

}  // namespace thalia::io
