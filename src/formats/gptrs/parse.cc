// Checks a file up to its payloads. After parse_file() every count was held against the bytes that
// are there, every name is UTF-8 (of a checkpoint ASCII, with the id that is stored, if one is),
// and each shape has a count of bytes. In a strict file each payload also fits its shape, lies in
// the file after the index and overlaps no other, and names are different.
#include "formats/gptrs/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_set>

#include "base/utf8.h"
#include "format/foreign_file.h"
#include "formats/gptrs/config.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats::gptrs {
namespace {

std::uint64_t least_entry(GptrsFormat format) {
  return kLeastEntry + (format == GptrsFormat::checkpoint ? kIdBytes : 0);
}

GptrsFormat take_magic(FieldCursor& cursor) {
  if (cursor.left() < kCheckpointMagic.size()) {
    throw FormatError(ErrorCode::truncated,
                      cursor.left() == 0 ? format::kEmptyFile : "no room for the magic",
                      {.section = "header",
                       .field = "magic",
                       .offset = 0,
                       .value = fmt::format("{} bytes", cursor.left()),
                       .bound = std::to_string(kCheckpointMagic.size())});
  }
  const std::string_view magic = cursor.text(kCheckpointMagic.size(), "magic");
  if (magic == kCheckpointMagic) return GptrsFormat::checkpoint;
  if (magic == kArchiveMagic) return GptrsFormat::archive;
  fail_field(ErrorCode::bad_magic, "header", "magic", 0, printable(magic), "GPTRSCHK or GPTRSTEN");
}

unsigned take_version(FieldCursor& cursor, bool version_1) {
  const std::uint64_t offset = cursor.offset();
  const std::uint32_t version = cursor.number<std::uint32_t>("version");
  if (version == kVersion || (version == 1 && version_1)) return version;
  throw UnsupportedError(ErrorCode::unsupported_version,
                         version == 1 ? "version 1 is read on request only" : "",
                         {.section = "header",
                          .field = "version",
                          .offset = offset,
                          .value = std::to_string(version),
                          .bound = version_1 ? "1 or 2" : "2"});
}

void take_config(FieldCursor& cursor, const GptrsReadOptions& options, std::uint64_t file_bytes,
                 ParsedFile& parsed) {
  const std::uint32_t length = cursor.number<std::uint32_t>("config_len");
  parsed.config_text = cursor.text(length, "config_len");
  const ReadLimits& limits = options.input.limits;
  io::check_json_length("config", length, limits, file_bytes);
  const bool untagged = parsed.version == 1 || options.untagged_config;
  try {
    parsed.config =
        read_config(parsed.config_text, untagged, limits.max_json_depth, parsed.untagged);
  } catch (Error& error) {
    error.add_section("config");
    throw;
  }
}

Shape take_shape(FieldCursor& cursor, std::string_view name) {
  const std::uint64_t offset = cursor.offset();
  const std::uint32_t rank = cursor.number<std::uint32_t>("rank");
  // In this order: a rank that the file cannot hold is damage, and not something to come.
  FieldCursor extents("index", cursor.take(8 * std::uint64_t{rank}, "dims"), offset + 4);
  if (rank > Shape::kMaxRank) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "more dimensions than are supported",
                           {.section = "index",
                            .field = "rank",
                            .tensor = printable(name),
                            .offset = offset,
                            .value = std::to_string(rank),
                            .bound = std::to_string(Shape::kMaxRank)});
  }
  std::array<std::uint64_t, Shape::kMaxRank> dims{};
  for (std::uint32_t i = 0; i < rank; ++i) dims[i] = extents.number<std::uint64_t>("dims");
  return Shape(std::span<const std::uint64_t>(dims.data(), rank));
}

DType take_type(FieldCursor& cursor, std::string_view name) {
  const std::uint64_t offset = cursor.offset();
  const std::uint32_t tag = cursor.number<std::uint32_t>("dtype_tag");
  if (tag < std::size(kTagTypes)) return kTagTypes[tag];
  throw UnsupportedDtypeError(std::to_string(tag), "unknown dtype",
                              {.section = "index",
                               .field = "dtype_tag",
                               .tensor = printable(name),
                               .offset = offset,
                               .value = std::to_string(tag),
                               .bound = "0 to 3"});
}

