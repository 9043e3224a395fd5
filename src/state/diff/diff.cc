// What differs between two checkpoints. Tables and texts are compared first, without reading a
// payload: equal content hashes are equal tensors. Only then, and only if the caller asks for
// values, are the tensors that differ read. Results do not depend on threads: each piece of a
// comparison has a tally of its own, and tallies are added up in order.

#include "thalia/state/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "format/little_endian.h"
#include "state/diff/diffed_file.h"
#include "state/diff/structure.h"
#include "state/diff/value_comparison.h"
#include "thalia/state/delta.h"
#include "thalia/state/tensor_value.h"
#include "thalia/text.h"
#include "thalia/types.h"

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

// @throws UsageError (bad_argument).
state::Tolerance tolerance_of(const DiffOptions& options) {
  for (const auto& [name, value] : {std::pair("absolute_tolerance", options.absolute_tolerance),
                                    std::pair("relative_tolerance", options.relative_tolerance)}) {
    if (!(value >= 0 && value <= std::numeric_limits<double>::max()))
      fail_argument(ErrorCode::bad_argument, name, fmt::format("{}", value),
                    "a finite number, 0 or more");
  }
  return {.absolute = options.absolute_tolerance, .relative = options.relative_tolerance};
}

bool tolerates(const DiffOptions& options) {
  return options.absolute_tolerance > 0 || options.relative_tolerance > 0;
}

void diff_headers(const FileHeader& a, const FileHeader& b, bool of_states, Diff& diff) {
  const auto number = [](std::vector<FieldDiff>& fields, std::string_view name, std::uint64_t x,
                         std::uint64_t y) {
    add_field(fields, name, std::to_string(x), std::to_string(y));
  };
  add_field(diff.header, "version", json_string(a.version.to_string()),
            json_string(b.version.to_string()));
  number(diff.header, "training_steps", a.training_steps, b.training_steps);
  number(diff.header, "total_neurons", a.total_neurons, b.total_neurons);
  number(diff.header, "total_synapses", a.total_synapses, b.total_synapses);
  if (!of_states) {
    add_field(diff.header, "base_checksum", hex_string(a.base_checksum.bytes),
              hex_string(b.base_checksum.bytes));
    number(diff.header, "base_step", a.base_step, b.base_step);
  }
  // What every save changes, whatever it saves.
  number(diff.storage, "timestamp", a.timestamp, b.timestamp);
  number(diff.storage, "generation", a.generation, b.generation);
  add_field(diff.storage, "file_uuid", hex_string(a.file_uuid), hex_string(b.file_uuid));
  number(diff.storage, "checksum_type", format::code_of(a.checksum), format::code_of(b.checksum));
}

void diff_all_regions(const Reader& before, const Reader& after, const DiffOptions& options,
                      state::TensorFilter& filter, const state::Facts& facts, Diff& diff) {
  // With a filter, regions without a tensor that it takes are not spoken of.
  const auto counts = [&](const RegionDiff& region) {
    return filter.takes_everything() || region.tensor_count != 0;
  };
  for (std::uint32_t i = 0; i < before.region_count(); ++i) {
    stop_if_cancelled(options.work.cancel);
    const RegionView old = before.region(i);
    const auto fresh = after.find_region(old.name());
    RegionDiff region =
        fresh ? state::diff_regions(old, *fresh, filter, options.input.limits, facts)
              : state::region_on_one_side(old, thalia::Change::removed, filter, facts);
    if (!counts(region)) continue;
    if (fresh && !state::differs(region)) {
      ++diff.same_regions;
    } else {
      diff.regions.push_back(std::move(region));
    }
  }
  for (std::uint32_t i = 0; i < after.region_count(); ++i) {
    const RegionView fresh = after.region(i);
    if (before.find_region(fresh.name())) continue;
    RegionDiff region = state::region_on_one_side(fresh, thalia::Change::added, filter, facts);
    if (counts(region)) diff.regions.push_back(std::move(region));
  }
}

