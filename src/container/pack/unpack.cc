// Makes the contents of a packed delta with what the writer makes a file with: a plan, its layout,
// its sections, its tables. So the rules of where things lie are there once. Everything that a head
// says is checked before it is used here; that the contents are those that were packed, their
// closing checksum proves. docs/format/packed.md, "What follows".
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "codec/frame/frame.h"
#include "container/file/delta_prefix.h"
#include "container/pack/columns.h"
#include "container/pack/head.h"
#include "container/plan/header_builder.h"
#include "container/plan/layout.h"
#include "container/wrap/packed.h"
#include "container/write/file_pieces.h"
#include "container/write/sections.h"
#include "format/constants.h"
#include "format/directory.h"
#include "format/overlay.h"
#include "format/packed.h"
#include "integrity/block_tree.h"
#include "integrity/content_hash.h"
#include "integrity/crc32.h"
#include "io/file/memory_file.h"
#include "io/file/posix_file.h"
#include "io/memory/allocation_limit.h"

namespace thalia::container {
namespace {

using format::PackedHeader;

#define HEADER_AT(field) kPackedSection, #field, offsetof(PackedHeader, field)

// Beside the contents there are the head, and the plan of it, whose entries are in memory two to
// three times as large as in the contents.
constexpr std::uint64_t kMemoryFactor = 8;

const PackedHeader& checked_packed_header(ByteSpan file) {
  const auto& header = format::overlay<PackedHeader>(file, 0, kPackedSection);
  if (!begins_packed(file))
    fail_field(ErrorCode::bad_magic, HEADER_AT(magic), "another", "54 50 41 4B");
  if (header.packed_version != format::kPackedVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version,
                           "a packed delta of a version that is not known",
                           {.section = kPackedSection,
                            .field = "packed_version",
                            .offset = offsetof(PackedHeader, packed_version),
                            .value = std::to_string(header.packed_version),
                            .bound = std::to_string(format::kPackedVersion)});
  }
  if (header.contents_length > format::kMaxPackedContents) {
    fail_field(ErrorCode::out_of_bounds, HEADER_AT(contents_length),
               std::to_string(header.contents_length),
               fmt::format("at most {}", format::kMaxPackedContents));
  }
  const std::uint64_t room = file.size() - sizeof header;
  if (header.frame_length == 0 || header.frame_length > room) {
    fail_field(ErrorCode::truncated, HEADER_AT(frame_length), std::to_string(header.frame_length),
               fmt::format("1 to {}", room));
  }
  return header;
}

std::vector<std::byte> decoded_head(ByteSpan frame, std::uint64_t contents_length,
                                    io::MemoryBudget& budget) {
  try {
    const auto size = codec::content_size(frame);
    const std::uint64_t most =
        std::min(contents_length, codec::most_content(codec::FrameKind::zstd, frame.size()));
    if (!size || *size >= most) {
      fail_field(ErrorCode::out_of_bounds, kPackedSection, "head", sizeof(PackedHeader),
                 size ? fmt::format("{} bytes", *size) : "of no known length",
                 fmt::format("less than {}", most));
    }
    auto head = budget.vector<std::byte>(kPackedSection, *size);
    codec::decode_frame(Codec::zstd, frame, head);
    return head;
  } catch (const FormatError& error) {
    throw FormatError(error.code(), error.message(),
                      {.section = kPackedSection,
                       .field = "head",
                       .offset = sizeof(PackedHeader),
                       .value = error.context().value,
                       .bound = error.context().bound});
  }
}

class Unpacking {
 public:
  Unpacking(ByteSpan file, MutableByteSpan contents, io::MemoryBudget& budget)
      : contents_(contents) {
    const PackedHeader& header = checked_packed_header(file);
    const ByteSpan frame = file.subspan(sizeof header, header.frame_length);
    head_.plan = &plan_;
    read_head(head_, decoded_head(frame, contents.size(), budget), contents.size());
    digests_at_ = sizeof header + header.frame_length;
    payloads_at_ = digests_at_ + read_digests(head_, file.subspan(digests_at_));
    take_payloads(file.subspan(payloads_at_));
    if (head_.block_log2 < format::kMinBlockLog2 || head_.leaves < LeafAlgorithm::xxh3_128 ||
        head_.leaves > LeafAlgorithm::sha256)
      refuse(ErrorCode::bad_value, "head", "another block tree", "one that the format has");
  }

