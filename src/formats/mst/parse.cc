// Checks prelude and JSON header of a .mst file. After parse_mst() every frame lies in the file
// after the header, frames do not overlap, names are different, and each size follows from dtype
// and shape. Unlike mckp blocks, frames may leave gaps. Unknown members are passed over.
#include "formats/mst/parse.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "format/foreign_file.h"
#include "format/little_endian.h"
#include "formats/mst/dtypes.h"
#include "formats/source/json_fields.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats {
namespace {

// The format nests four deep; unknown members may nest a little.
constexpr unsigned kMstHeaderDepth = 8;

DType read_dtype(json::Value& value) {
  const std::string name = read_text(value, "dtype");
  if (const auto dtype = mst::mst_dtype_from_name(name)) return *dtype;
  throw UnsupportedDtypeError(name, "unknown dtype",
                              {.section = "header", .field = "dtype", .value = printable(name)});
}

MstTensor read_mst_tensor(std::string_view name, json::Value& value) {
  require_kind(value, json::Kind::object, "tensors");
  MstTensor tensor{{.name = std::string(name)}};
  KnownMembers members;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == "dtype") {
      members.once(key);
      tensor.dtype = read_dtype(member);
    } else if (key == "shape") {
      members.once(key);
      tensor.shape = read_shape(member);
    } else if (key == "compressed_offset") {
      members.once(key);
      tensor.offset = read_integer(member, key);
    } else if (key == "compressed_size") {
      members.once(key);
      tensor.compressed_size = read_integer(member, key);
    } else if (key == "uncompressed_size") {
      members.once(key);
      tensor.uncompressed_size = read_integer(member, key);
    }
  });
  for (const char* const field :
       {"dtype", "shape", "compressed_offset", "compressed_size", "uncompressed_size"})
    members.need(field);
  const auto expected = tensor.shape.byte_length(tensor.dtype);
  if (expected != tensor.uncompressed_size) {
    fail_header(ErrorCode::inconsistent, "uncompressed_size",
                std::to_string(tensor.uncompressed_size),
                expected ? std::to_string(*expected) : "a shape of less than 2^64 bytes");
  }
  return tensor;
}

void read_compression(json::Value& value, ParsedMst& parsed) {
  require_kind(value, json::Kind::object, "compression");
  KnownMembers members;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == "algorithm") {
      members.once(key);
      const std::string algorithm = read_text(member, key);
      if (algorithm != "zstd") {
        throw UnsupportedError(ErrorCode::unsupported_feature, "unknown algorithm",
                               {.section = "header",
                                .field = "algorithm",
                                .value = printable(algorithm),
                                .bound = "zstd"});
      }
    } else if (key == "level") {
      members.once(key);
      require_kind(member, json::Kind::number, key);
      const std::optional<std::uint64_t> level = member.unsigned_integer();
      // Only informs; a value that zstd does not have counts as unknown.
      parsed.level = level && *level <= 22 ? static_cast<int>(*level) : 0;
    } else if (key == "byte_grouping") {
      members.once(key);
      require_kind(member, json::Kind::boolean, key);
      parsed.byte_grouping = member.token() == "true";
    }
  });
  members.need("byte_grouping");
}

void read_header(std::string_view text, const ReadLimits& limits, ParsedMst& parsed) {
  KnownMembers members;
  json::walk_object(text, kMstHeaderDepth, [&](std::string_view key, json::Value& value) {
    if (key == "tensors") {
      members.once(key);
      read_tensors(value, key, limits.max_tensors, [&](std::string_view name, json::Value& tensor) {
        parsed.tensors.push_back(read_mst_tensor(name, tensor));
      });
    } else if (key == "compression") {
      members.once(key);
      read_compression(value, parsed);
    } else if (key == "metadata") {
      members.once(key);
      require_kind(value, json::Kind::object, key);
      KnownMembers texts;
      value.for_each_member([&](std::string_view name, json::Value& member) {
        texts.once(name);
        parsed.metadata.emplace_back(name, read_text(member, "metadata"));
      });
    } else if (key != "total_uncompressed_size" && key != "total_compressed_size") {
      parsed.other_members.emplace_back(key);
    }
  });
  members.need("tensors");
  members.need("compression");
}

