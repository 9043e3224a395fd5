// Bytes of a file, read by pread() into anonymous memory in pieces of 64 KiB. A piece is
// written once, under the lock of its group, and never again; a set bit in filled_, stored with
// release after the bytes, says that the piece may be read by any thread without a lock. So spans
// that were handed out stay valid and constant until the object goes.
//
// If the process may not reserve address space for the file, bytes_ lies where nothing is
// mapped, and a group gets memory at its place in it when it is first filled. Nothing but the
// claims below keeps others from such a range. The kernel looks for room from one end of the
// address space, and comes to the middle of its largest gap last; what it put there nevertheless is
// an error and is not overwritten (MAP_FIXED_NOREPLACE).
//
// The price against a mapping is one copy. In return, a file that shrinks or a disk that fails is
// an error from pread() and not a SIGBUS. docs/contribute/security.md compares the two.
#include "io/file/copied_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "io/file/posix_file.h"
#include "io/memory/huge_pages.h"
#include "io/system/posix_error.h"
#include "thalia/error.h"

namespace thalia::io {
namespace {

// Ranges of addresses in which files lie that have no reservation, by their first. Never destroyed,
// as files may outlive it.
struct ClaimedRanges {
  std::mutex lock;
  std::map<std::uintptr_t, std::uintptr_t> end_of;
};

ClaimedRanges& claimed_ranges() {
  static ClaimedRanges* const instance = [] {
    auto made = std::make_unique<ClaimedRanges>();
    hold_over_forks(made->lock);
    return made.release();
  }();
  return *instance;
}

// The ranges that are mapped, as /proc tells, and those that are claimed.
std::map<std::uintptr_t, std::uintptr_t> taken_ranges(const ClaimedRanges& claimed) {
  std::map<std::uintptr_t, std::uintptr_t> taken = claimed.end_of;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &begin, &end) != 2) continue;
    if (begin >> 63 != 0) continue;  // of the kernel's half, which begins with a gap for nobody
    std::uintptr_t& known = taken[begin];
    known = std::max<std::uintptr_t>(known, end);
  }
  return taken;
}

// A range in the middle of the largest gap that has as much room on both sides; 0 if there is
// none.
std::uintptr_t claim(std::size_t size) {
  const std::lock_guard lock(claimed_ranges().lock);
  std::uintptr_t last = 0, gap = 0, begin = 0;
  for (const auto& [first, end] : taken_ranges(claimed_ranges())) {
    if (last != 0 && first > last && first - last > gap) {
      gap = first - last;
      begin = last;
    }
    last = std::max(last, end);
  }
  if (gap / 3 < size) return 0;
  const std::uintptr_t place = (begin + (gap - size) / 2) / kHugePage * kHugePage;
  claimed_ranges().end_of.emplace(place, place + size);
  return place;
}

void give_back(const std::byte* place) noexcept {
  const std::lock_guard lock(claimed_ranges().lock);
  claimed_ranges().end_of.erase(reinterpret_cast<std::uintptr_t>(place));
}

}  // namespace

void CopiedFile::Free::operator()(void* memory) const noexcept {
  std::free(memory);
}

CopiedFile::CopiedFile(std::filesystem::path path, UniqueFd fd)
    : FileBytes(Access::copied, std::move(path), std::move(fd)) {}

std::shared_ptr<const CopiedFile> CopiedFile::open(const std::filesystem::path& path) {
  return open(open_for_reading(path), path);
}

std::shared_ptr<const CopiedFile> CopiedFile::open(UniqueFd fd, const std::filesystem::path& path) {
  const std::size_t size = addressable_size(fd.get(), path);
  std::shared_ptr<CopiedFile> file(new CopiedFile(path, std::move(fd)));
  if (size == 0) return file;
  // MAP_NORESERVE: a file larger than the memory can be opened, as only touched pieces take any.
  const std::size_t groups = size / kGroupBytes + 1;
  static_assert(sizeof(std::atomic<std::uint16_t>) == sizeof(std::uint16_t));
  file->filled_.reset(
      static_cast<std::atomic<std::uint16_t>*>(std::calloc(groups, sizeof(std::uint16_t))));
  if (!file->filled_) throw std::bad_alloc();
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    const int failed = errno;
    auto has_memory = std::make_unique<bool[]>(groups);
    const std::uintptr_t place = failed == ENOMEM ? claim(size) : 0;
    if (place == 0) throw_mapping(path, size, failed);
    address = reinterpret_cast<void*>(place);  // NOLINT(performance-no-int-to-ptr): of nothing yet
    file->has_memory_ = std::move(has_memory);
  } else {
    // A huge page for a piece would make look-ups cost thirty times their memory.
    ::madvise(address, size, MADV_NOHUGEPAGE);
  }
  file->bytes_ = {static_cast<const std::byte*>(address), size};
  return file;
}

