#include "python/file_facts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "thalia/brain_region.h"
#include "thalia/error.h"
#include "thalia/growth_history.h"
#include "thalia/mckp.h"
#include "thalia/metadata_file.h"
#include "thalia/mst.h"
#include "thalia/paths.h"
#include "thalia/reader.h"
#include "thalia/safetensors.h"
#include "thalia/tensor_role.h"
#include "thalia/text.h"
#include "thalia/v01.h"
#include "thalia/value.h"
#include "thalia/wrap.h"

namespace thalia::python {
namespace {

using Path = std::filesystem::path;

bool is_parameter(const TensorEntry& tensor) {
  const unsigned rank = tensor.layout.shape.rank();
  const Role role =
      tensor.role ? likely_role(*tensor.role, tensor.name, rank) : role_of_name(tensor.name, rank);
  return is_weights(role) || role == Role::bias || role == Role::normalization;
}

// nullopt of what a delta makes of a base.
std::optional<std::uint64_t> value_bytes(const TensorEntry& tensor) {
  switch (tensor.layout.encoding) {
    case Encoding::dense:
    case Encoding::csr:
    case Encoding::coo:
    case Encoding::xor_base:
      return tensor.logical_bytes;
    case Encoding::quantized:
      return tensor.layout.shape.byte_length(tensor.layout.dtype);
    case Encoding::same_as_base:
    case Encoding::sparse_delta:
    case Encoding::low_rank_delta:
      break;
  }
  return std::nullopt;
}

void add_known(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& bytes) {
  if (sum && bytes) {
    *sum += *bytes;
  } else {
    sum.reset();
  }
}

// JSON has no numbers for NaN and infinities, which become texts, and no tensors. Of the texts of
// numbers these alone end in 'N' or 'y'.
void make_json(Value& value) {
  if (value.is_tensor()) value = Value();
  if (value.is_array())
    for (Value& element : value.elements()) make_json(element);
  if (value.is_object())
    for (Value::Member& member : value.members()) make_json(member.value);
  if (value.kind() != Value::Kind::number) return;
  const std::string text = value.number_text();
  if (text.back() == 'N' || text.back() == 'y') value = Value(text);
}

std::string json_of(Value value) {
  make_json(value);
  return to_json(value);
}

std::string json_of(const SafetensorsMetadata& texts) {
  if (texts.empty()) return {};
  Value object = Value::object();
  for (const auto& [key, text] : texts) object.add(key, Value(text));
  return to_json(object);
}

void add_view(TensorSums& sums, const TensorView& view) {
  sums.add({.name = view.name(),
            .layout = view.layout(),
            .role = view.role(),
            .logical_bytes = view.logical_bytes(),
            .stored_bytes = view.stored_bytes(),
            .codecs = view.codecs(),
            .quantization = quantization_of(view)});
}

TensorSums sums_of(const Reader& reader) {
  TensorSums sums;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) add_view(sums, region.tensor(i));
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    add_view(sums, connection.weights);
    if (connection.delays) add_view(sums, *connection.delays);
  }
  return sums;
}

std::string_view checksum_name(ChecksumType type) {
  switch (type) {
    case ChecksumType::none:
      return "none";
    case ChecksumType::sha256:
      return "sha256";
    case ChecksumType::crc32:
      return "crc32";
    case ChecksumType::block_tree:
      return "block_tree";
  }
  return "unknown";
}