// The original writes the header's names in no order, and the frames in that of the caller.
void sort_by_offset(ParsedMst& parsed) {
  std::vector<std::size_t> order(parsed.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return parsed.tensors[i].offset; });
  if (std::ranges::is_sorted(order)) return;
  parsed.header_order.resize(order.size());
  std::vector<MstTensor> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    parsed.header_order[order[i]] = i;
    sorted.push_back(std::move(parsed.tensors[order[i]]));
  }
  parsed.tensors = std::move(sorted);
}

// Frames lie in the file and do not overlap. So all of them together decode to at most a fixed
// multiple of the file, however the header was made up.
void place_frames(ParsedMst& parsed, std::uint64_t begin, std::uint64_t end) {
  std::uint64_t least = 0;
  for (MstTensor& tensor : parsed.tensors) {
    const auto refuse = [&](std::string_view field, std::uint64_t value, std::string bound) {
      throw FormatError(ErrorCode::out_of_bounds, {},
                        {.section = "header",
                         .field = std::string(field),
                         .tensor = printable(tensor.name),
                         .value = std::to_string(value),
                         .bound = std::move(bound)});
    };
    const std::uint64_t data = end - begin;
    if (tensor.offset > data || tensor.offset < least)
      refuse("compressed_offset", tensor.offset, fmt::format("{} to {}", least, data));
    if (tensor.compressed_size > data - tensor.offset)
      refuse("compressed_size", tensor.compressed_size, std::to_string(data - tensor.offset));
    parsed.other_bytes |= tensor.offset > least;
    least = tensor.offset + tensor.compressed_size;
    tensor.offset += begin;
  }
  parsed.other_bytes |= least < end - begin;
}

}  // namespace

MstPrelude make_prelude(std::uint32_t version, std::uint64_t header_length) noexcept {
  MstPrelude prelude{
      .magic = {}, .version = format::le32(version), .header_length = format::le64(header_length)};
  std::memcpy(prelude.magic, kMstMagic.data(), sizeof prelude.magic);
  return prelude;
}

ParsedMst parse_mst(ByteSpan file, const ReadLimits& limits) {
  io::check_file_bytes("prelude", file.size(), limits);
  if (file.size() < sizeof(MstPrelude)) {
    throw FormatError(ErrorCode::truncated,
                      file.empty() ? format::kEmptyFile : "no room for the prelude",
                      {.section = "prelude",
                       .offset = 0,
                       .value = fmt::format("{} bytes", file.size()),
                       .bound = "16"});
  }
  MstPrelude prelude;
  std::memcpy(&prelude, file.data(), sizeof(prelude));
  const std::string_view magic(prelude.magic, sizeof prelude.magic);
  if (magic != kMstMagic)
    fail_field(ErrorCode::bad_magic, "prelude", "magic", 0, printable(magic),
               "MST and a zero byte");
  // Versions 0 and 1 have the same structure.
  if (prelude.version > kMstVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, {},
                           {.section = "prelude",
                            .field = "version",
                            .offset = 4,
                            .value = std::to_string(prelude.version),
                            .bound = std::to_string(kMstVersion)});
  }
  const std::uint64_t room = file.size() - sizeof(prelude);
  if (prelude.header_length > room) {
    fail_field(ErrorCode::truncated, "prelude", "header_length", 8,
               std::to_string(prelude.header_length), std::to_string(room));
  }
  // The text is not compressed, so its length is known before anything is allocated.
  if (prelude.header_length > limits.max_json_bytes)
    fail_limit("prelude", "max_json_bytes", prelude.header_length, limits.max_json_bytes);
  const ByteSpan text = file.subspan(sizeof(prelude), prelude.header_length);
  ParsedMst parsed;
  try {
    read_header({reinterpret_cast<const char*>(text.data()), text.size()}, limits, parsed);
  } catch (Error& error) {
    error.add_section("header");
    throw;
  }
  parsed.version = prelude.version;
  sort_by_offset(parsed);
  place_frames(parsed, sizeof(prelude) + text.size(), file.size());
  return parsed;
}

}  // namespace thalia::formats
