// What a .entity file begins with.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "format/little_endian.h"
#include "formats/loom/document.h"
#include "io/file/input_file.h"
#include "thalia/formats/loom.h"

namespace thalia::formats::loom {

inline constexpr std::string_view kEntityMagic{"ENTITY\0\0", 8};
inline constexpr std::uint16_t kEntityVersion = 1;
/// The original reads no longer header.
inline constexpr std::uint64_t kMaxEntityHeader = 256ull << 20;

struct EntityPrefix {
  char magic[8];
  format::le16 version;
  format::le16 flags;  ///< 0, and not looked at
  format::le64 header_length;
};
THALIA_ON_DISK(EntityPrefix, 20);
THALIA_FIELD(EntityPrefix, header_length, 12, 8);

struct ParsedEntity {
  Document document;
  std::uint64_t payload = 0;  ///< where blobs are counted from
};

/// Bytes of a file of a known size: those asked for lie in it.
using ReadExtent = std::function<ByteSpan(std::uint64_t offset, std::uint64_t length)>;

/// Reads all before the blobs. Then every blob lies in the file, and every layer in the grid.
/// @throws FormatError, UnsupportedError (unsupported_version).
ParsedEntity parse_entity(std::uint64_t file_bytes, const ReadExtent& read,
                          const ReadLimits& limits);

}  // namespace thalia::formats::loom

namespace thalia {

/// What the library needs of an EntityFile besides its public side.
struct EntityAccess {
  /// As EntityFile::open(), of a file that others look at too.
  static EntityFile open(const io::InputFile& input, const ReadOptions& options,
                         const EntitySection& section = {});
};

}  // namespace thalia
