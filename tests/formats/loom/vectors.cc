#include "formats/loom/vectors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>

#include "boost_test.h"
#include "format/little_endian.h"
#include "formats/loom/through.h"
#include "json/reader.h"
#include "support/bytes.h"
#include "support/files.h"

namespace thalia::test {
namespace {

Expected taken(json::Value& value) {
  Expected out;
  switch (value.kind()) {
    case json::Kind::object:
      value.for_each_member(
          [&](std::string_view key, json::Value& v) { out.members[std::string(key)] = taken(v); });
      break;
    case json::Kind::array:
      value.for_each_element([&](json::Value& v) { out.elements.push_back(taken(v)); });
      break;
    case json::Kind::string:
      out.text = value.string();
      break;
    case json::Kind::number:
    case json::Kind::boolean:
    case json::Kind::null:
      out.token = value.token();
  }
  return out;
}

template <typename Bits>
void put(std::vector<std::byte>& out, std::uint64_t value) {
  const format::LittleEndian<Bits> stored(static_cast<Bits>(value));
  const auto* bytes = reinterpret_cast<const std::byte*>(&stored);
  out.insert(out.end(), bytes, bytes + sizeof(stored));
}

bool same_floats(std::span<const float> a, std::span<const float> b) {
  return same_bytes(as_byte_span(a), as_byte_span(b));
}

std::filesystem::path beside(const std::filesystem::path& stem, const char* ending) {
  return stem.string() + ending;
}
std::string expected_resave(const std::filesystem::path& stem, const std::string& ending) {
  const std::filesystem::path again = beside(stem, (".resave" + ending).c_str());
  return read_file(std::filesystem::exists(again) ? again : beside(stem, ending.c_str()));
}

LoomNetwork entity_network(const std::string& bytes) {
  return EntityFile::from_bytes({.bytes = bytes_of(bytes), .owner = nullptr}).network();
}

class VectorCheck {
 public:
  std::vector<std::string> wrong;

  void require(bool good, std::string what) {
    if (!good) wrong.push_back(std::move(what));
  }

  /// Layers as the original had them after a load. Without f32 weights, `native_only`.
  void state(const LoomNetwork& network, const Expected& layers) {
    for (const auto& [path, expected] : layers.members) {
      const LoomLayer* layer = find_loom_layer(network, path);
      require(layer != nullptr, path + " is there");
      if (layer == nullptr) continue;
      require(loom_name(layer->type) == expected.at("type").text, path + " type");
      require(loom_dtype_name(layer->dtype) == expected.at("dtype").text, path + " dtype");
      const Expected& store = expected.at("store");
      require(layer->weights.has_value() == !store.members.empty(), path + " has weights");
      if (!layer->weights || store.members.empty()) continue;
      const LoomWeights& weights = *layer->weights;
      require(std::bit_cast<std::uint32_t>(weights.scale) ==
                  std::bit_cast<std::uint32_t>(float_of(store.at("scale_bits").text)),
              path + " scale");
      if (store.at("native").token != "null") {
        const std::vector<std::byte> ours =
            decode_loom_weights(weights.dtype, weights.native.bytes);
        const std::vector<std::byte> theirs = elements_of(store.at("native"));
        // What was just quantised is not padded to whole bytes there.
        require(ours.size() - theirs.size() < 8 &&
                    same_bytes(ByteSpan(ours).first(theirs.size()), theirs),
                path + " native");
      }
      const std::vector<float> master = floats_of(store.at("master_bits"));
      if (!master.empty()) require(same_floats(loom_master(*layer), master), path + " master");
    }
  }

