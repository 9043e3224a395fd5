#include "spiking/build.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "spiking/random.h"

namespace spiking {
namespace {

struct SynapsePlan {
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t mean_degree;
  std::uint32_t inhibitory_every;
  bool delayed;
  bool plastic;
};

// Inhibitory neurons are the fewer: their synapses are as many times stronger as they are rarer,
// which leaves a population's mean effect near zero.
float weight_scale(std::uint32_t row, std::uint32_t inhibitory_every) {
  if (inhibitory_every <= 1) return -1;
  return row % inhibitory_every == inhibitory_every - 1 ? 1 - static_cast<float>(inhibitory_every)
                                                        : 1;
}

/// Row pointers for degrees between half and one and a half times the mean.
std::vector<std::uint32_t> draw_degrees(const SynapsePlan& plan, std::uint64_t seed,
                                        std::uint32_t object) {
  const Random random(seed, Stream::degree, object);
  const std::uint32_t mean = std::max(2u, std::min(plan.mean_degree, plan.columns / 2));
  std::vector<std::uint32_t> pointers(plan.rows + std::size_t{1});
  std::uint64_t sum = 0;
  for (std::uint32_t row = 0; row < plan.rows; ++row) {
    sum += mean / 2 + below(random.at(row, 0)[0], mean);
    if (sum >> 32 != 0) throw std::length_error("a pathway of more than 4294967295 synapses");
    pointers[row + std::size_t{1}] = static_cast<std::uint32_t>(sum);
  }
  return pointers;
}

// A row's columns are drawn one from each of as many equal parts of the target as it has synapses:
// they come out distinct and in order.
void fill_row(Projection& projection, const SynapsePlan& plan, const Random& random,
              std::uint32_t row) {
  const auto pointers = projection.weights.row_pointers();
  const std::uint32_t begin = pointers[row];
  const std::uint32_t degree = pointers[row + std::size_t{1}] - begin;
  const float scale = weight_scale(row, plan.inhibitory_every);
  for (std::uint32_t k = 0; k < degree; ++k) {
    const Random4 draws = random.at(row, k);
    const auto low = static_cast<std::uint32_t>(std::uint64_t{k} * plan.columns / degree);
    const auto high = static_cast<std::uint32_t>((k + std::uint64_t{1}) * plan.columns / degree);
    projection.weights.column_indices()[begin + k] = low + below(draws[0], high - low);
    projection.weights.values()[begin + k] = scale * (0.25f + 0.5f * unit_float(draws[1]));
    if (projection.delays) {
      projection.delays->values()[begin + k] =
          static_cast<std::uint8_t>(1 + below(draws[2], kMaxDelay));
    }
  }
}

Projection build_projection(const SynapsePlan& plan, std::uint64_t seed, std::uint32_t object,
                            Workers& workers) {
  const std::vector<std::uint32_t> pointers = draw_degrees(plan, seed, object);
  Projection projection;
  projection.weights = CsrMatrix<float>(plan.rows, plan.columns, pointers.back());
  std::ranges::copy(pointers, projection.weights.row_pointers().begin());
  if (plan.delayed) projection.delays.emplace(plan.rows, plan.columns, pointers.back());

  const Random random(seed, Stream::synapse, object);
  workers.run([&](unsigned worker) {
    const Slice rows = slice_of(plan.rows, workers.count(), worker);
    for (std::size_t row = rows.begin; row < rows.end; ++row)
      fill_row(projection, plan, random, static_cast<std::uint32_t>(row));
  });
  if (projection.delays) {
    std::ranges::copy(pointers, projection.delays->row_pointers().begin());
    std::ranges::copy(projection.weights.column_indices(),
                      projection.delays->column_indices().begin());
  }
  if (plan.plastic) projection.eligibility.assign(pointers.back(), 0.0f);
  return projection;
}

void fill_dense(DensePathway& dense, std::uint32_t inhibitory_every, const Random& random) {
  for (std::uint32_t row = 0; row < dense.rows; ++row) {
    const float scale = 0.02f * weight_scale(row, inhibitory_every);
    float* weights = dense.weights.data() + std::size_t{row} * dense.columns;
    for (std::uint32_t column = 0; column < dense.columns; ++column)
      weights[column] = scale * unit_float(random.at(row, column)[0]);
  }
}

// Spread between rest and threshold, so that the network does not start with one volley.
void fill_membrane(Region& region, const Random& random) {
  const float rest = network_parameters().lif.rest_mv;
  const float span = network_parameters().threshold_mv - rest;
  for (std::uint32_t i = 0; i < region.size; ++i)
    region.lif.membrane[i] = rest + span * unit_float(random.at(0, i)[0]);
}

}  // namespace

Network empty_network(std::span<const std::uint32_t> region_sizes) {
  Network network;
  for (std::size_t r = 0; r < region_plans().size(); ++r)
    network.regions.emplace_back(region_plans()[r], region_sizes[r]);
  const std::uint32_t most = network_parameters().dense_extent;
  for (const PathwayPlan& plan : pathway_plans()) {
    Pathway& pathway = network.pathways.emplace_back();
    pathway.plan = plan;
    pathway.dense.rows = std::min(most, region_sizes[plan.source]);
    pathway.dense.columns = std::min(most, region_sizes[plan.target]);
    pathway.dense.weights.resize(std::size_t{pathway.dense.rows} * pathway.dense.columns);
  }
  return network;
}

Network build_network(std::uint32_t neurons, std::uint64_t seed, Workers& workers) {
  if (neurons < kMinNeurons) {
    throw std::invalid_argument("a network of " + std::to_string(neurons) +
                                " neurons: it takes at least " + std::to_string(kMinNeurons));
  }
  Network network = empty_network(region_sizes(neurons));
  network.seed = seed;
  network.step = 1;
  std::uint32_t object = 0;
  for (Region& region : network.regions) {
    fill_membrane(region, Random(seed, Stream::membrane, object));
    region.recurrent =
        build_projection({region.size, region.size, network_parameters().recurrent_degree,
                          region.plan.inhibitory_every, false, true},
                         seed, object, workers);
    ++object;
  }
  for (Pathway& pathway : network.pathways) {
    const Region& source = network.regions[pathway.plan.source];
    const Region& target = network.regions[pathway.plan.target];
    pathway.sparse = build_projection({source.size, target.size, pathway.plan.mean_degree,
                                       source.plan.inhibitory_every, true, pathway.plan.plastic},
                                      seed, object, workers);
    fill_dense(pathway.dense, source.plan.inhibitory_every,
               Random(seed, Stream::dense_weight, object));
    ++object;
  }
  return network;
}

}  // namespace spiking
