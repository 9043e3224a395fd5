#include "io/aligned_buffer.h"

#include <sys/mman.h>

#include <new>

namespace thalia::io {
namespace {

constexpr std::size_t kHugePage = 2 << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t size) : size_(size) {
  const bool huge = size >= kHugePage;
  const std::size_t alignment = huge ? kHugePage : kDirectAlignment;
  bytes_.reset(static_cast<std::byte*>(
      std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)));
  if (!bytes_) throw std::bad_alloc();
  if (huge) static_cast<void>(::madvise(bytes_.get(), size, MADV_HUGEPAGE));  // a wish
}

}  // namespace thalia::io
