// Writes the header. The keys are always in the order of docs/format/mckp.md and absent values are
// null, so equal input gives equal bytes. Numbers whose every bit matters are written as
// hexadecimal bits.
#include <fmt/format.h>

#include <bit>
#include <optional>

#include "formats/mckp/format.h"
#include "formats/mckp/header.h"
#include "json/writer.h"
#include "thalia/text.h"

namespace thalia::formats {
namespace {

void write_quant(JsonWriter& json, const MckpTensor& tensor) {
  if (!tensor.quantization) {
    json.null();
    return;
  }
  const auto bits = [&](double number) {
    return tensor.dtype == DType::f64
               ? fmt::format("{:016x}", std::bit_cast<std::uint64_t>(number))
               : fmt::format("{:08x}", std::bit_cast<std::uint32_t>(static_cast<float>(number)));
  };
  json.begin_object().member("scheme", "uniform").member("bits", tensor.quantization->bits);
  json.member("min", bits(tensor.quantization->minimum));
  json.member("scale", bits(tensor.quantization->scale)).end_object();
}

void write_sparse(JsonWriter& json, const MckpSparse& sparse) {
  json.begin_object().member("encoding", sparse.encoding == Encoding::csr ? "csr" : "coo");
  json.member("nnz", sparse.nnz).member("index_bits", sparse.wide_indices ? 64 : 32).end_object();
}

void write_digest(JsonWriter& json, std::string_view key, const std::optional<Digest256>& digest) {
  json.key(key);
  if (digest) {
    json.value(hex(digest->bytes));
  } else {
    json.null();
  }
}

}  // namespace

std::string make_mckp_header(const MckpHeader& header, const std::vector<MckpTensor>& tensors) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("original_size", header.original_size).key("training_step");
  if (header.training_step) {
    json.value(*header.training_step);
  } else {
    json.null();
  }
  std::optional<Digest256> previous;
  // Key and hash are null together: a reader refuses one without the other.
  if (header.previous) previous = header.previous->content_hash;
  write_digest(json, "previous_checkpoint_hash", previous);
  json.key("previous_key");
  if (header.previous) {
    json.value(header.previous->key);
  } else {
    json.null();
  }
  write_digest(json, "content_hash", header.content_hash);
  json.member("content_digests", mckp_digests_name(header.content_digests));
  json.key("compression_params").raw(header.compression_params);
  json.key("tensor_metadata").begin_array();
  for (const MckpTensor& tensor : tensors) {
    json.begin_object().member("name", tensor.name).member("dtype", mckp_dtype_name(tensor.dtype));
    json.key("shape").begin_array();
    for (const std::uint64_t extent : tensor.shape.extents()) json.value(extent);
    json.end_array().member("original_size", tensor.original_size);
    json.member("compressed_size", tensor.compressed_size).member("offset", tensor.offset);
    json.member("method", pack_method(tensor.method)).key("quant");
    write_quant(json, tensor);
    json.member("xxh64", fmt::format("{:016x}", tensor.xxh64));
    // Files without sparse tensors are what they were before there were any.
    if (tensor.sparse) write_sparse(json.key("sparse"), *tensor.sparse);
    json.end_object();
  }
  json.end_array().key("metadata").raw(header.metadata).end_object();
  return text;
}

}  // namespace thalia::formats
