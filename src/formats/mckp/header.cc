// Reads the header's JSON in one pass, member by member, and checks everything that the text alone
// tells. Known members must be of their type, may occur once, and the needed ones must be
// there; unknown ones are passed over, as later writers may add some. Whether the blocks
// fit the file is checked in parse.cc.
//
// Members come in any order, so values that depend on each other (parameters on the dtype) are kept
// as they are and checked at the end.
#include "formats/mckp/header.h"

#include <fmt/format.h>

#include <bit>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "format/payload.h"
#include "formats/mckp/format.h"
#include "formats/source/json_fields.h"
#include "json/copy.h"
#include "json/reader.h"

namespace thalia::formats {
namespace {

constexpr unsigned kMckpHeaderDepth = 5;  // of what the format itself nests

std::uint64_t read_hex(json::Value& value, std::string_view field, std::size_t digits) {
  const std::string text = read_text(value, field);
  const auto number = parse_hex(text, digits);
  if (!number)
    fail_header(ErrorCode::bad_value, field, printable(text, 40),
                fmt::format("{} lower-case hexadecimal digits", digits));
  return *number;
}

Digest256 read_digest(json::Value& value, std::string_view field) {
  const std::string text = read_text(value, field);
  const auto digest = parse_digest(text);
  if (!digest)
    fail_header(ErrorCode::bad_value, field, printable(text, 80),
                "64 lower-case hexadecimal digits");
  return *digest;
}

LeafAlgorithm read_digests(json::Value& value, std::string_view field) {
  const std::string text = read_text(value, field);
  for (const auto known : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256})
    if (text == mckp_digests_name(known)) return known;
  throw UnsupportedError(ErrorCode::unsupported_feature, "this version has no such digests",
                         {.section = "header",
                          .field = std::string(field),
                          .value = printable(text),
                          .bound = "xxh3_128 or sha256"});
}

std::string read_object(json::Value& value, std::string_view field) {
  require_kind(value, json::Kind::object, field);
  return json::copied(value);
}

// Kept as texts: how many digits a parameter has depends on the dtype, which may come later.
struct QuantTexts {
  std::uint64_t bits = 0;
  std::string minimum;
  std::string scale;
};

QuantTexts read_quant(json::Value& value) {
  require_kind(value, json::Kind::object, "quant");
  QuantTexts quant;
  KnownMembers members;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == "scheme") {
      members.once(key);
      const std::string scheme = read_text(member, "scheme");
      if (scheme != "uniform") {
        throw UnsupportedError(ErrorCode::unsupported_feature, "this version has no such scheme",
                               {.section = "header",
                                .field = "scheme",
                                .value = printable(scheme),
                                .bound = "uniform"});
      }
    } else if (key == "bits") {
      members.once(key);
      quant.bits = read_integer(member, "bits");
    } else if (key == "min") {
      members.once(key);
      quant.minimum = read_text(member, "min");
    } else if (key == "scale") {
      members.once(key);
      quant.scale = read_text(member, "scale");
    }
  });
  for (const char* const field : {"scheme", "bits", "min", "scale"}) members.need(field);
  return quant;
}

MckpSparse read_sparse(json::Value& value) {
  require_kind(value, json::Kind::object, "sparse");
  MckpSparse sparse;
  KnownMembers members;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == "encoding") {
      members.once(key);
      const std::string encoding = read_text(member, key);
      if (encoding != "csr" && encoding != "coo") {
        throw UnsupportedError(ErrorCode::unsupported_feature, "this version has no such encoding",
                               {.section = "header",
                                .field = "encoding",
                                .value = printable(encoding),
                                .bound = "csr or coo"});
      }
      sparse.encoding = encoding == "csr" ? Encoding::csr : Encoding::coo;
    } else if (key == "nnz") {
      members.once(key);
      sparse.nnz = read_integer(member, key);
    } else if (key == "index_bits") {
      members.once(key);
      const std::uint64_t bits = read_integer(member, key);
      if (bits != 32 && bits != 64)
        fail_header(ErrorCode::bad_value, key, std::to_string(bits), "32 or 64");
      sparse.wide_indices = bits == 64;
    }
  });
  for (const char* const field : {"encoding", "nnz", "index_bits"}) members.need(field);
  return sparse;
}

double read_parameter(const std::string& text, DType dtype, std::string_view field) {
  const std::size_t digits = dtype == DType::f64 ? 16 : 8;
  const auto bits = parse_hex(text, digits);
  const double number = !bits          ? 0
                        : digits == 16 ? std::bit_cast<double>(*bits)
                                       : std::bit_cast<float>(static_cast<std::uint32_t>(*bits));
  // Infinity and NaN less themselves are NaN, which differs from 0.
  if (!bits || number - number != 0)
    fail_header(ErrorCode::bad_value, field, printable(text, 40),
                fmt::format("the bits of a finite number in {} digits", digits));
  return number;
}

