// The file _CHECKPOINT_METADATA of the folders that the original mithril program writes.
// docs/format/mithril.md, "Folders that look like Orbax's".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/copy.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::formats::orbax {

inline constexpr std::string_view kMetadataFile = "_CHECKPOINT_METADATA";
inline constexpr std::string_view kMarkerFile = ".orbax-checkpoint";
inline constexpr std::string_view kStateFolder = "state";
inline constexpr std::string_view kArrayFile = "0.npy";

struct Array {
  std::string name;
  DType dtype = DType::f32;
  Shape shape{};
};

struct Metadata {
  std::vector<Array> arrays{};  ///< in the order of the file
  json::Members others{};       ///< keys and texts of what is neither `arrays` nor `version`
};

/// @throws FormatError; UnsupportedError for another version, more than 8 dimensions, and the
/// metadata of Orbax itself, which has no `arrays`; UnsupportedDtypeError.
Metadata parse_metadata(std::string_view text, const ReadLimits& limits);
/// As the original writes it. `others` have no keys `arrays` and `version`.
std::string make_metadata(const Metadata& metadata, unsigned max_depth);

/// "float32", …; empty for a dtype that the format lacks.
std::string_view orbax_dtype_name(DType dtype) noexcept;
/// What the original writes before an array: the type as NumPy spells it, bf16 as "|V2", and
/// no room to grow. Only for dtypes that the format has.
std::string array_header(DType dtype, const Shape& shape);

/// Folders from the state's on and the file of an array; nullopt for a name that would lead
/// elsewhere: one whose parts between '/' are not all names of files.
std::optional<std::vector<std::string>> array_path(std::string_view name);

}  // namespace thalia::formats::orbax
