// What a packed delta states: a plan of the file, and the few numbers that no plan has.
// docs/format/packed.md, "Head" and "Digests".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "container/plan/file_plan.h"
#include "format/delta.h"
#include "format/little_endian.h"
#include "thalia/types.h"

namespace thalia::container {

struct PackedHead {
  std::uint64_t block_log2 = 0;
  LeafAlgorithm leaves{};
  std::uint64_t timestamp = 0;
  std::uint64_t base_step = 0;
  std::uint64_t base_length = 0;
  std::uint64_t base_generation = 0;
  std::uint64_t depth = 0;
  std::string path;
  Digest256 closing_checksum{};
  Digest256 base_checksum{};
  Uuid file_uuid{};
  Uuid base_uuid{};
  format::le32 prefix_crc32{};
  FilePlan* plan = nullptr;
  std::vector<TensorPlan*> tensors{};  ///< of the plan, in the order of the file
  /// The first bytes of those that begin with such.
  std::vector<format::StepDeltaHeader> step_headers{};
};

class ColumnReader;

/// True where the first bytes of the payload are in the head, not among the payloads.
bool has_step_header(const TensorPlan& tensor);

/// The head's columns, and the digests. The plan is complete, and its tensors are placed.
std::vector<std::byte> write_head(PackedHead& head);
std::vector<std::byte> write_digests(PackedHead& head);

/// Fills head.plan, which is empty. @throws FormatError for what contents of that length cannot
/// hold.
void read_head(PackedHead& head, ByteSpan columns, std::uint64_t contents_length);
/// @return how many bytes of `bytes` they take. @throws FormatError.
std::uint64_t read_digests(PackedHead& head, ByteSpan bytes);
/// Logical and stored bytes of a tensor whose columns were read, and places of chunks in these.
/// @throws FormatError.
void derive_lengths(TensorPlan& tensor, const ColumnReader& columns);

}  // namespace thalia::container
