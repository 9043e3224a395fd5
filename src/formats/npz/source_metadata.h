// What a .thalia file made of an .npy or .npz file remembers of it in its metadata, so that the
// same file can be written again: {"format":"npz","npz":{"arrays":[{"name":"w"},…]}}.
// docs/format/npz.md, "In a .thalia file".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/npz/archive.h"

namespace thalia::formats::npz {

/// What NumPy does not choose itself is left out.
struct SourceArray {
  std::string name;
  std::string descr{};  ///< empty: as npy_descr() says
  bool fortran_order = false;
  std::uint64_t header_bytes = 0;  ///< 0: as NumPy has it
  unsigned version = 1;
  bool bare = false;  ///< the member's name has no ".npy"
};

struct NpzSourceMetadata {
  bool deflated = false;              ///< every array
  bool old_zip64 = false;             ///< by a Python up to 3.11.3
  std::vector<SourceArray> arrays{};  ///< in the order of the file, their names different
  /// Keys of the metadata that are no part of the above: what the format loses.
  std::vector<std::string> other_keys{};
};

/// Describes an array whose header is `text` in its file.
SourceArray source_array(const NpyArray& array, const NpyHeader& header, ByteSpan text);
NpzSourceMetadata source_metadata_of(const NpzArchive& archive);
/// Whether a file without all this is the same: it has only the names of arrays.
bool says_names_only(const NpzSourceMetadata& source) noexcept;
/// `format`: "npy" or "npz".
std::string source_metadata_to_json(std::string_view format, const NpzSourceMetadata& source);

/// For the metadata of any file; either format's is understood. What is not exactly of this form
/// counts as somebody else's. @throws FormatError if it is no JSON object.
NpzSourceMetadata source_metadata_from_json(std::string_view metadata, unsigned max_json_depth);

}  // namespace thalia::formats::npz
