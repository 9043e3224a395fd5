// Names come first: a tensor keeps its name if no other region has one like it. Otherwise the
// region's name is put in front, for all of the namesakes, so that no name depends on the order of
// regions. Nothing is decoded before it is read.
#include "convert/flat_thalia.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "convert/conversions.h"
#include "convert/payload_pieces.h"
#include "formats/source/list_names.h"
#include "json/reader.h"
#include "thalia/formats/convert.h"
#include "thalia/reader.h"
#include "thalia/types.h"

namespace thalia::formats {
namespace {

// What a .thalia file says of its regions that formats without them have no place for.

// An empty config holds nothing to lose.
bool is_empty_object(std::string_view text, unsigned max_depth) {
  bool empty = true;
  json::walk_object(text, max_depth, [&](std::string_view, json::Value&) { empty = false; });
  return empty;
}

/// A sentence for each kind of thing; nothing is read but the tables. `of_places` gets those of
/// them that OpenedFile::place() tells all the same.
void list_region_losses(const Reader& reader, const RegionGrouping& grouping,
                        const ReadLimits& limits, std::vector<std::string>& losses,
                        std::vector<std::string>& of_places) {
  std::vector<std::string> configs, metadata, populations, empty, regrouped, homeostatic;
  std::array<std::vector<std::string>, kRoleCount> roles;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    const std::string name(region.name());
    if (!is_empty_object(region.config_json(), limits.max_json_depth)) {
      configs.push_back(name);
    }
    if (!region.metadata_json().empty()) metadata.push_back(name);
    if (region.n_neurons() != 0 || region.n_inputs() != 0 ||
        region.neuron_type() != NeuronType::none) {
      populations.push_back(name);
    }
    if (region.homeostatic_updated().value_or(0) != 0) homeostatic.push_back(name);
    if (region.tensor_count() == 0) empty.push_back(name);
    bool matches = true;
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const TensorView tensor = region.tensor(t);
      // The way back groups tensors by their names: a region is no loss if that finds it again.
      matches = matches && region_for_name(tensor.name(), grouping) == name;
      const unsigned rank = tensor.shape().rank();
      if (likely_role(tensor.role(), tensor.name(), rank) != role_of_name(tensor.name(), rank)) {
        roles[static_cast<std::size_t>(tensor.role())].push_back(name + "/" +
                                                                 std::string(tensor.name()));
      }
    }
    if (!matches) regrouped.push_back(name);
  }
  const auto list = [&](std::string_view what, const std::vector<std::string>& names) {
    if (!names.empty()) losses.push_back(fmt::format("{}: {}", what, list_names(names)));
  };
  list("config of regions", configs);
  list("metadata of regions", metadata);
  list("neurons, inputs and neuron type of regions", populations);
  list("time of the last homeostatic update of regions", homeostatic);
  list("regions without tensors", empty);
  const std::size_t before = losses.size();
  list("regions that their tensors' names do not tell", regrouped);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    list(fmt::format("role {} of tensors, which their names do not tell",
                     role_name(static_cast<Role>(i))),
         roles[i]);
  }
  of_places.insert(of_places.end(), losses.begin() + static_cast<std::ptrdiff_t>(before),
                   losses.end());
}

}  // namespace

FlatThalia::FlatThalia(Reader reader, const RegionGrouping& grouping, const ReadOptions& read)
    : reader_(std::move(reader)), read_(read) {
  with_path(reader_.path().native(), [&] {
    facts_.version = reader_.header().version.to_string();
    for (std::uint32_t r = 0; r < reader_.region_count(); ++r) {
      const RegionView region = reader_.region(r);
      for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
        TensorView view = region.tensor(t);
        std::string name(view.name());
        add(std::move(name), {.region = std::string(region.name()), .view = std::move(view)});
      }
    }
    add_connections();
    sort_by_offset();
    resolve_names();
    list_region_losses(reader_, grouping, read_.input.limits, facts_.losses, facts_.place_losses);
  });
  if (!reader_.metadata_json().empty()) facts_.metadata = reader_.metadata_json();
  // 0 is how a .thalia file says nothing of steps.
  if (reader_.header().training_steps != 0) facts_.training_steps = reader_.header().training_steps;
  facts_.file_bytes = reader_.file_bytes();
}

