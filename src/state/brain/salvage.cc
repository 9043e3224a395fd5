// A plan of a new file from what is left of an old one. Names and places come from tables that
// were checked by all their rules; a tensor is taken where its bytes lie in the file and have the
// digests of its entry, so whatever was damaged, nothing gets into the output that was not written.
//
// Tensors after the bytes that are real are lost without being read. No more bytes are read than
// the file has: tables that name the same bytes many times are wrong.
#include "thalia/recover.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "container/append/copied_tensor.h"
#include "container/file/open_file.h"
#include "container/file/short_name.h"
#include "container/read/stored_connection.h"
#include "container/verify/payloads.h"
#include "container/write/file_save.h"
#include "format/region.h"
#include "state/brain/damaged_file.h"
#include "state/brain/edit_tree.h"
#include "state/brain/stored_region.h"
#include "state/value/value_json.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/region.h"

namespace thalia {
namespace {

using state::DamagedFile;
using state::is_damage;
using state::reason_of;
using std::filesystem::path;

class Salvage {
 public:
  Salvage(const DamagedFile& damaged, const SalvageOptions& options, SalvageResult& result)
      : damaged_(damaged), file_(*damaged.file), options_(options), result_(result) {}

  container::FilePlan run() {
    const format::Header& header = file_.header();
    container::check_can_be_rewritten(header);
    plan_.training_steps = header.training_steps;
    if (header.metadata_length != 0) {
      take_text("metadata", [&] {
        plan_.metadata = file_.json({header.metadata_offset, header.metadata_length}, "metadata");
      });
    }
    // Connections first: the brain's own region has an entry for each.
    find_connections();
    for (std::uint32_t r = 0; r < file_.region_count(); ++r) take_region(r);
    for (auto& [connection, tensors] : connections_) add_connection(connection, tensors);
    return std::move(plan_);
  }

 private:
  struct Matrices {
    container::TensorPlan weights;
    std::optional<container::TensorPlan> delays;
  };

  // False, with the loss noted, where `take` meets damage.
  template <typename Take>
  bool take_text(const std::string& what, const Take& take) {
    try {
      take();
      return true;
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      result_.lost_texts.push_back(fmt::format("{}: {}", what, reason_of(error)));
      return false;
    }
  }

  void lose(std::string name, std::uint64_t bytes, std::string reason) {
    result_.lost.push_back({std::move(name), bytes, std::move(reason)});
  }

  // Nullopt, with the loss noted, for a tensor that is not what was written.
  std::optional<container::TensorPlan> take(std::uint32_t region, std::uint32_t number,
                                            const std::string& name) {
    stop_if_cancelled(options_.save.work.cancel);
    std::uint64_t bytes = 0;
    try {
      const TensorView view = file_.tensor_view(region, number);
      bytes = view.logical_bytes();
      const std::uint64_t begin = view.stored_offset();
      const std::uint64_t length = view.stored_bytes();
      const bool beyond = begin > damaged_.available || length > damaged_.available - begin;
      if (length > 0 && beyond) {
        lose(name, bytes,
             fmt::format("its bytes [{}, {}) go beyond the end of the file at {}", begin,
                         begin + length, damaged_.available));
        return std::nullopt;
      }
      if (length > damaged_.available - taken_) {
        lose(name, bytes, "tables name more bytes than the file has");
        return std::nullopt;
      }
      container::TensorPlan tensor = container::tensor_to_copy(file_, region, number);
      container::check_sound_payload(file_, view, file_.tensor_entry(number),
                                     options_.save.work.threads);
      taken_ += length;
      return tensor;
    } catch (const Error& error) {
      if (!is_damage(error) && !dynamic_cast<const UnsupportedError*>(&error)) throw;
      lose(name, bytes, reason_of(error));
      return std::nullopt;
    }
  }

