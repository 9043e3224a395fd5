// Growth of one region and of one connection. Which axes grow is the business of RegionAxes, what
// new elements hold is that of rule.cc; this file joins the two. All checks come first, tensors
// grow in a copy of the state, and the copy replaces the state at the end: after an error the
// region is as it was.

#include "state/growth/region.h"

#include <limits>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "state/brain/axes.h"
#include "state/growth/random.h"
#include "state/growth/rule.h"
#include "state/tensor/corner.h"
#include "state/tensor/element_numbers.h"
#include "state/value/python_value.h"
#include "thalia/types.h"

namespace thalia::state {
namespace {

[[noreturn]] void fail_region(ErrorCode code, std::string_view region, std::string message,
                              std::string field = {}, std::string value = {},
                              std::string bound = {}) {
  throw UsageError(code, std::move(message),
                   {.field = std::move(field),
                    .region = printable(region),
                    .value = std::move(value),
                    .bound = std::move(bound)});
}

Shape with_extents(const Shape& shape, const AxisSet& axes, std::uint64_t more) {
  std::vector<std::uint64_t> extents(shape.extents().begin(), shape.extents().end());
  for (unsigned d = 0; d < extents.size(); ++d) {
    if (axes.test(d)) extents[d] += more;
  }
  return Shape(std::span<const std::uint64_t>(extents));
}

bool lies_in_weights(std::string_view path) {
  return is_weights(role_of_component(path.substr(0, path.find('.'))));
}

// Grows the tensors of a region one by one, in a copy of its state. Rules see the region as it was.
class Growing {
 public:
  Growing(const BrainRegion& region, std::string_view name, const GrowthOptions& options)
      : region_(region), name_(name), options_(options), state_(region.state) {
    check_growth_options(options);
  }

  // shape_of(path, tensor) is the new shape of each tensor.
  template <typename ShapeOf>
  void grow(const ShapeOf& shape_of, GrowthResult& result) {
    for_each_tensor(state_, [&](const std::string& path, Tensor& tensor) {
      const Shape shape = shape_of(path, std::as_const(tensor));
      if (shape == tensor.shape()) return;
      Tensor larger = grown(tensor, shape, fill_of(name_, region_, path, tensor, shape, options_));
      result.tensors.push_back({std::string(name_), path, tensor.shape(), shape});
      if (lies_in_weights(path)) {
        result.synapses_added += static_cast<std::int64_t>(synapse_count(larger)) -
                                 static_cast<std::int64_t>(synapse_count(tensor));
      }
      tensor = std::move(larger);
    });
  }

  Value take_state() { return std::move(state_); }

 private:
  const BrainRegion& region_;
  std::string_view name_;
  const GrowthOptions& options_;
  Value state_;
};

// Never 0: one neuron of a region always stays, and so do the inputs from it. A count of inputs
// that came to 0 was wrong, and would say from then on that none is kept.
std::uint32_t changed_count(std::uint32_t count, std::int64_t change, const char* field) {
  const std::int64_t changed = std::int64_t{count} + change;
  if (changed > 0 && changed <= std::numeric_limits<std::uint32_t>::max())
    return static_cast<std::uint32_t>(changed);
  fail_argument(ErrorCode::size_mismatch, field, std::to_string(changed), "1 to 4294967295");
}

void update_config(BrainRegion& region, const Counts& now) {
  if (Value* const config = region.state.find(component::kConfig))
    update_config(*config, {region.n_neurons, region.n_inputs}, now);
}

// Indices that an axis gets for n_new neurons, one for each group of `per_element`.
std::uint64_t new_elements(std::string_view region, std::uint32_t n_new,
                           std::uint64_t per_element) {
  if (n_new % per_element == 0) return n_new / per_element;
  fail_region(ErrorCode::bad_argument, region,
              "an axis has one index for several neurons, which grow together", "n_new",
              std::to_string(n_new), fmt::format("a multiple of {}", per_element));
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name, 40);
  return text.empty() ? "none" : text;
}

// The axes of a connection's matrix that stand for its source and its target.
struct Orientation {
  unsigned source = 0;
  unsigned target = 1;
};

Orientation orientation_of(const BrainConnection& connection, std::string_view which,
                           const Tensor& tensor, const Ends& ends) {
  const Shape& shape = tensor.shape();
  // First, and so also if both ends have as many neurons.
  if (shape == Shape{ends.source, ends.target}) return {0, 1};
  if (shape == Shape{ends.target, ends.source}) return {1, 0};
  throw UsageError(
      ErrorCode::size_mismatch, "a connection's matrix has one axis for the neurons of each end",
      {.region = fmt::format("{}->{}", printable(connection.source), printable(connection.target)),
       .tensor = std::string(which),
       .value = shape.to_string(),
       .bound = Shape{ends.source, ends.target}.to_string()});
}

Shape shape_between(const Orientation& orientation, const Ends& ends) {
  return orientation.source == 0 ? Shape{ends.source, ends.target}
                                 : Shape{ends.target, ends.source};
}

// New delays are the mean of the old ones that are not zero. Where some of the old are zero, zero
// means "no connection", and only connections that the weights' fill makes get a delay. A zero
// counts the same whether it is stored or not.
ElementFill delay_fill(const Tensor& delays, ElementFill weights) {
  double sum = 0;
  std::uint64_t count = 0;
  for_each_number(delays.dtype(), delays.values(), [&](double delay) {
    sum += delay;
    count += delay != 0 ? 1 : 0;
  });
  const double mean = count == 0 ? 0 : sum / static_cast<double>(count);
  if (count == delays.element_count()) return constant_fill(mean);
  return [mean, weights = std::move(weights)](std::uint64_t first, std::span<double> values) {
    if (weights) weights(first, values);
    for (double& value : values) value = weights && value != 0 ? mean : 0;
  };
}

// The fill of a matrix for one that lies the other way round and has the given shape.
ElementFill transposed(ElementFill fill, const Shape& shape) {
  if (!fill) return fill;
  return [fill = std::move(fill), rows = shape[0], columns = shape[1]](std::uint64_t first,
                                                                       std::span<double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t element = first + i;
      fill(element % columns * rows + element / columns, values.subspan(i, 1));
    }
  };
}

}  // namespace

