// Decides which axes of a tensor grow and shrink with a region, by the metadata's "axes" or by
// names and shapes: docs/format/growth.md, "Axes". A wrong guess would put weights in wrong places
// without any error, so that what is ambiguous is refused and the user has to declare it. Paths are
// those of the state, with the component first.

#include "state/brain/axes.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "state/precision/glob.h"
#include "state/value/path_names.h"

namespace thalia::state {
namespace {

constexpr std::string_view kNeurons = "neurons";
constexpr std::string_view kPopulation = "neurons:";
// Groups of neurons that a population code counts as one: "neurons/K".
constexpr std::string_view kCoded = "neurons/";
constexpr std::string_view kSource = "source:";
constexpr std::string_view kAxesMember = "axes";

TensorAxes axes_of_metadata(std::string_view region, const Value& metadata) {
  const auto fail = [&](const std::string& path) {
    throw UsageError(ErrorCode::bad_argument, "metadata.axes tells axes as arrays of texts",
                     {.region = printable(region), .tensor = printable(path)});
  };
  TensorAxes axes;
  const Value* member = metadata.find(kAxesMember);
  if (member == nullptr || member->is_null()) return axes;
  if (!member->is_object()) fail("");
  for (const auto& [path, names] : member->members()) {
    if (!names.is_array()) fail(path);
    std::vector<std::string>& of_tensor = axes[path];
    for (const Value& name : names.elements()) {
      if (name.kind() != Value::Kind::string) fail(path);
      of_tensor.push_back(name.as_string());
    }
  }
  return axes;
}

// K of "neurons/K"; 0 if that is no number.
std::uint64_t number_behind(std::string_view axis, std::string_view prefix) noexcept {
  std::uint64_t count = 0;
  const char* end = axis.data() + axis.size();
  const auto [stopped, error] = std::from_chars(axis.data() + prefix.size(), end, count);
  return error == std::errc() && stopped == end ? count : 0;
}

// "w_ca3_ca3": the same words twice, with or without a "w" before them.
bool is_from_itself_to_itself(std::span<const std::string> words) {
  if (!words.empty() && words.front() == "w") words = words.subspan(1);
  const std::size_t half = words.size() / 2;
  return half != 0 && words.size() % 2 == 0 &&
         std::ranges::equal(words.first(half), words.last(half));
}

// A matrix from the region to itself.
bool is_recurrent(std::string_view path) {
  const std::vector<std::string> words = words_of(leaf_of(path));
  return is_from_itself_to_itself(words) || std::ranges::any_of(words, [](const std::string& word) {
           return word == "rec" || word == "recurrent" || word == "lateral";
         });
}

}  // namespace

AxisName parse_axis(std::string_view axis) noexcept {
  using enum AxisName::Kind;
  if (axis == kNeurons) return {.kind = neurons};
  if (axis.starts_with(kPopulation))
    return {.kind = population, .name = axis.substr(kPopulation.size())};
  if (axis.starts_with(kSource)) return {.kind = source, .name = axis.substr(kSource.size())};
  if (axis.starts_with(kCoded)) {
    const std::uint64_t count = number_behind(axis, kCoded);
    if (count != 0) return {.kind = neurons, .neurons_per_element = count};
  }
  return {};
}

void rename_sources(Value& metadata, const std::function<std::string(const std::string&)>& rename) {
  Value* axes = metadata.find(kAxesMember);
  if (axes == nullptr || !axes->is_object()) return;
  for (Value::Member& of_tensor : axes->members()) {
    if (!of_tensor.value.is_array()) continue;
    for (Value& axis : of_tensor.value.elements()) {
      if (axis.kind() != Value::Kind::string) continue;
      const AxisName name = parse_axis(axis.as_string());
      if (name.kind != AxisName::Kind::source) continue;
      const std::string source(name.name);
      axis = Value(axis.as_string().substr(0, axis.as_string().size() - source.size()) +
                   rename(source));
    }
  }
}

RegionAxes::RegionAxes(std::string_view name, const BrainRegion& region, const TensorAxes& axes,
                       std::string_view population)
    : name_(name),
      region_(region),
      population_(population),
      axes_(axes_of_metadata(name, region.metadata)) {
  // The caller's declarations go before the file's.
  for (const auto& [key, names] : axes) declare(key, names);
  for (const auto& [path, names] : axes_) {
    has_populations_ |= std::ranges::any_of(names, [](const std::string& axis) {
      return parse_axis(axis).kind == AxisName::Kind::population;
    });
  }
}

void RegionAxes::declare(const std::string& key, const std::vector<std::string>& names) {
  bool is_found = false;
  for_each_tensor(region_.state, [&](const std::string& path, const Tensor&) {
    const std::string full = fmt::format("regions.{}.{}", name_, path);
    if (!TensorNames{.path = full, .region = name_, .name = leaf_of(path)}.fit(key)) return;
    axes_.insert_or_assign(path, names);
    is_found = true;
  });
  if (is_found) return;
  const std::string meant = suggestion_text(key, [&](Suggestion& suggestion) {
    for_each_tensor(region_.state, [&](const std::string& path, const Tensor&) {
      suggestion.offer(leaf_of(path));
    });
  });
  throw UsageError(ErrorCode::not_found, "the region has no such tensor" + meant,
                   {.field = "axes", .region = printable(name_), .value = printable(key)});
}

void RegionAxes::refuse(ErrorCode code, const std::string& path, const Shape& shape,
                        std::string bound, std::string message) const {
  throw UsageError(code, std::move(message),
                   {.field = "axes",
                    .region = printable(name_),
                    .tensor = printable(path),
                    .value = shape.to_string(),
                    .bound = std::move(bound)});
}

const std::vector<std::string>* RegionAxes::declared(const std::string& path,
                                                     const Shape& shape) const {
  const auto found = axes_.find(path);
  if (found == axes_.end()) return nullptr;
  if (found->second.size() != shape.rank()) {
    refuse(ErrorCode::size_mismatch, path, shape,
           fmt::format("{} axes, as declared", found->second.size()),
           "the declared axes are not those of the tensor");
  }
  return &found->second;
}

RegionAxes::Neurons RegionAxes::by_declaration(const std::string& path, const Shape& shape,
                                               const std::vector<std::string>& axes) const {
  Neurons neurons;
  for (unsigned d = 0; d < axes.size(); ++d) {
    const AxisName axis = parse_axis(axes[d]);
    const std::uint64_t extent = shape[d];
    const std::uint64_t expected = region_.n_neurons / axis.neurons_per_element;
    if (axis.kind == AxisName::Kind::neurons) {
      // Axes of this kind would say that new neurons follow the last one of all, those of
      // populations that they follow the last one of their own.
      if (has_populations_) {
        refuse(ErrorCode::wrong_state, path, shape, "axes neurons:NAME only",
               "the region has populations, and where new neurons go is open");
      }
      if (extent != expected || region_.n_neurons % axis.neurons_per_element != 0) {
        refuse(ErrorCode::size_mismatch, path, shape,
               fmt::format("extent {} of axis {}: {} neurons", expected, d, region_.n_neurons),
               "an axis of neurons has another extent");
      }
      neurons.axes.set(d);
      neurons.per_element = axis.neurons_per_element;
    } else if (axis.kind == AxisName::Kind::population && axis.name == population_ &&
               !population_.empty()) {
      neurons.axes.set(d);
    }
  }
  return neurons;
}

AxisSet RegionAxes::by_shape(const std::string& path, const Shape& shape) const {
  AxisSet matching;
  for (unsigned d = 0; d < shape.rank(); ++d) matching.set(d, shape[d] == region_.n_neurons);
  // Another axis of the same extent may be a coincidence: only a recurrent matrix has two by its
  // nature.
  if (matching.none()) return matching;
  const bool is_first_alone = matching.count() == 1 && matching.test(0);
  if (!has_populations_ && (is_first_alone || (matching.test(0) && is_recurrent(path))))
    return matching;
  refuse(ErrorCode::wrong_state, path, shape,
         fmt::format("'axes' that say which of them are the {} neurons", region_.n_neurons),
         "which axes grow is ambiguous");
}

RegionAxes::Neurons RegionAxes::neurons(const std::string& path, const Shape& shape) const {
  if (const auto* axes = declared(path, shape)) return by_declaration(path, shape, *axes);
  return {.axes = by_shape(path, shape)};
}

// Calls visit(d, name) for each axis that counts the inputs from a source.
template <typename Visit>
void RegionAxes::for_each_source(const std::string& path, const Shape& shape,
                                 const Visit& visit) const {
  if (const auto* axes = declared(path, shape)) {
    for (unsigned d = 0; d < axes->size(); ++d) {
      const AxisName axis = parse_axis((*axes)[d]);
      if (axis.kind == AxisName::Kind::source) visit(d, axis.name);
    }
  } else if (shape.rank() == 2 && shape[0] == region_.n_neurons && !is_recurrent(path)) {
    visit(1, leaf_of(path));  // one matrix a source, under its name
  }
}

AxisSet RegionAxes::source(const std::string& path, const Shape& shape,
                           std::string_view source) const {
  AxisSet found;
  for_each_source(path, shape,
                  [&](unsigned d, std::string_view name) { found.set(d, name == source); });
  return found;
}

void RegionAxes::check_declared() const {
  std::map<std::string_view, std::uint64_t> populations;
  for_each_tensor(region_.state, [&](const std::string& path, const Tensor& tensor) {
    const Shape& shape = tensor.shape();
    const auto* axes = declared(path, shape);
    if (axes == nullptr) return;
    by_declaration(path, shape, *axes);
    for (unsigned d = 0; d < axes->size(); ++d) {
      const std::string_view axis = (*axes)[d];
      if (parse_axis(axis).kind != AxisName::Kind::population) continue;
      // The first tensor with the axis says how large the population is.
      const std::uint64_t extent = populations.emplace(axis, shape[d]).first->second;
      if (shape[d] != extent) {
        refuse(ErrorCode::size_mismatch, path, shape,
               fmt::format("extent {} of axis {}: '{}'", extent, d, printable(axis)),
               "tensors disagree about the size of a population");
      }
    }
  });
  CheckedSum sum;
  for (const auto& [axis, extent] : populations) sum += extent;
  if (populations.empty() || sum.value() == region_.n_neurons) return;
  throw UsageError(
      ErrorCode::size_mismatch, "the populations are not the region's neurons",
      {.field = "axes",
       .region = printable(name_),
       .value = fmt::format("{} neurons in {} populations", sum.to_string(), populations.size()),
       .bound = std::to_string(region_.n_neurons)});
}

std::vector<std::string> RegionAxes::sources() const {
  std::set<std::string> names;
  for_each_tensor(region_.state, [&](const std::string& path, const Tensor& tensor) {
    for_each_source(path, tensor.shape(),
                    [&](unsigned, std::string_view name) { names.emplace(name); });
  });
  return {names.begin(), names.end()};
}

}  // namespace thalia::state
