// thalia ls: regions, or a region's tensors, from the directory alone. JSON is handed on piece by
// piece, so that a file with very many tensors needs little memory; tables must know their widest
// cell and are held whole.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/file_facts.h"
#include "cli/print/original.h"
#include "cli/print/print.h"
#include "cli/tensor/file_format.h"
#include "cli/tensor/packed_file.h"
#include "cli/terminal/escape.h"
#include "json/writer.h"
#include "thalia/error.h"
#include "thalia/quantization.h"
#include "thalia/reader.h"
#include "thalia/safetensors.h"
#include "thalia/text.h"

namespace thalia::cli {
namespace {

struct LsArguments {
  std::string file;
  std::string region;
};

// A table of tensors, with a column of codecs where one of them is compressed.
Table tensor_table(std::vector<Table::Column> columns, bool compressed) {
  for (const char* heading : {"tensor", "dtype", "shape", "role", "encoding"})
    columns.push_back({heading});
  if (compressed) columns.push_back({"codecs"});
  columns.push_back({"stored", Table::Align::right});
  return Table(std::move(columns));
}

std::string encoding_text(const TensorView& tensor) {
  std::string text(encoding_name(tensor.encoding()));
  if (is_sparse(tensor.encoding()))
    text += fmt::format(" ({})", counted(tensor.nnz(), "entry", "entries"));
  if (const auto quantization = quantization_of(tensor))
    text += fmt::format(" ({:.3g} bits, lossy)", quantization->mean_bits);
  return text;
}

// "zstd 1.81x"
std::string codecs_text(const TensorView& tensor) {
  std::string text;
  for (const Codec codec : tensor.codecs())
    text += fmt::format("{}{}", text.empty() ? "" : ", ", codec_name(codec));
  if (!tensor.is_raw()) text += " " + ratio_text(tensor.logical_bytes(), tensor.stored_bytes());
  return text;
}

// The cells of tensor_table(), behind those given.
void add_row(Table& table, std::vector<std::string> cells, const TensorView& tensor,
             bool compressed) {
  cells.push_back(escape_name(tensor.name()));
  cells.emplace_back(dtype_name(tensor.dtype()));
  cells.push_back(tensor.shape().to_string());
  cells.emplace_back(role_name(tensor.role()));
  cells.push_back(encoding_text(tensor));
  if (compressed) cells.push_back(codecs_text(tensor));
  cells.push_back(human_bytes(tensor.stored_bytes()));
  table.add_row(std::move(cells));
}

void add_shape(JsonWriter& json, const Shape& shape) {
  json.key("shape").begin_array();
  for (const std::uint64_t extent : shape.extents()) json.value(extent);
  json.end_array();
}

void add_json(JsonWriter& json, const TensorView& tensor) {
  json.begin_object()
      .member("name", as_utf8(tensor.name()))
      .member("dtype", dtype_name(tensor.dtype()));
  add_shape(json, tensor.shape());
  json.member("role", role_name(tensor.role()));
  json.member("encoding", encoding_name(tensor.encoding())).member("nnz", tensor.nnz());
  json.member("logical_bytes", tensor.logical_bytes());
  json.member("stored_bytes", tensor.stored_bytes()).member("offset", tensor.stored_offset());
  json.member("chunks", tensor.chunk_count()).key("codecs").begin_array();
  for (const Codec codec : tensor.codecs()) json.value(codec_name(codec));
  json.end_array().member("crc32", fmt::format("{:08x}", tensor.crc32()));
  json.member("content_hash", hex(tensor.content_hash().bytes));
  if (const auto quantization = quantization_of(tensor)) {
    json.key("quantization").begin_object().member("bits", quantization->mean_bits);
    json.member("group_size", quantization->group_size);
    json.member("max_error", quantization->max_error).member("rms_error", quantization->rms_error);
    json.member("lossy_generation", quantization->lossy_generation);
    json.member("max_lossy_generations", quantization->max_lossy_generations).end_object();
  }
  json.end_object();
}

void add_region_facts(JsonWriter& json, const RegionView& region) {
  json.member("name", as_utf8(region.name())).member("tensor_count", region.tensor_count());
  json.member("n_neurons", region.n_neurons()).member("n_inputs", region.n_inputs());
  json.member("neuron_type", neuron_type_name(region.neuron_type()));
  json.member("logical_bytes", region.logical_bytes());
  json.member("stored_bytes", region.stored_bytes());
  json.member("offset", region.offset()).member("length", region.length());
}

bool has_compressed_matrix(const Reader& reader) {
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    if (!connection.weights.is_raw() || (connection.delays && !connection.delays->is_raw()))
      return true;
  }
  return false;
}

void print_regions(Output& out, const Reader& reader) {
  using enum Table::Align;
  Table regions({{"region"},
                 {"tensors", right},
                 {"neurons", right},
                 {"inputs", right},
                 {"type"},
                 {"in memory", right},
                 {"stored", right}});
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const RegionView region = reader.region(i);
    regions.add_row({escape_name(region.name()), grouped(region.tensor_count()),
                     grouped(region.n_neurons()), grouped(region.n_inputs()),
                     std::string(neuron_type_name(region.neuron_type())),
                     human_bytes(region.logical_bytes()), human_bytes(region.stored_bytes())});
  }
  regions.print(out);
  if (reader.connection_count() == 0) return;
  out.write("\n");
  const bool compressed = has_compressed_matrix(reader);
  Table connections = tensor_table({{"connection"}}, compressed);
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    const std::string name =
        fmt::format("{} -> {}", escape_name(connection.source), escape_name(connection.target));
    add_row(connections, {name}, connection.weights, compressed);
    if (connection.delays) add_row(connections, {name}, *connection.delays, compressed);
  }
  connections.print(out);
}