MckpQuantization checked_quant(const QuantTexts& texts, DType dtype) {
  if (texts.bits < 1 || texts.bits > 8)
    fail_header(ErrorCode::bad_value, "bits", std::to_string(texts.bits), "1 to 8");
  MckpQuantization quant{.bits = static_cast<unsigned>(texts.bits),
                         .minimum = read_parameter(texts.minimum, dtype, "min"),
                         .scale = read_parameter(texts.scale, dtype, "scale")};
  if (quant.scale < 0) fail_header(ErrorCode::bad_value, "scale", texts.scale, "0 or more");
  return quant;
}

// What the rules on a sparse tensor's indices leave to the header.
void check_sparse_layout(const TensorLayout& layout) {
  if (dtype_is_packed(layout.dtype))
    fail_header(ErrorCode::inconsistent, "sparse", std::string(dtype_name(layout.dtype)),
                "elements of whole bytes");
  const bool fits =
      layout.encoding == Encoding::csr ? layout.shape.rank() == 2 : layout.shape.rank() != 0;
  if (!fits)
    fail_header(ErrorCode::inconsistent, "sparse", layout.shape.to_string(),
                layout.encoding == Encoding::csr ? "2 dimensions" : "1 dimension or more");
  if (layout.nnz > *layout.shape.element_count())
    fail_header(ErrorCode::out_of_bounds, "nnz", std::to_string(layout.nnz),
                fmt::format("at most {}", *layout.shape.element_count()));
  if (!layout.wide_indices && !format::narrow_indices_fit(layout))
    fail_header(ErrorCode::inconsistent, "index_bits", "32", "64, for this shape and nnz");
}

void check_size(const MckpTensor& tensor) {
  auto expected = tensor.shape.byte_length(tensor.dtype);
  if (expected && tensor.sparse) {
    check_sparse_layout(tensor.layout());
    expected = format::payload_length(tensor.layout());
  }
  if (!expected)
    fail_header(ErrorCode::out_of_bounds, "shape", tensor.shape.to_string(),
                "at most 2^64 - 1 bytes");
  if (tensor.original_size != *expected)
    fail_header(
        ErrorCode::inconsistent, "original_size", std::to_string(tensor.original_size),
        fmt::format("{}, of {} {}", *expected, dtype_name(tensor.dtype), tensor.shape.to_string()));
}

MckpTensor read_mckp_tensor(json::Value& value) {
  require_kind(value, json::Kind::object, "tensor_metadata");
  MckpTensor tensor;
  std::string dtype;
  std::uint64_t method = 0;
  std::optional<QuantTexts> quant;
  KnownMembers members;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == "name") {
      members.once(key);
      tensor.name = read_text(member, key);
    } else if (key == "dtype") {
      members.once(key);
      dtype = read_text(member, key);
    } else if (key == "shape") {
      members.once(key);
      tensor.shape = read_shape(member);
    } else if (key == "original_size") {
      members.once(key);
      tensor.original_size = read_integer(member, key);
    } else if (key == "compressed_size") {
      members.once(key);
      tensor.compressed_size = read_integer(member, key);
    } else if (key == "offset") {
      members.once(key);
      tensor.offset = read_integer(member, key);
    } else if (key == "method") {
      members.once(key);
      method = read_integer(member, key);
    } else if (key == "quant") {
      members.once(key);
      if (member.kind() != json::Kind::null) quant = read_quant(member);
    } else if (key == "xxh64") {
      members.once(key);
      tensor.xxh64 = read_hex(member, key, 16);
    } else if (key == "sparse") {
      members.once(key);
      if (member.kind() != json::Kind::null) tensor.sparse = read_sparse(member);
    }
  });
  try {
    for (const char* const field : {"name", "dtype", "shape", "original_size", "compressed_size",
                                    "offset", "method", "quant", "xxh64"})
      members.need(field);
    if (tensor.name.size() > kMckpMaxName)
      fail_header(ErrorCode::bad_name, "name", fmt::format("{} bytes", tensor.name.size()),
                  fmt::format("at most {}", kMckpMaxName));
    const auto known = mckp_dtype_from_name(dtype);
    if (!known)
      throw UnsupportedDtypeError(
          dtype, "unknown dtype",
          {.section = "header", .field = "dtype", .value = printable(dtype)});
    tensor.dtype = *known;
    if (method > 0xffffffff)
      fail_header(ErrorCode::bad_value, "method", std::to_string(method), "below 2^32");
    tensor.method = unpack_method(static_cast<std::uint32_t>(method), tensor.dtype);
    if (tensor.method.low_rank && tensor.shape.rank() != 2)
      fail_header(ErrorCode::inconsistent, "shape", tensor.shape.to_string(),
                  "2 dimensions, of what is of low rank");
    if (tensor.method.sparse != tensor.sparse.has_value())
      fail_header(ErrorCode::inconsistent, "sparse", tensor.sparse ? "an object" : "null",
                  "an object where the method is sparse, and nowhere else");
    check_size(tensor);
    if (tensor.method.quantized != quant.has_value())
      fail_header(ErrorCode::inconsistent, "quant", quant ? "an object" : "null",
                  "an object where the method is quantized, and nowhere else");
    if (quant) tensor.quantization = checked_quant(*quant, tensor.dtype);
  } catch (Error& error) {
    error.add_section("header");
    // All members were read, so the name is known.
    error.add_tensor(printable(tensor.name));
    throw;
  }
  return tensor;
}

