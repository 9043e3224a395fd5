// Reads descriptions of networks as Go's encoding/json does: keys in any case, null leaves a field
// as it is, the last of two members counts, unknown ones are passed over.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/loom/document.h"
#include "io/memory/allocation_limit.h"
#include "json/reader.h"

namespace thalia::formats::loom {

enum class SpecKind {
  checkpoint,    ///< with weights in Base64
  header,        ///< of a .entity file, and of the metadata that stand for one
  architecture,  ///< for building a network
};

class SpecReader {
 public:
  SpecReader(SpecKind kind, const ReadLimits& limits, std::uint64_t stored_bytes);

  /// A member of the object that describes the network.
  void network_member(std::string_view key, json::Value& value, LoomNetwork& network);
  void transformer(json::Value& value, LoomTransformer& transformer);
  void blobs(json::Value& value, std::vector<BlobRecord>& blobs);
  /// A key that counts for nothing.
  void pass_over(std::string_view key);
  std::vector<std::string> unknown() const { return {unknown_.begin(), unknown_.end()}; }

 private:
  void layers(json::Value& value, const std::string& path, std::string_view list, unsigned depth,
              std::vector<LoomLayer>& out);
  void layer(json::Value& value, const std::string& path, unsigned depth, LoomLayer& out);
  bool layer_field(std::string_view key, json::Value& value, LoomLayer& out);
  bool inner_layers(std::string_view key, json::Value& value, const std::string& path,
                    unsigned depth, LoomLayer& out);
  void meta_rules(json::Value& value, std::vector<LoomMetaRule>& out);
  void dims(json::Value& value, LoomTransformerDims& out);
  void charge(std::uint64_t bytes);

  SpecKind kind_;
  ReadLimits limits_;
  io::MemoryBudget budget_;  ///< of layers
  std::set<std::string, std::less<>> unknown_;
};

}  // namespace thalia::formats::loom
