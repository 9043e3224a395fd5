// Writes headers byte for byte as the reference implementation does: tensors by descending rank of
// their dtype, then by name, the text padded with spaces to a multiple of 8. So equal tensors give
// equal bytes, whichever program wrote them. What readers of safetensors would refuse is refused
// here, before anything is written.
#include "formats/safetensors/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/little_endian.h"
#include "formats/safetensors/parse.h"
#include "formats/source/dtype_names.h"
#include "json/writer.h"

namespace thalia::formats {
namespace {

[[noreturn]] void fail_unsupported(const NamedArray& tensor, std::string_view field,
                                   std::string value, std::string message) {
  throw UnsupportedError(
      ErrorCode::unsupported_feature, std::move(message),
      {.field = std::string(field), .tensor = printable(tensor.name), .value = std::move(value)});
}

[[noreturn]] void fail_name(const NamedArray& tensor, ErrorCode code, std::string message) {
  throw UsageError(code, std::move(message), {.field = "name", .tensor = printable(tensor.name)});
}

// By the reference's arithmetic, which refuses shapes that ours would take.
std::uint64_t payload_bytes(const NamedArray& tensor) {
  const SafetensorsSize size = safetensors_size(tensor.dtype, tensor.shape);
  if (size.fault == SizeFault::overflow) {
    fail_unsupported(tensor, "shape", tensor.shape.to_string(),
                     "safetensors has no shape whose extents multiply past 2^64 - 1 bits");
  }
  if (size.fault == SizeFault::no_whole_bytes) {
    fail_unsupported(tensor, "shape", tensor.shape.to_string(),
                     fmt::format("safetensors needs whole bytes, this many {} elements are none",
                                 dtype_name(tensor.dtype)));
  }
  return size.bytes;
}

void check_tensor(const NamedArray& tensor) {
  if (safetensors_dtype_name(tensor.dtype).empty()) {
    fail_unsupported(tensor, "dtype", std::string(dtype_name(tensor.dtype)),
                     "safetensors has no such dtype");
  }
  if (tensor.name == kSafetensorsMetadataKey) {
    fail_name(tensor, ErrorCode::bad_argument, "safetensors keeps this name for itself");
  }
  if (!is_valid_utf8(tensor.name)) {
    fail_name(tensor, ErrorCode::bad_argument, "the name is not UTF-8");
  }
}

// JSON has no other strings than UTF-8, and of a repeated key a reader keeps only one.
void check_metadata(const SafetensorsMetadata& metadata) {
  std::vector<std::string_view> keys;
  for (const auto& [key, text] : metadata) {
    if (!is_valid_utf8(key) || !is_valid_utf8(text)) {
      fail_argument(ErrorCode::bad_argument, "metadata", printable(key), "", "not UTF-8");
    }
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) {
    fail_argument(ErrorCode::duplicate, "metadata", printable(*twice), "", "two of this key");
  }
}

// Positions in `tensors` in the order of the file.
std::vector<std::size_t> file_order(const std::vector<NamedArray>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const unsigned rank_a = *safetensors_rank(tensors[a].dtype);
    const unsigned rank_b = *safetensors_rank(tensors[b].dtype);
    return rank_a != rank_b ? rank_a > rank_b : tensors[a].name < tensors[b].name;
  });
  return order;
}

// Appends the header's JSON and returns the bytes of all payloads.
std::uint64_t append_json(std::string& text, const std::vector<NamedArray>& tensors,
                          const std::vector<std::size_t>& order,
                          const std::optional<SafetensorsMetadata>& metadata) {
  JsonWriter json(text);
  json.begin_object();
  if (metadata) {
    json.key(kSafetensorsMetadataKey).begin_object();
    for (const auto& [key, value] : *metadata) json.member(key, value);
    json.end_object();
  }
  std::uint64_t offset = 0;
  for (const std::size_t i : order) {
    const NamedArray& tensor = tensors[i];
    json.key(tensor.name).begin_object();
    json.member("dtype", safetensors_dtype_name(tensor.dtype));
    json.key("shape").begin_array();
    for (const std::uint64_t extent : tensor.shape.extents()) json.value(extent);
    json.end_array().key("data_offsets").begin_array().value(offset);
    if (__builtin_add_overflow(offset, payload_bytes(tensor), &offset)) {
      fail_unsupported(tensor, "data_offsets", "", "the tensors together pass 2^64 - 1 bytes");
    }
    json.value(offset).end_array().end_object();
  }
  json.end_object();
  return offset;
}

}  // namespace

SafetensorsHeader make_safetensors_header(const std::vector<NamedArray>& tensors,
                                          const std::optional<SafetensorsMetadata>& metadata,
                                          std::uint64_t max_header_bytes, std::uint64_t align) {
  check_header_alignment(align);
  if (metadata) check_metadata(*metadata);
  for (const NamedArray& tensor : tensors) check_tensor(tensor);
  check_safetensors_names(tensors);

  SafetensorsHeader header;
  header.order = file_order(tensors);
  std::string& text = header.bytes;
  text.assign(kSafetensorsPrefix, '\0');
  header.data_bytes = append_json(text, tensors, header.order, metadata);
  // The prefix of 8 bytes is part of `text`: payloads begin aligned.
  text.resize((text.size() + align - 1) / align * align, ' ');
  finish_header(text, max_header_bytes);
  return header;
}

// Sorted pointers rather than a set: no copy of thousands of names.
void check_safetensors_names(const std::vector<NamedArray>& tensors) {
  std::vector<const NamedArray*> by_name;
  by_name.reserve(tensors.size());
  for (const NamedArray& tensor : tensors) by_name.push_back(&tensor);
  const auto name = [](const NamedArray* tensor) -> const std::string& { return tensor->name; };
  std::ranges::sort(by_name, {}, name);
  const auto twice = std::ranges::adjacent_find(by_name, {}, name);
  if (twice != by_name.end()) {
    fail_name(**twice, ErrorCode::duplicate, "two tensors have this name");
  }
}

void check_header_alignment(std::uint64_t align) {
  if (align % 8 == 0 && align > 0 && align <= kMostHeaderAlignment) return;
  fail_argument(ErrorCode::bad_argument, "align", std::to_string(align),
                fmt::format("a multiple of 8 up to {}", kMostHeaderAlignment));
}

void finish_header(std::string& bytes, std::uint64_t max_header_bytes) {
  const format::le64 length = bytes.size() - kSafetensorsPrefix;
  if (length > max_header_bytes) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "readers of safetensors refuse a header of this many bytes",
                           {.section = "header",
                            .value = std::to_string(length),
                            .bound = std::to_string(max_header_bytes)});
  }
  std::memcpy(bytes.data(), &length, sizeof length);
}

}  // namespace thalia::formats
