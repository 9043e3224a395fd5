// Checks prelude and JSON header of a .mst file. After parse_mst() every frame lies in the file
// behind the header, frames do not overlap, names are different, and each size follows from dtype
// and shape. Unlike mckp blocks, frames may leave gaps. Unknown members are passed over.
#include "interop/mst/parse.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "format/foreign_file.h"
#include "format/little_endian.h"
#include "interop/shared/json_fields.h"
#include "io/allocation_limit.h"

namespace thalia::interop {
namespace {

constexpr std::uint32_t kVersion = 1;
// The format nests four deep; unknown members may nest a little.
constexpr unsigned kMstHeaderDepth = 8;

struct MstPrelude {
  char magic[4];
  format::le32 version;
  format::le64 header_length;
};
static_assert(sizeof(MstPrelude) == 16);

struct DTypeName {
  std::string_view written;
  std::string_view read;  ///< what the original takes, too
  DType dtype;
};
// Names that the original writes, and second names that it also reads.
constexpr std::array kDTypes{
    DTypeName{"F32", "float32", DType::f32},    DTypeName{"F16", "float16", DType::f16},
    DTypeName{"BF16", "bfloat16", DType::bf16}, DTypeName{"F64", "float64", DType::f64},
    DTypeName{"I32", "int32", DType::i32},      DTypeName{"I64", "int64", DType::i64},
    DTypeName{"I8", "int8", DType::i8},         DTypeName{"U8", "uint8", DType::u8},
    DTypeName{"BOOL", "bool", DType::boolean}};

DType read_dtype(json::Value& value) {
  const std::string name = read_text(value, "dtype");
  for (const DTypeName& known : kDTypes)
    if (name == known.written || name == known.read) return known.dtype;
  throw UnsupportedDtypeError(name, "unknown dtype",
                              {.section = "header", .field = "dtype", .value = printable(name)});
}

MstTensor read_mst_tensor(std::string_view name, json::Value& value) {
  require_kind(value, json::Kind::object, "tensors");
  MstTensor tensor{.name = std::string(name)};
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
  std::unordered_set<std::string> names;
  json::walk_object(text, kMstHeaderDepth, [&](std::string_view key, json::Value& value) {
    if (key == "tensors") {
      members.once(key);
      require_kind(value, json::Kind::object, key);
      value.for_each_member([&](std::string_view name, json::Value& tensor) {
        if (parsed.tensors.size() == limits.max_tensors)
          fail_limit("header", "max_tensors", parsed.tensors.size() + 1, limits.max_tensors);
        if (!names.emplace(name).second)
          fail_header(ErrorCode::bad_name, "tensors", printable(name), "", "the name repeats");
        try {
          parsed.tensors.push_back(read_mst_tensor(name, tensor));
        } catch (Error& error) {
          error.add_tensor(printable(name));
          throw;
        }
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
    }
  });
  members.need("tensors");
  members.need("compression");
}

// Frames lie in the file and do not overlap. So all of them together decode to at most a fixed
// multiple of the file, however the header was made up.
void place_frames(std::vector<MstTensor>& tensors, std::uint64_t begin, std::uint64_t end) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const MstTensor& a, const MstTensor& b) { return a.offset < b.offset; });
  std::uint64_t least = 0;
  for (MstTensor& tensor : tensors) {
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
    least = tensor.offset + tensor.compressed_size;
    tensor.offset += begin;
  }
}

}  // namespace

unsigned mst_plane_width(DType dtype) noexcept {
  // The original groups no other types, f64 included.
  if (dtype == DType::f32) return 4;
  return dtype == DType::f16 || dtype == DType::bf16 ? 2 : 0;
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
  if (prelude.version > kVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, {},
                           {.section = "prelude",
                            .field = "version",
                            .offset = 4,
                            .value = std::to_string(prelude.version),
                            .bound = std::to_string(kVersion)});
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
  place_frames(parsed.tensors, sizeof(prelude) + text.size(), file.size());
  return parsed;
}

}  // namespace thalia::interop
