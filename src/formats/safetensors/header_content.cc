// Reads the JSON of a header, strictly, and holds every tensor against its neighbours: after
// read_header_content() the payloads follow each other from 0 on without gaps or overlaps, and each
// has the length that dtype and shape ask for.
#include "formats/safetensors/header_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/parse.h"
#include "formats/source/dtype_names.h"
#include "json/reader.h"

namespace thalia::formats {
namespace {

// The header nests three deep; anything deeper is refused for its kind before it is walked.
constexpr unsigned kSafetensorsHeaderDepth = 8;

[[noreturn]] void fail_tensor(ErrorCode code, std::string_view tensor, std::string_view field,
                              std::string value, std::string bound, std::string message = {}) {
  throw FormatError(code, std::move(message),
                    {.section = "header",
                     .field = std::string(field),
                     .tensor = printable(tensor),
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

void require_header_kind(const json::Value& value, json::Kind kind, std::string_view tensor,
                         std::string_view field) {
  if (value.kind() == kind) return;
  fail_tensor(ErrorCode::bad_value, tensor, field, std::string(json::kind_name(value.kind())),
              std::string(json::kind_name(kind)));
}

// The whole numbers of an array, at most `most` of them kept; the count goes on beyond.
template <std::size_t most>
std::size_t read_integers(json::Value& value, std::string_view tensor, std::string_view field,
                          std::array<std::uint64_t, most>& out) {
  require_header_kind(value, json::Kind::array, tensor, field);
  std::size_t count = 0;
  value.for_each_element([&](json::Value& element) {
    require_header_kind(element, json::Kind::number, tensor, field);
    const auto number = element.unsigned_integer();
    // The reference takes "-0" for a floating point number, and so does unsigned_integer().
    if (!number) {
      fail_tensor(ErrorCode::bad_value, tensor, field, printable(element.token()),
                  "a whole number from 0 to 2^64 - 1");
    }
    if (count < most) out[count] = *number;
    ++count;
  });
  return count;
}

DType read_dtype(json::Value& value, std::string_view tensor) {
  require_header_kind(value, json::Kind::string, tensor, "dtype");
  const std::string_view name = value.string();
  if (const auto dtype = safetensors_dtype_from_name(name)) return *dtype;
  throw UnsupportedDtypeError(std::string(name), "unknown dtype",
                              {.section = "header",
                               .field = "dtype",
                               .tensor = printable(tensor),
                               .value = printable(name)});
}

Shape read_header_shape(json::Value& value, std::string_view tensor) {
  std::array<std::uint64_t, Shape::kMaxRank> extents;
  const std::size_t rank = read_integers(value, tensor, "shape", extents);
  if (rank > Shape::kMaxRank) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "too many dimensions",
                           {.section = "header",
                            .field = "shape",
                            .tensor = printable(tensor),
                            .value = std::to_string(rank),
                            .bound = "at most " + std::to_string(Shape::kMaxRank)});
  }
  return Shape(std::span(extents.data(), rank));
}

// Stricter than the reference: each field once, all three there, and none that is unknown.
HeaderTensor read_header_tensor(std::string_view name, json::Value& value) {
  require_header_kind(value, json::Kind::object, name, "");
  HeaderTensor tensor{.name = std::string(name)};
  bool has_dtype = false, has_shape = false, has_offsets = false;
  const auto once = [&](bool& seen, std::string_view field) {
    if (std::exchange(seen, true)) {
      fail_tensor(ErrorCode::inconsistent, name, field, "", "", "the field is there twice");
    }
  };
  value.for_each_member([&](std::string_view field, json::Value& member) {
    if (field == "dtype") {
      once(has_dtype, field);
      tensor.dtype = read_dtype(member, name);
    } else if (field == "shape") {
      once(has_shape, field);
      tensor.shape = read_header_shape(member, name);
    } else if (field == "data_offsets") {
      once(has_offsets, field);
      std::array<std::uint64_t, 2> offsets{};
      const std::size_t count = read_integers(member, name, field, offsets);
      // read_integers() keeps no more than two, but counts all.
      if (count != 2) {
        fail_tensor(ErrorCode::bad_value, name, field, fmt::format("{} numbers", count), "2");
      }
      tensor.begin = offsets[0];
      tensor.end = offsets[1];
    } else {
      fail_tensor(ErrorCode::bad_value, name, printable(field), "", "", "unknown field");
    }
  });
  for (const auto& [seen, field] : {std::pair(has_dtype, "dtype"), std::pair(has_shape, "shape"),
                                    std::pair(has_offsets, "data_offsets")}) {
    if (!seen) fail_tensor(ErrorCode::bad_value, name, field, "", "", "the field is missing");
  }
  return tensor;
}

// A list and not a map: the order of the header is kept for writing it again.
SafetensorsMetadata read_metadata(json::Value& value) {
  require_header_kind(value, json::Kind::object, "", kSafetensorsMetadataKey);
  SafetensorsMetadata metadata;
  value.for_each_member([&](std::string_view key, json::Value& text) {
    if (text.kind() != json::Kind::string) {
      fail_tensor(ErrorCode::bad_value, "",
                  fmt::format("{}[{}]", kSafetensorsMetadataKey, printable(key)),
                  std::string(json::kind_name(text.kind())), "string");
    }
    metadata.emplace_back(key, text.string());
  });
  return metadata;
}

// The first string that `names` holds twice.
std::optional<std::string_view> find_repeated(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  return twice == names.end() ? std::nullopt : std::optional(*twice);
}

void check_keys(const std::vector<HeaderTensor>& tensors,
                const std::optional<SafetensorsMetadata>& metadata) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const HeaderTensor& tensor : tensors) names.push_back(tensor.name);
  if (const auto name = find_repeated(std::move(names))) {
    fail_tensor(ErrorCode::inconsistent, *name, "", "", "", "the name is there twice");
  }
  if (!metadata) return;
  std::vector<std::string_view> keys;
  for (const auto& [key, text] : *metadata) keys.push_back(key);
  if (const auto key = find_repeated(std::move(keys))) {
    fail_tensor(ErrorCode::inconsistent, "", kSafetensorsMetadataKey, printable(*key), "",
                "the key is there twice");
  }
}

// `expected` is where the tensor before ends.
void check_extent(const HeaderTensor& tensor, std::uint64_t expected) {
  const std::string offsets = fmt::format("[{}, {}]", tensor.begin, tensor.end);
  if (tensor.end < tensor.begin) {
    fail_tensor(ErrorCode::bad_value, tensor.name, "data_offsets", offsets, "begin <= end");
  }
  // Sorted by begin, so every gap or overlap shows at the next tensor.
  if (tensor.begin != expected) {
    fail_tensor(
        ErrorCode::inconsistent, tensor.name, "data_offsets", offsets,
        fmt::format("a begin of {}", expected),
        tensor.begin < expected ? "overlaps the tensor before it" : "leaves a hole before it");
  }
  const SafetensorsSize size = safetensors_size(tensor.dtype, tensor.shape);
  const auto name = safetensors_dtype_name(tensor.dtype);
  if (size.fault == SizeFault::overflow) {
    fail_tensor(ErrorCode::out_of_bounds, tensor.name, "shape", tensor.shape.to_string(),
                "at most 2^64 - 1 bits",
                fmt::format("overflow in the size of its {} elements", name));
  }
  if (size.fault == SizeFault::no_whole_bytes) {
    fail_tensor(ErrorCode::bad_value, tensor.name, "shape", tensor.shape.to_string(), "",
                fmt::format("its {} elements are no whole number of bytes", name));
  }
  if (tensor.end - tensor.begin != size.bytes) {
    fail_tensor(ErrorCode::inconsistent, tensor.name, "data_offsets",
                fmt::format("{} of {} bytes", offsets, tensor.end - tensor.begin),
                fmt::format("{} bytes for {} {}", size.bytes, name, tensor.shape.to_string()));
  }
}

}  // namespace

