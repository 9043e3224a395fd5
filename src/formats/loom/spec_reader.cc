// Recursion follows the nesting of layers, which is bounded; memory for layers is counted before it
// is taken, because a layer of two bytes of text takes several hundred.
#include "formats/loom/spec_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "formats/loom/fold_case.h"
#include "formats/loom/go_values.h"
#include "formats/loom/spec_fields.h"
#include "formats/loom/weights.h"
#include "formats/source/base64.h"
#include "formats/source/json_fields.h"

namespace thalia::formats::loom {
namespace {

// Kept for a message, not for reading.
constexpr std::size_t kUnknownKeys = 8;
// How often a path is in memory while a file is described or converted.
constexpr std::uint64_t kPathCopies = 8;

/// The members of a layer that say what its weights are.
struct WeightMembers {
  std::optional<std::vector<std::byte>> bytes;
  bool native = false;
  float scale = 0;
  bool given = false;
};

std::vector<std::byte> read_base64(json::Value& value) {
  require_kind(value, json::Kind::string, "weights");
  const std::string_view text = value.string();
  std::size_t wrong = 0;
  auto bytes = decode_base64(text, wrong);
  if (!bytes) {
    fail_header(ErrorCode::bad_value, "weights", fmt::format("byte {} of {}", wrong, text.size()),
                "padded Base64", "illegal Base64");
  }
  return *std::move(bytes);
}

void put_weights(WeightMembers&& members, LoomLayer& layer) {
  if (!members.given) return;
  LoomWeights weights{.dtype = layer.dtype, .scale = members.scale};
  StoredBytes bytes =
      owned_bytes(members.bytes ? *std::move(members.bytes) : std::vector<std::byte>());
  (members.native ? weights.native : weights.master) = std::move(bytes);
  layer.weights = std::move(weights);
}

template <typename Enum>
void read_name(json::Value& value, std::string_view key, Enum& out,
               Enum (*parse)(std::string_view) noexcept) {
  std::string name;
  if (value.kind() == json::Kind::null) return;
  go_value(value, key, name);
  out = parse(name);
}

}  // namespace

SpecReader::SpecReader(SpecKind kind, const ReadLimits& limits, std::uint64_t stored_bytes)
    : kind_(kind), limits_(limits), budget_(limits, stored_bytes) {}

void SpecReader::pass_over(std::string_view key) {
  if (unknown_.size() < kUnknownKeys) unknown_.emplace(printable(key, 60));
}

void SpecReader::charge(std::uint64_t bytes) {
  budget_.take("layers", bytes);
}

void SpecReader::network_member(std::string_view key, json::Value& value, LoomNetwork& network) {
  const std::pair<std::string_view, std::int64_t*> extents[] = {
      {"depth", &network.depth},
      {"rows", &network.rows},
      {"cols", &network.cols},
      {"layers_per_cell", &network.layers_per_cell}};
  for (const auto& [name, extent] : extents)
    if (equal_fold(key, name)) return go_value(value, name, *extent);
  if (equal_fold(key, "layers")) {
    layers(value, {}, "layers", 0, network.layers);
  } else if (equal_fold(key, "id")) {
    std::string id;  // the original writes "network", whatever it read
    go_value(value, "id", id);
    if (!id.empty() && id != "network") pass_over(key);
  } else {
    pass_over(key);
  }
}

void SpecReader::layers(json::Value& value, const std::string& path, std::string_view list,
                        unsigned depth, std::vector<LoomLayer>& out) {
  out.clear();
  if (!go_array(value, list)) return;
  const std::string prefix = fmt::format("{}{}.", path, list);
  value.for_each_element([&](json::Value& element) {
    charge(sizeof(LoomLayer) * (out.size() == out.capacity() ? out.size() + 1 : 0));
    layer(element, prefix + std::to_string(out.size()), depth, out.emplace_back());
  });
}

void SpecReader::layer(json::Value& value, const std::string& path, unsigned depth,
                       LoomLayer& out) {
  if (depth > kLoomNesting) {
    throw FormatError(ErrorCode::limit_exceeded, "layers nest too deep",
                      {.section = "header",
                       .field = "layers",
                       .value = std::to_string(depth),
                       .bound = fmt::format("at most {}", kLoomNesting)});
  }
  if (!go_object(value, "layers")) return;
  WeightMembers weights;
  try {
    value.for_each_member([&](std::string_view key, json::Value& member) {
      if (layer_field(key, member, out) || inner_layers(key, member, path + ".", depth + 1, out))
        return;
      const bool checkpoint = kind_ == SpecKind::checkpoint;
      if (checkpoint && equal_fold(key, "weights")) {
        if (member.kind() == json::Kind::null) return;
        weights.bytes = read_base64(member);
        weights.given = true;
      } else if (checkpoint && equal_fold(key, "native")) {
        go_value(member, "native", weights.native);
        weights.given |= weights.native;
      } else if (checkpoint && equal_fold(key, "scale")) {
        go_value(member, "scale", weights.scale);
        weights.given |= weights.scale != 0;
      } else {
        pass_over(key);
      }
    });
  } catch (Error& error) {
    error.add_tensor(path);
    throw;
  }
  put_weights(std::move(weights), out);
  // The path is a tensor's name, and far longer than its layer's text where layers nest.
  if (out.weights) charge(kPathCopies * path.size());
}

bool SpecReader::layer_field(std::string_view key, json::Value& value, LoomLayer& out) {
  const bool architecture = kind_ == SpecKind::architecture;
  const std::pair<std::string_view, std::int64_t*> places[] = {
      {"z", &out.z}, {"y", &out.y}, {"x", &out.x}, {"l", &out.l}};
  for (const auto& [name, place] : places) {
    if (!equal_fold(key, name)) continue;
    go_value(value, name, *place);
    return true;
  }
  const auto in_table = [&](const auto& fields) {
    for (const LayerField& field : fields) {
      if (!equal_fold(key, field.key) || (architecture && !field.in_architecture)) continue;
      std::visit([&](auto member) { go_value(value, field.key, out.*member); }, field.member);
      return true;
    }
    return false;
  };
  if (in_table(kFieldsBeforeSoftmax) || in_table(kFieldsBeforeWeights) ||
      in_table(kFieldsBehindLayers))
    return true;
  if (equal_fold(key, "type")) {
    read_name(value, "type", out.type, parse_loom_layer_type);
  } else if (equal_fold(key, "activation")) {
    read_name(value, "activation", out.activation, parse_loom_activation);
  } else if (equal_fold(key, "dtype")) {
    read_name(value, "dtype", out.dtype, parse_loom_dtype);
  } else if (equal_fold(key, "softmax_type") && architecture) {
    // A number here, and a name in checkpoints.
    std::int64_t number = 0;
    go_value(value, "softmax_type", number);
    out.softmax_type =
        number >= 0 && number <= 9 ? static_cast<LoomSoftmax>(number) : LoomSoftmax::standard;
  } else if (equal_fold(key, "softmax_type")) {
    read_name(value, "softmax_type", out.softmax_type, parse_loom_softmax);
  } else if (equal_fold(key, "combine_mode")) {
    go_value(value, "combine_mode", out.combine_mode);
  } else {
    return false;
  }
  return true;
}

bool SpecReader::inner_layers(std::string_view key, json::Value& value, const std::string& path,
                              unsigned depth, LoomLayer& out) {
  if (equal_fold(key, "parallel_branches")) {
    layers(value, path, "parallel_branches", depth, out.parallel_branches);
  } else if (equal_fold(key, "sequential_layers")) {
    layers(value, path, "sequential_layers", depth, out.sequential_layers);
  } else if (const bool is_spec = kind_ == SpecKind::architecture;
             !is_spec && equal_fold(key, "meta_observed_layer")) {
    out.meta_observed_layer.clear();
    if (!go_object(value, "meta_observed_layer")) return true;
    charge(sizeof(LoomLayer));
    layer(value, path + "meta_observed_layer", depth, out.meta_observed_layer.emplace_back());
  } else if (!is_spec && equal_fold(key, "meta_rules")) {
    meta_rules(value, out.meta_rules);
  } else {
    return false;
  }
  return true;
}

void SpecReader::meta_rules(json::Value& value, std::vector<LoomMetaRule>& out) {
  out.clear();
  if (!go_array(value, "meta_rules")) return;
  value.for_each_element([&](json::Value& element) {
    charge(2 * sizeof(LoomMetaRule));
    LoomMetaRule& rule = out.emplace_back();
    if (!go_object(element, "meta_rules")) return;
    element.for_each_member([&](std::string_view key, json::Value& member) {
      if (equal_fold(key, "Condition")) {
        go_value(member, "Condition", rule.condition);
      } else if (equal_fold(key, "Threshold")) {
        go_value(member, "Threshold", rule.threshold);
      } else if (equal_fold(key, "Command")) {
        go_value(member, "Command", rule.command);
      } else if (equal_fold(key, "Param")) {
        go_value(member, "Param", rule.param);
      } else if (equal_fold(key, "Cooldown")) {
        go_value(member, "Cooldown", rule.cooldown);
      } else if (equal_fold(key, "SelfOnly")) {
        go_value(member, "SelfOnly", rule.self_only);
      } else {
        pass_over(key);
      }
    });
  });
}

void SpecReader::transformer(json::Value& value, LoomTransformer& out) {
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (equal_fold(key, "architecture")) {
      go_value(member, "architecture", out.architecture);
    } else if (equal_fold(key, "hidden_size")) {
      go_value(member, "hidden_size", out.hidden_size);
    } else if (equal_fold(key, "vocab_size")) {
      go_value(member, "vocab_size", out.vocab_size);
    } else if (equal_fold(key, "lm_head_tied")) {
      go_value(member, "lm_head_tied", out.lm_head_tied);
    } else if (equal_fold(key, "has_final_norm")) {
      go_value(member, "has_final_norm", out.has_final_norm);
    } else if (equal_fold(key, "weight_dtype")) {
      go_value(member, "weight_dtype", out.weight_dtype);
    } else if (equal_fold(key, "dims")) {
      out.dims.reset();
      if (go_object(member, "dims")) dims(member, out.dims.emplace());
    } else {
      pass_over(key);
    }
  });
}

