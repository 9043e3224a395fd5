// The logical bytes of a tensor, wherever they are: in memory, or made piece by piece.
#pragma once

#include <cstdint>
#include <stop_token>
#include <utility>
#include <vector>

#include "integrity/content_hash.h"
#include "thalia/state/delta.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia::state {

/// Immutable; any number of threads.
class PartwiseBytes {
 public:
  virtual ~PartwiseBytes() = default;
  virtual std::uint64_t size() const noexcept = 0;
  /// [begin, begin + out.size()); both are multiples of 16, but for the tensor's end.
  virtual void read(std::uint64_t begin, MutableByteSpan out) const = 0;
  /// The same bytes where they lie in memory, else read into `buffer`.
  virtual ByteSpan part(std::uint64_t begin, std::uint64_t length,
                        std::vector<std::byte>& buffer) const {
    buffer.resize(length);
    read(begin, buffer);
    return buffer;
  }
  /// Whether part() costs no more than looking at memory, so that nothing is made for it.
  virtual bool is_at_hand() const noexcept { return false; }
  /// Tells the kernel that these bytes are read soon. Never throws for what it cannot say.
  virtual void prefetch(std::uint64_t begin, std::uint64_t length) const {
    static_cast<void>(begin), static_cast<void>(length);
  }

 protected:
  PartwiseBytes() = default;
  PartwiseBytes(const PartwiseBytes&) = default;
  PartwiseBytes(PartwiseBytes&&) = default;
  PartwiseBytes& operator=(const PartwiseBytes&) = default;
  PartwiseBytes& operator=(PartwiseBytes&&) = default;
};

/// A tensor in memory, which it keeps.
class TensorBytes final : public PartwiseBytes {
 public:
  explicit TensorBytes(Tensor tensor) : tensor_(std::move(tensor)) {}
  std::uint64_t size() const noexcept override { return tensor_.bytes().size(); }
  void read(std::uint64_t begin, MutableByteSpan out) const override;
  ByteSpan part(std::uint64_t begin, std::uint64_t length,
                std::vector<std::byte>& buffer) const override;
  bool is_at_hand() const noexcept override { return true; }

 private:
  Tensor tensor_;
};

/// Bytes that a function gives.
class FunctionBytes final : public PartwiseBytes {
 public:
  FunctionBytes(std::uint64_t size, PartReader read) : size_(size), read_(std::move(read)) {}
  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t begin, MutableByteSpan out) const override { read_(begin, out); }

 private:
  std::uint64_t size_;
  PartReader read_;
};

/// The digest of all bytes, taken piece by piece on up to `threads` threads. @throws
/// CancelledError.
integrity::ContentDigest digest_of(const PartwiseBytes& source, unsigned threads,
                                   const std::stop_token& cancel);

}  // namespace thalia::state
