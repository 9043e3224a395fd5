// The parts of a GPTRSCHK or GPTRSTEN file before its payloads. docs/format/gptrs.md,
// "Layout".
#pragma once

#include <string_view>
#include <vector>

#include "formats/source/field_cursor.h"
#include "thalia/formats/gptrs.h"

namespace thalia::formats::gptrs {

inline constexpr std::string_view kCheckpointMagic = "GPTRSCHK";
inline constexpr std::string_view kArchiveMagic = "GPTRSTEN";
inline constexpr std::uint32_t kVersion = 2;
/// Bytes of an entry without name, extents and id.
inline constexpr std::uint64_t kLeastEntry = 4 + 4 + 4 + 1 + 8 + 8;
inline constexpr std::uint64_t kIdBytes = 16;  ///< of an entry of a checkpoint

/// Element types by their tags.
inline constexpr DType kTagTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i32};

struct ParsedFile {
  GptrsFormat format = GptrsFormat::checkpoint;
  unsigned version = kVersion;
  std::string_view config_text{};  ///< in the file
  GptrsModelConfig config{};
  bool untagged = false;
  std::vector<GptrsTensor> tensors{};
};

/// @throws as GptrsFile::open(), without the path.
ParsedFile parse_file(ByteSpan file, const GptrsReadOptions& options);

/// What comes before the place of a payload, the same in both versions: name, id (checkpoints
/// of version 2), shape, type and flag. No range is checked. @throws as parse_file().
GptrsTensor take_entry_start(FieldCursor& cursor, bool with_id, bool needs_id);

/// Checks that the payload is as long as the shape asks for, and lies in the file.
/// @param offset of the entry in the file, if it is known. @throws FormatError.
void check_place(const GptrsTensor& tensor, std::uint64_t file_bytes,
                 std::optional<std::uint64_t> offset = std::nullopt);

/// Reads a file of version 1, whose payloads are between the entries. `cursor` is at the count.
/// @throws as parse_file().
void take_version_1(FieldCursor& cursor, const GptrsReadOptions& options, ParsedFile& parsed);

/// Refuses a count of entries of at least `least_bytes` that the bytes left cannot hold, or a
/// limit does not allow. @throws FormatError.
void check_count(std::string_view section, std::uint64_t count, std::uint64_t least_bytes,
                 const FieldCursor& behind, const ReadLimits& limits);

}  // namespace thalia::formats::gptrs
