#include "sample.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>

#include "integrity/sha256.h"
#include "thalia/append.h"
#include "thalia/reader.h"
#include "thalia/text.h"

namespace witness {
namespace {

using namespace thalia;

Bytes integers(const std::vector<std::uint64_t>& numbers, bool wide) {
  const std::size_t width = wide ? 8 : 4;
  Bytes bytes(numbers.size() * width);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (std::size_t k = 0; k < width; ++k) {
      bytes[i * width + k] = static_cast<std::byte>(numbers[i] >> (8 * k));
    }
  }
  return bytes;
}

template <typename Index>
std::span<const Index> as_indices(const Bytes& bytes) {
  return {reinterpret_cast<const Index*>(bytes.data()), bytes.size() / sizeof(Index)};
}

// Appends padded with zeros to a multiple of `alignment`.
void append(Bytes& bytes, const Bytes& more, std::size_t alignment = 1) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace

SaveOptions plain_options() {
  SaveOptions options;
  options.leaves = LeafAlgorithm::sha256;
  options.timestamp = 1'767'225'600;
  options.file_uuid = {0x54, 0x68, 0x61, 0x6C, 0x69, 0x61, 0x40, 0x00,
                       0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01};
  options.output.durability = Durability::none;
  return options;
}

SaveOptions example_options() {
  SaveOptions options = plain_options();
  options.block_log2 = 20;
  return options;
}

Bytes noise(std::size_t length, std::uint64_t seed) {
  Bytes bytes(length);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  for (std::byte& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<std::byte>(state >> 32);
  }
  return bytes;
}

Bytes dense_payload(DType dtype, const Shape& shape, std::uint64_t seed) {
  Bytes bytes = noise(*shape.byte_length(dtype), seed);
  for (std::byte& byte : bytes) {
    if (dtype == DType::boolean) byte &= std::byte{1};
    if (dtype == DType::ternary) {
      // 10 is no ternary code: where the high bit of a pair is set, set the low one.
      byte |= (byte >> 1) & std::byte{0x55};
    }
  }
  const auto used_bits = static_cast<unsigned>(*shape.element_count() * dtype_bits(dtype) % 8);
  if (used_bits != 0) bytes.back() &= static_cast<std::byte>((1u << used_bits) - 1);
  return bytes;
}

CsrMatrix csr_matrix(std::uint64_t rows, std::uint64_t columns) {
  CsrMatrix matrix;
  for (std::uint64_t row = 0; row < rows; ++row) {
    if (columns > 0 && row % 3 != 2) matrix.columns.push_back(row % columns);
    if (columns > 0 && row % 3 == 1 && row % columns + 1 < columns) {
      matrix.columns.push_back(columns - 1);
    }
    matrix.row_pointers.push_back(matrix.columns.size());
  }
  return matrix;
}

Sample::Sample(const std::filesystem::path& folder, const std::string& name,
               const SaveOptions& options)
    : path_(folder / (name + ".thalia")), options_(options), writer_(path_, options) {}

void Sample::metadata(std::string json) {
  metadata_ = json;
  writer_.set_metadata(std::move(json));
}

void Sample::training_steps(std::uint64_t steps) {
  training_steps_ = steps;
  writer_.set_training_steps(steps);
}

RegionId Sample::region(RegionSpec spec) {
  regions_.push_back(spec);
  return writer_.add_region(std::move(spec));
}

Sample::Noted& Sample::note(std::string region, TensorSpec spec, Bytes payload) {
  tensors_.push_back(std::make_unique<Noted>(
      Noted{.region = std::move(region), .spec = std::move(spec), .payload = std::move(payload)}));
  return *tensors_.back();
}

void Sample::dense(RegionId region, TensorSpec spec) {
  Bytes payload = dense_payload(spec.dtype, spec.shape, tensors_.size() + 1);
  dense(region, std::move(spec), std::move(payload));
}

void Sample::dense(RegionId region, TensorSpec spec, Bytes payload) {
  Noted& tensor = note(regions_[region.value].name, std::move(spec), std::move(payload));
  tensor.id = writer_.add_tensor(region, tensor.spec, tensor.payload);
}

void Sample::streamed(RegionId region, TensorSpec spec) {
  Bytes payload = dense_payload(spec.dtype, spec.shape, tensors_.size() + 1);
  Noted& tensor = note(regions_[region.value].name, std::move(spec), std::move(payload));
  tensor.streamed = true;
  tensor.id = writer_.add_tensor(region, tensor.spec);
}

void Sample::stream(std::size_t piece, bool interleaved) {
  const auto give = [&](const Noted& tensor, std::size_t at) {
    const ByteSpan all = tensor.payload;
    writer_.write(tensor.id, all.subspan(at, std::min(piece, all.size() - at)));
  };
  std::size_t longest = 0;
  for (const auto& tensor : tensors_) {
    if (!tensor->streamed) continue;
    longest = std::max(longest, tensor->payload.size());
    for (std::size_t at = 0; !interleaved && at < tensor->payload.size(); at += piece) {
      give(*tensor, at);
    }
  }
  for (std::size_t at = 0; interleaved && at < longest; at += piece) {
    for (const auto& tensor : tensors_) {
      if (tensor->streamed && at < tensor->payload.size()) give(*tensor, at);
    }
  }
}

void Sample::csr(RegionId region, TensorSpec spec, const CsrMatrix& matrix, bool wide) {
  spec.encoding = Encoding::csr;
  spec.nnz = matrix.columns.size();
  spec.wide_indices = wide;
  borrowed_.push_back(integers(matrix.row_pointers, wide));
  const Bytes& rows = borrowed_.back();
  borrowed_.push_back(integers(matrix.columns, wide));
  const Bytes& columns = borrowed_.back();
  borrowed_.push_back(dense_payload(spec.dtype, {spec.nnz}, tensors_.size() + 1));
  const Bytes& values = borrowed_.back();
  Bytes logical = rows;
  append(logical, columns);
  append(logical, values, dtype_alignment(spec.dtype));
  const Noted& tensor = note(regions_[region.value].name, spec, std::move(logical));
  if (wide) {
    writer_.add_csr(region, tensor.spec,
                    CsrArrays<std::uint64_t>{as_indices<std::uint64_t>(rows),
                                             as_indices<std::uint64_t>(columns), values});
  } else {
    writer_.add_csr(region, tensor.spec,
                    CsrArrays<std::uint32_t>{as_indices<std::uint32_t>(rows),
                                             as_indices<std::uint32_t>(columns), values});
  }
}

void Sample::coo(RegionId region, TensorSpec spec, const std::vector<std::uint64_t>& coordinates,
                 bool wide) {
  spec.encoding = Encoding::coo;
  spec.nnz = coordinates.size() / spec.shape.rank();
  spec.wide_indices = wide;
  borrowed_.push_back(integers(coordinates, wide));
  const Bytes& indices = borrowed_.back();
  borrowed_.push_back(dense_payload(spec.dtype, {spec.nnz}, tensors_.size() + 1));
  const Bytes& values = borrowed_.back();
  Bytes logical = indices;
  append(logical, values, dtype_alignment(spec.dtype));
  const Noted& tensor = note(regions_[region.value].name, spec, std::move(logical));
  if (wide) {
    writer_.add_coo(region, tensor.spec,
                    CooArrays<std::uint64_t>{as_indices<std::uint64_t>(indices), values});
  } else {
    writer_.add_coo(region, tensor.spec,
                    CooArrays<std::uint32_t>{as_indices<std::uint32_t>(indices), values});
  }
}

std::uint32_t Sample::connection(const std::string& source, const std::string& target) {
  connections_.emplace_back(source, target);
  return writer_.add_connection(source, target).value;
}

void Sample::weights(std::uint32_t connection, TensorSpec spec) {
  add_connection_matrix(connection, std::move(spec), false);
}

void Sample::delays(std::uint32_t connection, TensorSpec spec) {
  add_connection_matrix(connection, std::move(spec), true);
}

void Sample::add_connection_matrix(std::uint32_t connection, TensorSpec spec, bool delays) {
  spec.name = std::to_string(connection) + (delays ? ".delays" : ".weights");
  spec.role = delays ? Role::other : Role::weights;
  Bytes payload = dense_payload(spec.dtype, spec.shape, tensors_.size() + 1);
  const Noted& tensor = note("", std::move(spec), std::move(payload));
  if (delays) {
    writer_.add_connection_delays({connection}, tensor.spec, tensor.payload);
  } else {
    writer_.add_connection_weights({connection}, tensor.spec, tensor.payload);
  }
}

void Sample::finish() {
  write_expectation(writer_.commit());
}

void Sample::finish_by_appends() {
  SaveResult result = writer_.commit();
  const std::filesystem::path whole = path_.string() + ".whole";
  std::filesystem::rename(path_, whole);
  const Bytes old_payload = noise(9000, 99);
  {
    Writer old(path_, options_);
    for (const std::string& name : {regions_[0].name, std::string("gone")}) {
      old.add_tensor(old.add_region({.name = name, .n_neurons = 77}),
                     {.name = "old", .dtype = DType::u8, .shape = {old_payload.size()}},
                     old_payload);
    }
    const ConnectionId connection = old.add_connection("gone", regions_[0].name);
    old.add_connection_weights(connection, {.dtype = DType::u8, .shape = {old_payload.size()}},
                               old_payload);
    old.commit();
  }
  const Reader reader = Reader::open(whole);
  const AppendOptions appending{.timestamp = options_.timestamp,
                                .change = {.output = {.durability = Durability::none}}};
  {
    Appender first(path_, appending);
    first.remove_region("gone");
    first.copy_region(reader.region(0));
    first.commit();
  }
  Appender second(path_, appending);
  second.set_metadata(metadata_);
  second.set_training_steps(training_steps_);
  for (std::uint32_t r = 1; r < reader.region_count(); ++r) second.copy_region(reader.region(r));
  for (const auto& [source, target] : connections_) second.add_connection(source, target);
  for (const auto& tensor : tensors_) {
    if (!tensor->region.empty()) continue;
    const auto connection = static_cast<std::uint32_t>(std::stoul(tensor->spec.name));
    if (tensor->spec.role == Role::weights) {
      second.add_connection_weights({connection}, tensor->spec, tensor->payload);
    } else {
      second.add_connection_delays({connection}, tensor->spec, tensor->payload);
    }
  }
  const AppendResult appended = second.commit();
  std::filesystem::remove(whole);
  result.file_bytes = appended.file_bytes;
  result.closing_checksum = appended.closing_checksum;
  write_expectation(result);
}

void Sample::describe(JsonWriter& json, const Noted& tensor) {
  const TensorSpec& spec = tensor.spec;
  json.begin_object().key("region");
  tensor.region.empty() ? json.null() : json.value(tensor.region);
  json.member("name", spec.name)
      .member("role", role_name(spec.role))
      .member("encoding", encoding_name(spec.encoding))
      .member("dtype", dtype_name(spec.dtype));
  json.key("shape").begin_array();
  for (const std::uint64_t extent : spec.shape.extents()) json.value(extent);
  json.end_array()
      .member("nnz", spec.nnz)
      .member("wide_indices", spec.wide_indices)
      .member("logical_length", tensor.payload.size())
      .member("sha256", hex(integrity::sha256(tensor.payload).bytes))
      .end_object();
}

void Sample::write_expectation(const SaveResult& result) const {
  constexpr std::array<std::string_view, 4> kChecksums{"none", "sha256", "crc32", "block_tree"};
  std::string text;
  JsonWriter json(text);
  json.begin_object()
      .member("timestamp", *options_.timestamp)
      .member("file_uuid", hex(*options_.file_uuid))
      .member("training_steps", training_steps_)
      .member("checksum_type", kChecksums.at(static_cast<std::size_t>(options_.checksum)))
      .member("file_length", result.file_bytes)
      .member("closing_checksum", hex(result.closing_checksum.bytes))
      .member("metadata", metadata_);
  json.key("regions").begin_array();
  for (const RegionSpec& region : regions_) {
    json.begin_object()
        .member("name", region.name)
        .member("n_neurons", region.n_neurons)
        .member("n_inputs", region.n_inputs)
        .member("neuron_type", neuron_type_name(region.neuron_type))
        .member("config", region.config_json);
    json.key("metadata");
    region.metadata_json.empty() ? json.null() : json.value(region.metadata_json);
    json.key("homeostatic_updated");
    const bool homeostatic = std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& tensor) {
      return tensor->region == region.name && tensor->spec.role == Role::homeostatic;
    });
    homeostatic ? json.value(region.homeostatic_updated) : json.null();
    json.end_object();
  }
  json.end_array().key("connections").begin_array();
  for (const auto& [source, target] : connections_) {
    json.begin_object().member("source", source).member("target", target).end_object();
  }
  json.end_array().key("tensors").begin_array();
  for (const auto& tensor : tensors_) describe(json, *tensor);
  json.end_array().end_object();
  std::filesystem::path place = path_;
  std::ofstream out(place.replace_extension(".expected.json"), std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + place.string());
}

}  // namespace witness
