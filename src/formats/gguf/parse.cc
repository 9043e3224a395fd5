// Checks a whole header before any tensor is handed out. After parse_file() every tensor lies in
// the file after the header, at a multiple of the alignment, and shares no byte with another; keys
// and names are different. ggml wants tensors to follow each other without gaps; gaps and another
// order are read here, since files have them and nothing depends on it.
#include "formats/gguf/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/foreign_file.h"
#include "formats/gguf/cursor.h"
#include "formats/gguf/key_values.h"
#include "formats/gguf/name_index.h"
#include "formats/gguf/value_types.h"

namespace thalia::formats::gguf {
namespace {

// A length of the key, a letter, a type, a value of a byte.
constexpr std::uint64_t kLeastKeyValue = 8 + 1 + 4 + 1;
// A length of the name, the rank, a type, an offset.
constexpr std::uint64_t kLeastTensor = 8 + 4 + 4 + 8;

[[noreturn]] void fail_tensor(ErrorCode code, std::string_view tensor, std::string_view field,
                              std::uint64_t offset, std::string value, std::string bound,
                              std::string message = {}) {
  throw FormatError(code, std::move(message),
                    {.section = "tensors",
                     .field = std::string(field),
                     .tensor = printable(tensor),
                     .offset = offset,
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

[[noreturn]] void fail_unsupported(std::string_view section, std::string_view field,
                                   std::uint64_t offset, std::string value, std::string bound,
                                   std::string message, std::string_view tensor = {},
                                   ErrorCode code = ErrorCode::unsupported_feature) {
  throw UnsupportedError(code, std::move(message),
                         {.section = std::string(section),
                          .field = std::string(field),
                          .tensor = printable(tensor),
                          .offset = offset,
                          .value = std::move(value),
                          .bound = std::move(bound)});
}

void read_magic(Cursor& cursor, ByteSpan file) {
  if (file.empty()) {
    throw FormatError(ErrorCode::truncated, format::kEmptyFile,
                      {.section = "header", .offset = 0, .value = "0 bytes"});
  }
  const ByteSpan bytes = cursor.take(kMagic.size(), "magic");
  const std::string_view magic(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (magic != kMagic)
    fail_field(ErrorCode::bad_magic, "header", "magic", 0, printable(magic), "GGUF");
}

unsigned read_version(Cursor& cursor) {
  const std::uint64_t begin = cursor.offset();
  const auto version = cursor.number<std::uint32_t>("version");
  const auto refuse = [&](std::string message) {
    fail_unsupported("header", "version", begin, std::to_string(version), "2 or 3",
                     std::move(message), {}, ErrorCode::unsupported_version);
  };
  // No version has that many changes yet: the number's bytes are in the other order.
  if ((version & 0xffff) == 0 && version != 0) refuse("the file is big-endian");
  if (version == 1) refuse("version 1 of the format, which ggml does not read any more either");
  if (version != 2 && version != 3) refuse({});
  return version;
}

Shape read_dimensions(Cursor& cursor, std::string_view name) {
  const std::uint64_t begin = cursor.offset();
  const auto rank = cursor.number<std::uint32_t>("n_dimensions");
  if (rank > kMostDimensions) {
    fail_unsupported("tensors", "n_dimensions", begin, std::to_string(rank),
                     fmt::format("at most {}", kMostDimensions), "too many dimensions", name);
  }
  // The file has the innermost first.
  std::array<std::uint64_t, kMostDimensions> extents;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const std::uint64_t at = cursor.offset();
    const auto extent = cursor.number<std::uint64_t>("dimensions");
    if (extent > INT64_MAX) {
      fail_tensor(ErrorCode::out_of_bounds, name, "dimensions", at, std::to_string(extent),
                  "at most 2^63 - 1");
    }
    extents[rank - 1 - i] = extent;
  }
  return Shape(std::span(extents.data(), rank));
}

const GgmlTypeFacts& read_type(Cursor& cursor, std::string_view name) {
  const std::uint64_t begin = cursor.offset();
  const auto code = cursor.number<std::uint32_t>("type");
  if (const GgmlTypeFacts* const facts = ggml_type_facts(static_cast<GgmlType>(code)))
    return *facts;
  throw UnsupportedDtypeError(std::to_string(code),
                              "a type that this version does not know, or that ggml has removed",
                              {.section = "tensors",
                               .field = "type",
                               .tensor = printable(name),
                               .offset = begin,
                               .value = std::to_string(code)});
}

std::uint64_t checked_bytes(const GgmlTypeFacts& facts, const GgufTensor& tensor,
                            std::uint64_t offset) {
  const Shape& shape = tensor.shape;
  const std::uint64_t row = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  if (row % facts.block_elements != 0) {
    fail_tensor(ErrorCode::bad_value, tensor.name, "dimensions", offset, shape.to_string(),
                fmt::format("rows of a multiple of {} elements, as {} has blocks of",
                            facts.block_elements, facts.name));
  }
  const std::optional<std::uint64_t> bytes = ggml_bytes(tensor.type, shape);
  if (!bytes) {
    fail_tensor(ErrorCode::out_of_bounds, tensor.name, "dimensions", offset, shape.to_string(),
                "less than 2^64 bytes", fmt::format("overflow in the size of its {}", facts.name));
  }
  return *bytes;
}

struct Placed {
  std::uint64_t begin = 0;  ///< from the start of the data
  std::uint64_t bytes = 0;
};

// The tensor without its bytes, and where they should lie.
Placed read_tensor(Cursor& cursor, GgufTensor& tensor, std::uint32_t alignment) {
  const std::uint64_t begin = cursor.offset();
  const std::string_view name = cursor.text("name");
  if (!is_valid_utf8(name) || name.find('\0') != name.npos)
    fail_tensor(ErrorCode::bad_name, name, "name", begin, "", "UTF-8 without zero bytes");
  cursor.allocate(1, name.size());
  tensor.name = name;
  const std::uint64_t dimensions = cursor.offset();
  tensor.shape = read_dimensions(cursor, name);
  const GgmlTypeFacts& facts = read_type(cursor, name);
  tensor.type = facts.type;
  Placed placed;
  placed.bytes = checked_bytes(facts, tensor, dimensions);
  const std::uint64_t at = cursor.offset();
  placed.begin = cursor.number<std::uint64_t>("offset");
  if (placed.begin % alignment != 0) {
    fail_tensor(ErrorCode::bad_value, name, "offset", at, std::to_string(placed.begin),
                fmt::format("a multiple of {}", alignment));
  }
  return placed;
}

std::uint64_t padded(std::uint64_t bytes, std::uint32_t alignment) {
  return bytes + (alignment - bytes % alignment) % alignment;
}

// Gives each tensor its bytes. @return bytes that belong to none.
std::uint64_t place_tensors(std::vector<GgufTensor>& tensors, const std::vector<Placed>& placed,
                            ByteSpan data, std::uint64_t data_offset, std::uint32_t alignment) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Empty tensors are at the offset of the next.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(placed[a].begin, placed[a].bytes) <
           std::pair(placed[b].begin, placed[b].bytes);
  });
  std::uint64_t end = 0, aligned_end = 0, unused = 0;
  for (const std::size_t i : order) {
    const auto [begin, bytes] = placed[i];
    const auto refuse = [&](ErrorCode code, const char* field, std::uint64_t value,
                            std::string bound, const char* message) {
      throw FormatError(code, message,
                        {.section = "tensors",
                         .field = field,
                         .tensor = printable(tensors[i].name),
                         .value = std::to_string(value),
                         .bound = std::move(bound)});
    };
    if (begin > data.size() || bytes > data.size() - begin) {
      refuse(ErrorCode::truncated, "offset", begin,
             fmt::format("{} bytes in the {} after the header", bytes, data.size()),
             "the tensor ends after the file");
    }
    if (begin < end) {
      refuse(ErrorCode::inconsistent, "offset", begin, fmt::format("at least {}", end),
             "overlaps another tensor");
    }
    tensors[i].bytes = data.subspan(begin, bytes);
    tensors[i].offset = data_offset + begin;
    if (begin > aligned_end) unused += begin - aligned_end;
    end = begin + bytes;
    aligned_end = padded(end, alignment);
  }
  if (data.size() > aligned_end) unused += data.size() - aligned_end;
  return unused;
}

}  // namespace

Parsed parse_file(ByteSpan file, const ReadLimits& limits) {
  io::check_file_bytes("header", file.size(), limits);
  Cursor cursor(file, limits);
  read_magic(cursor, file);
  Parsed parsed;
  parsed.version = read_version(cursor);
  const std::uint64_t tensor_offset = cursor.offset();
  const auto tensor_count = cursor.number<std::uint64_t>("tensor_count");
  const std::uint64_t key_value_count = cursor.count("kv_count", kLeastKeyValue);
  cursor.check_count(tensor_count, kLeastTensor, "tensor_count", tensor_offset);
  if (tensor_count > limits.max_tensors)
    fail_limit("header", "max_tensors", tensor_count, limits.max_tensors);

  cursor.enter("key_values");
  parsed.key_values = read_key_values(cursor, key_value_count);
  parsed.alignment = read_alignment(parsed.key_values);

  cursor.enter("tensors");
  cursor.check_count(tensor_count, kLeastTensor, "tensor_count", tensor_offset);
  cursor.allocate(tensor_count, sizeof(GgufTensor) + sizeof(Placed) + NameIndex::kEntryBytes);
  std::vector<Placed> placed(tensor_count);
  parsed.tensors.resize(tensor_count);
  const std::uint64_t first = cursor.offset();
  for (std::uint64_t i = 0; i < tensor_count; ++i)
    placed[i] = read_tensor(cursor, parsed.tensors[i], parsed.alignment);
  const NameIndex names(parsed.tensors, [](const auto& one) { return std::string_view(one.name); });
  if (const auto twice = names.repeated()) {
    fail_tensor(ErrorCode::bad_name, parsed.tensors[*twice].name, "name", first, "", "",
                "the name is there twice");
  }

  const std::uint64_t data = padded(cursor.offset(), parsed.alignment);
  // Without tensors nothing has to be aligned, and files end here.
  if (tensor_count == 0 && cursor.left() < data - cursor.offset()) return parsed;
  cursor.enter("data");
  cursor.take(data - cursor.offset(), "padding");
  parsed.unused_bytes =
      place_tensors(parsed.tensors, placed, file.subspan(data), data, parsed.alignment);
  return parsed;
}

}  // namespace thalia::formats::gguf
