// A packed delta: bytes that follow from the others are made again. Declared here, as anybody who
// opens a file has to know of it; made in container/pack, by the writer's own rules of where things
// lie. docs/format/packed.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "io/file/file_bytes.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::container {

/// True of what begins as a packed delta does, whatever its version.
bool begins_packed(ByteSpan start) noexcept;

/// The same of an open file. @throws IoError.
bool is_packed(int fd, const std::filesystem::path& path);

/// All of an open packed delta. Takes no more than 64 MiB, whatever the file is. @throws IoError,
/// FormatError.
std::vector<std::byte> read_packed(int fd, const std::filesystem::path& path);

/// Bytes of a packed delta's contents, checked. @throws FormatError, UnsupportedError.
std::uint64_t packed_contents_length(ByteSpan file);

/// Makes the contents, into memory of packed_contents_length() that is zero. @throws FormatError;
/// IntegrityError where they are not those that were packed; UnsupportedError.
void unpack(ByteSpan file, MutableByteSpan contents, const ReadLimits& limits);

/// The contents of an open packed delta, in memory. @throws as unpack(); IoError.
std::shared_ptr<const io::FileBytes> open_packed(const io::FileBytes& file,
                                                 const ReadLimits& limits);

}  // namespace thalia::container
