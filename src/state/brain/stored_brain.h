// A brain's whole state as what a file holds of it, and back. docs/format/states.md, "States".
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "state/brain/stored_region.h"
#include "state/brain/stored_tensor.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/state/brain.h"
#include "thalia/state/quantization.h"
#include "thalia/writer.h"

namespace thalia::state {

struct StoredConnectionTensors {
  std::string source;  ///< full names of regions of the file
  std::string target;
  StoredTensor weights;
  std::optional<StoredTensor> delays;
};

struct StoredBrain {
  std::vector<StoredRegion> regions;
  std::vector<StoredConnectionTensors> connections;
  std::string metadata_json;
  std::uint64_t training_steps = 0;
  std::vector<QuantizedTensorReport> quantized{};
  std::vector<std::string> not_finite{};  ///< paths of tensors that could not be quantized
};

/// Calls visit(tensor, shown) in the order of the file; shown() is what results call the tensor.
template <typename Brain, typename Visit>
void for_each_stored(Brain& brain, const Visit& visit) {
  for (auto& region : brain.regions) {
    for (auto& tensor : region.tensors)
      visit(tensor, [&] { return region.spec.name + "/" + tensor.spec.name; });
  }
  for (auto& connection : brain.connections) {
    const auto shown = [&](const char* matrix) {
      return connection.source + "->" + connection.target + "." + matrix;
    };
    visit(connection.weights, [&] { return shown("weights"); });
    if (connection.delays) visit(*connection.delays, [&] { return shown("delays"); });
  }
}

/// Regions, pathways, brain-wide state: in this order. Tensors that are stored as they are share
/// their bytes with the brain's. The metadata is for the caller to set. @throws as store_region();
/// UsageError for a region with a name that the format gives another meaning.
StoredBrain store_brain(const BrainState& brain, const StoreOptions& options);

/// Tells a writer everything; it borrows the brain's tensors. @throws as Writer.
void declare(Writer& writer, const StoredBrain& brain);

/// The text of a file's metadata, and back. @throws UsageError for a tensor in it; FormatError.
std::string metadata_text(const Value& metadata);
Value read_metadata(std::string_view json, const ReadLimits& limits);

struct BrainReadOptions {
  /// The brain of an ensemble that is read, under its own names; empty: all that the file has.
  std::string prefix{};
  /// Regions of the file, pathways as "pathway:NAME"; empty: all. Connections among them, and the
  /// brain-wide state, are always there.
  std::vector<std::string> regions{};
  /// All regions are there, and those that `regions` does not name are read on first access; if
  /// it names none, all of them are. So are the connections.
  bool lazy = false;
  StateLoadOptions state{};
  bool read_tensors = true;  ///< as LoadContext has it
  /// Gets "SOURCE->TARGET" of each connection that was left out because one of its ends was.
  std::vector<std::string>* connections_left_out = nullptr;
  /// As LoadContext's; called by any thread, as long as the state lives.
  FetchTensor fetch{};
};

/// The state keeps the file open. Regions are read by as many threads as the options say.
/// @throws UsageError (not_found) for a region that the file does not have; as load_region() and,
/// with a prefix, brain_in_ensemble().
BrainState read_brain(const Reader& reader, const BrainReadOptions& options);

}  // namespace thalia::state