bool takes_any(state::TensorFilter& filter, const ConnectionView& connection) {
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
                                                    state::TensorFilter& filter,
                                                    const state::Facts& facts, Diff& diff) {
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
          state::connection_on_one_side(connection, thalia::Change::removed, filter, facts));
    } else if (auto changed = state::diff_connections(connection, after.connection(found->second),
                                                      filter, facts)) {
      both.push_back({diff.connections.size(), number, found->second});
      diff.connections.push_back(*std::move(changed));
    } else {
      ++diff.same_connections;
    }
  }
  for (const auto& [names, number] : fresh) {
    const ConnectionView connection = after.connection(number);
    if (!old.contains(names) && takes_any(filter, connection))
      diff.connections.push_back(
          state::connection_on_one_side(connection, thalia::Change::added, filter, facts));
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
  ValueComparisons(const state::DiffedFile& before, const state::DiffedFile& after,
                   const DiffOptions& options)
      : before_(before), after_(after), options_(options), tolerance_(tolerance_of(options)) {}

  void add(RegionDiff& region) {
    if (region.change != thalia::Change::changed) return;
    const RegionView old = before_.reader.region(region.name);
    const RegionView fresh = after_.reader.region(region.name);
    for (TensorDiff& tensor : region.tensors) {
      if (tensor.change == thalia::Change::changed)
        add(tensor, old.at(tensor.name), fresh.at(tensor.name));
    }
  }

  void add(ConnectionDiff& connection, const ChangedConnection& numbers) {
    const ConnectionView old = before_.reader.connection(numbers.before);
    const ConnectionView fresh = after_.reader.connection(numbers.after);
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
    std::unique_ptr<state::ValueComparison> comparison;
    std::size_t first_piece;
  };

  void add(TensorDiff& diff, const TensorView& old, const TensorView& fresh) {
    const bool content = diff.content_changed() || diff.dtype_changed() || diff.shape_changed();
    if (!content) {  // the role alone
      diff.values = ValueDiff{.compared = old.shape(), .elements = old.element_count()};
      return;
    }
    for (const TensorFacts* side : {&*diff.before, &*diff.after}) {
      if (side->layout.encoding <= Encoding::quantized) continue;
      diff.values = ValueDiff{.skipped = std::string(encoding_name(side->layout.encoding)) +
                                         " values need more than the file"};
      return;
    }
    const ReadLimits& limits = options_.input.limits;
    auto comparison = std::make_unique<state::ValueComparison>(
        state::compared_tensor(before_, old, *diff.before, limits),
        state::compared_tensor(after_, fresh, *diff.after, limits), tolerance_);
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

  const state::DiffedFile& before_;
  const state::DiffedFile& after_;
  const DiffOptions& options_;
  state::Tolerance tolerance_;
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
  if (!before->content_hash || !after->content_hash) return values && values->differing > 0;
  return encoding_changed() || before->content_hash != after->content_hash;
}

namespace {

// With a tolerance, what is within it is no difference.
bool is_within(const TensorDiff& tensor) {
  return tensor.change == thalia::Change::changed && !tensor.shape_changed() &&
         !tensor.role_changed() && tensor.values && tensor.values->skipped.empty() &&
         tensor.values->differing == 0;
}

void drop_what_is_within(Diff& diff) {
  std::erase_if(diff.regions, [&](RegionDiff& region) {
    if (region.change != thalia::Change::changed) return false;
    std::erase_if(region.tensors, is_within);
    if (state::differs(region)) return false;
    ++diff.same_regions;
    return true;
  });
  std::erase_if(diff.connections, [&](ConnectionDiff& connection) {
    if (connection.change != thalia::Change::changed) return false;
    std::erase_if(connection.matrices, is_within);
    if (!connection.matrices.empty()) return false;
    ++diff.same_connections;
    return true;
  });
}

// For suggestions.
std::vector<std::string> some_regions(const Reader& before, const Reader& after) {
  constexpr std::uint32_t kMost = 1'000;
  std::vector<std::string> names;
  for (const Reader* reader : {&before, &after}) {
    for (std::uint32_t i = 0; i < std::min(reader->region_count(), kMost); ++i)
      names.emplace_back(reader->region(i).name());
  }
  return names;
}

Diff diff_of(const state::DiffedFile& old, const state::DiffedFile& fresh,
             const DiffOptions& options) {
  Diff result;
  tolerance_of(options);
  const Reader& before = old.reader;
  const Reader& after = fresh.reader;
  const state::Facts facts{.before = old.facts(), .after = fresh.facts()};
  state::TensorFilter filter(options.tensors);
  if (filter.takes_everything()) {
    diff_headers(before.header(), after.header(), old.chain != nullptr, result);
    result.metadata =
        state::diff_objects(before.metadata_json(), after.metadata_json(), options.input.limits);
  }
  diff_all_regions(before, after, options, filter, facts, result);
  const auto both = diff_all_connections(before, after, filter, facts, result);
  if (!filter.takes_everything()) filter.check(some_regions(before, after));
  if (options.values || tolerates(options)) {
    ValueComparisons comparisons(old, fresh, options);
    for (RegionDiff& region : result.regions) comparisons.add(region);
    for (const ChangedConnection& one : both) comparisons.add(result.connections[one.place], one);
    comparisons.run();
  }
  if (tolerates(options)) drop_what_is_within(result);
  return result;
}

}  // namespace

Diff diff(const Reader& before, const Reader& after, const DiffOptions& options) {
  return diff_of({before}, {after}, options);
}

Diff diff(const ChainReader& before, const ChainReader& after, const DiffOptions& options) {
  const Reader old = before.reader();
  const Reader fresh = after.reader();
  return diff_of({old, &before}, {fresh, &after}, options);
}

std::vector<FieldDiff> diff_metadata(std::string_view before, std::string_view after,
                                     const ReadLimits& limits) {
  return state::diff_objects(before, after, limits);
}

ValueDiff diff_values(const ComparedTensor& before, const ComparedTensor& after,
                      const DiffOptions& options) {
  state::ValueComparison comparison(before, after, tolerance_of(options));
  std::mutex mutex;
  std::uint64_t done = 0;
  parallel_for(comparison.pieces(), options.work.threads, [&](std::size_t piece) {
    stop_if_cancelled(options.work.cancel);
    comparison.compare(piece);
    if (!options.work.progress) return;
    const std::lock_guard lock(mutex);
    done += comparison.piece_bytes();
    options.work.progress(done, comparison.pieces() * comparison.piece_bytes());
  });
  return comparison.result();
}

}  // namespace thalia
