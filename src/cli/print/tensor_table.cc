#include "cli/print/tensor_table.h"

#include <fmt/format.h>

#include <utility>

#include "cli/print/json_result.h"
#include "cli/terminal/escape.h"
#include "thalia/text.h"

namespace thalia::cli {
namespace {

std::string encoding_text(const AnyTensor& tensor) {
  const TensorLayout& layout = tensor.layout;
  std::string text(encoding_name(layout.encoding));
  if (is_sparse(layout.encoding))
    text += fmt::format(" ({})", counted(layout.nnz, "entry", "entries"));
  if (tensor.bits) text += fmt::format(" ({:.3g} bits, lossy)", *tensor.bits);
  return text;
}

// "zstd 1.81x"
std::string codecs_text(const AnyTensor& tensor) {
  std::string text;
  for (const Codec codec : tensor.codecs)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", codec_name(codec));
  if (tensor.byte_planes.value_or(false)) text += " of byte planes";
  if (tensor.is_compressed() && tensor.stored_bytes)
    text += " " + ratio_text(tensor.logical_bytes, *tensor.stored_bytes);
  return text;
}

void add_quantization(JsonWriter& json, const AnyTensor& tensor) {
  json.key("quantization");
  if (!tensor.bits) {
    json.null();
    return;
  }
  const auto& known = tensor.quantization;
  json.begin_object().member("bits", *tensor.bits);
  add_known(json, "group_size", known, &TensorQuantization::group_size);
  add_known(json, "max_error", known, &TensorQuantization::max_error);
  add_known(json, "rms_error", known, &TensorQuantization::rms_error);
  add_known(json, "lossy_generation", known, &TensorQuantization::lossy_generation);
  add_known(json, "max_lossy_generations", known, &TensorQuantization::max_lossy_generations);
  json.end_object();
}

}  // namespace

std::string shown_name(std::string_view region, std::string_view name) {
  return (region.empty() ? "" : escape_name(region) + "/") + escape_name(name);
}

void add_shape(JsonWriter& json, const Shape& shape) {
  json.key("shape").begin_array();
  for (const std::uint64_t extent : shape.extents()) json.value(extent);
  json.end_array();
}

void add_identity(JsonWriter& json, std::string_view region, std::string_view name,
                  const TensorLayout& layout) {
  json.key("region");
  region.empty() ? json.null() : json.value(as_utf8(region));
  json.member("name", as_utf8(name)).member("dtype", dtype_name(layout.dtype));
  add_shape(json, layout.shape);
}

void add_tensor(JsonWriter& json, const AnyTensor& tensor) {
  const TensorLayout& layout = tensor.layout;
  json.begin_object();
  add_identity(json, tensor.region, tensor.name, layout);
  json.key("type");
  tensor.type.empty() ? json.null() : json.value(as_utf8(tensor.type));
  json.key("role");
  tensor.role ? json.value(role_name(*tensor.role)) : json.null();
  json.member("encoding", encoding_name(layout.encoding)).key("nnz");
  is_sparse(layout.encoding) ? json.value(layout.nnz) : json.null();
  json.member("logical_bytes", tensor.logical_bytes);
  add_known(json, "stored_bytes", tensor.stored_bytes);
  add_known(json, "offset", tensor.offset);
  add_known(json, "chunks", tensor.chunks);
  std::vector<std::string_view> codecs;
  for (const Codec codec : tensor.codecs) codecs.push_back(codec_name(codec));
  add_list(json, "codecs", codecs);
  add_known(json, "byte_planes", tensor.byte_planes);
  json.key("crc32");
  tensor.crc32 ? json.value(fmt::format("{:08x}", *tensor.crc32)) : json.null();
  json.key("content_hash");
  tensor.content_hash ? json.value(hex(tensor.content_hash->bytes)) : json.null();
  add_quantization(json, tensor);
  json.end_object();
}

void TensorTable::add(const AnyTensor& tensor) {
  has_roles_ = has_roles_ || tensor.role;
  has_codecs_ = has_codecs_ || tensor.is_compressed();
  has_stored_ = has_stored_ || tensor.stored_bytes;
  rows_.push_back({qualified_ ? shown_name(tensor.region, tensor.name) : escape_name(tensor.name),
                   tensor.type.empty() ? std::string(dtype_name(tensor.layout.dtype))
                                       : escape_name(tensor.type),
                   tensor.layout.shape.to_string(),
                   tensor.role ? std::string(role_name(*tensor.role)) : "", encoding_text(tensor),
                   codecs_text(tensor), human_bytes(tensor.size())});
}

void TensorTable::print(Output& out) const {
  constexpr std::size_t kRoleColumn = 3, kCodecColumn = 5;
  const char* const size = has_stored_ || rows_.empty() ? "stored" : "in memory";
  std::vector<Table::Column> columns{{"tensor"},
                                     {"dtype"},
                                     {"shape"},
                                     {"role"},
                                     {"encoding"},
                                     {"codecs"},
                                     {size, Table::Align::right}};
  // The later one first, as places move.
  const auto cut = [&](auto& cells) {
    if (!has_codecs_) cells.erase(cells.begin() + kCodecColumn);
    if (!has_roles_) cells.erase(cells.begin() + kRoleColumn);
  };
  cut(columns);
  Table table(std::move(columns));
  for (std::vector<std::string> cells : rows_) {
    cut(cells);
    table.add_row(std::move(cells));
  }
  table.print(out);
}

}  // namespace thalia::cli