void print_regions_json(Output& out, const Reader& reader) {
  std::string text;
  JsonWriter json(text);
  const auto hand_on = [&] {
    out.write(text);
    text.clear();
  };
  json.begin_object().key("regions").begin_array();
  for (std::uint32_t i = 0; i < reader.region_count() && !out.closed(); ++i) {
    json.begin_object();
    add_region_facts(json, reader.region(i));
    json.end_object();
    hand_on();
  }
  json.end_array().key("connections").begin_array();
  for (std::uint32_t i = 0; i < reader.connection_count() && !out.closed(); ++i) {
    const ConnectionView connection = reader.connection(i);
    json.begin_object()
        .member("source", as_utf8(connection.source))
        .member("target", as_utf8(connection.target));
    json.key("weights");
    add_json(json, connection.weights);
    json.key("delays");
    if (connection.delays) {
      add_json(json, *connection.delays);
    } else {
      json.null();
    }
    json.end_object();
    hand_on();
  }
  json.end_array().end_object();
  out.write(text + "\n");
}

void print_region(Output& out, const RegionView& region) {
  bool compressed = false;
  for (std::uint32_t i = 0; i < region.tensor_count(); ++i)
    compressed = compressed || !region.tensor(i).is_raw();
  Table table = tensor_table({}, compressed);
  for (std::uint32_t i = 0; i < region.tensor_count(); ++i)
    add_row(table, {}, region.tensor(i), compressed);
  table.print(out);
}

void print_region_json(Output& out, const RegionView& region) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  add_region_facts(json, region);
  json.key("config").raw(region.config_json().empty() ? "null" : region.config_json());
  json.key("metadata").raw(region.metadata_json().empty() ? "null" : region.metadata_json());
  json.key("tensors").begin_array();
  for (std::uint32_t i = 0; i < region.tensor_count() && !out.closed(); ++i) {
    add_json(json, region.tensor(i));
    out.write(text);
    text.clear();
  }
  json.end_array().end_object();
  out.write(text + "\n");
}

void print_safetensors(Output& out, const SafetensorsFile& file) {
  using enum Table::Align;
  Table table({{"tensor"}, {"dtype"}, {"shape"}, {"stored", right}});
  for (const SafetensorsTensor& tensor : file.tensors()) {
    table.add_row({escape_name(tensor.name), std::string(dtype_name(tensor.dtype)),
                   tensor.shape.to_string(), human_bytes(tensor.bytes.size())});
  }
  table.print(out);
}

void print_safetensors_json(Output& out, const SafetensorsFile& file) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("tensors").begin_array();
  for (const SafetensorsTensor& tensor : file.tensors()) {
    json.begin_object()
        .member("name", as_utf8(tensor.name))
        .member("dtype", dtype_name(tensor.dtype));
    add_shape(json, tensor.shape);
    json.member("stored_bytes", tensor.bytes.size()).end_object();
    out.write(text);
    text.clear();
  }
  json.end_array().end_object();
  out.write(text + "\n");
}

int run_safetensors(const LsArguments& arguments, const ReadOptions& read, const Session& session) {
  if (!arguments.region.empty()) {
    throw UsageError(ErrorCode::bad_argument, "a safetensors file has no regions, only tensors",
                     {.path = arguments.file, .region = arguments.region});
  }
  const SafetensorsFile file = SafetensorsFile::open(arguments.file, read);
  if (session.common.json) {
    print_safetensors_json(session.out, file);
  } else {
    print_safetensors(session.out, file);
  }
  return kDone;
}

int run_ls(const LsArguments& arguments, const Session& session) {
  Output& out = session.out;
  auto read = session.options<ReadOptions>();
  const FileFormat format = format_of(arguments.file);
  if (format == FileFormat::thalia_0_1) {
    list_original(out, arguments.file, arguments.region, read, session.common.json);
    return kDone;
  }
  if (is_packed(format)) {
    list_packed(out, arguments.file, format, arguments.region, read, session.common.json);
    return kDone;
  }
  if (format == FileFormat::safetensors) return run_safetensors(arguments, read, session);
  // Checking blocks of the tree would read the payloads that share these blocks.
  read.verification = Verification::off;
  const Reader reader = Reader::open(arguments.file, read);
  if (arguments.region.empty()) {
    session.common.json ? print_regions_json(out, reader) : print_regions(out, reader);
    return kDone;
  }
  // The name as it was typed comes first, as it may look like an escape; the last call is made for
  // its error.
  auto region = reader.find_region(arguments.region);
  if (!region) region = reader.find_region(unescape_name(arguments.region));
  if (!region) region = reader.region(arguments.region);
  session.common.json ? print_region_json(out, *region) : print_region(out, *region);
  return kDone;
}

}  // namespace

Run declare_ls(CLI::App& app) {
  app.description(
      "Lists the regions and connections of a file, or the tensors of one region: name, dtype, "
      "shape, role, encoding (and stored entries of sparse ones), bytes in the file. Reads no "
      "payload.");
  const auto arguments = std::make_shared<LsArguments>();
  add_file(app, "FILE", arguments->file, "A .thalia or .safetensors file");
  offer(app.add_option("REGION", arguments->region, "List this region's tensors"), kRegion);
  return [arguments](const Session& session) { return run_ls(*arguments, session); };
}

}  // namespace thalia::cli
