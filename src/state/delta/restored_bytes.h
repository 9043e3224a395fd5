// The elements of a quantized tensor as the logical bytes of a dense one. docs/format/deltas.md,
// "Tensors of a delta".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "container/read/quantized_arrays.h"
#include "io/system/process.h"
#include "state/delta/byte_source.h"
#include "state/delta/stored_bytes.h"

namespace thalia::state {

/// The codes are in memory from the first read on; elements are restored where they are asked for.
/// Borrows the file. Immutable but for that; any number of threads.
class RestoredBytes final : public ByteSource {
 public:
  /// `number` is that of a tensor that tensor_view() accepted; its codes count in `budget`, which
  /// it borrows. @throws FormatError.
  RestoredBytes(const detail::OpenFile& file, std::uint32_t number, io::MemoryBudget& budget);

  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t begin, MutableByteSpan out) const override;
  void prefetch(std::uint64_t begin, std::uint64_t length) const override {
    static_cast<void>(length);
    if (begin == 0) stored_.prefetch(0, stored_.size());  // all codes are read at once
  }

 private:
  const container::QuantizedArrays& arrays() const;

  StoredBytes stored_;
  std::uint64_t width_;
  std::uint64_t size_;
  mutable io::Once once_;
  mutable std::vector<std::byte> decoded_;
  mutable std::optional<container::QuantizedArrays> arrays_;
};

}  // namespace thalia::state
