// Reading the tensors of 0.1 files. docs/format/v01.md, "Tensors of version 0.1".
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "thalia/state/tensor_value.h"

namespace thalia::formats {

/// Reads the tensors of one body. Tensors at one offset are one tensor. Bytes that have to be
/// copied, because of their address or because they have no owner, may be at most as many as the
/// body has: tensors that overlap on purpose would otherwise take any amount of memory.
class V01TensorReader {
 public:
  struct Found {
    Tensor tensor;
    std::uint64_t bytes = 0;  ///< with the header
  };

  /// @param owner keeps the bytes alive; null: all tensors are copied.
  V01TensorReader(ByteSpan body, std::shared_ptr<const void> owner, std::uint32_t max_tensors)
      : body_(body),
        owner_(std::move(owner)),
        max_tensors_(max_tensors),
        copies_left_(body.size()),
        checks_left_(body.size()) {}

  /// @throws FormatError.
  const Found& at(std::uint64_t offset);

  /// True if there were tensors, and all of them had their elements on multiples of 64.
  bool all_aligned() const noexcept { return !found_.empty() && all_aligned_; }

 private:
  Found read(std::uint64_t offset);
  Tensor place(const TensorLayout& layout, ByteSpan bytes, std::uint64_t offset);

  ByteSpan body_;
  std::shared_ptr<const void> owner_;
  std::uint32_t max_tensors_;
  std::uint64_t copies_left_;
  std::uint64_t checks_left_;  ///< bytes of indices
  bool all_aligned_ = true;
  std::unordered_map<std::uint64_t, Found> found_;
};

}  // namespace thalia::formats