CopiedFile::~CopiedFile() {
  if (bytes_.empty()) return;
  if (!has_memory_) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    return;
  }
  // Group by group: what is between them may be another's.
  for (std::uint64_t group = 0; group <= (bytes_.size() - 1) / kGroupBytes; ++group) {
    const MutableByteSpan memory = group_memory(group);
    if (has_memory_[group]) ::munmap(memory.data(), memory.size());
  }
  give_back(bytes_.data());
}

MutableByteSpan CopiedFile::group_memory(std::uint64_t group) const noexcept {
  const std::uint64_t begin = group * kGroupBytes;
  // The memory is ours and writable; bytes_ shows it to everybody else.
  return {const_cast<std::byte*>(bytes_.data()) + begin,
          std::min<std::uint64_t>(kGroupBytes, bytes_.size() - begin)};
}

void CopiedFile::map_group(std::uint64_t group) const {
  const MutableByteSpan memory = group_memory(group);
  void* const address = ::mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (address == MAP_FAILED) throw_mapping(path(), mapped_ + memory.size());
  if (address != memory.data()) {  // a kernel before 4.17, which knows no MAP_FIXED_NOREPLACE
    ::munmap(address, memory.size());
    throw_mapping(path(), mapped_ + memory.size(), EEXIST);
  }
  ::madvise(address, memory.size(), MADV_NOHUGEPAGE);
  has_memory_[group] = true;
  mapped_ += memory.size();
}

void CopiedFile::fill(std::uint64_t offset, std::uint64_t length) const {
  if (length == 0) return;
  const std::uint64_t first = offset / kCopiedPiece;
  const std::uint64_t last = (offset + length - 1) / kCopiedPiece;
  for (std::uint64_t group = first / kGroupPieces; group <= last / kGroupPieces; ++group) {
    const std::uint64_t begin = group * kGroupPieces;
    const auto from = static_cast<unsigned>(std::max(first, begin) - begin);
    const auto to = static_cast<unsigned>(std::min(last, begin + kGroupPieces - 1) - begin);
    // Bits from `from` to `to`. For `to` 15, 2u << 15 still fits an unsigned.
    const unsigned wanted = ((2u << to) - 1) & ~((1u << from) - 1);
    // The usual case, all there, takes no lock. The acquire pairs with the release in fill_group().
    if ((wanted & ~filled_[group].load(std::memory_order_acquire)) != 0) fill_group(group, wanted);
  }
}

void CopiedFile::fill_group(std::uint64_t group, unsigned wanted) const {
  // Groups that share a lock wait for each other's reads; 64 locks make that rare.
  const std::lock_guard lock(locks_[group % locks_.size()]);
  unsigned missing = wanted & ~filled_[group].load(std::memory_order_relaxed);
  if (missing != 0 && has_memory_ && !has_memory_[group]) map_group(group);
  const MutableByteSpan memory = group_memory(group);
  while (missing != 0) {  // a run of pieces at a time
    const auto from = static_cast<unsigned>(std::countr_zero(missing));
    const auto count = static_cast<unsigned>(std::countr_one(missing >> from));
    const std::uint64_t begin = from * kCopiedPiece;
    const std::uint64_t length =
        std::min<std::uint64_t>(count * kCopiedPiece, memory.size() - begin);
    pread_all(fd(), group * kGroupBytes + begin, memory.subspan(begin, length), path());
    const unsigned run = ((1u << count) - 1) << from;
    filled_[group].fetch_or(static_cast<std::uint16_t>(run), std::memory_order_release);
    resident_ += length;
    missing &= ~run;
  }
}

void CopiedFile::advise(std::uint64_t offset, std::uint64_t length, Advice advice) const noexcept {
  // Dropping is not possible: the memory here is the only copy, and others hold spans of it.
  if (advice != Advice::will_need || offset >= bytes_.size()) return;
  ::posix_fadvise(fd(), static_cast<off_t>(offset),
                  static_cast<off_t>(std::min<std::uint64_t>(length, bytes_.size() - offset)),
                  POSIX_FADV_WILLNEED);
}

}  // namespace thalia::io
