#include "spiking/checkpoint.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "spiking/build.h"
#include "spiking/run_metadata.h"
#include "spiking/state_fields.h"
#include "thalia/reader.h"

namespace spiking {
namespace {

using thalia::DType;
using thalia::Encoding;

template <typename Value>
thalia::TensorSpec csr_spec(const std::string& name, const CsrMatrix<Value>& matrix) {
  return {.name = name,
          .dtype = sizeof(Value) == sizeof(float) ? DType::f32 : DType::u8,
          .shape = {matrix.rows(), matrix.columns()},
          .encoding = Encoding::csr,
          .nnz = matrix.nnz()};
}

[[noreturn]] void refuse(const thalia::TensorView& tensor, const std::string& wanted) {
  throw std::runtime_error("tensor " + std::string(tensor.name()) + " in region " +
                           std::string(thalia::Reader::region_name(tensor)) + " is " +
                           std::string(thalia::dtype_name(tensor.dtype())) +
                           tensor.shape().to_string() + ": this network has " + wanted);
}

void load_field(const thalia::RegionView& region, const StateField& field) {
  const thalia::TensorView tensor = region.at(field.spec.name);
  if (tensor.dtype() != field.spec.dtype || tensor.shape() != field.spec.shape ||
      tensor.encoding() != Encoding::dense) {
    refuse(tensor,
           std::string(thalia::dtype_name(field.spec.dtype)) + field.spec.shape.to_string());
  }
  tensor.read(field.bytes);
}

template <typename Value>
CsrMatrix<Value> load_csr(const thalia::TensorView& tensor, std::uint32_t rows,
                          std::uint32_t columns) {
  CsrMatrix<Value> matrix(rows, columns, tensor.nnz());
  const thalia::TensorSpec wanted = csr_spec("", matrix);
  if (tensor.dtype() != wanted.dtype || tensor.shape() != wanted.shape ||
      tensor.encoding() != wanted.encoding || tensor.wide_indices()) {
    refuse(tensor, std::string(thalia::dtype_name(wanted.dtype)) + wanted.shape.to_string());
  }
  tensor.read(matrix.bytes());
  if (!is_well_formed(matrix.row_pointers(), matrix.column_indices(), columns))
    refuse(tensor, "row pointers and columns that ascend and stay in bounds");
  return matrix;
}

void load_pathway(const thalia::Reader& reader, const Network& network, Pathway& pathway) {
  const Region& source = network.regions[pathway.plan.source];
  const Region& target = network.regions[pathway.plan.target];
  const auto connection = reader.find_connection(source.plan.name, target.plan.name);
  if (!connection || !connection->delays) {
    throw std::runtime_error(std::string("no connection with delays from ") + source.plan.name +
                             " to " + target.plan.name);
  }
  pathway.sparse.weights = load_csr<float>(connection->weights, source.size, target.size);
  pathway.sparse.delays = load_csr<std::uint8_t>(*connection->delays, source.size, target.size);
  const auto& delays = *pathway.sparse.delays;
  // Delays are used where they lie: beside the weights, and as places in the ring.
  if (!std::ranges::equal(delays.row_pointers(), pathway.sparse.weights.row_pointers()) ||
      !std::ranges::all_of(delays.values(), [](auto d) { return d >= 1 && d <= kMaxDelay; })) {
    throw std::runtime_error(std::string("delays from ") + source.plan.name + " to " +
                             target.plan.name + " do not fit the weights");
  }
  if (pathway.plan.plastic) pathway.sparse.eligibility.resize(pathway.sparse.weights.nnz());
}

void check_config(const thalia::RegionView& region, const RegionPlan& plan) {
  if (region.config_json() != config_json(plan)) {
    throw std::runtime_error("region " + std::string(region.name()) +
                             " was saved by a demo with other parameters");
  }
}

}  // namespace

thalia::SaveResult save(Network& network, const std::filesystem::path& path,
                        const thalia::SaveOptions& options) {
  thalia::Writer writer(path, options);
  writer.set_metadata(to_json({network.neurons(), network.synapses(), network.seed, network.step}));
  writer.set_training_steps(network.step);

  for (std::size_t r = 0; r < network.regions.size(); ++r) {
    const Region& region = network.regions[r];
    const auto id = writer.add_region({.name = region.plan.name,
                                       .config_json = config_json(region.plan),
                                       .n_neurons = region.size,
                                       .n_inputs = region.size,
                                       .neuron_type = thalia::NeuronType::lif});
    const auto& recurrent = region.recurrent.weights;
    writer.add_tensor(id, csr_spec("w_rec", recurrent), recurrent.bytes());
    for (const StateField& field : state_fields(network, r))
      writer.add_tensor(id, field.spec, field.bytes);
  }
  for (const Pathway& pathway : network.pathways) {
    const auto connection = writer.add_connection(network.regions[pathway.plan.source].plan.name,
                                                  network.regions[pathway.plan.target].plan.name);
    const auto& weights = pathway.sparse.weights;
    const auto& delays = *pathway.sparse.delays;
    writer.add_connection_weights(connection, csr_spec("", weights), weights.bytes());
    writer.add_connection_delays(connection, csr_spec("", delays), delays.bytes());
  }
  return writer.commit();
}

Network load(const std::filesystem::path& path, const thalia::ReadOptions& options) {
  const thalia::Reader reader = thalia::Reader::open(path, options);
  const RunMetadata metadata = run_metadata_from_json(reader.metadata_json());
  std::vector<std::uint32_t> sizes;
  for (const RegionPlan& plan : region_plans())
    sizes.push_back(reader.region(plan.name).n_neurons());

  Network network = empty_network(sizes);
  network.seed = metadata.seed;
  network.step = static_cast<std::uint32_t>(metadata.step);
  for (Pathway& pathway : network.pathways) load_pathway(reader, network, pathway);
  for (std::size_t r = 0; r < network.regions.size(); ++r) {
    Region& region = network.regions[r];
    const thalia::RegionView stored = reader.region(region.plan.name);
    check_config(stored, region.plan);
    region.recurrent.weights = load_csr<float>(stored.at("w_rec"), region.size, region.size);
    region.recurrent.eligibility.resize(region.recurrent.weights.nnz());
    for (const StateField& field : state_fields(network, r)) load_field(stored, field);
    stored.release();
  }
  return network;
}

}  // namespace spiking