  void run() {
    make_prefix();
    container_ = contents_.subspan(plan_.delta->prefix.size());
    Layout layout(plan_);
    place(layout);
    make_file(layout);
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const char* field, std::string value,
                           std::string bound) const {
    fail_field(code, kPackedSection, field, sizeof(PackedHeader), std::move(value),
               std::move(bound));
  }

  void take_payloads(ByteSpan payloads) {
    auto step_header = head_.step_headers.cbegin();
    for (TensorPlan* tensor : head_.tensors) {
      const ByteSpan first =
          has_step_header(*tensor) ? format::struct_bytes(*step_header++) : ByteSpan();
      const std::uint64_t length = tensor->stored_length - first.size();
      if (length > payloads.size()) {
        fail_field(ErrorCode::truncated, kPackedSection, "payloads", payloads_at_,
                   fmt::format("{} bytes left", payloads.size()), std::to_string(length));
      }
      const ByteSpan stored = payloads.first(length);
      payloads = payloads.subspan(length);
      if (tensor->chunks.empty()) {
        integrity::ContentHasher hasher;
        hasher.update(first);
        hasher.update(stored);
        tensor->digest = {hasher.crc32(), hasher.content_hash()};
      }
      tensor->pieces =
          first.empty() ? container::PayloadPieces(stored) : std::vector<ByteSpan>{first, stored};
      for (format::ChunkEntry& chunk : tensor->chunks)
        chunk.crc32 = integrity::crc32(stored.subspan(chunk.offset, chunk.stored_length));
    }
    if (!payloads.empty()) {
      fail_field(ErrorCode::out_of_bounds, kPackedSection, "payloads", payloads_at_,
                 fmt::format("{} bytes more", payloads.size()), "the end of the file");
    }
    for (TensorPlan* tensor : head_.tensors) {
      const bool same = tensor->spec.encoding == Encoding::same_as_base;
      if (same && (tensor->delta->flags & format::kDeltaBrief) == 0 &&
          tensor->delta->content_hash != tensor->delta->base_content_hash)
        refuse(ErrorCode::bad_value, "digests", "another hash than the base's", "the base's");
    }
  }

  void make_prefix() {
    format::DeltaHeader header{};
    header.base_checkpoint_hash = head_.base_checksum;
    header.base_step = head_.base_step;
    header.current_step = plan_.training_steps;
    format::DeltaReference reference{};
    reference.base_length = head_.base_length;
    reference.base_generation = head_.base_generation;
    reference.base_uuid = head_.base_uuid;
    reference.depth = static_cast<std::uint32_t>(head_.depth);
    plan_.delta = {.prefix = build_delta_prefix(header, reference, head_.path),
                   .base_checksum = head_.base_checksum,
                   .base_step = head_.base_step};
    const ByteSpan prefix = plan_.delta->prefix;
    if (prefix.size() >= contents_.size())
      refuse(ErrorCode::out_of_bounds, "path", fmt::format("{} bytes", head_.path.size()),
             fmt::format("contents of {} bytes", contents_.size()));
    const std::uint32_t crc = checked_delta_prefix(prefix).reference.crc32;
    if (crc != head_.prefix_crc32) fail_checksum("crc32", digests_at_);
    std::ranges::copy(prefix, contents_.begin());
  }

  [[noreturn]] void fail_checksum(const char* field, std::uint64_t offset) const {
    throw IntegrityError(ErrorCode::checksum_mismatch, "what comes out is not what was packed",
                         {.section = kPackedSection, .field = field, .offset = offset});
  }

  void check_end(std::uint64_t end) const {
    if (end <= container_.size()) return;
    refuse(ErrorCode::out_of_bounds, "contents_length", std::to_string(contents_.size()),
           "what the parts take");
  }

  void place(Layout& layout) {
    if (!std::ranges::is_sorted(layout.file_order()))
      refuse(ErrorCode::bad_value, "roles", "tensors in another order", "that of the file");
    for (std::uint32_t i = 0; i < plan_.tensors.size(); ++i) {
      TensorPlan& tensor = plan_.tensors[i];
      tensor.stored_offset = layout.begin_tensor(i);
      tensor.move_chunks(tensor.stored_offset);
      layout.end_tensor(tensor.stored_length);
      check_end(layout.end());
    }
    layout.finish();
    check_end(layout.end());
  }

