// Packs what was just written, from the plan that it was written from. Whether it comes out again
// is not argued but tried: a delta that does not stays as it is.
#include "container/pack/pack.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "codec/frame/frame.h"
#include "container/file/delta_prefix.h"
#include "container/pack/head.h"
#include "container/wrap/packed.h"
#include "format/constants.h"
#include "format/header.h"
#include "format/overlay.h"
#include "format/packed.h"
#include "thalia/error.h"

namespace thalia::container {
namespace {

constexpr int kLevel = 19;
// What packing has to save, a 64th.
constexpr std::uint64_t kLeastGain = 64;

bool comes_out_again(ByteSpan packed, ByteSpan contents) {
  std::vector<std::byte> made(contents.size());
  try {
    unpack(packed, made, {});
  } catch (const Error&) {
    return false;
  }
  return std::ranges::equal(made, contents);
}

void append(std::vector<std::byte>& out, ByteSpan bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::optional<std::vector<std::byte>> pack(FilePlan& plan,
                                           std::span<const std::uint32_t> file_order,
                                           ByteSpan contents) {
  if (contents.size() > format::kMaxPackedContents || !plan.delta) return std::nullopt;
  const ByteSpan container = contents.subspan(plan.delta->prefix.size());
  const auto& header = format::overlay<format::Header>(container, 0, "header");
  if (header.checksum_type != ChecksumType::block_tree) return std::nullopt;
  const DeltaPrefix prefix = checked_delta_prefix(contents);

  PackedHead head{.block_log2 = header.integrity_block_log2,
                  .leaves = header.leaf_algorithm,
                  .timestamp = header.timestamp,
                  .base_step = header.base_step,
                  .base_length = prefix.reference.base_length,
                  .base_generation = prefix.reference.base_generation,
                  .depth = prefix.reference.depth,
                  .path = std::string(prefix.path),
                  .base_checksum = header.base_checksum,
                  .file_uuid = header.file_uuid,
                  .base_uuid = prefix.reference.base_uuid,
                  .prefix_crc32 = prefix.reference.crc32,
                  .plan = &plan};
  std::memcpy(&head.closing_checksum, container.last(format::kChecksumLength).data(),
              format::kChecksumLength);
  for (const std::uint32_t i : file_order) {
    TensorPlan& tensor = plan.tensors[i];
    head.tensors.push_back(&tensor);
    if (has_step_header(tensor)) {
      head.step_headers.push_back(
          format::overlay<format::StepDeltaHeader>(container, tensor.stored_offset, "payload"));
    }
  }

  std::vector<std::byte> frame;
  codec::encode_frame(Codec::zstd, kLevel, write_head(head), frame);
  format::PackedHeader first{};
  std::copy(std::begin(format::kPackedMagic), std::end(format::kPackedMagic), first.magic);
  first.packed_version = format::kPackedVersion;
  first.contents_length = static_cast<std::uint32_t>(contents.size());
  first.frame_length = static_cast<std::uint32_t>(frame.size());
  std::vector<std::byte> out;
  append(out, format::struct_bytes(first));
  append(out, frame);
  append(out, write_digests(head));
  for (const TensorPlan* tensor : head.tensors) {
    const std::uint64_t left_out = has_step_header(*tensor) ? sizeof(format::StepDeltaHeader) : 0;
    append(out, container.subspan(tensor->stored_offset, tensor->stored_length).subspan(left_out));
  }

  const bool pays = out.size() <= contents.size() - contents.size() / kLeastGain;
  if (!pays || !comes_out_again(out, contents)) return std::nullopt;
  return out;
}

}  // namespace thalia::container
