// One mapping of the length that the file had when it was opened. What is
// appended later is not seen. bytes_ is empty or a mapping of exactly its size, which is what the
// destructor unmaps. The descriptor stays open for reads past the mapping.
#include "io/file/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "io/file/posix_file.h"
#include "io/system/posix_error.h"

namespace thalia::io {
namespace {

int madvise_value(Advice advice) noexcept {
  switch (advice) {
    case Advice::will_need:
      return MADV_WILLNEED;
    case Advice::dont_need:
      return MADV_DONTNEED;
    case Advice::sequential:
      return MADV_SEQUENTIAL;
    case Advice::random:
      return MADV_RANDOM;
  }
  return MADV_NORMAL;
}

}  // namespace

void will_need(ByteSpan mapped) noexcept {
  if (mapped.empty()) return;
  const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::byte* const bytes = const_cast<std::byte*>(mapped.data());
  const auto in_page = [&](const std::byte* byte) {
    return reinterpret_cast<std::uintptr_t>(byte) % page;
  };
  std::byte* const begin = bytes - in_page(bytes);
  std::byte* const end = bytes + mapped.size();
  // Pages that are in the page cache need no reading ahead. Asking for it page by page would slow a
  // walk over a cached file down by a quarter, so one look at the extent's last page decides.
  unsigned char resident = 0;
  std::byte* const last = end - 1 - in_page(end - 1);
  if (::mincore(last, 1, &resident) == 0 && (resident & 1) != 0) return;
  ::madvise(begin, static_cast<std::size_t>(end - begin), MADV_WILLNEED);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  return open(open_for_reading(path), path);
}

std::shared_ptr<const MappedFile> MappedFile::open(UniqueFd fd, const std::filesystem::path& path,
                                                   Access access) {
  if (auto file = open_if_it_fits(fd, path, access)) return file;
  throw_mapping(path, addressable_size(fd.get(), path), ENOMEM);
}

std::shared_ptr<const MappedFile> MappedFile::open_if_it_fits(UniqueFd& fd,
                                                              const std::filesystem::path& path,
                                                              Access access) {
  const std::size_t size = addressable_size(fd.get(), path);
  ByteSpan bytes;
  // mmap() refuses a length of 0.
  if (size > 0) {
    const bool writable = access == Access::writable;
    void* const address = ::mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                                 writable ? MAP_PRIVATE : MAP_SHARED, fd.get(), 0);
    if (address == MAP_FAILED) {
      if (errno == ENOMEM) return nullptr;
      throw_mapping(path, size);
    }
    bytes = {static_cast<const std::byte*>(address), size};
  }
  std::shared_ptr<MappedFile> file(new MappedFile(access, path, std::move(fd)));
  file->bytes_ = bytes;
  return file;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::populate(std::uint64_t offset, std::uint64_t length) const {
  if (length == 0) return;
#ifdef MADV_POPULATE_READ
  const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page;
  void* const address = const_cast<std::byte*>(bytes_.data() + begin);
  const auto populate = [&] {
    return ::madvise(address, offset + length - begin, MADV_POPULATE_READ);
  };
  if (retry_interrupted(populate) == 0) return;
  // EINVAL: a kernel before 5.14 that does not know the advice. EFAULT is where a touch would raise
  // SIGBUS, and is the reason for asking before touching.
  if (errno != EINVAL) throw_errno("madvise", path(), begin);
#endif
  advise(offset, length, Advice::will_need);
}

void MappedFile::advise(std::uint64_t offset, std::uint64_t length, Advice advice) const noexcept {
  if (offset >= bytes_.size()) return;
  // What was written to is in memory alone.
  if (advice == Advice::dont_need && access() == Access::writable) return;
  const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t end = offset + std::min<std::uint64_t>(length, bytes_.size() - offset);
  // A page shared with a neighbour may still be wanted there, so it is only dropped when all of it
  // is meant. Other advice may reach into the neighbours: it takes nothing away.
  if (advice == Advice::dont_need) {
    offset = (offset + page - 1) / page * page;
    if (end != bytes_.size()) end = end / page * page;
  } else {
    offset = offset / page * page;
  }
  if (offset >= end) return;
  if (advice == Advice::will_need) {
    will_need(bytes_.subspan(offset, end - offset));
  } else {
    ::madvise(const_cast<std::byte*>(bytes_.data() + offset), end - offset, madvise_value(advice));
  }
}

std::uint64_t MappedFile::resident_bytes() const {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
  const auto end = begin + bytes_.size();
  std::ifstream smaps("/proc/self/smaps");
  std::uint64_t resident_kib = 0;
  // The kernel splits a mapping whose parts were advised differently, so several entries can lie in
  // ours.
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uint64_t first = 0, last = 0, rss_kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &first, &last) == 2)
      ours = first >= begin && first < end;
    else if (ours && std::sscanf(line.c_str(), "Rss: %" SCNu64, &rss_kib) == 1)
      resident_kib += rss_kib;
  }
  return resident_kib * 1024;
}

}  // namespace thalia::io