// Key and hash come together, exactly where a tensor needs the file that they name.
void check_previous(const std::optional<Digest256>& hash, const std::optional<std::string>& key,
                    ParsedMckpHeader& parsed) {
  if (hash.has_value() != key.has_value())
    fail_header(ErrorCode::inconsistent, "previous_key", key ? "a key" : "null",
                "both or none of key and hash");
  if (hash) parsed.header.previous = MckpPrevious{.key = *key, .content_hash = *hash};
  bool delta = false;
  for (const MckpTensor& tensor : parsed.tensors) delta = delta || tensor.method.delta;
  if (delta != parsed.header.previous.has_value())
    fail_header(ErrorCode::inconsistent, "previous_key", key ? "a key" : "null",
                "a key where a tensor is a delta, and nowhere else");
}

// Names are unique, and the sum of sizes does not wrap, so limits can be checked against it.
void check_tensors(const ParsedMckpHeader& parsed) {
  std::unordered_set<std::string_view> names;
  std::uint64_t total = 0;
  for (const MckpTensor& tensor : parsed.tensors) {
    if (!names.insert(tensor.name).second)
      throw FormatError(ErrorCode::bad_name, "another tensor has this name",
                        {.section = "header", .field = "name", .tensor = printable(tensor.name)});
    if (__builtin_add_overflow(total, tensor.original_size, &total))
      fail_header(ErrorCode::out_of_bounds, "original_size", "a sum of 2^64 or more",
                  "at most 2^64 - 1");
  }
  if (total != parsed.header.original_size)
    fail_header(ErrorCode::inconsistent, "original_size",
                std::to_string(parsed.header.original_size),
                fmt::format("{}, the sum of its tensors", total));
}

}  // namespace

ParsedMckpHeader parse_mckp_header(std::string_view text, const ReadLimits& limits) {
  ParsedMckpHeader parsed;
  MckpHeader& header = parsed.header;
  header.content_digests = LeafAlgorithm::sha256;  // where the file does not say
  std::optional<Digest256> previous_hash;
  std::optional<std::string> previous_key;
  KnownMembers members;
  // A caller's limit below what the format itself nests would refuse every file.
  const unsigned depth = std::max(limits.max_json_depth, kMckpHeaderDepth);
  json::walk_object(text, depth, [&](std::string_view key, json::Value& value) {
    const bool given = value.kind() != json::Kind::null;
    if (key == "original_size") {
      members.once(key);
      header.original_size = read_integer(value, key);
    } else if (key == "training_step") {
      members.once(key);
      if (given) header.training_step = read_integer(value, key);
    } else if (key == "previous_checkpoint_hash") {
      members.once(key);
      if (given) previous_hash = read_digest(value, key);
    } else if (key == "previous_key") {
      members.once(key);
      if (given) previous_key = read_text(value, key);
    } else if (key == "content_hash") {
      members.once(key);
      if (given) header.content_hash = read_digest(value, key);
    } else if (key == "content_digests") {
      members.once(key);
      if (given) header.content_digests = read_digests(value, key);
    } else if (key == "compression_params") {
      members.once(key);
      header.compression_params = read_object(value, key);
    } else if (key == "metadata") {
      members.once(key);
      header.metadata = read_object(value, key);
    } else if (key == "tensor_metadata") {
      members.once(key);
      require_kind(value, json::Kind::array, key);
      value.for_each_element([&](json::Value& element) {
        // Before the tensor is read: the limit bounds memory.
        if (parsed.tensors.size() == limits.max_tensors)
          fail_limit("header", "max_tensors", parsed.tensors.size() + 1, limits.max_tensors);
        parsed.tensors.push_back(read_mckp_tensor(element));
      });
    }
  });
  members.need("original_size");
  members.need("tensor_metadata");
  check_tensors(parsed);
  check_previous(previous_hash, previous_key, parsed);
  return parsed;
}

}  // namespace thalia::formats
