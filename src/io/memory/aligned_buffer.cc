#include "io/memory/aligned_buffer.h"

#include <new>

#include "io/memory/huge_pages.h"

namespace thalia::io {

AlignedBuffer::AlignedBuffer(std::size_t size) : size_(size) {
  // aligned_alloc() wants a size that is a multiple of the alignment.
  const std::size_t alignment = huge_page_alignment(size, kDirectAlignment);
  bytes_.reset(static_cast<std::byte*>(
      std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)));
  if (!bytes_) throw std::bad_alloc();
  prefer_huge_pages(bytes());
}

}  // namespace thalia::io