  /// A network of one layer, saved with weights that are f32 until then.
  void morph(LoomNetwork network, const std::vector<float>& master, const Expected& before,
             const std::string& json, const std::string& entity) {
    LoomLayer& layer = network.layers.at(0);
    const bool quantised_before = before.has("raw_hex");
    // What a caller sets counts as none if it is 1.
    const bool preset = before.has("scale_in_bits");
    const float scale = preset ? float_of(before.at("scale_in_bits").text) : 1;
    if (quantised_before) {
      const LoomNative native = morph_loom_weights(layer.dtype, master, scale);
      require(hex(native.packed) == before.at("raw_hex").text, "morph");
      require(native.scale == float_of(before.at("scale_bits").text), "scale of morph");
      set_loom_master(layer, master, scale);
      require(loom_json(network) == json, "json of morph");
    } else {
      layer.weights = LoomWeights{.dtype = layer.dtype, .scale = scale};
      layer.weights->master = {.bytes = as_byte_span(master), .owner = nullptr};
      require(loom_json(network, {.scale_before_morph = true}) == json, "first save");
    }
    require(text_of(entity_bytes(network)) == entity, "entity of morph");
  }
};

std::vector<const LoomLayer*> with_weights(const LoomNetwork& network) {
  std::vector<const LoomLayer*> found;
  const auto walk = [&](const auto& self, const std::vector<LoomLayer>& layers) -> void {
    for (const LoomLayer& layer : layers) {
      if (layer.weights) found.push_back(&layer);
      self(self, layer.parallel_branches);
      self(self, layer.sequential_layers);
    }
  };
  walk(walk, network.layers);
  return found;
}

}  // namespace

Expected read_expected(const std::filesystem::path& path) {
  Expected out;
  json::walk_value(read_file(path), 64, [&](json::Value& value) { out = taken(value); });
  return out;
}

float float_of(const std::string& bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(bits, nullptr, 16)));
}

std::vector<float> floats_of(const Expected& list) {
  std::vector<float> values;
  for (const Expected& one : list.elements) values.push_back(float_of(one.text));
  return values;
}

std::vector<std::byte> elements_of(const Expected& native) {
  const std::string& kind = native.at("kind").text;
  std::vector<std::byte> out;
  for (const Expected& one : native.at("v").elements) {
    const std::uint64_t value =
        kind.ends_with("bits")     ? std::stoull(one.text, nullptr, 16)
        : !one.text.empty()        ? static_cast<std::uint64_t>(std::stoll(one.text))
        : one.token.front() == '-' ? static_cast<std::uint64_t>(std::stoll(one.token))
                                   : std::stoull(one.token);
    if (kind == "f64bits" || kind == "i64" || kind == "u64") put<std::uint64_t>(out, value);
    if (kind == "f32bits" || kind == "i32" || kind == "u32") put<std::uint32_t>(out, value);
    if (kind == "u16" || kind == "i16") put<std::uint16_t>(out, value);
    if (kind == "u8") put<std::uint8_t>(out, value);
  }
  return out;
}

