// A region of a file as a region of a state: docs/states.md, "States". The metadata's tree says
// where each tensor belongs; tensors that no tree names go to the components of their roles. Each
// tensor of the file is in the state at least once, and a metadata that names what is not there is
// refused. Memory counts against one limit for the whole file (LoadContext), since a tree may name
// one tensor many times.

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "model/brain/stored_region.h"
#include "model/value/tree_json.h"
#include "model/value/value_json.h"
#include "thalia/error.h"

namespace thalia::model {
namespace {

constexpr std::uint64_t kTreeVersion = 1;

[[noreturn]] void refuse(ErrorCode code, std::string_view field, std::string value,
                         std::string bound) {
  ErrorContext context{.section = "region.metadata",
                       .field = std::string(field),
                       .value = std::move(value),
                       .bound = std::move(bound)};
  if (code == ErrorCode::unsupported_version) throw UnsupportedError(code, {}, std::move(context));
  throw FormatError(code, {}, std::move(context));
}

class Loading {
 public:
  Loading(const RegionView& view, const LoadContext& context) : view_(view), context_(context) {}

  BrainRegion run() {
    region_.n_neurons = view_.n_neurons();
    region_.n_inputs = view_.n_inputs();
    region_.neuron_type = view_.neuron_type();
    region_.homeostatic_updated = view_.homeostatic_updated().value_or(0);
    try {
      read_texts();
    } catch (Error& error) {
      error.add_region(printable(view_.name()));
      throw;
    }
    add_unnamed_tensors();
    return std::move(region_);
  }

 private:
  // Errors of texts get the region's name in run().
  void read_texts() {
    if (!view_.config_json().empty())
      config_ = parse_json_object(view_.config_json(), context_.options.limits);
    Value metadata = Value::object();
    if (!view_.metadata_json().empty())
      metadata = parse_json_object(view_.metadata_json(), context_.options.limits);
    const Value* tree = metadata.find(kTreeMember);
    has_tree_ = tree != nullptr;
    if (has_tree_) {
      read_state(*tree);
      // What is left is the application's own.
      metadata.erase(kTreeMember);
    } else if (config_.size() != 0) {
      region_.state["config"] = std::move(config_);
    }
    for (auto& [name, value] : metadata.members())
      region_.metadata.add(name, read_tree(std::move(value)));
  }

  void read_state(const Value& tree) {
    const Value* version = tree.find("version");
    if (version == nullptr || version->kind() != Value::Kind::number ||
        version->number_text() != std::to_string(kTreeVersion)) {
      refuse(ErrorCode::unsupported_version, "thalia_state.version",
             version != nullptr && version->kind() == Value::Kind::number ? version->number_text()
                                                                          : "none",
             std::to_string(kTreeVersion));
    }
    const Value* components = tree.find("components");
    if (components == nullptr || !components->is_object())
      refuse(ErrorCode::bad_value, "thalia_state.components", "none", "an object");
    for (const auto& [name, component] : components->members()) {
      region_.state.add(name, read_tree(component, [&](std::string_view type, const Value& object) {
                          return resolve(type, object);
                        }));
    }
  }

  std::optional<Value> resolve(std::string_view type, const Value& object) {
    if (type == "config") return config_.is_object() ? config_ : Value::object();
    if (type == "tensor") return load_tensor(named(object), object, context_);
    if (type == "scalar") return scalar(named(object));
    return std::nullopt;
  }

  Value scalar(const TensorView& view) const {
    const Tensor tensor = context_.fetch ? context_.fetch(view) : Tensor::from(view);
    if (tensor.is_dense() && tensor.shape().rank() == 0) {
      if (tensor.dtype() == DType::f64) return tensor.as<double>()[0];
      if (tensor.dtype() == DType::i64) return tensor.as<std::int64_t>()[0];
    }
    refuse(ErrorCode::inconsistent, "_name",
           fmt::format("{}{} named '{}'", dtype_name(view.dtype()), view.shape().to_string(),
                       printable(view.name())),
           "f64[] or i64[] for a scalar");
  }

  // Notes the name, so that add_unnamed_tensors() passes over it.
  TensorView named(const Value& object) {
    const std::string& name = require_text(object, "_name");
    auto view = view_.find(name);
    if (!view) {
      refuse(ErrorCode::inconsistent, "_name", printable(name), "a tensor of the region");
    }
    named_.insert(view->name());
    return *std::move(view);
  }

  void add_unnamed_tensors() {
    FreeNames names;
    for (std::uint32_t i = 0; i < view_.tensor_count(); ++i) {
      const TensorView view = view_.tensor(i);
      if (named_.contains(view.name())) continue;
      Tensor tensor = load_tensor(view, {}, context_);
      Value& component = component_for(view.role());
      // Names are unique in a region: only a tree can have used one already.
      component.add(
          has_tree_ ? names.take(component, view.role(), view.name()) : std::string(view.name()),
          std::move(tensor));
    }
  }

  // A component that is no object has no place for members; "~2" and so on behind its name then.
  Value& component_for(Role role) {
    const std::string_view wanted = component_of_role(role);
    std::string name(wanted);
    const auto is_taken = [&] {
      const Value* known = region_.find(name);
      return known != nullptr && !known->is_object();
    };
    for (int n = 2; is_taken(); ++n) name = fmt::format("{}~{}", wanted, n);
    return region_.component(name).make();
  }

  // Names that the members of a component do not have yet. Each component is looked through once.
  class FreeNames {
   public:
    std::string take(const Value& component, Role role, std::string_view wanted) {
      const auto [place, is_new] = taken_.try_emplace(role);
      if (is_new)
        for (const auto& [name, member] : component.members()) place->second.insert(name);
      std::string name(wanted);
      for (int n = 2; !place->second.insert(name).second; ++n)
        name = fmt::format("{}~{}", wanted, n);
      return name;
    }

   private:
    std::map<Role, std::unordered_set<std::string>> taken_;
  };

  const RegionView& view_;
  const LoadContext& context_;
  BrainRegion region_;
  bool has_tree_ = false;
  Value config_ = Value::object();
  std::unordered_set<std::string_view> named_;  ///< names lie in the file
};

}  // namespace

BrainRegion load_region(const RegionView& view, const LoadContext& context) {
  return Loading(view, context).run();
}

}  // namespace thalia::model
