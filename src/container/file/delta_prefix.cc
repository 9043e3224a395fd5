// The checksums of a container cover the container alone, so that it stays a well-formed file when
// it is cut out of the delta. The prefix before it therefore has a CRC of its own, over
// header, reference, path and padding. Only path_length says how far that CRC reaches. So the
// reference is checked first, then the CRC, then the rest of the prefix. docs/format/deltas.md,
// "Structure".
#include "container/file/delta_prefix.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/constants.h"
#include "format/extent.h"
#include "format/overlay.h"
#include "integrity/crc32.h"
#include "io/file/file_window.h"

namespace thalia::container {
namespace {

using format::DeltaHeader;
using format::DeltaReference;

constexpr std::uint64_t kPathOffset = sizeof(DeltaHeader) + sizeof(DeltaReference);

#define HEADER_AT(field) "delta", #field, offsetof(DeltaHeader, field)
#define REFERENCE_AT(field) "delta", #field, sizeof(DeltaHeader) + offsetof(DeltaReference, field)

// The two forms of the header agree in these bytes of the magic and differ in the next one.
constexpr std::size_t kCommonMagic = 4;

// Comes before all else: the body that the original program wrote is a pickle, and loading a pickle
// runs code.
void check_version(const DeltaHeader& header) {
  const auto refuse = [](std::uint64_t version, const char* message) {
    throw UnsupportedError(ErrorCode::unsupported_version, message,
                           {.section = "delta",
                            .field = "delta_version",
                            .offset = offsetof(DeltaHeader, delta_version),
                            .value = std::to_string(version),
                            .bound = std::to_string(format::kDeltaVersion)});
  };
  if (header.magic[kCommonMagic] != format::kDeltaMagic[kCommonMagic] || header.delta_version == 1)
    refuse(1,
           "a delta of the original program: its body is a Python pickle, which is not executed");
  if (header.delta_version != format::kDeltaVersion)
    refuse(header.delta_version, "a delta of a version that is not known");
}

void check_zero(const char* section, const char* field, std::size_t at,
                std::span<const std::uint8_t> bytes) {
  if (std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b != 0; }))
    fail_field(ErrorCode::bad_value, section, field, at, "non-zero bytes", "zero");
}

void check_reference(const DeltaReference& reference, std::uint64_t file_size) {
  const auto refuse = [](const char* section, const char* field, std::size_t at,
                         std::uint64_t value, std::string bound) {
    fail_field(ErrorCode::bad_value, section, field, at, std::to_string(value), std::move(bound));
  };
  if (reference.reference_length != format::kDeltaReferenceLength)
    refuse(REFERENCE_AT(reference_length), reference.reference_length,
           std::to_string(format::kDeltaReferenceLength));
  if (reference.path_length == 0 || reference.path_length > format::kMaxNameLength)
    refuse(REFERENCE_AT(path_length), reference.path_length,
           fmt::format("1 to {}", format::kMaxNameLength));
  const std::uint64_t end = kPathOffset + reference.path_length;
  const std::uint64_t container = format::align_up(end, format::kPageAlignment);
  if (reference.container_offset != container)
    refuse(REFERENCE_AT(container_offset), reference.container_offset, std::to_string(container));
  if (reference.depth == 0) refuse(REFERENCE_AT(depth), 0, "1 or more");
  if (reference.base_generation == 0) refuse(REFERENCE_AT(base_generation), 0, "1 or more");
  check_zero(REFERENCE_AT(zero_38), reference.zero_38);
  if (container >= file_size) {
    fail_field(ErrorCode::truncated, "delta", "container_offset", file_size,
               fmt::format("a file of {} bytes", file_size),
               fmt::format("a container at {}", container));
  }
}

// The CRC field counts as zero: zeros are hashed in its place, which saves a copy of the prefix.
std::uint32_t prefix_crc(ByteSpan prefix) {
  constexpr std::size_t kAt = sizeof(DeltaHeader) + offsetof(DeltaReference, crc32);
  constexpr std::byte kZero[sizeof(DeltaReference::crc32)] = {};
  const std::uint32_t front = integrity::crc32(prefix.first(kAt));
  return integrity::crc32(prefix.subspan(kAt + sizeof kZero), integrity::crc32(kZero, front));
}

}  // namespace

bool is_delta(ByteSpan file) noexcept {
  return file.size() >= kCommonMagic &&
         std::memcmp(file.data(), format::kDeltaMagic, kCommonMagic) == 0;
}

DeltaPrefix checked_delta_prefix(ByteSpan prefix) noexcept {
  const auto& header = *reinterpret_cast<const DeltaHeader*>(prefix.data());
  const auto& reference =
      *reinterpret_cast<const DeltaReference*>(prefix.data() + sizeof(DeltaHeader));
  return {header,
          reference,
          {reinterpret_cast<const char*>(prefix.data() + kPathOffset), reference.path_length}};
}