  void find_connections() {
    std::uint32_t count = 0;
    take_text("connections", [&] { count = file_.connection_count(); });
    for (std::uint32_t i = 0; i < count; ++i) {
      container::StoredConnection connection;
      try {
        connection = container::stored_connection(file_, i);
      } catch (const Error& error) {
        if (!is_damage(error)) throw;
        lose(fmt::format("connection {}", i), 0, reason_of(error));
        gone_.insert(i);
        continue;
      }
      const std::string name = fmt::format("{}->{}", connection.source, connection.target);
      auto weights = take(file_.region_count(), connection.weights, name + ".weights");
      std::optional<container::TensorPlan> delays;
      if (connection.delays) {
        delays = take(file_.region_count(), *connection.delays, name + ".delays");
        if (delays && !weights) lose(name + ".delays", delays->logical_length, "without weights");
      }
      if (weights) {
        connections_.emplace_back(std::move(connection),
                                  Matrices{std::move(*weights), std::move(delays)});
      } else {
        gone_.insert(i);
      }
    }
    connection_count_ = count;
  }

  void take_region(std::uint32_t number) {
    std::optional<RegionView> region;
    std::string name;
    try {
      region = file_.region_view(number);
      name = region->name();
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      lose(fmt::format("region {}", number), 0, reason_of(error));
      return;
    }
    RegionSpec spec{.name = name};
    spec.config_json = "{}";
    const std::string of = fmt::format(" of region '{}'", printable(name));
    take_text("neurons" + of, [&] {
      const RegionView& view = *region;
      const auto neurons = view.n_neurons();
      const auto inputs = view.n_inputs();
      const auto type = view.neuron_type();
      spec.homeostatic_updated = view.homeostatic_updated().value_or(0);
      spec.n_neurons = neurons;
      spec.n_inputs = inputs;
      spec.neuron_type = type;
    });
    take_text("config" + of, [&] { spec.config_json = region->config_json(); });
    take_text("metadata" + of, [&] { spec.metadata_json = region->metadata_json(); });

    std::vector<container::TensorPlan> tensors;
    state::NewNames lost;
    take_tensors(*region, name, tensors, lost);
    take_text("tree" + of, [&] { forget(spec, lost); });
    std::uint32_t id = 0;
    try {
      id = plan_.add_region(std::move(spec));
    } catch (const UsageError& error) {
      for (const container::TensorPlan& tensor : tensors)
        lose(fmt::format("{}/{}", name, tensor.spec.name), tensor.logical_length, reason_of(error));
      result_.lost_texts.push_back(
          fmt::format("region '{}': {}", printable(name), reason_of(error)));
      return;
    }
    short_names_.emplace(container::short_name_string(name), name);
    for (container::TensorPlan& tensor : tensors) {
      const std::string shown = fmt::format("{}/{}", name, tensor.spec.name);
      const std::uint64_t bytes = tensor.logical_length;
      try {
        plan_.add_copy(id, std::move(tensor));
      } catch (const UsageError& error) {
        lose(shown, bytes, reason_of(error));
      }
    }
  }

  // In the order of their bytes, which was that of their declaration.
  void take_tensors(const RegionView& region, const std::string& name,
                    std::vector<container::TensorPlan>& tensors, state::NewNames& lost) {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    try {
      const format::DirectoryRegion& record = file_.directory_region(region.index());
      first = record.first_tensor;
      count = record.tensor_count;
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      lose(fmt::format("{}/*", name), 0, reason_of(error));
      return;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      std::string tensor_name = fmt::format("tensor {}", i);
      try {
        tensor_name = region.tensor(i).name();
      } catch (const Error& error) {
        if (!is_damage(error)) throw;
        lose(fmt::format("{}/{}", name, tensor_name), 0, reason_of(error));
        continue;
      }
      if (auto tensor = take(region.index(), first + i, fmt::format("{}/{}", name, tensor_name))) {
        tensors.push_back(*std::move(tensor));
      } else {
        lost.emplace(tensor_name, std::nullopt);
      }
    }
    std::ranges::stable_sort(tensors, {}, &container::TensorPlan::stored_offset);
  }

