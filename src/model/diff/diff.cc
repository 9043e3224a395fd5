// What differs between two checkpoints. Tables and texts are compared first, without reading a
// payload: equal content hashes are equal tensors. Only then, and only if the caller asks for
// values, are the tensors that differ read. Results do not depend on threads: each piece of a
// comparison has a tally of its own, and tallies are added up in order.

#include "thalia/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "format/little_endian.h"
#include "model/diff/structure.h"
#include "model/diff/value_comparison.h"
#include "thalia/text.h"

namespace thalia {
namespace {

std::string json_string(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

void add_field(std::vector<FieldDiff>& fields, std::string_view name, std::string before,
               std::string after) {
  if (before != after) fields.push_back({std::string(name), std::move(before), std::move(after)});
}

std::string hex_string(std::span<const std::uint8_t> bytes) {
  return json_string(hex(bytes));
}

void diff_headers(const FileHeader& a, const FileHeader& b, Diff& diff) {
  const auto number = [](std::vector<FieldDiff>& fields, std::string_view name, std::uint64_t x,
                         std::uint64_t y) {
    add_field(fields, name, std::to_string(x), std::to_string(y));
  };
  add_field(diff.header, "version", json_string(a.version.to_string()),
            json_string(b.version.to_string()));
  number(diff.header, "training_steps", a.training_steps, b.training_steps);
  number(diff.header, "total_neurons", a.total_neurons, b.total_neurons);
  number(diff.header, "total_synapses", a.total_synapses, b.total_synapses);
  add_field(diff.header, "base_checksum", hex_string(a.base_checksum.bytes),
            hex_string(b.base_checksum.bytes));
  number(diff.header, "base_step", a.base_step, b.base_step);
  // What every save changes, whatever it saves.
  number(diff.storage, "timestamp", a.timestamp, b.timestamp);
  number(diff.storage, "generation", a.generation, b.generation);
  add_field(diff.storage, "file_uuid", hex_string(a.file_uuid), hex_string(b.file_uuid));
  number(diff.storage, "checksum_type", format::code_of(a.checksum), format::code_of(b.checksum));
}

void diff_all_regions(const Reader& before, const Reader& after, const DiffOptions& options,
                      model::TensorFilter& filter, Diff& diff) {
  // With a filter, regions without a tensor that it takes are not spoken of.
  const auto counts = [&](const RegionDiff& region) {
    return filter.takes_everything() || region.tensor_count != 0;
  };
  for (std::uint32_t i = 0; i < before.region_count(); ++i) {
    stop_if_cancelled(options.work.cancel);
    const RegionView old = before.region(i);
    const auto fresh = after.find_region(old.name());
    RegionDiff region = fresh ? model::diff_regions(old, *fresh, filter, options.input.limits)
                              : model::region_on_one_side(old, thalia::Change::removed, filter);
    if (!counts(region)) continue;
    if (fresh && !model::differs(region)) {
      ++diff.same_regions;
    } else {
      diff.regions.push_back(std::move(region));
    }
  }
  for (std::uint32_t i = 0; i < after.region_count(); ++i) {
    const RegionView fresh = after.region(i);
    if (before.find_region(fresh.name())) continue;
    RegionDiff region = model::region_on_one_side(fresh, thalia::Change::added, filter);
    if (counts(region)) diff.regions.push_back(std::move(region));
  }
}

bool takes_any(model::TensorFilter& filter, const ConnectionView& connection) {
  const bool weights = filter.takes(connection, "weights");
  return (connection.delays && filter.takes(connection, "delays")) || weights;
}

using Names = std::pair<std::string, std::string>;

// By both names, sorted, so that the order of connections in the files does not show.
std::map<Names, std::uint32_t> connection_numbers(const Reader& reader) {
  std::map<Names, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    ConnectionView connection = reader.connection(i);
    numbers.emplace(Names(std::move(connection.source), std::move(connection.target)), i);
  }
  return numbers;
}

// A connection of Diff::connections and its numbers in the two files.
struct ChangedConnection {
  std::size_t place;
  std::uint32_t before;
  std::uint32_t after;
};

std::vector<ChangedConnection> diff_all_connections(const Reader& before, const Reader& after,
                                                    model::TensorFilter& filter, Diff& diff) {
  // For the comparison of values, which reads connections by their numbers.
  std::vector<ChangedConnection> both;
  const auto old = connection_numbers(before);
  const auto fresh = connection_numbers(after);
  for (const auto& [names, number] : old) {
    const auto found = fresh.find(names);
    const ConnectionView connection = before.connection(number);
    if (!takes_any(filter, connection)) continue;
    if (found == fresh.end()) {
      diff.connections.push_back(
          {.source = names.first, .target = names.second, .change = thalia::Change::removed});
    } else if (auto changed =
                   model::diff_connections(connection, after.connection(found->second), filter)) {
      both.push_back({diff.connections.size(), number, found->second});
      diff.connections.push_back(*std::move(changed));
    } else {
      ++diff.same_connections;
    }
  }
  for (const auto& [names, number] : fresh) {
    if (!old.contains(names) && takes_any(filter, after.connection(number)))
      diff.connections.push_back(
          {.source = names.first, .target = names.second, .change = thalia::Change::added});
  }
  return both;
}

// A matrix that diff_connections() called changed, and both sides have.
const TensorView& matrix_of(const ConnectionView& connection, std::string_view name) {
  if (name == "weights") return connection.weights;
  assert(name == "delays" && connection.delays);
  return *connection.delays;
}

// Compares the elements of the tensors that differ. The pieces of all of them are one queue, so
// that many small tensors keep the threads as busy as a few large ones.
class ValueComparisons {
 public:
  ValueComparisons(const Reader& before, const Reader& after, const DiffOptions& options)
      : before_(before), after_(after), options_(options) {}

