// A chain as one full file.
#include <chrono>
#include <list>
#include <utility>
#include <vector>

#include "thalia/delta.h"
#include "thalia/writer.h"

namespace thalia {
namespace {

// Streamed, so that one tensor at a time is in memory; but for matrices of connections, which a
// writer borrows.
class Squash {
 public:
  Squash(const DeltaState& state, const std::filesystem::path& target, const SaveOptions& save)
      : state_(state), writer_(target, save) {}

  SaveResult run() {
    writer_.set_metadata(state_.metadata_json);
    writer_.set_training_steps(state_.training_steps);
    for (const DeltaRegionSource& region : state_.regions) {
      const RegionId id = writer_.add_region(region.spec);
      for (const DeltaTensorSource& tensor : region.tensors)
        streamed_.emplace_back(writer_.add_tensor(id, tensor.spec), &tensor);
    }
    for (const DeltaConnectionSource& connection : state_.connections) {
      const std::uint32_t id = writer_.add_connection(connection.source, connection.target);
      const DeltaTensorSource& weights = connection.weights;
      writer_.add_connection_weights(id, weights.spec, held_.emplace_back(weights.load()).bytes());
      if (!connection.delays) continue;
      const DeltaTensorSource& delays = *connection.delays;
      writer_.add_connection_delays(id, delays.spec, held_.emplace_back(delays.load()).bytes());
    }
    for (const auto& [id, source] : streamed_) {
      const Tensor tensor = source->load();
      if (!tensor.bytes().empty()) writer_.write(id, tensor.bytes());
    }
    return writer_.commit();
  }

 private:
  const DeltaState& state_;
  std::list<Tensor> held_;
  std::vector<std::pair<TensorId, const DeltaTensorSource*>> streamed_;
  Writer writer_;
};

}  // namespace

ResolveResult resolve(const std::filesystem::path& delta, const std::filesystem::path& target,
                      const ChainOptions& options, const SaveOptions& save) {
  const auto start = std::chrono::steady_clock::now();
  const ChainReader chain = ChainReader::open(delta, options);
  const DeltaState state = delta_state(chain);
  const SaveResult saved = Squash(state, target, save).run();
  return {
      .input_bytes = chain.disk_bytes(),
      .output_bytes = saved.file_bytes,
      .depth = chain.depth(),
      .regions = saved.regions,
      .tensors = saved.tensors,
      .closing_checksum = saved.closing_checksum,
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

}  // namespace thalia
