// Writes descriptions of networks as the original does.
#pragma once

#include <functional>
#include <string>

#include "formats/loom/document.h"
#include "formats/loom/go_json.h"

namespace thalia::formats::loom {

struct SpecWriting {
  /// Leaves a seq_length of 1 out where .entity headers do.
  bool short_sequences = false;
  /// Writes the members "weights", "native" and "scale" of the layer at a path.
  std::function<void(GoJson& json, const std::string& path, const LoomLayer& layer)> weights{};
};

/// The object, in the place of a value. @throws UsageError for numbers that JSON does not have.
void write_network(GoJson& json, const LoomNetwork& network, const SpecWriting& writing);
void write_transformer(GoJson& json, const LoomTransformer& transformer);
/// null if there are none. `placed`: with offset and length.
void write_blobs(GoJson& json, const std::vector<BlobRecord>& blobs, bool placed);

}  // namespace thalia::formats::loom
