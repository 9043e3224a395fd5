// How much memory an untrusted file may make us take. A length in a file is checked here before
// anything of that length is allocated, so a file of a few bytes cannot ask for terabytes. What the
// caller set always wins, then the default of the process, then a rule from the size of the file
// and the memory of the machine.
#include "io/memory/allocation_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>

#include "base/fail.h"
#include "io/system/unique_fd.h"
#include "thalia/options.h"

namespace thalia {
namespace io {
namespace {

// Without a limit from the caller, small files may take 1 GiB. Larger ones may take 64 times their
// size: real checkpoints stay below that, and a bomb of zeros does not.
constexpr std::uint64_t kAlwaysAllowed = std::uint64_t{1} << 30;
constexpr std::uint64_t kFactor = 64;
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

// The parser holds a copy of a JSON text and an index of up to four bytes per byte of it.
constexpr std::uint64_t kParserBytesPerByte = 6;
// Up to here a text is read without a check: the parser takes 6 MiB at most.
constexpr std::uint64_t kShortText = 1 << 20;

// Any thread may set it. Nothing else depends on it, so relaxed order is enough.
std::atomic<std::uint64_t> default_limit = 0;

// The limit of the control group that a container runs in (version 2, then version 1), if there
// is one. It reads into the stack: opening the first file of a process costs no more than opening
// the next.
std::uint64_t cgroup_memory() noexcept {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
    if (!file) continue;
    char text[32];  // of a number, or "max"
    const ssize_t length = ::read(file.get(), text, sizeof text);
    std::uint64_t bytes = 0;
    if (length > 0 && std::from_chars(text, text + length, bytes).ec == std::errc() && bytes != 0)
      return bytes;
  }
  return kAll;
}

// The machine and its control group are asked once, because they stay as they are. The limit on
// address space is asked every time: a process may lower its own whenever it likes.
std::uint64_t memory_bytes() noexcept {
  static const std::uint64_t machine = [] {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page = ::sysconf(_SC_PAGESIZE);
    const std::uint64_t physical =
        pages > 0 && page > 0 ? std::uint64_t(pages) * std::uint64_t(page) : kAll;
    return std::min(physical, cgroup_memory());
  }();
  rlimit bound{};
  if (::getrlimit(RLIMIT_AS, &bound) != 0) return machine;
  return std::min<std::uint64_t>(machine, bound.rlim_cur);
}

std::uint64_t times_stored(std::uint64_t stored_bytes) noexcept {
  return stored_bytes > kAll / kFactor ? kAll : stored_bytes * kFactor;
}

}  // namespace
}  // namespace io

void set_default_allocation_limit(std::uint64_t bytes) noexcept {
  io::default_limit.store(bytes, std::memory_order_relaxed);
}

namespace io {

std::uint64_t allocation_limit(const ReadLimits& limits, std::uint64_t stored_bytes) noexcept {
  if (limits.max_allocation_bytes) return *limits.max_allocation_bytes;
  if (const std::uint64_t given = default_limit.load(std::memory_order_relaxed)) return given;
  const std::uint64_t memory = memory_bytes();
  // A quarter of the memory is left to what the process holds already.
  return std::min(std::max(kAlwaysAllowed, times_stored(stored_bytes)), memory - memory / 4);
}

void check_work(std::string_view section, std::uint64_t bytes, const ReadLimits& limits,
                std::uint64_t stored_bytes) {
  const std::uint64_t most =
      std::max(allocation_limit(limits, stored_bytes), times_stored(stored_bytes));
  if (bytes > most) fail_limit(section, "max_allocation_bytes", bytes, most);
}

void check_file_bytes(std::string_view section, std::uint64_t bytes, const ReadLimits& limits) {
  if (limits.max_file_bytes != 0 && bytes > limits.max_file_bytes)
    fail_limit(section, "max_file_bytes", bytes, limits.max_file_bytes);
}

void check_json_length(std::string_view section, std::uint64_t bytes, const ReadLimits& limits,
                       std::uint64_t stored_bytes) {
  if (bytes > limits.max_json_bytes)
    fail_limit(section, "max_json_bytes", bytes, limits.max_json_bytes);
  if (bytes > kShortText)
    MemoryBudget(limits, stored_bytes).take(section, bytes * kParserBytesPerByte);
}

// Sums do not wrap: what passes 2^64 - 1 is told as that.
void MemoryBudget::take(std::string_view section, std::uint64_t bytes) {
  std::uint64_t before = taken();
  std::uint64_t all = 0;
  do {
    if (__builtin_add_overflow(before, bytes, &all)) all = kAll;
    if (all > most_) fail_limit(section, "max_allocation_bytes", all, most_);
  } while (!taken_.compare_exchange_weak(before, all, std::memory_order_relaxed));
}

void MemoryBudget::take(std::string_view section, std::uint64_t count,
                        std::uint64_t element_bytes) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, element_bytes, &bytes)) bytes = kAll;
  take(section, bytes);
}

}  // namespace io
}  // namespace thalia