std::vector<std::string> check_network_vector(const std::filesystem::path& stem) {
  VectorCheck check;
  const Expected expected = read_expected(beside(stem, ".expected.json"));
  const std::string json = read_file(beside(stem, ".json"));
  const std::string entity = read_file(beside(stem, ".entity"));
  const LoomNetwork from_json = parse_loom_json(json);
  const LoomNetwork from_entity = entity_network(entity);

  check.require(loom_json(from_json) == expected_resave(stem, ".json"), "json saved again");
  const std::string json_entity = text_of(entity_bytes(from_json));
  check.require(text_of(entity_bytes(from_entity)) == expected_resave(stem, ".entity"),
                "entity saved again");
  const auto says = [&](const char* flag) { return expected.at(flag).token == "true"; };
  check.require((json_entity == entity) == says("json_to_entity_equals_entity"), "json to entity");
  check.require((loom_json(from_entity) == json) == says("entity_to_json_equals_json"),
                "entity to json");
  const auto json_source = formats::open_loom_json_file(beside(stem, ".json"), {});
  const auto entity_source = formats::open_entity_file(beside(stem, ".entity"), {});
  check.require(through(*json_source, formats::write_loom_json) == json, "json as tensors");
  check.require(through(*entity_source, formats::write_entity) == entity, "entity as tensors");
  check.require(through(*json_source, formats::write_entity) == json_entity,
                "json to entity as tensors");
  check.require(through(*entity_source, formats::write_loom_json) == loom_json(from_entity),
                "entity to json as tensors");
  check.state(from_json, expected.at("after_json_load"));
  check.state(from_entity, expected.at("after_entity_load"));

  const EntityFile file = EntityFile::from_bytes({.bytes = bytes_of(entity), .owner = nullptr});
  const std::vector<Expected>& blobs = expected.at("entity_blobs").elements;
  check.require(file.blobs().size() == blobs.size(), "number of blobs");
  for (std::size_t i = 0; i < std::min(blobs.size(), file.blobs().size()); ++i) {
    const EntityBlob& blob = file.blobs()[i];
    check.require(blob.path == blobs[i].at("path").text &&
                      blob.dtype == blobs[i].at("dtype").text &&
                      blob.offset == blobs[i].at("offset").number() +
                                         expected.at("entity_data_offset").number() &&
                      hex(file.blob_bytes(i).bytes) == blobs[i].at("hex").text,
                  "blob " + blob.path);
  }

  const Expected& before = expected.at("before_save");
  if (before.has("master_in_bits")) {
    check.morph(from_entity, floats_of(before.at("master_in_bits")), before, json, entity);
  }
  if (before.has("weight_counts")) {
    for (const auto& [path, count] : before.at("weight_counts").members) {
      const LoomLayer* layer = find_loom_layer(from_json, path);
      check.require(layer != nullptr && loom_weight_count(*layer) == count.number(),
                    "count of " + path);
    }
  }
  // Quantising what was restored, with the scale of the file, as the original was made to do.
  bool same = true;
  for (const LoomLayer* layer : with_weights(from_json)) {
    const LoomNative again =
        morph_loom_weights(layer->dtype, loom_master(*layer), layer->weights->scale);
    same = same && same_bytes(again.packed, layer->weights->native.bytes);
  }
  check.require(same == says("json_remorph_from_master_identical"), "morph of what was restored");
  return check.wrong;
}

std::vector<std::string> check_legacy_vector(const std::filesystem::path& stem) {
  VectorCheck check;
  const LoomNetwork network = parse_loom_json(read_file(beside(stem, ".json")));
  check.state(network, read_expected(beside(stem, ".expected.json")).at("after_load"));
  check.require(loom_json(network) == expected_resave(stem, ".json"), "saved again");
  const auto source = formats::open_loom_json_file(beside(stem, ".json"), {});
  const std::string json = read_file(beside(stem, ".json"));
  const std::string copied = through(*source, formats::write_loom_json);
  // Some are spelled as no writer would, and mean the same once they are copied.
  const bool canonical = json.starts_with("{\n");
  check.require(
      canonical ? copied == json : loom_json(parse_loom_json(copied)) == loom_json(network),
      "json as tensors");
  check.require(through(*source, formats::write_entity) == text_of(entity_bytes(network)),
                "json to entity as tensors");
  return check.wrong;
}

std::vector<std::string> check_architecture_vector(const std::filesystem::path& stem) {
  VectorCheck check;
  const LoomNetwork network = build_loom_network(read_file(beside(stem, ".json")));
  const Expected expected = read_expected(beside(stem, ".expected.json"));
  const LoomLayer& first = network.layers.at(0);
  check.require(
      static_cast<std::uint64_t>(first.head_dim) == expected.at("head_dim").number() &&
          static_cast<std::uint64_t>(first.num_kv_heads) == expected.at("num_kv_heads").number() &&
          static_cast<std::uint64_t>(first.query_dim) == expected.at("query_dim").number() &&
          static_cast<std::uint64_t>(first.seq_length) == expected.at("seq_length").number(),
      "what is filled in");
  for (const auto& [path, count] : expected.at("weight_counts").members) {
    const LoomLayer* layer = find_loom_layer(network, path);
    check.require(layer != nullptr && loom_weight_count(*layer) == count.number(), path);
  }
  return check.wrong;
}

std::vector<std::filesystem::path> vector_stems(const std::filesystem::path& folder) {
  constexpr std::string_view kEnding = ".expected.json";
  std::vector<std::filesystem::path> stems;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(kEnding)) stems.emplace_back(path.substr(0, path.size() - kEnding.size()));
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

}  // namespace thalia::test