void take_index(FieldCursor& cursor, const GptrsReadOptions& options, std::uint64_t file_bytes,
                ParsedFile& parsed) {
  const bool is_checkpoint = parsed.format == GptrsFormat::checkpoint;
  const std::uint32_t count = cursor.number<std::uint32_t>("tensor_count");
  check_count("index", count, least_entry(parsed.format), cursor, options.input.limits);
  parsed.tensors.reserve(count);
  const std::uint64_t data_start = cursor.offset() + cursor.left();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t entry = cursor.offset();
    GptrsTensor tensor = take_entry_start(cursor, is_checkpoint, is_checkpoint);
    tensor.offset = cursor.number<std::uint64_t>("offset_abs");
    tensor.stored_bytes = cursor.number<std::uint64_t>("byte_len");
    if (options.strict) {
      check_place(tensor, file_bytes, entry);
      if (tensor.stored_bytes > 0 && tensor.offset < data_start) {
        throw FormatError(ErrorCode::out_of_bounds, "a payload before the data",
                          {.section = "index",
                           .field = "offset_abs",
                           .tensor = printable(tensor.name),
                           .offset = entry,
                           .value = std::to_string(tensor.offset),
                           .bound = fmt::format("at least {}", data_start)});
      }
    }
    parsed.tensors.push_back(std::move(tensor));
  }
  if (options.strict && cursor.left() > 0) {
    fail_field(ErrorCode::inconsistent, "index", "index_len", cursor.offset(),
               fmt::format("{} bytes after the last entry", cursor.left()), "0");
  }
}

void refuse_repeated_names(const std::vector<GptrsTensor>& tensors) {
  std::unordered_set<std::string_view> names;
  for (const GptrsTensor& tensor : tensors) {
    if (names.insert(tensor.name).second) continue;
    throw FormatError(ErrorCode::bad_name, "the name repeats",
                      {.section = "index", .field = "name", .tensor = printable(tensor.name)});
  }
}

// So no file is worth more bytes than it has, however often its index names them.
void refuse_overlaps(const std::vector<GptrsTensor>& tensors) {
  std::vector<const GptrsTensor*> placed;
  for (const GptrsTensor& tensor : tensors)
    if (tensor.stored_bytes > 0) placed.push_back(&tensor);
  std::sort(placed.begin(), placed.end(),
            [](const GptrsTensor* a, const GptrsTensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < placed.size(); ++i) {
    const std::uint64_t end = placed[i - 1]->offset + placed[i - 1]->stored_bytes;
    if (placed[i]->offset >= end) continue;
    throw FormatError(ErrorCode::out_of_bounds,
                      fmt::format("overlaps '{}'", printable(placed[i - 1]->name)),
                      {.section = "index",
                       .field = "offset_abs",
                       .tensor = printable(placed[i]->name),
                       .value = std::to_string(placed[i]->offset),
                       .bound = fmt::format("at least {}", end)});
  }
}

}  // namespace

void check_count(std::string_view section, std::uint64_t count, std::uint64_t least_bytes,
                 const FieldCursor& behind, const ReadLimits& limits) {
  if (count > behind.left() / least_bytes) {
    fail_field(ErrorCode::out_of_bounds, section, "tensor_count", behind.offset() - 4,
               std::to_string(count), fmt::format("at most {}", behind.left() / least_bytes));
  }
  if (count > limits.max_tensors) fail_limit(section, "max_tensors", count, limits.max_tensors);
  io::MemoryBudget(limits, behind.left()).take(section, count, sizeof(GptrsTensor));
}