std::uint64_t synapse_count(const Tensor& weights) noexcept {
  return weights.is_dense() ? weights.element_count() : weights.nnz();
}

void update_config(Value& config, const Counts& before, const Counts& now) {
  Value* const value = python_value(config);
  Value& members = value == nullptr ? config : *value;
  const auto update = [&](std::string_view name, std::uint32_t old_count, std::uint32_t count) {
    Value* const member = members.find(name);
    if (count != old_count && member != nullptr && *member == Value(old_count))
      *member = Value(count);
  };
  for (const std::string_view name : {"n_neurons", "n_output"})
    update(name, before.neurons, now.neurons);
  for (const std::string_view name : {"n_inputs", "n_input"})
    update(name, before.inputs, now.inputs);
}

void change_neurons(BrainRegion& region, std::int64_t change) {
  const std::uint32_t count = changed_count(region.n_neurons, change, "n_neurons");
  update_config(region, {count, region.n_inputs});
  region.n_neurons = count;
}

void change_inputs(BrainRegion& region, std::int64_t change) {
  // 0 means that the state does not count inputs.
  if (region.n_inputs == 0) return;
  const std::uint32_t count = changed_count(region.n_inputs, change, "n_inputs");
  update_config(region, {region.n_neurons, count});
  region.n_inputs = count;
}

GrowthResult grow_region_output(BrainRegion& region, std::string_view name, std::uint32_t n_new,
                                const GrowthOptions& options) {
  GrowthResult result{.n_neurons = region.n_neurons};
  if (n_new == 0) {
    result.nothing_done = "no new neurons were asked for";
    return result;
  }
  if (region.n_neurons == 0)
    fail_region(ErrorCode::wrong_state, name, "a region without neurons cannot grow");
  // The format has 32 bits for it.
  if (n_new > std::numeric_limits<std::uint32_t>::max() - region.n_neurons) {
    fail_region(ErrorCode::size_mismatch, name, "too many neurons", "n_new", std::to_string(n_new),
                std::to_string(std::numeric_limits<std::uint32_t>::max() - region.n_neurons));
  }
  const RegionAxes axes(name, region, options.axes, options.population);
  if (axes.has_populations() && options.population.empty()) {
    fail_region(ErrorCode::wrong_state, name, "the region has several populations of neurons",
                "population", "none", "the one that grows");
  }
  // All tensors, not only those that grow: populations have to add up before one of them changes.
  axes.check_declared();
  Growing growing(region, name, options);
  growing.grow(
      [&](const std::string& path, const Tensor& tensor) {
        const auto [neuron_axes, per_element] = axes.neurons(path, tensor.shape());
        if (neuron_axes.none()) return tensor.shape();
        return with_extents(tensor.shape(), neuron_axes, new_elements(name, n_new, per_element));
      },
      result);
  // A misspelt population would otherwise change the count of neurons and nothing else.
  if (!options.population.empty() && result.tensors.empty()) {
    fail_region(ErrorCode::not_found, name, "no tensor has an axis of that population",
                "population", printable(options.population));
  }
  result.neurons_added = n_new;
  result.n_neurons = region.n_neurons + n_new;
  region.state = growing.take_state();
  change_neurons(region, n_new);
  return result;
}

