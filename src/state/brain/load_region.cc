// A region of a file as a region of a state: docs/format/states.md, "States". The metadata's tree
// says where each tensor belongs; tensors that no tree names go to the components of their roles.
// Each tensor of the file is in the state at least once, and a metadata that names what is not
// there is refused. Memory counts against one limit for the whole file (LoadContext), since a tree
// may name one tensor many times.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "state/brain/free_places.h"
#include "state/brain/stored_region.h"
#include "state/value/tree_json.h"
#include "state/value/value_json.h"
#include "thalia/error.h"

namespace thalia::state {
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

  Value tree_alone() {
    with_tensors_ = false;
    read_texts();
    return std::move(region_.state);
  }

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
    config_ = parse_json_object(view_.config_json(), context_.options.input.limits);
    Value metadata = Value::object();
    if (!view_.metadata_json().empty())
      metadata = parse_json_object(view_.metadata_json(), context_.options.input.limits);
    const Value* tree = metadata.find(kTreeMember);
    if (tree != nullptr) {
      read_state(*tree);
      // What is left is the application's own.
      metadata.erase(kTreeMember);
    }
    if (config_.size() != 0 && region_.find(component::kConfig) == nullptr)
      region_.config() = std::move(config_);
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
    if (!with_tensors_ && (type == "tensor" || type == "scalar")) return Value();
    if (type == "tensor") return load_tensor(named(object), object, context_);
    if (type == "scalar") return scalar(named(object));
    return std::nullopt;
  }

  // Asked of the file's tables first: what is no scalar may be of any size, and is not read.
  Value scalar(const TensorView& view) const {
    if (view.shape().rank() == 0 && (view.dtype() == DType::f64 || view.dtype() == DType::i64)) {
      if (!context_.read_tensors) return 0;
      const Tensor tensor = load_tensor(view, {}, context_);
      if (tensor.dtype() == DType::f64) return tensor.as<double>()[0];
      return tensor.as<std::int64_t>()[0];
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
    FreePlaces places(region_.state);
    for (std::uint32_t i = 0; i < view_.tensor_count(); ++i) {
      const TensorView view = view_.tensor(i);
      if (named_.contains(view.name())) continue;
      Tensor tensor = load_tensor(view, {}, context_);
      FreePlaces::Place place = places.take(view.role(), view.name());
      region_.component(place.component).make().add(std::move(place.name), std::move(tensor));
    }
  }

  const RegionView& view_;
  const LoadContext& context_;
  BrainRegion region_;
  bool with_tensors_ = true;
  Value config_ = Value::object();
  std::unordered_set<std::string_view> named_;  ///< names lie in the file
};

}  // namespace

BrainRegion load_region(const RegionView& view, const LoadContext& context) {
  return Loading(view, context).run();
}

Value load_tree(const RegionView& view, const ReadLimits& limits) {
  const LoadContext context({.input = {.limits = limits}}, 0);
  return Loading(view, context).tree_alone();
}

}  // namespace thalia::state
