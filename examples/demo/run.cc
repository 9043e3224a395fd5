// The first process: a network lives, is saved, and lives on.
#include <cinttypes>
#include <cstdio>

#include "demo/commands.h"
#include "demo/print.h"
#include "demo/process.h"
#include "spiking/build.h"
#include "spiking/checkpoint.h"
#include "spiking/state_hash.h"

namespace demo {
namespace {

using spiking::Network;
using spiking::Simulator;
using spiking::SpikeLog;
using spiking::Workers;

/// Runs and prints the mean rate of each region.
SpikeLog run_steps(Simulator& simulator, const Network& network, std::uint32_t steps) {
  const Stopwatch watch;
  SpikeLog log;
  std::vector<std::uint64_t> spikes(network.regions.size());
  for (std::uint32_t i = 0; i < steps; ++i) {
    log.push_back(simulator.step());
    for (std::size_t r = 0; r < spikes.size(); ++r) spikes[r] += simulator.spikes(r).size();
  }
  std::printf("  run     steps %u to %u of 1 ms: %s spikes in %s\n         ", log.front().step,
              log.back().step, with_commas(spiking::total_spikes(log)).c_str(),
              seconds_text(watch.seconds()).c_str());
  for (std::size_t r = 0; r < spikes.size(); ++r) {
    std::printf(" %s %.1f Hz%s", network.regions[r].plan.name,
                1000.0 * static_cast<double>(spikes[r]) / network.regions[r].size / steps,
                r + 1 < spikes.size() ? "," : "\n");
  }
  return log;
}

}  // namespace

int run(const Options& options) {
  const TourFiles files(options.folder);
  const Figures figures(options.figures);
  Workers workers(options.threads);

  const Stopwatch build_watch;
  Network network = spiking::build_network(options.neurons, options.seed, workers);
  std::printf("  build   %s neurons in %zu regions, %s synapses, seed %" PRIu64
              ": %s on %u threads\n",
              with_commas(network.neurons()).c_str(), network.regions.size(),
              with_commas(network.synapses()).c_str(), options.seed,
              seconds_text(build_watch.seconds()).c_str(), workers.count());
  Simulator simulator(network, workers);
  run_steps(simulator, network, options.steps);

  const thalia::BrainSaveResult saved = spiking::save(network, files.network);
  const auto bytes = static_cast<double>(saved.file_bytes);
  std::printf("  save    %s\n          %s bytes in %u tensors: %s, %s of it waiting for the disk\n",
              files.network.c_str(), with_commas(saved.file_bytes).c_str(), saved.tensors,
              seconds_text(saved.seconds).c_str(), seconds_text(saved.sync_seconds).c_str());

  SpikeLog log = run_steps(simulator, network, options.more);
  log.push_back({network.step, spiking::total_spikes(log), spiking::state_hash(network)});
  spiking::write_log(files.spikes, log);
  std::printf("  note    these spikes, and a hash of the state at the end (%016" PRIx64 "): %s\n",
              log.back().hash, files.spikes.c_str());

  figures.add("file_bytes", bytes);
  figures.add("tensors", saved.tensors);
  figures.add("save_seconds", saved.seconds);
  figures.add("sync_seconds", saved.sync_seconds);
  figures.add("run_memory", static_cast<double>(peak_memory_bytes()));
  return kDone;
}

}  // namespace demo
