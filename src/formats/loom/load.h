// From a file as it is to what the original makes of it when it loads it, and from a network to
// the file that the original would write.
#pragma once

#include <functional>
#include <vector>

#include "formats/loom/document.h"

namespace thalia::formats::loom {

/// Layers at their places in the grid, cells that the file lacks as the original makes them, and
/// what it fills in. Weights of JSON checkpoints are checked, and quantised if they are f32.
/// @throws FormatError.
LoomNetwork load_checkpoint(LoomNetwork&& network, const ReadLimits& limits,
                            std::uint64_t stored_bytes);

/// The same of a .entity file. `bytes_of` gives the bytes of a blob; blobs that `wanted` refuses
/// are left out. @throws FormatError.
LoomNetwork load_entity(const Document& document, const ReadLimits& limits,
                        std::uint64_t stored_bytes,
                        const std::function<bool(std::uint64_t layer)>& wanted,
                        const std::function<StoredBytes(std::size_t blob)>& bytes_of);

/// What a transformer has beside its layers. `whole`: what the original's loader needs has to be
/// there, and a weight_dtype is inferred. @throws FormatError (inconsistent).
LoomTransformer load_transformer(const Document& document,
                                 const std::function<StoredBytes(std::size_t blob)>& bytes_of,
                                 bool whole);

/// Weights of a layer, by what they take.
struct WeightBytes {
  LoomDType dtype;
  bool native;  ///< of that type; else f32 that become it
  std::uint64_t length;
};
/// Checks the weights of one layer of a JSON checkpoint, not those of layers within it. A layer may
/// have none. @throws FormatError, as load_checkpoint().
void check_weights(const LoomLayer& layer);
void check_weights(const LoomLayer& layer, const WeightBytes& weights);

struct OutputNetwork {
  LoomNetwork network;             ///< layers with their coordinates, without weights
  std::vector<BlobRecord> blobs;   ///< in the order of the output
  std::vector<StoredBytes> bytes;  ///< of each of them
};
/// @throws UsageError where layers are not those of the grid; as loom_json() and entity_bytes().
/// FormatError for weights that no JSON checkpoint of the layer can have.
OutputNetwork checkpoint_output(const LoomNetwork& network, bool scale_before_morph);
OutputNetwork entity_output(const LoomNetwork& network);

}  // namespace thalia::formats::loom