DeltaPrefix delta_prefix(const io::FileBytes& file) {
  const ByteSpan all = file.bytes();
  file.touch(0, std::min<std::uint64_t>(all.size(), kPathOffset));
  const auto& header = format::overlay<DeltaHeader>(all, 0, "delta");
  check_version(header);
  const auto& reference = format::overlay<DeltaReference>(all, sizeof header, "delta");
  check_reference(reference, all.size());
  const ByteSpan prefix = file.touched(0, reference.container_offset);
  if (const std::uint32_t crc = prefix_crc(prefix); crc != reference.crc32) {
    throw IntegrityError(ErrorCode::checksum_mismatch, "the base reference is not what was written",
                         {.section = "delta",
                          .field = "crc32",
                          .offset = sizeof header + offsetof(DeltaReference, crc32),
                          .value = fmt::format("{:#010x}", crc),
                          .bound = fmt::format("{:#010x}", std::uint32_t{reference.crc32})});
  }
  check_zero(HEADER_AT(zero_39), header.zero_39);
  const DeltaPrefix found = checked_delta_prefix(prefix);
  // The file system takes the path up to its first NUL: another one than messages show.
  if (const std::size_t nul = found.path.find('\0'); nul != std::string_view::npos) {
    fail_field(ErrorCode::bad_name, "delta", "path", kPathOffset + nul,
               fmt::format("'{}'", printable(found.path)), "bytes without NUL");
  }
  const ByteSpan padding = prefix.subspan(kPathOffset + found.path.size());
  if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; }))
    fail_field(ErrorCode::bad_value, "delta", "padding", kPathOffset + found.path.size(),
               "non-zero bytes", "zero");
  return found;
}

// The delta header repeats fields of the container for programs that read 64 bytes alone. If they
// could differ, such a program would show another base than the one that is resolved.
void check_delta_header(ByteSpan prefix, const format::Header& header) {
  const DeltaPrefix found = checked_delta_prefix(prefix);
  if ((header.flags & format::kFlagDelta) == 0) {
    fail_field(ErrorCode::inconsistent, "header", "flags", offsetof(format::Header, flags),
               std::to_string(header.flags), "bit 6 set, in a delta");
  }
  if (header.generation != 1) {
    fail_field(ErrorCode::bad_value, "header", "generation", offsetof(format::Header, generation),
               std::to_string(header.generation), "1, in a delta");
  }
  if (found.header.base_checkpoint_hash != header.base_checksum)
    fail_field(ErrorCode::inconsistent, HEADER_AT(base_checkpoint_hash), "another base",
               "base_checksum of the header");
  if (found.header.base_step != header.base_step)
    fail_field(ErrorCode::inconsistent, HEADER_AT(base_step),
               std::to_string(found.header.base_step), std::to_string(header.base_step));
  if (found.header.current_step != header.training_steps)
    fail_field(ErrorCode::inconsistent, HEADER_AT(current_step),
               std::to_string(found.header.current_step), std::to_string(header.training_steps));
}

#undef HEADER_AT
#undef REFERENCE_AT

std::vector<std::byte> build_delta_prefix(const DeltaHeader& header,
                                          const DeltaReference& reference, std::string_view path) {
  DeltaHeader first = header;
  std::copy(std::begin(format::kDeltaMagic), std::end(format::kDeltaMagic), first.magic);
  first.delta_version = format::kDeltaVersion;
  DeltaReference second = reference;
  second.reference_length = format::kDeltaReferenceLength;
  second.path_length = static_cast<std::uint32_t>(path.size());
  second.container_offset = format::align_up(kPathOffset + path.size(), format::kPageAlignment);
  std::vector<std::byte> out(second.container_offset);
  // Runs twice: the CRC is computed over a prefix that is complete but for the CRC.
  const auto put = [&] {
    std::memcpy(out.data(), &first, sizeof first);
    std::memcpy(out.data() + sizeof first, &second, sizeof second);
  };
  std::memcpy(out.data() + kPathOffset, path.data(), path.size());
  second.crc32 = std::uint32_t{0};
  put();
  second.crc32 = prefix_crc(out);
  put();
  return out;
}

std::shared_ptr<const io::FileBytes> container_of(std::shared_ptr<const io::FileBytes> file) {
  file->touch(0, std::min<std::uint64_t>(file->bytes().size(), kCommonMagic));
  if (!is_delta(file->bytes())) return file;
  const std::uint64_t begin = delta_prefix(*file).reference.container_offset;
  return io::FileWindow::open(std::move(file), begin);
}

}  // namespace thalia::container
