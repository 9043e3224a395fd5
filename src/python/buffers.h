// Bytes across the border, without a copy: those of Python objects for the library, and those of
// the library for Python objects.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "python/objects.h"
#include "python/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia::python {

/// Contiguous bytes of an object with the buffer protocol, which is kept, and cannot be resized,
/// until this is gone. Made and destroyed with the GIL held; the bytes need none.
class HeldBuffer {
 public:
  enum class Use { read, write };
  /// @throws BufferError of the object, for example if it is not contiguous.
  HeldBuffer(nanobind::handle object, Use use);
  ~HeldBuffer();
  HeldBuffer(HeldBuffer&& other) noexcept : view_(std::exchange(other.view_, nullptr)) {}
  HeldBuffer& operator=(HeldBuffer&&) = delete;

  ByteSpan bytes() const noexcept {
    return {static_cast<const std::byte*>(view_->buf), static_cast<std::size_t>(view_->len)};
  }
  MutableByteSpan writable() const noexcept {
    return {static_cast<std::byte*>(view_->buf), static_cast<std::size_t>(view_->len)};
  }

 private:
  Py_buffer* view_;
};

/// (dtype, shape, buffer) as a dense tensor in the bytes of that buffer, which `held` holds.
inline Tensor tensor_in(const HeldBuffer& held, nanobind::handle dtype, nanobind::handle shape) {
  const auto extents = nanobind::cast<std::vector<std::uint64_t>>(shape);
  return Tensor::borrow(dtype_of(nanobind::cast<std::string>(dtype)),
                        Shape(std::span<const std::uint64_t>(extents)), held.bytes());
}

/// Bytes of the library with the buffer protocol: what looks at them keeps this, and this their
/// owner.
class Payload {
 public:
  /// @param writable whether who has it may write; of a file that was opened for it.
  template <typename Owner>
  Payload(ByteSpan bytes, Owner owner, bool writable = false)
      : bytes_(bytes), writable_(writable), owner_(std::make_shared<Owner>(std::move(owner))) {}
  ByteSpan bytes() const noexcept { return bytes_; }
  bool writable() const noexcept { return writable_; }

 private:
  ByteSpan bytes_;
  bool writable_;
  std::shared_ptr<const void> owner_;
};

/// Bytes in memory of their own, with the buffer protocol: who has it may write.
struct OwnedBytes {
  MutableByteSpan bytes;
  std::shared_ptr<void> memory;
};

}  // namespace thalia::python
