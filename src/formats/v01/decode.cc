// Reads whole 0.1 files (thalia/formats/v01.h). The checksum is verified before anything is
// believed, then the header, the index, and each region's text; its tags are replaced by the
// tensors that they point to. Tensors share the memory of the file where they can.
//
// Files of the original contain oddities that cost no data: they become warnings. What makes data
// doubtful is an error.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/v01.h"
#include "formats/v01/header.h"
#include "formats/v01/json.h"
#include "formats/v01/tensor_reader.h"
#include "formats/v01/wrapper.h"
#include "io/file/file_bytes.h"
#include "io/memory/allocation_limit.h"
#include "state/value/value_json.h"
#include "thalia/error.h"
#include "thalia/formats/v01.h"

namespace thalia {
namespace {

using formats::Sentences;
using formats::V01TensorReader;

constexpr std::size_t kMostWarnings = 100;
constexpr std::string_view kLastThaliaVersion = "0.2.0";

std::optional<std::uint64_t> unsigned_member(const Value& object, std::string_view name) {
  const Value* value = object.find(name);
  return value == nullptr ? std::nullopt : formats::v01_unsigned(*value);
}

bool is_text(const Value* value, std::string_view text) {
  return value != nullptr && value->kind() == Value::Kind::string && value->as_string() == text;
}

// Replaces the objects that stand for a region's tensors by the tensors themselves.
class TensorPlacer {
 public:
  TensorPlacer(V01TensorReader& tensors, Sentences& warnings, const std::string& region)
      : tensors_(tensors), warnings_(warnings), region_(region) {}

  void place(Value& value, const std::string& path) {
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i)
        place(value.elements()[i], formats::v01_element_path(path, i));
    } else if (is_text(value.find("_type"), "tensor")) {
      value = tensor(value, path);
    } else if (value.is_object()) {
      for (auto& [name, member] : value.members())
        if (member.is_object() || member.is_array())
          place(member, formats::v01_member_path(path, name));
    }
  }

 private:
  Tensor tensor(const Value& tag, const std::string& path) {
    const auto offset = unsigned_member(tag, "_offset");
    if (!offset) {
      throw FormatError(ErrorCode::bad_value, "no place of a tensor",
                        {.section = "region",
                         .field = "_offset",
                         .tensor = path,
                         .value = tag.find("_offset") == nullptr ? "nothing" : "no such number",
                         .bound = "an integer from 0 to 2^64 - 1"});
    }
    try {
      const V01TensorReader::Found& found = tensors_.at(*offset);
      const auto claimed = unsigned_member(tag, "_bytes");
      // The tensor's own header decides; _bytes is not needed.
      if (claimed != found.bytes && warnings_.size() < kMostWarnings) {
        warnings_.push_back(fmt::format("tensor '{}' of region '{}' has {} bytes, not {}",
                                        printable(path), printable(region_), found.bytes,
                                        claimed ? std::to_string(*claimed) : "what _bytes says"));
      }
      return found.tensor;
    } catch (Error& error) {
      error.add_tensor(path);
      throw;
    }
  }

  V01TensorReader& tensors_;
  Sentences& warnings_;
  const std::string& region_;
};

// The extent was checked with the header or the index.
Value parse(ByteSpan body, format::Extent extent, const ReadLimits& limits) {
  const std::string_view text(reinterpret_cast<const char*>(body.data()) + extent.offset,
                              extent.length);
  return state::parse_json_object(text, limits, json::Dialect::python);
}

Value read_metadata(ByteSpan body, const format::V01FileHeader& header, const ReadLimits& limits,
                    Sentences& warnings) {
  try {
    Value metadata = parse(body, {header.metadata_offset, header.metadata_length}, limits);
    const Value* version = metadata.find("thalia_version");
    if (version != nullptr && !is_text(version, kLastThaliaVersion)) {
      const bool text = version->kind() == Value::Kind::string;
      warnings.push_back(
          fmt::format("written by version {} of the original program, the last one is {}",
                      text ? printable(version->as_string(), 40) : "unknown", kLastThaliaVersion));
    }
    return metadata;
  } catch (Error& error) {
    error.add_section("metadata");
    throw;
  }
}

V01Entry read_entry(ByteSpan body, const V01IndexEntry& entry, V01TensorReader& tensors,
                    const ReadLimits& limits, Sentences& warnings) {
  try {
    V01Entry read{entry.name, parse(body, {entry.json.offset, entry.json.length}, limits)};
    TensorPlacer(tensors, warnings, entry.name).place(read.state, "");
    return read;
  } catch (Error& error) {
    error.add_section("region");
    error.add_region(printable(entry.name));
    throw;
  }
}

}  // namespace

V01File decode_v01(ByteSpan file, std::shared_ptr<const void> owner,
                   const ReadLimits& given_limits) {
  ReadLimits limits = given_limits;
  // Fixed once, from the size of the file: frames and texts inside are measured by the same limit.
  limits.max_allocation_bytes = io::allocation_limit(given_limits, file.size());
  io::check_file_bytes("file", file.size(), limits);
  const auto contents = formats::open_v01_wrapper(file, std::move(owner), limits);
  // Before the checksum, as deltas have another one.
  if (formats::begins_as_v01_delta(contents.bytes)) formats::refuse_v01_delta();
  formats::require_v01_start(contents.bytes);
  // From here on damage is excluded; what is wrong was written so.
  const formats::V01Body verified = formats::verified_v01_body(contents);
  const ByteSpan body = verified.bytes;

  V01File read;
  read.wrapper = contents.wrapper;
  read.checksum_inside = verified.checksum_inside;
  read.file_bytes = file.size();
  read.body_bytes = body.size();
  V01Document& document = read.document;
  const format::V01FileHeader header = formats::read_v01_header(body, limits, read.warnings);
  document.header = formats::from_disk(header);
  document.metadata = read_metadata(body, header, limits, read.warnings);
  V01TensorReader tensors(body, contents.owner, limits.max_tensors);
  for (const auto& entry : formats::read_v01_index(body, header, read.warnings))
    document.entries.push_back(read_entry(body, entry, tensors, limits, read.warnings));
  read.aligned = tensors.all_aligned();
  return read;
}

V01File read_v01(const std::filesystem::path& path, const ReadOptions& options) {
  return formats::read_v01(path, options);
}

V01File formats::read_v01(const io::InputFile& input, const ReadOptions& options) {
  const auto& file = input.whole(options.input.access, options.work.cancel);
  return with_path(input.path().native(),
                   [&] { return decode_v01(file->bytes(), file, options.input.limits); });
}

}  // namespace thalia
