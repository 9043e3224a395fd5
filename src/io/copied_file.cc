// Bytes of a file, read by pread() into anonymous memory in pieces of 64 KiB. A piece is
// written once, under the lock of its group, and never again; a set bit in filled_, stored with
// release after the bytes, says that the piece may be read by any thread without a lock. So spans
// that were handed out stay valid and constant until the object goes.
//
// The price against a mapping is one copy. In return, a file that shrinks or a disk that fails is
// an error from pread() and not a SIGBUS. docs/security.md compares the two.
#include "io/copied_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

#include "io/posix_error.h"
#include "io/posix_file.h"

namespace thalia::io {

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
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw_mapping(path, size);
  file->bytes_ = {static_cast<const std::byte*>(address), size};
  // A huge page for a piece would make look-ups cost thirty times their memory.
  ::madvise(address, size, MADV_NOHUGEPAGE);
  static_assert(sizeof(std::atomic<std::uint16_t>) == sizeof(std::uint16_t));
  file->filled_.reset(static_cast<std::atomic<std::uint16_t>*>(
      std::calloc(size / (kGroupPieces * kCopiedPiece) + 1, sizeof(std::uint16_t))));
  if (!file->filled_) throw std::bad_alloc();
  return file;
}

CopiedFile::~CopiedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
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
  while (missing != 0) {  // a run of pieces at a time
    const auto from = static_cast<unsigned>(std::countr_zero(missing));
    const auto count = static_cast<unsigned>(std::countr_one(missing >> from));
    const std::uint64_t begin = (group * kGroupPieces + from) * kCopiedPiece;
    const std::uint64_t length =
        std::min<std::uint64_t>(count * kCopiedPiece, bytes_.size() - begin);
    // The memory is ours and writable; bytes_ shows it to everybody else.
    pread_all(fd(), begin, {const_cast<std::byte*>(bytes_.data()) + begin, length}, path());
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