bool takes_inputs_from(const BrainRegion& region, std::string_view name, std::string_view source) {
  try {
    return find_source(region, name, source, {}).has_value();
  } catch (const UsageError&) {
    return false;  // its "axes" do not fit: anybody who grows that region is told
  }
}

std::optional<std::uint64_t> find_source(const BrainRegion& region, std::string_view name,
                                         std::string_view source, const GrowthOptions& options) {
  const RegionAxes axes(name, region, options.axes, options.population);
  std::optional<std::uint64_t> size;
  for_each_tensor(region.state, [&](const std::string& path, const Tensor& tensor) {
    const AxisSet found = axes.source(path, tensor.shape(), source);
    for (unsigned d = 0; d < tensor.shape().rank(); ++d) {
      if (!found.test(d)) continue;
      if (size.value_or(tensor.shape()[d]) != tensor.shape()[d]) {
        fail_region(ErrorCode::size_mismatch, name, "tensors disagree about the size of a source",
                    path, std::to_string(tensor.shape()[d]), std::to_string(*size));
      }
      size = tensor.shape()[d];
    }
  });
  return size;
}

std::uint64_t require_source(const BrainRegion& region, std::string_view name,
                             std::string_view source, const GrowthOptions& options) {
  if (const auto size = find_source(region, name, source, options)) return *size;
  fail_region(ErrorCode::not_found, name, "no tensor has an axis of that source", "source",
              printable(source),
              joined(RegionAxes(name, region, options.axes, options.population).sources()));
}

GrowthResult grow_region_source(BrainRegion& region, std::string_view name, std::string_view source,
                                std::uint64_t new_size, const GrowthOptions& options) {
  GrowthResult result{.n_neurons = region.n_neurons};
  const RegionAxes axes(name, region, options.axes, options.population);
  const std::uint64_t old_size = require_source(region, name, source, options);
  if (new_size <= old_size) {
    result.nothing_done =
        fmt::format("source '{}' has {} inputs already", printable(source), old_size);
    return result;
  }
  const std::uint64_t added = new_size - old_size;
  if (added > std::numeric_limits<std::uint32_t>::max() - region.n_inputs) {
    fail_region(ErrorCode::size_mismatch, name, "too many inputs", "new_size",
                std::to_string(new_size));
  }
  Growing growing(region, name, options);
  growing.grow(
      [&](const std::string& path, const Tensor& tensor) {
        return with_extents(tensor.shape(), axes.source(path, tensor.shape(), source), added);
      },
      result);
  result.inputs_added = static_cast<std::uint32_t>(added);
  region.state = growing.take_state();
  change_inputs(region, static_cast<std::int64_t>(added));
  return result;
}

BrainConnection grown_connection(const BrainConnection& connection, const Ends& old_ends,
                                 const Ends& new_ends, const GrowthOptions& options,
                                 GrowthResult& result) {
  const std::string name = connection.source + "->" + connection.target;
  BrainConnection grown_one = connection;
  const Orientation of_weights =
      orientation_of(connection, "weights", connection.weights, old_ends);
  const Shape shape = shape_between(of_weights, new_ends);
  // Also given to the delays, which exist where weights are made.
  const ElementFill fill = connection_fill(name, connection.weights, shape, options);
  grown_one.weights = grown(connection.weights, shape, fill);
  result.tensors.push_back({name, "weights", connection.weights.shape(), shape});
  result.synapses_added += static_cast<std::int64_t>(synapse_count(grown_one.weights)) -
                           static_cast<std::int64_t>(synapse_count(connection.weights));
  if (connection.delays) {
    const Orientation of_delays =
        orientation_of(connection, "delays", *connection.delays, old_ends);
    const Shape delay_shape = shape_between(of_delays, new_ends);
    const bool lies_alike = of_delays.source == of_weights.source;
    grown_one.delays =
        grown(*connection.delays, delay_shape,
              delay_fill(*connection.delays, lies_alike ? fill : transposed(fill, delay_shape)));
    result.tensors.push_back({name, "delays", connection.delays->shape(), delay_shape});
  }
  return grown_one;
}

}  // namespace thalia::state
