#include "spiking/checkpoint.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "spiking/build.h"
#include "spiking/state_fields.h"

namespace spiking {
namespace {

using thalia::BrainRegion;
using thalia::DType;
using thalia::Encoding;
using thalia::Tensor;
using thalia::TensorLayout;

constexpr const char* kDescription = "spiking network of thalia-demo";

template <typename Value>
TensorLayout csr_layout(const CsrMatrix<Value>& matrix) {
  return {.dtype = sizeof(Value) == sizeof(float) ? DType::f32 : DType::u8,
          .shape = {matrix.rows(), matrix.columns()},
          .encoding = Encoding::csr,
          .nnz = matrix.nnz()};
}

template <typename Value>
Tensor lent(const CsrMatrix<Value>& matrix) {
  return Tensor::adopt(csr_layout(matrix), matrix.bytes(), nullptr);
}

std::string layout_text(const TensorLayout& layout) {
  return std::string(thalia::encoding_name(layout.encoding)) + " " +
         std::string(thalia::dtype_name(layout.dtype)) + layout.shape.to_string();
}

[[noreturn]] void refuse(const std::string& what, const std::string& has,
                         const std::string& wanted) {
  throw std::runtime_error(what + " is " + has + ": this network has " + wanted);
}

void require_layout(const std::string& what, const Tensor& tensor, const TensorLayout& wanted) {
  if (tensor.layout() != wanted) refuse(what, layout_text(tensor.layout()), layout_text(wanted));
}

thalia::Value& place_of(BrainRegion& region, const thalia::TensorSpec& spec) {
  return region.component(thalia::component_of_role(spec.role))[spec.name];
}

BrainRegion lent_region(Network& network, std::size_t r) {
  const Region& region = network.regions[r];
  BrainRegion state{
      .n_neurons = region.size, .n_inputs = region.size, .neuron_type = thalia::NeuronType::lif};
  state.config() = thalia::parse_json(config_json(region.plan));
  state.weights()["w_rec"] = lent(region.recurrent.weights);
  for (const StateField& field : state_fields(network, r)) {
    place_of(state, field.spec) = Tensor::borrow(field.spec.dtype, field.spec.shape, field.bytes);
  }
  return state;
}

void load_field(BrainRegion& region, const std::string& name, const StateField& field) {
  const thalia::Value& place = place_of(region, field.spec);
  const std::string what = "tensor " + field.spec.name + " in region " + name;
  if (!place.is_tensor()) refuse(what, "missing", field.spec.shape.to_string());
  const Tensor& tensor = place.as_tensor();
  require_layout(what, tensor, {.dtype = field.spec.dtype, .shape = field.spec.shape});
  std::ranges::copy(tensor.bytes(), field.bytes.begin());
}

template <typename Value>
CsrMatrix<Value> load_csr(const std::string& what, const Tensor& tensor, std::uint32_t rows,
                          std::uint32_t columns) {
  CsrMatrix<Value> matrix(rows, columns, tensor.nnz());
  require_layout(what, tensor, csr_layout(matrix));
  std::ranges::copy(tensor.bytes(), matrix.bytes().begin());
  if (!is_well_formed(matrix.row_pointers(), matrix.column_indices(), columns))
    refuse(what, "damaged", "row pointers and columns that ascend and stay in bounds");
  return matrix;
}

void load_pathway(const thalia::BrainState& brain, const Network& network, Pathway& pathway) {
  const Region& source = network.regions[pathway.plan.source];
  const Region& target = network.regions[pathway.plan.target];
  const std::string what =
      std::string("the connection from ") + source.plan.name + " to " + target.plan.name;
  const auto* connection = brain.connectivity.find(source.plan.name, target.plan.name);
  if (connection == nullptr || !connection->delays) refuse(what, "missing", "weights and delays");
  pathway.sparse.weights = load_csr<float>(what, connection->weights, source.size, target.size);
  pathway.sparse.delays =
      load_csr<std::uint8_t>(what, *connection->delays, source.size, target.size);
  const auto& delays = *pathway.sparse.delays;
  // Delays are used where they lie: beside the weights, and as places in the ring.
  if (!std::ranges::equal(delays.row_pointers(), pathway.sparse.weights.row_pointers()) ||
      !std::ranges::all_of(delays.values(), [](auto d) { return d >= 1 && d <= kMaxDelay; })) {
    refuse(what, "damaged", "delays that fit the weights");
  }
  if (pathway.plan.plastic) pathway.sparse.eligibility.resize(pathway.sparse.weights.nnz());
}

void check_config(const BrainRegion& region, const RegionPlan& plan) {
  const thalia::Value* config = region.find(thalia::component::kConfig);
  if (config == nullptr || *config != thalia::parse_json(config_json(plan))) {
    throw std::runtime_error(std::string("region ") + plan.name +
                             " was saved by a demo with other parameters");
  }
}

// @throws std::runtime_error for a file of something else.
std::uint64_t seed_of(const thalia::BrainState& brain) {
  const thalia::Value* custom = brain.metadata.find("custom");
  const thalia::Value* seed = custom == nullptr ? nullptr : custom->find("seed");
  if (seed == nullptr) throw std::runtime_error("this file was not saved by the demo");
  return seed->as_uint64();
}

}  // namespace

thalia::BrainSaveResult save(Network& network, const std::filesystem::path& path,
                             thalia::BrainSaveOptions options) {
  thalia::BrainState brain;
  for (std::size_t r = 0; r < network.regions.size(); ++r)
    brain.regions.add(network.regions[r].plan.name, lent_region(network, r));
  for (const Pathway& pathway : network.pathways) {
    brain.connectivity.add({.source = network.regions[pathway.plan.source].plan.name,
                            .target = network.regions[pathway.plan.target].plan.name,
                            .weights = lent(pathway.sparse.weights),
                            .delays = lent(*pathway.sparse.delays)});
  }
  brain.training_steps = network.step;
  brain.metadata["description"] = kDescription;
  brain.metadata["custom"]["generator"] = "philox4x32-10";
  brain.metadata["custom"]["seed"] = network.seed;
  options.sparse = thalia::SparseStorage::as_is;  // what is worth it is sparse already
  return thalia::BrainCheckpoint::save(brain, path, options);
}

Network load(const std::filesystem::path& path, const thalia::ReadOptions& options) {
  thalia::BrainState brain =
      thalia::BrainCheckpoint::load(path, {.lazy = true, .chain = {.read = options}});
  const std::uint64_t seed = seed_of(brain);
  std::vector<std::uint32_t> sizes;
  for (const RegionPlan& plan : region_plans())
    sizes.push_back(brain.regions.at(plan.name).n_neurons);

  Network network = empty_network(sizes);
  network.seed = seed;
  network.step = static_cast<std::uint32_t>(brain.training_steps);
  for (Pathway& pathway : network.pathways) load_pathway(brain, network, pathway);
  for (std::size_t r = 0; r < network.regions.size(); ++r) {
    Region& region = network.regions[r];
    const std::string name = region.plan.name;
    BrainRegion& stored = brain.regions.at(name);
    check_config(stored, region.plan);
    const thalia::Value* w_rec = stored.find_path("weights.w_rec");
    if (w_rec == nullptr) refuse("tensor w_rec in region " + name, "missing", "it");
    region.recurrent.weights = load_csr<float>("tensor w_rec in region " + name, w_rec->as_tensor(),
                                               region.size, region.size);
    region.recurrent.eligibility.resize(region.recurrent.weights.nnz());
    for (const StateField& field : state_fields(network, r)) load_field(stored, name, field);
    brain.regions.remove(name);
  }
  return network;
}

}  // namespace spiking