void FlatThalia::add(std::string name, Place place) {
  const TensorView& view = place.view;
  if (!is_sparse(view.encoding()) && view.encoding() > Encoding::quantized) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a part of a delta, which has to be resolved",
                           {.field = "encoding",
                            .region = printable(place.region),
                            .tensor = printable(name),
                            .value = std::string(encoding_name(view.encoding()))});
  }
  const bool quantized = view.encoding() == Encoding::quantized;
  facts_.tensors.push_back({.name = std::move(name),
                            .layout = spec_of(view).layout(),
                            .offset = view.stored_offset(),
                            .stored_bytes = view.stored_bytes(),
                            .in_place = view.is_raw() && !quantized,
                            .checksum = "crc32"});
  places_.push_back(std::move(place));
}

// The order of the file is that of declaration; the directory may sort by name.
void FlatThalia::sort_by_offset() {
  std::vector<std::size_t> order(places_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return places_[i].view.stored_offset(); });
  std::vector<Place> places;
  std::vector<AnyTensor> tensors;
  for (const std::size_t i : order) {
    places.push_back(std::move(places_[i]));
    tensors.push_back(std::move(facts_.tensors[i]));
  }
  places_ = std::move(places);
  facts_.tensors = std::move(tensors);
}

// Connections have no region: their names are made here and never get a prefix.
void FlatThalia::add_connections() {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < reader_.connection_count(); ++i) {
    const ConnectionView connection = reader_.connection(i);
    names.push_back(fmt::format("{}->{}", connection.source, connection.target));
    const auto add_matrix = [&](std::string_view matrix, const TensorView& view) {
      add(fmt::format("{}.{}", names.back(), matrix),
          {.region = {}, .view = view, .connection = i, .matrix = matrix});
    };
    add_matrix("weights", connection.weights);
    if (connection.delays) add_matrix("delays", *connection.delays);
  }
  if (!names.empty()) {
    facts_.losses.push_back(fmt::format(
        "connections become tensors with nothing to tell them from others: {}", list_names(names)));
  }
}

void FlatThalia::resolve_names() {
  std::unordered_map<std::string_view, unsigned> uses;
  for (const Place& place : places_) ++uses[place.view.name()];
  std::vector<std::string> renamed;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.connection || uses[place.view.name()] == 1) continue;
    std::string& name = facts_.tensors[i].name;
    name = fmt::format("{}.{}", place.region, name);
    renamed.push_back(name);
  }
  if (!renamed.empty()) {
    facts_.losses.insert(
        facts_.losses.begin(),
        fmt::format("tensors of one name in several regions are renamed to REGION.NAME: {}",
                    list_names(renamed)));
  }
  // The name that was made up may itself belong to another tensor.
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::string& name = facts_.tensors[i].name;
    if (names.insert(name).second) continue;
    throw UnsupportedError(
        ErrorCode::unsupported_feature, "without regions another tensor has this name",
        {.field = "name", .region = printable(places_[i].region), .tensor = printable(name)});
  }
}

Tensor FlatThalia::read(std::size_t i) const {
  return Tensor::from(places_[i].view, read_.input.limits);
}

void FlatThalia::visit(std::size_t i, const PieceSink& sink) const {
  std::vector<std::byte> scratch;
  visit_payload(places_[i].view, scratch, read_, sink);
}

std::optional<RegionPlace> FlatThalia::place(std::size_t i) const {
  const Place& place = places_[i];
  if (place.connection) return std::nullopt;
  return RegionPlace{
      .region = place.region, .name = std::string(place.view.name()), .role = place.view.role()};
}

DType FlatThalia::choose(std::size_t i, const TensorLayout& layout, PrecisionRun& precision) const {
  const Place& place = places_[i];
  TensorSpec spec = spec_of(place.view);
  spec.dtype = layout.dtype;
  spec.shape = layout.shape;
  if (place.connection)
    return precision.choose(reader_.connection(*place.connection), place.matrix, spec);
  return precision.choose(place.region, spec);
}

}  // namespace thalia::formats
