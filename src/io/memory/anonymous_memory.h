// Large memory from the operating system, in huge pages if it has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "thalia/types.h"

namespace thalia::io {

/// Zero bytes that take memory as they are touched, aligned to 2 MiB. A forked child does not get
/// them, so neither the fork nor the parent's next write copies anything. Move-only.
class AnonymousMemory {
 public:
  AnonymousMemory() noexcept = default;
  /// Rounds up to whole pages; none for 0. @throws IoError (ENOMEM).
  explicit AnonymousMemory(std::uint64_t size);

  ~AnonymousMemory();
  AnonymousMemory(AnonymousMemory&& other) noexcept { swap(other); }
  AnonymousMemory& operator=(AnonymousMemory&& other) noexcept {
    AnonymousMemory(std::move(other)).swap(*this);
    return *this;
  }

  MutableByteSpan bytes() const noexcept { return bytes_; }
  std::uint64_t size() const noexcept { return bytes_.size(); }
  /// Brings in the pages of an extent inside. They keep what they hold, and what is written to them
  /// meanwhile.
  void populate(std::uint64_t offset, std::uint64_t length) const noexcept;

 private:
  void swap(AnonymousMemory& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(mapping_, other.mapping_);
  }
  MutableByteSpan bytes_;
  void* mapping_ = nullptr;
};

/// Bytes of memory that the machine has; 0 if it does not say.
std::uint64_t machine_memory() noexcept;

}  // namespace thalia::io