GptrsTensor take_entry_start(FieldCursor& cursor, bool with_id, bool needs_id) {
  const std::uint32_t name_length = cursor.number<std::uint32_t>("name_len");
  const std::uint64_t name_offset = cursor.offset();
  const std::string_view name = cursor.text(name_length, "name_len");
  if (!is_valid_utf8(name)) {
    fail_field(ErrorCode::bad_name, "index", "name", name_offset, printable(name), "UTF-8");
  }
  GptrsTensor tensor;
  tensor.name = name;
  if (needs_id) {
    if (std::any_of(name.begin(), name.end(), [](char c) { return (c & 0x80) != 0; }))
      fail_field(ErrorCode::bad_name, "index", "name", name_offset, printable(name), "ASCII");
    tensor.id = base_param_id(name);
  }
  if (with_id) {
    const std::uint64_t offset = cursor.offset();
    const auto stored =
        BaseParamId::from_disk_bytes(cursor.take(kIdBytes, "stored_base_id").first<kIdBytes>());
    tensor.id_stored = stored != BaseParamId{};
    if (tensor.id_stored && stored != tensor.id) {
      throw FormatError(ErrorCode::inconsistent, "the stored id is not that of the name",
                        {.section = "index",
                         .field = "stored_base_id",
                         .tensor = printable(name),
                         .offset = offset,
                         .value = stored.to_string(),
                         .bound = tensor.id.to_string()});
    }
  }
  const std::uint64_t rank_offset = cursor.offset();
  tensor.shape = take_shape(cursor, name);
  tensor.dtype = take_type(cursor, name);
  if (!tensor.shape.byte_length(tensor.dtype)) {
    throw FormatError(ErrorCode::out_of_bounds, "more bytes than can be counted",
                      {.section = "index",
                       .field = "dims",
                       .tensor = printable(name),
                       .offset = rank_offset + 4,
                       .value = tensor.shape.to_string(),
                       .bound = "fewer than 2^64 bytes"});
  }
  tensor.requires_grad = std::to_integer<std::uint8_t>(cursor.take(1, "requires_grad")[0]);
  return tensor;
}

void check_place(const GptrsTensor& tensor, std::uint64_t file_bytes,
                 std::optional<std::uint64_t> offset) {
  const auto refuse = [&](ErrorCode code, std::string_view field, std::uint64_t value,
                          std::string bound) {
    throw FormatError(code, {},
                      {.section = "index",
                       .field = std::string(field),
                       .tensor = printable(tensor.name),
                       .offset = offset,
                       .value = std::to_string(value),
                       .bound = std::move(bound)});
  };
  const std::uint64_t expected = *tensor.shape.byte_length(tensor.dtype);
  if (tensor.stored_bytes != expected) {
    refuse(
        ErrorCode::inconsistent, "byte_len", tensor.stored_bytes,
        fmt::format("{} for {} {}", expected, dtype_name(tensor.dtype), tensor.shape.to_string()));
  }
  if (tensor.offset > file_bytes)
    refuse(ErrorCode::out_of_bounds, "offset_abs", tensor.offset,
           fmt::format("at most {}", file_bytes));
  if (tensor.stored_bytes > file_bytes - tensor.offset) {
    refuse(ErrorCode::out_of_bounds, "byte_len", tensor.stored_bytes,
           fmt::format("at most {}", file_bytes - tensor.offset));
  }
}

ParsedFile parse_file(ByteSpan file, const GptrsReadOptions& options) {
  io::check_file_bytes("header", file.size(), options.input.limits);
  FieldCursor cursor("header", file);
  ParsedFile parsed;
  parsed.format = take_magic(cursor);
  parsed.version = take_version(cursor, options.version_1);
  if (parsed.format == GptrsFormat::checkpoint) take_config(cursor, options, file.size(), parsed);
  if (parsed.version == 1) {
    take_version_1(cursor, options, parsed);
  } else {
    const std::uint32_t length = cursor.number<std::uint32_t>("index_len");
    const std::uint64_t begin = cursor.offset();
    FieldCursor index("index", cursor.take(length, "index_len"), begin);
    take_index(index, options, file.size(), parsed);
  }
  if (options.strict) {
    refuse_repeated_names(parsed.tensors);
    refuse_overlaps(parsed.tensors);
  }
  return parsed;
}

}  // namespace thalia::formats::gptrs
