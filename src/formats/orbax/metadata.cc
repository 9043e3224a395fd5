// Read strictly, since one program alone writes such folders: each known member once, one version,
// and names that stay inside the folder. Other members are kept as they are, so that they can be
// written again.
#include "formats/orbax/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/orbax/pretty_json.h"
#include "formats/source/json_fields.h"
#include "formats/source/npy_header.h"
#include "io/folder/inner_file.h"
#include "json/reader.h"
#include "json/writer.h"

namespace thalia::formats::orbax {
namespace {

constexpr std::uint64_t kVersion = 1;
// `arrays` nests four deep.
constexpr unsigned kLeastDepth = 8;
constexpr std::size_t kNpyAlignment = 64;
constexpr std::size_t kNpyFront = 10;  // magic, version and length of version 1

struct TypeName {
  std::string_view name;
  std::string_view descr;
  DType dtype;
};
constexpr std::array kTypes{
    TypeName{"float32", "<f4", DType::f32},   TypeName{"float16", "<f2", DType::f16},
    TypeName{"bfloat16", "|V2", DType::bf16}, TypeName{"float64", "<f8", DType::f64},
    TypeName{"int32", "<i4", DType::i32},     TypeName{"int64", "<i8", DType::i64},
    TypeName{"int8", "|i1", DType::i8},       TypeName{"uint8", "|u1", DType::u8},
    TypeName{"bool", "|b1", DType::boolean}};

const TypeName* find_type(DType dtype) noexcept {
  const auto found = std::ranges::find(kTypes, dtype, &TypeName::dtype);
  return found == kTypes.end() ? nullptr : &*found;
}

Array read_array(std::string_view name, json::Value& value) {
  require_kind(value, json::Kind::object, "arrays");
  Array array{.name = std::string(name)};
  std::string dtype;
  KnownMembers members;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == "dtype") {
      members.once(key);
      dtype = read_text(member, key);
    } else if (key == "shape") {
      members.once(key);
      array.shape = read_shape(member);
    }
  });
  members.need("dtype");
  members.need("shape");
  const auto known = std::ranges::find(kTypes, dtype, &TypeName::name);
  if (known == kTypes.end()) {
    throw UnsupportedDtypeError(dtype, "unknown dtype",
                                {.section = "header", .field = "dtype", .value = printable(dtype)});
  }
  array.dtype = known->dtype;
  if (!array.shape.byte_length(array.dtype)) {
    fail_header(ErrorCode::out_of_bounds, "shape", array.shape.to_string(),
                "at most 2^64 - 1 bytes");
  }
  if (!array_path(name)) {
    fail_header(ErrorCode::bad_name, "arrays", printable(name),
                "names of files between slashes, none of them '..'");
  }
  return array;
}

}  // namespace

Metadata parse_metadata(std::string_view text, const ReadLimits& limits) {
  if (text.size() > limits.max_json_bytes)
    fail_limit("header", "max_json_bytes", text.size(), limits.max_json_bytes);
  Metadata metadata;
  KnownMembers members;
  bool has_arrays = false;
  const unsigned depth = std::max(limits.max_json_depth, kLeastDepth);
  json::walk_object(text, depth, [&](std::string_view key, json::Value& value) {
    members.once(key);
    if (key == "arrays") {
      has_arrays = true;
      read_tensors(value, key, limits.max_tensors, [&](std::string_view name, json::Value& array) {
        metadata.arrays.push_back(read_array(name, array));
      });
    } else if (key == "version") {
      const std::uint64_t version = read_integer(value, key);
      if (version != kVersion) {
        throw UnsupportedError(ErrorCode::unsupported_version, {},
                               {.section = "header",
                                .field = "version",
                                .value = std::to_string(version),
                                .bound = std::to_string(kVersion)});
      }
    } else {
      metadata.others.emplace_back(key, json::copied(value));
    }
  });
  if (!has_arrays) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "no folder that mithril wrote: Orbax's own are not read",
                           {.section = "header", .field = "arrays"});
  }
  members.need("version");
  return metadata;
}

std::string make_metadata(const Metadata& metadata, unsigned max_depth) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("arrays").begin_object();
  for (const Array& array : metadata.arrays) {
    json.key(array.name).begin_object().member("dtype", orbax_dtype_name(array.dtype));
    json.key("shape").begin_array();
    for (const std::uint64_t extent : array.shape.extents()) json.value(extent);
    json.end_array().end_object();
  }
  json.end_object().member("version", kVersion);
  for (const auto& [key, value] : metadata.others) json.key(key).raw(value);
  json.end_object();
  return pretty_json(text, max_depth);
}

std::string_view orbax_dtype_name(DType dtype) noexcept {
  const TypeName* const type = find_type(dtype);
  return type == nullptr ? std::string_view() : type->name;
}

std::string array_header(DType dtype, const Shape& shape) {
  const std::string_view descr = find_type(dtype)->descr;
  // As long as the text alone makes it, up to the alignment; NumPy leaves more.
  const std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}\n", descr,
                  fmt::join(shape.extents(), ", "), shape.rank() == 1 ? "," : "");
  const std::size_t least = kNpyFront + text.size();
  return make_npy_header(descr, false, shape,
                         (least + kNpyAlignment - 1) / kNpyAlignment * kNpyAlignment);
}

std::optional<std::vector<std::string>> array_path(std::string_view name) {
  std::vector<std::string> names{std::string(kStateFolder)};
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (!io::is_inner_name(part)) return std::nullopt;
    names.emplace_back(part);
    begin = end + 1;
  }
  names.emplace_back(kArrayFile);
  return names;
}

}  // namespace thalia::formats::orbax
