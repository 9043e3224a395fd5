// The second process: it has only the file, and has to come to the same spikes.
#include <cinttypes>
#include <cstdio>

#include "demo/commands.h"
#include "demo/print.h"
#include "demo/process.h"
#include "spiking/checkpoint.h"
#include "spiking/state_hash.h"

namespace demo {

using spiking::Network;
using spiking::Simulator;
using spiking::SpikeLog;
using spiking::Workers;

int resume(const Options& options) {
  const TourFiles files(options.folder);
  const Figures figures(options.figures);
  const SpikeLog expected = spiking::read_log(files.spikes);
  if (expected.size() < 2)
    throw std::runtime_error(files.spikes.string() + ": no steps to compare with");
  if (const int status = inspect_file(files.network, "striatum", options.threads, figures);
      status != kDone) {
    return status;
  }

  const Stopwatch load_watch;
  Network network = spiking::load(files.network, {.work = {.threads = options.threads}});
  const double load_seconds = load_watch.seconds();
  std::printf("  load    the whole network into the simulator, each byte checked: %s\n",
              seconds_text(load_seconds).c_str());

  const Stopwatch run_watch;
  Workers workers(options.threads);
  Simulator simulator(network, workers);
  SpikeLog log;
  while (log.size() + 1 < expected.size()) log.push_back(simulator.step());
  std::printf("  resume  steps %u to %u: %s spikes in %s\n", log.front().step, log.back().step,
              with_commas(spiking::total_spikes(log)).c_str(),
              seconds_text(run_watch.seconds()).c_str());
  log.push_back({network.step, spiking::total_spikes(log), spiking::state_hash(network)});

  figures.add("load_seconds", load_seconds);
  figures.add("resume_memory", static_cast<double>(peak_memory_bytes()));
  if (const auto at = spiking::first_difference(log, expected)) {
    std::printf("  compare DIFFERENT at step %u: %s spikes, hash %016" PRIx64
                "; the first run had %s, %016" PRIx64 "\n",
                expected[*at].step, with_commas(log[*at].spikes).c_str(), log[*at].hash,
                with_commas(expected[*at].spikes).c_str(), expected[*at].hash);
    return kCheckFailed;
  }
  std::printf(
      "  compare all %zu steps have the spikes of the first run, neuron for neuron, and the\n"
      "          state at the end is the same bit for bit (%016" PRIx64 ")\n",
      log.size() - 1, log.back().hash);
  return kDone;
}

}  // namespace demo
