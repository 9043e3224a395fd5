// A region of a state as a region of a file: the tree as JSON in the metadata, its tensors out of
// it by name: docs/format/states.md, "States". Every value reads back as it was. The config has a
// place of its own in the file where JSON can hold it as it is.

#include <charconv>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "json/writer.h"
#include "state/brain/stored_region.h"
#include "state/quantize/quantizer.h"
#include "state/value/tree_json.h"
#include "thalia/types.h"

namespace thalia::state {
namespace {

// A tensor of shape [] for the number; nullopt if no i64 or f64 has the same shortest text, so
// that reading back gives the number digit for digit.
std::optional<Tensor> scalar_tensor(const Value& number) {
  const std::string& text = number.number_text();
  if (text.find_first_not_of("-0123456789") == std::string::npos) {
    std::int64_t integer = 0;
    std::from_chars(text.data(), text.data() + text.size(), integer);
    if (std::to_string(integer) != text) return std::nullopt;
    return Tensor::copy_of<std::int64_t>({}, std::span(&integer, 1));
  }
  const double real = number.as_double();
  if (Value(real).number_text() != text) return std::nullopt;
  return Tensor::copy_of<double>({}, std::span(&real, 1));
}

class Storing {
 public:
  Storing(std::string name, const BrainRegion& region, const std::string& path,
          const StoreOptions& options)
      : region_(region),
        path_(path),
        options_(options),
        is_optimizer_(is_optimizer_state(region.state)) {
    stored_.spec = {.name = std::move(name),
                    .n_neurons = region.n_neurons,
                    .n_inputs = region.n_inputs,
                    .neuron_type = region.neuron_type,
                    .homeostatic_updated = region.homeostatic_updated};
  }

  StoredRegion run() {
    try {
      const Value* config = region_.find(component::kConfig);
      // A config with tensors or numbers like NaN stays in the tree, where marks can stand for
      // them.
      config_in_place_ = config != nullptr && config->is_object() && is_plain_json(*config);
      if (config_in_place_) stored_.spec.config_json = to_json(*config);
      write_metadata();
    } catch (Error& error) {
      error.add_region(printable(stored_.spec.name));
      throw;
    }
    return std::move(stored_);
  }

 private:
  void write_metadata() {
    JsonWriter json(stored_.spec.metadata_json);
    json.begin_object().key(kTreeMember).begin_object().member("version", 1);
    json.key("components").begin_object();
    for (const auto& [name, tree] : region_.state.members()) {
      // Left out by the caller's wish; nothing else of a state ever is.
      if (name == component::kHomeostatic && !options_.include_homeostatic) continue;
      json.key(name);
      if (name == component::kConfig && config_in_place_) {
        json.begin_object().member("_type", "config").end_object();
      } else {
        write_component(json, name, tree);
      }
    }
    json.end_object().end_object();
    for (const auto& [name, value] : region_.metadata.members()) {
      if (name == kTreeMember) {
        fail_argument(ErrorCode::bad_argument, "metadata", name, "a name that the format leaves");
      }
      json.key(name);
      write_tree(json, value, "metadata." + name);
    }
    json.end_object();
  }

  void write_component(JsonWriter& json, const std::string& component, const Value& tree) {
    const Role role = role_of_component(component);
    // Their numbers become tensors, because the dynamic state of the format consists of tensors.
    const bool scalars = role == Role::oscillator || role == Role::neuromodulator;
    std::string optimizer;  // the path of one that was met last
    write_tree(json, tree, component,
               [&](JsonWriter& out, const std::string& path, const Value& value) {
                 if (value.is_tensor()) {
                   const Tensor& tensor = value.as_tensor();
                   const bool below = is_optimizer_ || is_below(path, optimizer);
                   add_tensor(out, component, path,
                              role_of(role, below, path, tensor.shape().rank()), tensor);
                   return true;
                 }
                 if (is_optimizer_state(value) && !is_below(path, optimizer)) optimizer = path;
                 if (!scalars || value.kind() != Value::Kind::number) return false;
                 auto scalar = scalar_tensor(value);
                 if (!scalar) return false;
                 add_scalar(out, component, path, role, *std::move(scalar));
                 return true;
               });
  }

  // What an optimizer of torch says about itself.
  static bool is_optimizer_state(const Value& value) {
    return value.size() == 2 && value.find("state") != nullptr &&
           value.find("param_groups") != nullptr;
  }
  static bool is_below(const std::string& path, const std::string& root) {
    return !root.empty() && path.starts_with(root) &&
           (path.size() == root.size() || path[root.size()] == '.' || path[root.size()] == '[');
  }

  Role role_of(Role component, bool of_optimizer, const std::string& path, unsigned rank) const {
    if (of_optimizer) return Role::optimizer;
    const bool is_open = component == Role::other && options_.roles_by_name;
    return is_open ? role_of_name(path, rank) : component;
  }

  void add_tensor(JsonWriter& json, const std::string& component, const std::string& path,
                  Role role, const Tensor& tensor) {
    const std::string full = path_.empty() ? path : path_ + '.' + path;
    StoredTensor& stored = stored_.tensors.emplace_back(
        store_tensor(tensor, free_name(component, path), role, full, options_));
    // After conversion and encoding: what became sparse is small already.
    if (options_.quantizer != nullptr && stored.tensor.is_dense()) quantize(stored, full);
    json.begin_object().member("_type", "tensor").member("_name", stored.spec.name);
    write_converted(json, stored);
    json.end_object();
  }

  void quantize(StoredTensor& stored, const std::string& path) {
    const QuantizationTarget target{.path = path,
                                    .region = stored_.spec.name,
                                    .name = stored.spec.name,
                                    .role = stored.spec.role,
                                    .dtype = stored.spec.dtype,
                                    .shape = stored.spec.shape};
    if (!options_.quantizer->chooses(target)) return;
    auto payload = options_.quantizer->quantize(target, stored.tensor);
    if (payload) stored.quantized = std::make_shared<const QuantizedPayload>(*std::move(payload));
  }

  void add_scalar(JsonWriter& json, const std::string& component, const std::string& path,
                  Role role, Tensor scalar) {
    const DType dtype = scalar.dtype();
    const StoredTensor& stored = stored_.tensors.emplace_back(StoredTensor{
        {.name = free_name(component, path), .dtype = dtype, .shape = {}, .role = role},
        std::move(scalar)});
    json.begin_object().member("_type", "scalar").member("_name", stored.spec.name).end_object();
  }

  // A name that is free in the region, out of a path that begins with the component's name: without
  // the component if that is free, else with it, else with "~2" and so on after it.
  std::string free_name(const std::string& component, const std::string& path) {
    std::string name = path;
    if (path.size() > component.size() && path[component.size()] == '.')
      name.erase(0, component.size() + 1);
    if (name.empty() || !names_.insert(name).second) {
      name = path;
      for (int n = 2; !names_.insert(name).second; ++n) name = fmt::format("{}~{}", path, n);
    }
    return name;
  }

  const BrainRegion& region_;
  const std::string& path_;
  const StoreOptions& options_;
  StoredRegion stored_;
  std::unordered_set<std::string> names_;
  bool config_in_place_ = false;
  const bool is_optimizer_;
};

}  // namespace

StoredRegion store_region(std::string name, const BrainRegion& region, const std::string& path,
                          const StoreOptions& options) {
  return Storing(std::move(name), region, path, options).run();
}

}  // namespace thalia::state
