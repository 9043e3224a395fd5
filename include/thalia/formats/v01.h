// Files of the original program, version 0.1, as documents: the header, the metadata, and one tree
// of values and tensors a region or pathway.
//
//   thalia::V01File file = thalia::read_v01("brain.thalia.zst");
//   const thalia::Tensor& w = file.document.entries[0].state.at("weights").at("w_ff").as_tensor();
//   thalia::write_v01("copy.thalia", file.document);        // byte for byte, unless it was wrapped
//
// docs/format/v01.md, "Version 0.1 files".
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/value.h"
#include "thalia/types.h"
#include "thalia/version.h"

namespace thalia {

/// What a header says, but for its magic, and for offsets, lengths and the count of regions that
/// follow from the rest of a document.
struct V01Header : FileTotals {
  FormatVersion version{.major = 0, .minor = 1, .patch = 0};
  std::uint16_t flags = 0;  ///< mean nothing
  // A section that no program wrote and none reads: kept as it is.
  std::uint64_t connectivity_offset = 0;
  std::uint64_t connectivity_length = 0;
  std::uint32_t checksum_type = 1;
  std::array<std::uint8_t, 156> reserved{};

  friend bool operator==(const V01Header&, const V01Header&) = default;
};

struct V01Entry {
  /// Up to 31 bytes of UTF-8 without NUL; for a pathway "pathway:NAME".
  std::string name;
  /// An object of values and tensors. What the original program tagged ("_dataclass", "_type" and
  /// "_class" with their fields) stays the plain object that is in the file.
  Value state = Value::object();

  friend bool operator==(const V01Entry&, const V01Entry&) = default;
};

/// A value type. Tensors of a document that was read keep the file's bytes alive.
struct V01Document {
  V01Header header{};
  Value metadata = Value::object();
  std::vector<V01Entry> entries;  ///< in the order of the index; a name may occur twice
};

struct V01File {
  V01Document document;
  std::optional<Codec> wrapper{};  ///< zstd or lz4, where a frame is around the body
  /// True where the checksum is inside the wrapper, as first written.
  bool checksum_inside = false;
  /// True where all tensors start on multiples of 64, as V01WriteOptions::aligned puts them.
  bool aligned = false;
  std::uint64_t file_bytes = 0;
  std::uint64_t body_bytes = 0;  ///< before the checksum, decompressed
  /// What was read all the same, one sentence each: another minor version, checksum type 0, flags.
  std::vector<std::string> warnings;
};

/// Reads a whole file: checksum, header, metadata and all regions. Tensors of a file
/// without wrapper whose address their type allows stay in the mapping; all others are copied.
/// InputOptions::access and limits count. @throws IoError; FormatError; IntegrityError;
/// UnsupportedError: (unsupported_version) for another major version, (unsupported_feature) for a
/// delta, whose body is a Python pickle and is never opened.
V01File read_v01(const std::filesystem::path& path, const ReadOptions& options = {});
/// The same from bytes that `owner` keeps alive; without one, no tensor stays where it is.
V01File decode_v01(ByteSpan file, std::shared_ptr<const void> owner = nullptr,
                   const ReadLimits& limits = {});

struct V01WriteOptions {
  /// A frame around the body: zstd or lz4; by default none. chunk_bytes is
  /// ignored.
  Compression compression{};
  /// Zeros before tensors, so that their elements start on a multiple of 64 and can be used in
  /// the mapping. The original program reads such files, and never wrote them.
  bool aligned = false;
  /// The checksum inside the wrapper, which the first versions of the original program read, and
  /// the last ones do not.
  bool checksum_inside = false;
  OutputOptions output{};
  Work work{};  ///< the stop
};

/// Puts the file in place whole or not at all. Tensors are written dense if they are dense, else
/// as coordinates. @return bytes written. @throws IoError; UsageError (bad_argument) for a codec or
/// level, or a metadata text that has tensors; UnsupportedError (unsupported_feature) naming what
/// 0.1 has no place for: an element type, a dimension of 2^32 or more, a name that is too long or
/// not UTF-8, a document without entries.
std::uint64_t write_v01(const std::filesystem::path& path, const V01Document& document,
                        const V01WriteOptions& options = {});
/// The file's bytes in memory. @throws as write_v01().
std::vector<std::byte> encode_v01(const V01Document& document, const V01WriteOptions& options = {});

/// Sets total_neurons and total_synapses of the header as the original program counts them.
void count_v01_totals(V01Document& document) noexcept;

/// What may be shown of a delta of the original program.
struct V01DeltaInfo {
  std::uint32_t delta_version = 0;
  bool early_header = false;  ///< magic of 4 bytes
  Digest256 base_hash;        ///< SHA-256 of the whole base file
  std::uint64_t base_step = 0;
  std::uint64_t current_step = 0;
  /// The user's, with "delta_info"; nullopt where none is found after the pickle.
  std::optional<Value> metadata;
  std::optional<Codec> wrapper{};  ///< as V01File's
};

/// What the header of a .thalia file says, also inside a frame; nullopt of other files, deltas
/// among them. Reads the first bytes. @throws IoError; FormatError where a frame is broken.
std::optional<FormatVersion> read_format_version(const std::filesystem::path& path);

/// True of a file that begins as a delta does, also inside a frame. @throws IoError; FormatError
/// where the frame is broken.
bool is_v01_delta(const std::filesystem::path& path, const ReadOptions& options = {});
/// Header and metadata of a delta; its pickle is never opened. @throws IoError; FormatError.
V01DeltaInfo read_v01_delta_info(const std::filesystem::path& path,
                                 const ReadOptions& options = {});

}  // namespace thalia
