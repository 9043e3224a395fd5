// Users may have edited the metadata since: an object of another form counts for nothing, and what
// one says of an array counts where it fits the array.
#include "formats/npz/origin.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "formats/source/npy_header.h"
#include "formats/source/origin_member.h"

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

// False where something is not as origin_to_json() writes it.
bool read_array_origin(json::Value& value, ArrayOrigin& origin) {
  bool named = false;
  const bool good = read_members(value, [&](std::string_view key, json::Value& member) {
    const auto number = member.unsigned_integer();
    if (key == "fortran_order") return is_bool(member, origin.fortran_order);
    if (key == "bare") return is_bool(member, origin.bare);
    if (key == "name" && member.kind() == json::Kind::string) {
      origin.name = member.string();
      named = true;
    } else if (key == "descr" && member.kind() == json::Kind::string) {
      origin.descr = member.string();
      return npy_type(origin.descr).has_value();
    } else if (key == "header_bytes" && number && *number <= kMostNpyHeader) {
      origin.header_bytes = *number;
    } else if (key == "version" && number && *number >= 1 && *number <= 3) {
      origin.version = static_cast<unsigned>(*number);
    } else {
      return false;
    }
    return true;
  });
  return good && named;
}

bool read_arrays(json::Value& value, std::vector<ArrayOrigin>& arrays) {
  if (value.kind() != json::Kind::array) return false;
  bool good = true;
  std::unordered_set<std::string> names;
  value.for_each_element([&](json::Value& element) {
    ArrayOrigin array;
    good = good && read_array_origin(element, array) && names.insert(array.name).second;
    if (good) arrays.push_back(std::move(array));
  });
  return good;
}

std::optional<NpzOrigin> read_origin(json::Value& value) {
  NpzOrigin origin;
  const bool good = read_members(value, [&](std::string_view key, json::Value& member) {
    if (key == "deflated") return is_bool(member, origin.deflated);
    if (key == "old_zip64") return is_bool(member, origin.old_zip64);
    return key == "arrays" && read_arrays(member, origin.arrays);
  });
  return good ? std::optional(std::move(origin)) : std::nullopt;
}

}  // namespace

ArrayOrigin array_origin(const NpyArray& array, const NpyHeader& header, ByteSpan text) {
  ArrayOrigin origin{.name = array.name, .fortran_order = header.fortran_order};
  if (header.descr != npy_descr(header.type.dtype) || header.type.opaque != 0)
    origin.descr = header.descr;
  if (header.version != 1) origin.version = header.version;
  const auto made = [&](std::uint64_t bytes) {
    return make_npy_header(header.descr, header.fortran_order, header.shape, bytes, header.version);
  };
  if (!same_text(made(0), text) && same_text(made(header.header_bytes), text))
    origin.header_bytes = header.header_bytes;
  return origin;
}

NpzOrigin origin_of(const NpzArchive& archive) {
  NpzOrigin origin;
  const std::size_t count = archive.arrays().size();
  origin.deflated = count != 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ZipMember& member = archive.member(i);
    ArrayOrigin array =
        array_origin(archive.arrays()[i], archive.header(i), archive.header_text(i));
    array.bare = !member.name.ends_with(kArraySuffix);
    origin.arrays.push_back(std::move(array));
    origin.deflated = origin.deflated && archive.arrays()[i].deflated;
    // A zip64 field in front of data that needs none, and sizes beside it.
    origin.old_zip64 =
        origin.old_zip64 || (member.local_version_needed == 20 && member.local_extra.size() == 20);
  }
  return origin;
}

bool says_names_only(const NpzOrigin& origin) noexcept {
  return !origin.deflated && !origin.old_zip64 &&
         std::ranges::all_of(origin.arrays, [](const ArrayOrigin& array) {
           return array.descr.empty() && !array.fortran_order && array.header_bytes == 0 &&
                  array.version == 1 && !array.bare;
         });
}

std::string origin_to_json(std::string_view format, const NpzOrigin& origin) {
  return origin_json(format, [&](JsonWriter& json) {
    if (origin.deflated) json.member("deflated", true);
    if (origin.old_zip64) json.member("old_zip64", true);
    json.key("arrays").begin_array();
    for (const ArrayOrigin& array : origin.arrays) {
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

NpzOrigin origin_from_json(std::string_view metadata, unsigned max_json_depth) {
  std::optional<NpzOrigin> found;
  const auto read = [&](json::Value& object) {
    found = read_origin(object);
    return found.has_value();
  };
  OriginPlace place = find_origin(metadata, "npz", max_json_depth, read);
  if (!place) place = find_origin(metadata, "npy", max_json_depth, read);
  NpzOrigin origin = std::move(found).value_or(NpzOrigin{});
  visit_others(metadata, place, max_json_depth,
               [&](std::string_view key, json::Value&) { origin.other_keys.emplace_back(key); });
  return origin;
}

}  // namespace thalia::formats::npz