void describe_thalia(FileFacts& facts, const Path& path, const ReadOptions& read) {
  const Reader reader = Reader::open(path, read);
  const FileHeader header = reader.header();
  facts.version = header.version.to_string();
  facts.is_side_file = is_metadata_file(path);
  facts.file_bytes = reader.file_bytes();
  facts.dead_bytes = reader.dead_bytes();
  facts.debris_bytes = reader.debris_bytes();
  if (const auto wrapper = read_wrapper(path); wrapper && !facts.is_side_file) {
    facts.wrapper = WrapperFacts{.codec = wrapper->codec};
    if (wrapper->has_seek_table) facts.wrapper->frames = wrapper->frames;
  }
  facts.regions = reader.region_count();
  facts.connections = reader.connection_count();
  facts.total_neurons = header.total_neurons;
  facts.total_synapses = header.total_synapses;
  facts.training_steps = header.training_steps;
  facts.timestamp = header.timestamp;
  facts.generation = header.generation;
  facts.file_uuid = hex(header.file_uuid);
  facts.checksum_type = checksum_name(header.checksum);
  if (header.checksum != ChecksumType::none) facts.checksum = hex(reader.closing_checksum().bytes);
  facts.metadata_json = reader.metadata_json();
  facts.tensors = sums_of(reader);
  if (const auto base = reader.delta_base()) {
    facts.delta_base = BaseFacts{.path = base->path,
                                 .checksum = hex(base->checksum.bytes),
                                 .training_steps = base->step,
                                 .depth = base->depth};
  }
}

// A Python pickle, which could run code: only what stands in front of it is read.
void describe_original_delta(FileFacts& facts, const Path& path, const ReadOptions& read) {
  const V01DeltaInfo info = read_v01_delta_info(path, read);
  if (info.wrapper) facts.wrapper = WrapperFacts{.codec = *info.wrapper};
  if (info.metadata) facts.metadata_json = json_of(*info.metadata);
  facts.training_steps = info.current_step;
  facts.delta_base =
      BaseFacts{.checksum = hex(info.base_hash.bytes), .training_steps = info.base_step};
}

std::optional<Role> original_role(std::string_view path) {
  const std::string_view component = path.substr(0, path.find('.'));
  const Role role = role_of_component(component);
  if (role == Role::other && component != component_of_role(Role::other)) return std::nullopt;
  return role;
}

void describe_original(FileFacts& facts, const Path& path, const ReadOptions& read) {
  if (is_v01_delta(path, read)) return describe_original_delta(facts, path, read);
  const V01File file = read_v01(path, read);
  const V01Header& header = file.document.header;
  facts.version = header.version.to_string();
  if (file.wrapper) facts.wrapper = WrapperFacts{.codec = *file.wrapper};
  facts.regions = file.document.entries.size();
  facts.total_neurons = header.total_neurons;
  facts.total_synapses = header.total_synapses;
  facts.training_steps = header.training_steps;
  facts.timestamp = header.timestamp;
  facts.checksum_type = "sha256";
  facts.warnings = file.warnings;
  facts.metadata_json = json_of(file.document.metadata);
  TensorSums sums;
  for (const V01Entry& entry : file.document.entries) {
    for_each_tensor(entry.state, [&](const std::string& name, const Tensor& tensor) {
      sums.add({.name = name,
                .layout = tensor.layout(),
                .role = original_role(name),
                .logical_bytes = tensor.bytes().size(),
                .codecs = {Codec::store}});
    });
  }
  facts.tensors = std::move(sums);
}

void describe_safetensors(FileFacts& facts, const Path& path, const ReadOptions& read) {
  const SafetensorsFile file = SafetensorsFile::open(path, read);
  facts.metadata_json = json_of(file.metadata());
  facts.tensors.emplace();
  for (const SafetensorsTensor& tensor : file.tensors()) {
    facts.tensors->add({.name = tensor.name,
                        .layout = {.dtype = tensor.dtype, .shape = tensor.shape},
                        .logical_bytes = tensor.bytes.size(),
                        .stored_bytes = tensor.bytes.size(),
                        .codecs = {Codec::store}});
  }
}

