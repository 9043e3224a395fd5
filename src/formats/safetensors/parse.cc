// Checks a whole safetensors header before any tensor is handed out. After parse_safetensors() the
// payloads follow each other from the header to the end of the file, so no two tensors share bytes,
// and no byte of the file goes unread.
#include "formats/safetensors/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/foreign_file.h"
#include "format/little_endian.h"
#include "formats/safetensors/header_content.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats {
namespace {

std::string_view header_text(ByteSpan file, std::uint64_t max_header_bytes,
                             const TouchFile& touch) {
  if (file.size() < kSafetensorsPrefix) {
    throw FormatError(ErrorCode::truncated,
                      file.empty() ? format::kEmptyFile : "no room for the header's length",
                      {.section = "header",
                       .offset = 0,
                       .value = fmt::format("{} bytes", file.size()),
                       .bound = fmt::format("at least {}", kSafetensorsPrefix)});
  }
  if (touch) touch(0, kSafetensorsPrefix);
  if (begins_as_json(file)) {
    throw FormatError(ErrorCode::bad_value,
                      "a JSON text, such as the index of a model, and no file with tensors; name "
                      "one of its files",
                      {.section = "header", .offset = 0});
  }
  format::le64 stored;
  static_assert(sizeof stored == kSafetensorsPrefix);
  std::memcpy(&stored, file.data(), sizeof stored);
  const std::uint64_t length = stored;
  if (length > file.size() - kSafetensorsPrefix) {
    fail_field(
        ErrorCode::truncated, "header", "length", 0, std::to_string(length),
        fmt::format("at most {}, what is left of the file", file.size() - kSafetensorsPrefix));
  }
  // After the check against the file: what cannot be there is damage, not a limit.
  if (length > max_header_bytes) {
    fail_limit("header", "max_safetensors_header_bytes", length, max_header_bytes);
  }
  if (touch) touch(kSafetensorsPrefix, length);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kSafetensorsPrefix,
                              length);
  // The reference takes white space here; the description of the format does not.
  if (!text.starts_with('{')) {
    throw FormatError(
        ErrorCode::bad_value, "the header does not start with '{'",
        {.section = "header", .offset = kSafetensorsPrefix, .value = printable(text.substr(0, 1))});
  }
  return text;
}

}  // namespace

// No header is so long that its length has no byte of zero.
bool begins_as_json(ByteSpan start) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(start.data()),
                              std::min<std::size_t>(start.size(), kSafetensorsPrefix));
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.find('\0') == std::string_view::npos;
}

ParsedSafetensors parse_safetensors(ByteSpan file, std::uint64_t max_header_bytes,
                                    const ReadLimits& limits, const TouchFile& touch) {
  io::check_file_bytes("file", file.size(), limits);
  ParsedSafetensors parsed;
  parsed.header = header_text(file, max_header_bytes, touch);
  HeaderContent content = read_header_content(parsed.header, limits);
  const std::uint64_t end = content.data_bytes;
  const ByteSpan data = file.subspan(kSafetensorsPrefix + parsed.header.size());
  if (end != data.size()) {
    throw FormatError(end > data.size() ? ErrorCode::truncated : ErrorCode::inconsistent,
                      end > data.size() ? "the file ends before its tensors do"
                                        : "there is more after the last tensor",
                      {.section = "data",
                       .offset = kSafetensorsPrefix + parsed.header.size(),
                       .value = fmt::format("{} bytes", data.size()),
                       .bound = std::to_string(end)});
  }
  parsed.metadata = std::move(content.metadata);
  parsed.tensors.reserve(content.tensors.size());
  for (HeaderTensor& tensor : content.tensors) {
    parsed.tensors.push_back({.name = std::move(tensor.name),
                              .dtype = tensor.dtype,
                              .shape = tensor.shape,
                              .bytes = data.subspan(tensor.begin, tensor.end - tensor.begin)});
  }
  return parsed;
}

}  // namespace thalia::formats
