// What a stream reads and in which order: tensors, and the units of the file that hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "container/file/open_file.h"
#include "format/chunk.h"
#include "format/quantized.h"
#include "format/tensor.h"
#include "thalia/stream.h"
#include "thalia/tensor.h"

namespace thalia::container {

/// What is read at a time: large enough for a disk, small enough for a core's cache.
inline constexpr std::uint64_t kStreamExtent = 1 << 20;

struct StreamRequest {
  TensorView view;
  const format::TensorEntry* entry;
};

/// A tensor and copies of what the file's tables say of it. After planning only reads touch the
/// file: if it shrinks, they fail, and nothing else happens.
struct StreamTensor {
  TensorView view;
  std::size_t index;  ///< among those asked for
  std::uint64_t offset;
  std::uint64_t stored_bytes;
  std::uint64_t logical_bytes;
  std::uint64_t result_bytes;  ///< handed out: logical_bytes, or the restored elements
  TensorLayout layout;         ///< of what is handed out
  std::uint32_t crc32;
  Digest128 content_hash;
  std::uint32_t chunk_count;  ///< 0: raw
  std::size_t first_chunk;    ///< in StreamPlan::chunks
  std::uint32_t units = 0;    ///< that hold a part of it
  std::size_t quantized;      ///< in StreamPlan::quantized; past its end: it is not
  std::uint32_t region;       ///< in StreamPlan::regions
  std::size_t name_begin;     ///< in StreamPlan::names
  std::size_t name_length;

  std::uint64_t end() const noexcept { return offset + stored_bytes; }
};

/// What restoring takes of the file's tables.
struct StreamQuantized {
  format::TensorEntry entry;
  format::QuantizedSideData side;
};

/// Bytes of the file that are read, verified and handed to tensors together: up to kStreamExtent of
/// whole blocks, or one block that is larger.
struct StreamUnit {
  std::uint64_t begin;
  std::uint64_t end;
  std::size_t first_tensor;  ///< [first, last): those that have bytes here, and empty gaps
  std::size_t last_tensor;
  std::size_t first_leaf;  ///< in StreamPlan::leaves, in bytes
};

struct StreamPlan {
  std::vector<StreamTensor> tensors;  ///< in the order in which they are read, empty ones first
  std::vector<StreamUnit> units;      ///< in the order in which they are read
  std::vector<format::ChunkEntry> chunks;
  std::vector<StreamQuantized> quantized;
  bool restores = true;           ///< quantized tensors
  std::vector<std::byte> leaves;  ///< of the units' blocks, where blocks are verified
  bool verifies_blocks = false;
  bool verifies_tensors = false;  ///< against their CRC-32, for want of a block tree
  std::uint64_t total_bytes = 0;  ///< of the units

  const StreamQuantized* quantization_of(const StreamTensor& tensor) const {
    return tensor.quantized < quantized.size() ? &quantized[tensor.quantized] : nullptr;
  }
  std::string_view region_name(const StreamTensor& tensor) const { return regions[tensor.region]; }
  std::string_view tensor_name(const StreamTensor& tensor) const {
    return std::string_view(names).substr(tensor.name_begin, tensor.name_length);
  }
  std::vector<std::string> regions;
  std::string names;
};

/// @throws UnsupportedError for encodings that cannot be resolved; FormatError, IntegrityError.
StreamPlan plan_stream(const detail::OpenFile& file, const std::vector<StreamRequest>& asked,
                       const StreamOptions& options);

}  // namespace thalia::container
