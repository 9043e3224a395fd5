// Users may have edited the metadata since: an object of another form counts for nothing, and what
// one says of an array counts if it fits the array.
#include "formats/npz/source_metadata.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "formats/source/metadata_member.h"
#include "formats/source/npy_header.h"

namespace thalia::formats::npz {
namespace {

bool same_text(std::string_view text, ByteSpan bytes) {
  return text == std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool is_bool(const json::Value& value, bool& out) {
  if (value.kind() != json::Kind::boolean) return false;
  out = value.token() == "true";
  return true;
}

// False where something is not as source_metadata_to_json() writes it.
bool read_source_array(json::Value& value, SourceArray& source) {
  bool named = false;
  const bool good = read_members(value, [&](std::string_view key, json::Value& member) {
    const auto number = member.unsigned_integer();
    if (key == "fortran_order") return is_bool(member, source.fortran_order);
    if (key == "bare") return is_bool(member, source.bare);
    if (key == "name" && member.kind() == json::Kind::string) {
      source.name = member.string();
      named = true;
    } else if (key == "descr" && member.kind() == json::Kind::string) {
      source.descr = member.string();
      return npy_type(source.descr).has_value();
    } else if (key == "header_bytes" && number && *number <= kMostNpyHeader) {
      source.header_bytes = *number;
    } else if (key == "version" && number && *number >= 1 && *number <= 3) {
      source.version = static_cast<unsigned>(*number);
    } else {
      return false;
    }
    return true;
  });
  return good && named;
}

bool read_arrays(json::Value& value, std::vector<SourceArray>& arrays) {
  if (value.kind() != json::Kind::array) return false;
  bool good = true;
  std::unordered_set<std::string> names;
  value.for_each_element([&](json::Value& element) {
    SourceArray array;
    good = good && read_source_array(element, array) && names.insert(array.name).second;
    if (good) arrays.push_back(std::move(array));
  });
  return good;
}

std::optional<NpzSourceMetadata> read_source_metadata(json::Value& value) {
  NpzSourceMetadata source;
  const bool good = read_members(value, [&](std::string_view key, json::Value& member) {
    if (key == "deflated") return is_bool(member, source.deflated);
    if (key == "old_zip64") return is_bool(member, source.old_zip64);
    return key == "arrays" && read_arrays(member, source.arrays);
  });
  return good ? std::optional(std::move(source)) : std::nullopt;
}

}  // namespace

SourceArray source_array(const NpyArray& array, const NpyHeader& header, ByteSpan text) {
  SourceArray source{.name = array.name, .fortran_order = header.fortran_order};
  if (header.descr != npy_descr(header.type.dtype) || header.type.opaque != 0)
    source.descr = header.descr;
  if (header.version != 1) source.version = header.version;
  const auto made = [&](std::uint64_t bytes) {
    return make_npy_header(header.descr, header.fortran_order, header.shape, bytes, header.version);
  };
  if (!same_text(made(0), text) && same_text(made(header.header_bytes), text))
    source.header_bytes = header.header_bytes;
  return source;
}

NpzSourceMetadata source_metadata_of(const NpzArchive& archive) {
  NpzSourceMetadata source;
  const std::size_t count = archive.arrays().size();
  source.deflated = count != 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ZipMember& member = archive.member(i);
    SourceArray array =
        source_array(archive.arrays()[i], archive.header(i), archive.header_text(i));
    array.bare = !member.name.ends_with(kArraySuffix);
    source.arrays.push_back(std::move(array));
    source.deflated = source.deflated && archive.arrays()[i].deflated;
    // A zip64 field before data that needs none, and sizes beside it.
    source.old_zip64 =
        source.old_zip64 || (member.local_version_needed == 20 && member.local_extra.size() == 20);
  }
  return source;
}

bool says_names_only(const NpzSourceMetadata& source) noexcept {
  return !source.deflated && !source.old_zip64 &&
         std::ranges::all_of(source.arrays, [](const SourceArray& array) {
           return array.descr.empty() && !array.fortran_order && array.header_bytes == 0 &&
                  array.version == 1 && !array.bare;
         });
}

std::string source_metadata_to_json(std::string_view format, const NpzSourceMetadata& source) {
  return source_metadata_json(format, [&](JsonWriter& json) {
    if (source.deflated) json.member("deflated", true);
    if (source.old_zip64) json.member("old_zip64", true);
    json.key("arrays").begin_array();
    for (const SourceArray& array : source.arrays) {
      json.begin_object().member("name", array.name);
      if (!array.descr.empty()) json.member("descr", array.descr);
      if (array.fortran_order) json.member("fortran_order", true);
      if (array.header_bytes != 0) json.member("header_bytes", array.header_bytes);
      if (array.version != 1) json.member("version", array.version);
      if (array.bare) json.member("bare", true);
      json.end_object();
    }
    json.end_array();
  });
}

NpzSourceMetadata source_metadata_from_json(std::string_view metadata, unsigned max_json_depth) {
  std::optional<NpzSourceMetadata> found;
  const auto read = [&](json::Value& object) {
    found = read_source_metadata(object);
    return found.has_value();
  };
  SourceMetadataPlace place = find_source_metadata(metadata, "npz", max_json_depth, read);
  if (!place) place = find_source_metadata(metadata, "npy", max_json_depth, read);
  NpzSourceMetadata source = std::move(found).value_or(NpzSourceMetadata{});
  visit_others(metadata, place, max_json_depth,
               [&](std::string_view key, json::Value&) { source.other_keys.emplace_back(key); });
  return source;
}

}  // namespace thalia::formats::npz