  void make_file(const Layout& layout) {
    Sections sections(plan_, layout);
    FilePieces image(-1, {});
    format::Header header = build_header(plan_, layout);
    place_tables(header, layout.end(), sections.build_directory(), ChecksumType::block_tree,
                 head_.leaves, static_cast<unsigned>(head_.block_log2));
    if (header.file_length != container_.size())
      refuse(ErrorCode::inconsistent, "contents_length", std::to_string(contents_.size()),
             std::to_string(plan_.delta->prefix.size() + header.file_length));
    header.timestamp = head_.timestamp;
    header.file_uuid = head_.file_uuid;
    set_header_crc(header);
    image.add(0, format::struct_bytes(header));
    sections.add_sections(image, true);
    sections.add_tables(image, header);
    image.sort();
    image.copy(0, header.integrity_offset, container_.first(header.integrity_offset));
    seal(header);
  }

  void seal(const format::Header& header) {
    const std::uint64_t length = integrity::leaf_length(head_.leaves);
    const MutableByteSpan leaves =
        container_.subspan(header.integrity_offset, header.integrity_length);
    for (std::uint64_t i = 0; i * length < leaves.size(); ++i)
      integrity::hash_block(container_, i, header, leaves.subspan(i * length, length));
    const Digest256 checksum = integrity::closing_checksum(header, leaves);
    if (checksum != head_.closing_checksum) fail_checksum("closing_checksum", digests_at_);
    std::ranges::copy(as_byte_span(checksum.bytes), container_.last(sizeof checksum).begin());
  }

  MutableByteSpan contents_;
  MutableByteSpan container_;
  FilePlan plan_;
  PackedHead head_;
  std::uint64_t digests_at_ = 0;
  std::uint64_t payloads_at_ = 0;
};

/// Memory with the contents, which nothing changes any more.
class PackedFile final : public io::FileBytes {
 public:
  PackedFile(const std::filesystem::path& path, ByteSpan file, const ReadLimits& limits)
      : FileBytes(Access::copied, path, io::create_memory_file()),
        memory_(fd(), packed_contents_length(file)),
        disk_bytes_(file.size()) {
    unpack(file, memory_.bytes(), limits);
    bytes_ = memory_.bytes();
  }

  io::Backing backing() const noexcept override { return io::Backing::decoded; }
  void populate(std::uint64_t, std::uint64_t) const override {}
  void advise(std::uint64_t, std::uint64_t, io::Advice) const noexcept override {}
  std::uint64_t resident_bytes() const override { return bytes_.size(); }
  std::uint64_t disk_bytes() const noexcept override { return disk_bytes_; }

 private:
  void fill(std::uint64_t, std::uint64_t) const override {}

  io::MemoryMapping memory_;
  std::uint64_t disk_bytes_;
};

}  // namespace

bool begins_packed(ByteSpan start) noexcept {
  return start.size() >= sizeof format::kPackedMagic &&
         std::memcmp(start.data(), format::kPackedMagic, sizeof format::kPackedMagic) == 0;
}

bool is_packed(int fd, const std::filesystem::path& path) {
  std::byte start[sizeof format::kPackedMagic];
  if (io::file_size(fd, path) < sizeof start) return false;
  io::pread_all(fd, 0, start, path);
  return begins_packed(start);
}

// Nothing is smaller than what it is packed to: a file that is longer is not one.
std::vector<std::byte> read_packed(int fd, const std::filesystem::path& path) {
  const std::uint64_t size = io::file_size(fd, path);
  std::vector<std::byte> packed(std::min<std::uint64_t>(size, sizeof(PackedHeader)));
  io::pread_all(fd, 0, packed, path);
  const auto& header = format::overlay<PackedHeader>(packed, 0, kPackedSection);
  const std::uint64_t most =
      std::min<std::uint64_t>(header.contents_length, format::kMaxPackedContents);
  if (size >= most) {
    fail_field(ErrorCode::out_of_bounds, HEADER_AT(contents_length),
               std::to_string(header.contents_length),
               fmt::format("more than the {} bytes of the file", size));
  }
  packed.resize(size);
  io::pread_all(fd, 0, packed, path);
  return packed;
}

std::uint64_t packed_contents_length(ByteSpan file) {
  return checked_packed_header(file).contents_length;
}

void unpack(ByteSpan file, MutableByteSpan contents, const ReadLimits& limits) {
  io::MemoryBudget budget(limits, file.size());
  budget.take(kPackedSection, contents.size(), kMemoryFactor);
  Unpacking(file, contents, budget).run();
}

std::shared_ptr<const io::FileBytes> open_packed(const io::FileBytes& file,
                                                 const ReadLimits& limits) {
  return std::make_shared<const PackedFile>(file.path(), read_packed(file.fd(), file.path()),
                                            limits);
}

#undef HEADER_AT

}  // namespace thalia::container
