// What a writer has been told: regions, tensors and connections, checked as they are declared. No
// file, no offsets.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "integrity/content_hash.h"
#include "thalia/bytes.h"
#include "thalia/format/chunk.h"
#include "thalia/region.h"
#include "thalia/tensor.h"

namespace thalia::container {

/// Stands for the connectivity section where a region's number is asked for: its matrices come
/// behind all regions.
inline constexpr std::uint32_t kConnectivity = 0xFFFFFFFF;

struct DraftTensor {
  TensorSpec spec;
  std::uint32_t region = 0;
  std::uint64_t logical_length = 0;
  bool streamed = false;
  std::vector<ByteSpan>
      pieces;  ///< the borrowed payload one behind the other; empty where streamed

  // Known once the payload was seen:
  integrity::ContentDigest digest;
  std::uint64_t stored_offset = 0;
  std::uint64_t stored_length = 0;
  std::vector<format::ChunkEntry> chunks;
};

struct DraftRegion {
  RegionSpec spec;
  std::vector<std::uint32_t> tensors;  ///< in the order of declaration
  std::unordered_set<std::string> tensor_names;
};

struct DraftConnection {
  std::string source;
  std::string target;
  std::uint32_t weights = kNone;
  std::uint32_t delays = kNone;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
};

/// Externally synchronised. Every add_ checks its arguments first and changes nothing where it
/// throws UsageError.
class Draft {
 public:
  void set_metadata(std::string json);
  std::uint32_t add_region(RegionSpec spec);
  /// `pieces` is ignored where `streamed`.
  std::uint32_t add_tensor(std::uint32_t region, TensorSpec spec, std::vector<ByteSpan> pieces,
                           bool streamed);
  std::uint32_t add_connection(std::string_view source, std::string_view target);
  std::uint32_t add_connection_weights(std::uint32_t connection, TensorSpec spec, ByteSpan payload);
  std::uint32_t add_connection_delays(std::uint32_t connection, TensorSpec spec, ByteSpan payload);

  /// What only the whole tells: every connection has weights. @throws UsageError.
  void check_complete() const;

  std::string metadata = "{}";
  std::uint64_t training_steps = 0;
  std::vector<DraftRegion> regions;
  std::vector<DraftTensor> tensors;
  std::vector<DraftConnection> connections;

  bool is_sparse(std::uint32_t tensor) const {
    return tensors[tensor].spec.encoding != Encoding::dense;
  }

 private:
  std::uint32_t append_tensor(std::uint32_t region, TensorSpec spec, std::vector<ByteSpan> pieces,
                              bool streamed);
  std::unordered_set<std::string> region_names_;
  std::unordered_set<std::string> connection_names_;
};

/// Throws UsageError unless dtype, role and encoding are enumerators: nothing is asked of others.
void check_codes(const TensorSpec& spec);

/// Zero bytes to pad with; at least 4096 + 64 of them.
ByteSpan zero_bytes();

}  // namespace thalia::container
