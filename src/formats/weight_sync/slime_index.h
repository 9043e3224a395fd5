// What the index of one of slime's deltas says beside the names of tensors, and the names of the
// folders of versions. docs/format/slime.md, "A delta".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/weight_sync/byte_change.h"

namespace thalia::formats::weight_sync {

struct SlimeIndex {
  std::uint64_t version = 0;
  std::uint64_t base_version = 0;
  ByteEncoding encoding = ByteEncoding::xor_bytes;
  ByteChecksum checksum = ByteChecksum::xxh3_128;
};

/// @param metadata of the index, JSON; empty: it has none. nullopt where they are not those of a
/// delta. @throws FormatError.
std::optional<SlimeIndex> parse_slime_index(std::string_view metadata, unsigned max_json_depth);
/// The text of an index. @param tensors that are in the only file.
std::string write_slime_index(const SlimeIndex& index, const std::vector<std::string>& tensors,
                              std::string_view file);

/// @throws UsageError (bad_argument) for another name; empty: the first one.
ByteEncoding byte_encoding(std::string_view name);
ByteChecksum byte_checksum(std::string_view name);
std::string_view checksum_name(ByteChecksum checksum) noexcept;

/// Digits of a text that is nothing else and fits; nullopt of any other.
std::optional<std::uint64_t> whole_number(std::string_view text) noexcept;
std::string version_folder(std::uint64_t version);

}  // namespace thalia::formats::weight_sync
