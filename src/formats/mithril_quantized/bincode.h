// Bincode 1 with fixed-width integers, read out of a zstd frame whose content size is not known.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codec/frame/frame.h"
#include "format/little_endian.h"
#include "io/memory/allocation_limit.h"
#include "thalia/types.h"

namespace thalia::formats::mithril_quantized {

/// Lengths are compared with the most that the frame can decode to, and with the budget, before
/// anything is allocated. Externally synchronised.
class BincodeReader {
 public:
  /// @param budget outlives the reader. @throws CompressionError for what is no zstd frame.
  BincodeReader(ByteSpan frame, io::MemoryBudget& budget);

  /// @throws FormatError (truncated) where the content ends before; CompressionError.
  void read(std::string_view field, MutableByteSpan out);
  std::uint8_t read_u8(std::string_view field);
  std::uint32_t read_u32(std::string_view field);
  std::uint64_t read_u64(std::string_view field);
  /// 0 or 1. @throws FormatError (bad_value).
  bool read_option(std::string_view field);
  /// A count, and as many elements.
  template <typename T>
  std::vector<T> read_sequence(std::string_view field) {
    auto elements = budget_.vector<T>("content", read_count(field, sizeof(T)));
    read(field, std::as_writable_bytes(std::span(elements)));
    return elements;
  }
  /// The count of a sequence of elements of so many bytes each, which the frame may hold.
  std::uint64_t read_count(std::string_view field, std::uint64_t element_bytes);
  /// @throws FormatError where content or bytes are left.
  void finish();

 private:
  bool fill(MutableByteSpan out, std::size_t& done);

  ByteSpan frame_;
  std::uint64_t stored_;
  io::MemoryBudget& budget_;
  std::unique_ptr<codec::FrameDecoder> decoder_;
  std::uint64_t position_ = 0;  ///< in the content
  bool ended_ = false;
};

/// Appends to bytes.
class BincodeWriter {
 public:
  void write(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void write_u8(std::uint8_t value) { bytes_.push_back(std::byte{value}); }
  void write_u32(std::uint32_t value) { write_number(format::le32(value)); }
  void write_u64(std::uint64_t value) { write_number(format::le64(value)); }
  const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

 private:
  template <typename T>
  void write_number(const T& value) {
    write(std::as_bytes(std::span(&value, 1)));
  }
  std::vector<std::byte> bytes_;
};

}  // namespace thalia::formats::mithril_quantized