  void add(RegionDiff& region) {
    if (region.change != thalia::Change::changed) return;
    const RegionView old = before_.region(region.name);
    const RegionView fresh = after_.region(region.name);
    for (TensorDiff& tensor : region.tensors) {
      if (tensor.change == thalia::Change::changed)
        add(tensor, old.at(tensor.name), fresh.at(tensor.name));
    }
  }

  void add(ConnectionDiff& connection, const ChangedConnection& numbers) {
    const ConnectionView old = before_.connection(numbers.before);
    const ConnectionView fresh = after_.connection(numbers.after);
    for (TensorDiff& matrix : connection.matrices) {
      if (matrix.change == thalia::Change::changed)
        add(matrix, matrix_of(old, matrix.name), matrix_of(fresh, matrix.name));
    }
  }

  void run() {
    parallel_for(pieces_, options_.work.threads, [&](std::size_t piece) {
      stop_if_cancelled(options_.work.cancel);
      // The last pair that begins at this piece or before it.
      const auto above = std::upper_bound(
          pairs_.begin(), pairs_.end(), piece,
          [](std::size_t wanted, const Pair& pair) { return wanted < pair.first_piece; });
      const Pair& pair = *(above - 1);
      pair.comparison->compare(piece - pair.first_piece);
      report(pair.comparison->piece_bytes());
    });
    for (Pair& pair : pairs_) pair.diff->values = pair.comparison->result();
  }

 private:
  struct Pair {
    TensorDiff* diff;
    std::unique_ptr<model::ValueComparison> comparison;
    std::size_t first_piece;
  };

  void add(TensorDiff& diff, const TensorView& old, const TensorView& fresh) {
    const bool content = diff.content_changed() || diff.dtype_changed() || diff.shape_changed();
    if (!content) {  // the role alone
      diff.values = ValueDiff{.compared = old.shape(), .elements = old.element_count()};
      return;
    }
    auto comparison = std::make_unique<model::ValueComparison>(old, fresh, options_.input.limits);
    const std::uint64_t pieces = comparison->pieces();
    if (pieces == 0) {
      diff.values = comparison->result();
      return;
    }
    total_ += pieces * comparison->piece_bytes();
    // The pointer stays valid: no difference is added once values are compared.
    pairs_.push_back({&diff, std::move(comparison), pieces_});
    pieces_ += pieces;
  }

  void report(std::uint64_t bytes) {
    if (!options_.work.progress) return;
    // Calls of progress never overlap, and never go back.
    const std::lock_guard lock(progress_mutex_);
    done_ += bytes;
    options_.work.progress(done_, total_);
  }

  const Reader& before_;
  const Reader& after_;
  const DiffOptions& options_;
  std::vector<Pair> pairs_;
  std::size_t pieces_ = 0;
  std::uint64_t total_ = 0;
  std::mutex progress_mutex_;
  std::uint64_t done_ = 0;
};

}  // namespace

std::string_view change_name(thalia::Change change) noexcept {
  switch (change) {
    case thalia::Change::added:
      return "added";
    case thalia::Change::removed:
      return "removed";
    case thalia::Change::changed:
      return "changed";
  }
  return "unknown";
}

bool TensorDiff::content_changed() const noexcept {
  return encoding_changed() || before->content_hash != after->content_hash;
}

Diff diff(const Reader& before, const Reader& after, const DiffOptions& options) {
  Diff result;
  model::TensorFilter filter(options.tensors);
  if (filter.takes_everything()) {
    diff_headers(before.header(), after.header(), result);
    result.metadata =
        model::diff_objects(before.metadata_json(), after.metadata_json(), options.input.limits);
  }
  diff_all_regions(before, after, options, filter, result);
  const auto both = diff_all_connections(before, after, filter, result);
  filter.check();
  if (options.values) {
    ValueComparisons comparisons(before, after, options);
    for (RegionDiff& region : result.regions) comparisons.add(region);
    for (const ChangedConnection& one : both) comparisons.add(result.connections[one.place], one);
    comparisons.run();
  }
  return result;
}

}  // namespace thalia