HeaderContent read_header_content(std::string_view text, const ReadLimits& limits) {
  if (text.size() > limits.max_json_bytes)
    fail_limit("header", "max_json_bytes", text.size(), limits.max_json_bytes);
  HeaderContent content;
  bool has_metadata = false;
  std::vector<HeaderTensor>& tensors = content.tensors;
  try {
    json::walk_object(text, kSafetensorsHeaderDepth, [&](std::string_view key, json::Value& value) {
      if (key != kSafetensorsMetadataKey) {
        if (tensors.size() == limits.max_tensors)
          fail_limit("header", "max_tensors", tensors.size() + 1, limits.max_tensors);
        tensors.push_back(read_header_tensor(key, value));
      } else if (std::exchange(has_metadata, true)) {
        fail_tensor(ErrorCode::inconsistent, "", key, "", "", "the key is there twice");
      } else if (value.kind() != json::Kind::null) {  // null is no metadata to the reference
        content.metadata = read_metadata(value);
      }
    });
  } catch (Error& error) {
    error.add_section("header");
    throw;
  }
  check_keys(tensors, content.metadata);

  // Empty tensors share their offset with a neighbour. The end decides then, and between empty
  // tensors the order of the header.
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (const HeaderTensor& tensor : tensors) {
    check_extent(tensor, content.data_bytes);
    content.data_bytes = tensor.end;
  }
  return content;
}

}  // namespace thalia::formats