void SpecReader::dims(json::Value& value, LoomTransformerDims& out) {
  const std::pair<std::string_view, std::int64_t*> numbers[] = {
      {"num_layers", &out.num_layers},
      {"num_heads", &out.num_heads},
      {"num_kv_heads", &out.num_kv_heads},
      {"head_dim", &out.head_dim},
      {"query_dim", &out.query_dim},
      {"kv_dim", &out.kv_dim},
      {"intermediate_size", &out.intermediate_size}};
  value.for_each_member([&](std::string_view key, json::Value& member) {
    for (const auto& [name, number] : numbers)
      if (equal_fold(key, name)) return go_value(member, name, *number);
    if (equal_fold(key, "rms_norm_eps")) {
      go_value(member, "rms_norm_eps", out.rms_norm_eps);
    } else if (equal_fold(key, "rope_freq_base")) {
      go_value(member, "rope_freq_base", out.rope_freq_base);
    } else if (equal_fold(key, "activation")) {
      go_value(member, "activation", out.activation);
    } else {
      pass_over(key);
    }
  });
}

void SpecReader::blobs(json::Value& value, std::vector<BlobRecord>& blobs) {
  blobs.clear();
  if (!go_array(value, "blobs")) return;
  value.for_each_element([&](json::Value& element) {
    if (blobs.size() == limits_.max_tensors)
      fail_limit("header", "max_tensors", blobs.size() + 1, limits_.max_tensors);
    charge(2 * sizeof(BlobRecord));
    BlobRecord& blob = blobs.emplace_back();
    if (!go_object(element, "blobs")) return;
    element.for_each_member([&](std::string_view key, json::Value& member) {
      if (equal_fold(key, "path")) {
        go_value(member, "path", blob.path);
      } else if (equal_fold(key, "offset")) {
        go_value(member, "offset", blob.offset);
      } else if (equal_fold(key, "length")) {
        go_value(member, "length", blob.length);
      } else if (equal_fold(key, "dtype")) {
        go_value(member, "dtype", blob.dtype);
      } else if (equal_fold(key, "scale")) {
        go_value(member, "scale", blob.scale);
      } else if (equal_fold(key, "native")) {
        go_value(member, "native", blob.native);
      } else {
        pass_over(key);
      }
    });
  });
  std::set<std::string_view> paths;
  for (const BlobRecord& blob : blobs) {
    if (blob.path.empty())
      fail_header(ErrorCode::bad_name, "path", "", "", "a blob without a path");
    if (!paths.insert(blob.path).second)
      fail_header(ErrorCode::bad_name, "path", printable(blob.path), "", "the path repeats");
  }
}

}  // namespace thalia::formats::loom