void describe_mckp(FileFacts& facts, const Path& path, const ReadOptions& read) {
  const MckpFile file = MckpFile::open(path, {.input = read.input, .work = read.work});
  const MckpHeader& header = file.header();
  facts.version = "1";
  if (header.metadata != "{}") facts.metadata_json = header.metadata;
  facts.training_steps = header.training_step;
  facts.checksum_type = "xxh64";
  if (header.content_hash) facts.content_hash = hex(header.content_hash->bytes);
  if (header.previous) {
    facts.delta_base = BaseFacts{.path = header.previous->key,
                                 .checksum = hex(header.previous->content_hash.bytes)};
  }
  facts.tensors.emplace();
  for (const MckpTensor& tensor : file.tensors()) {
    TensorEntry entry{.name = tensor.name,
                      .layout = {.dtype = tensor.dtype, .shape = tensor.shape},
                      .logical_bytes = tensor.original_size,
                      .stored_bytes = tensor.compressed_size,
                      .codecs = {tensor.method.codec}};
    if (tensor.method.delta) entry.layout.encoding = Encoding::xor_base;
    if (tensor.quantization) {
      // original_size is that of the numbers; these are their codes.
      entry.layout.encoding = Encoding::quantized;
      entry.logical_bytes =
          (tensor.shape.element_count().value_or(0) * tensor.quantization->bits + 7) / 8;
    }
    facts.tensors->add(entry);
  }
}

void describe_mst(FileFacts& facts, const Path& path, const ReadOptions& read) {
  const MstFile file = MstFile::open(path, read);
  facts.version = "1";
  facts.metadata_json = json_of(file.metadata());
  facts.tensors.emplace();
  for (const MstTensor& tensor : file.tensors()) {
    facts.tensors->add({.name = tensor.name,
                        .layout = {.dtype = tensor.dtype, .shape = tensor.shape},
                        .logical_bytes = tensor.uncompressed_size,
                        .stored_bytes = tensor.compressed_size,
                        .codecs = {Codec::zstd}});
  }
}

std::string growth_json(const std::string& metadata) {
  if (metadata.empty()) return "[]";
  try {
    return growth_history_json(parse_growth_history(metadata));
  } catch (const FormatError&) {
    return {};
  }
}

}  // namespace

void TensorSums::add(const TensorEntry& tensor) {
  const TensorLayout& layout = tensor.layout;
  const std::uint64_t elements =
      is_sparse(layout.encoding)
          ? layout.nnz
          : layout.shape.element_count().value_or(std::numeric_limits<std::uint64_t>::max());
  OfDType& of_dtype = dtypes[static_cast<std::size_t>(layout.dtype)];
  ++of_dtype.tensors;
  of_dtype.elements += elements;
  of_dtype.logical_bytes += tensor.logical_bytes;
  ++tensors;
  if (is_parameter(tensor)) parameters += elements;
  logical_bytes += tensor.logical_bytes;
  add_known(stored_bytes, tensor.stored_bytes);
  add_known(value_bytes, python::value_bytes(tensor));
  codecs.insert(tensor.codecs.begin(), tensor.codecs.end());
  if (layout.encoding == Encoding::quantized) ++quantized;
  if (!tensor.quantization) return;
  lossy_generation = std::max(lossy_generation.value_or(0), tensor.quantization->lossy_generation);
  max_lossy_generations =
      std::max(max_lossy_generations.value_or(0), tensor.quantization->max_lossy_generations);
}

FileFormat known_format(const std::filesystem::path& path) {
  if (const auto format = detect_format(path)) return *format;
  return path.extension() == ".safetensors" ? FileFormat::safetensors : FileFormat::thalia;
}

FileFacts describe_file(const std::filesystem::path& path, const ChainOptions& options) {
  FileFacts facts;
  facts.format = known_format(path);
  switch (facts.format) {
    case FileFormat::thalia:
      describe_thalia(facts, path, options.read);
      break;
    case FileFormat::thalia_0_1:
      describe_original(facts, path, options.read);
      break;
    case FileFormat::safetensors:
      describe_safetensors(facts, path, options.read);
      break;
    case FileFormat::mckp:
      describe_mckp(facts, path, options.read);
      break;
    case FileFormat::mst:
      describe_mst(facts, path, options.read);
      break;
  }
  facts.disk_bytes = file_bytes(path);
  if (facts.format != FileFormat::thalia) facts.file_bytes = facts.disk_bytes;
  facts.growth_json = growth_json(facts.metadata_json);
  return facts;
}

}  // namespace thalia::python