  // A text that cannot be changed goes: it would name what is not there.
  void forget(RegionSpec& spec, const state::NewNames& lost) const {
    const bool brain = spec.name == state::kBrainRegion && !gone_.empty();
    if (spec.metadata_json.empty() || (lost.empty() && !brain)) return;
    const std::string text = std::exchange(spec.metadata_json, {});
    Value metadata = state::parse_json_object(text, options_.input.limits);
    if (Value* tree = metadata.find(state::kTreeMember)) state::edit_tree(*tree, lost);
    Value* list = brain ? metadata.find("connections") : nullptr;
    if (list && list->is_array() && list->size() == connection_count_) {
      std::uint32_t i = 0;
      std::erase_if(list->elements(), [&](const Value&) { return gone_.contains(i++); });
    }
    spec.metadata_json = to_json(metadata);
  }

  void add_connection(const container::StoredConnection& connection, Matrices& matrices) {
    const std::string name = fmt::format("{}->{}", connection.source, connection.target);
    try {
      const auto source = short_names_.find(connection.source);
      const auto target = short_names_.find(connection.target);
      if (source == short_names_.end() || target == short_names_.end()) {
        lose(name + ".weights", matrices.weights.logical_length, "a region of it is lost");
        return;
      }
      plan_.add_connection(source->second, target->second);
    } catch (const UsageError& error) {
      lose(name + ".weights", matrices.weights.logical_length, reason_of(error));
      return;
    }
    // What they are follows from where they are, whatever their entries said.
    matrices.weights.spec.role = Role::weights;
    if (matrices.delays) matrices.delays->spec.role = Role::other;
    container::set_matrices(plan_, std::move(matrices.weights), std::move(matrices.delays));
  }

  const DamagedFile& damaged_;
  const detail::OpenFile& file_;
  const SalvageOptions& options_;
  SalvageResult& result_;
  container::FilePlan plan_;
  std::uint64_t taken_ = 0;  ///< stored bytes
  std::map<std::string, std::string> short_names_;
  std::vector<std::pair<container::StoredConnection, Matrices>> connections_;
  std::set<std::uint32_t> gone_;  ///< connections, by their numbers
  std::uint32_t connection_count_ = 0;
};

}  // namespace

std::string_view salvage_tables_name(SalvageTables tables) noexcept {
  switch (tables) {
    case SalvageTables::header:
      return "header";
    case SalvageTables::commit_record:
      return "commit_record";
    case SalvageTables::side_file:
      return "side_file";
  }
  return "unknown";
}

SalvageResult salvage(const path& input, const path& output, const SalvageOptions& options) {
  const Stopwatch watch;
  SalvageResult result;
  // A file that must not be replaced is refused before the work.
  container::FileSave save(output, options.save);
  with_path(input.native(), [&] {
    const DamagedFile damaged = state::open_damaged(input, output, options);
    result.tables = damaged.tables;
    result.fault = damaged.fault;
    result.tables_verified = damaged.tables_verified;
    result.generation = damaged.file->header().generation;
    result.input_bytes = file_bytes(input);
    save.plan() = Salvage(damaged, options, result).run();
    if (save.plan().tensors.empty() && !result.lost.empty()) {
      throw IntegrityError(
          ErrorCode::checksum_mismatch,
          fmt::format("nothing can be got: no tensor of {} is the one that was written; the first, "
                      "'{}': {}",
                      result.lost.size(), printable(result.lost[0].name), result.lost[0].reason));
    }
    result.regions = static_cast<std::uint32_t>(save.plan().regions.size());
    const SaveResult saved = save.commit();
    result.tensors = saved.tensors;
    result.output_bytes = saved.file_bytes;
  });
  result.seconds = watch.seconds();
  return result;
}

}  // namespace thalia
