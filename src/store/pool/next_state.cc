// All patterns are held against all names before anything is left out: one that fits nothing is an
// error and no silent loss. What begins anew goes first, so that copies are made of what is carried
// over.
#include "store/pool/next_state.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/fail.h"
#include "store/load/strict.h"
#include "store/run/python_tree.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

// What a path of names with dots leads to, through objects of the metadata or dictionaries of a
// tree of Python's; nullptr if it leads nowhere.
const Value* find_path(const Value& root, std::string_view path) {
  if (const Value* const whole = root.find(path)) return whole;
  if (const Value* const whole = find_key(root, path)) return whole;
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
    const std::string_view name = path.substr(0, dot);
    const Value* next = root.find(name);
    if (next == nullptr) next = find_key(root, name);
    if (next == nullptr) continue;
    if (const Value* const found = find_path(*next, path.substr(dot + 1))) return found;
  }
  return nullptr;
}

// A list, of masks for example, has the value where each element has it.
bool has_value(const Value& found, double value) {
  if (found.kind() == Value::Kind::number) return found.as_double() == value;
  if (const Value* const list = found.find("list")) return has_value(*list, value);
  return found.is_array() && found.size() != 0 &&
         std::ranges::all_of(found.elements(),
                             [&](const Value& element) { return has_value(element, value); });
}

// True of "model_record", and of what goes on after it: "model_record.stem", "model_record/stem".
bool begins_with(std::string_view name, std::string_view start) {
  if (!name.starts_with(start)) return false;
  return name.size() == start.size() || name[start.size()] == '.' || name[start.size()] == '/';
}

std::string renamed(const std::string& name, const TransitionCopy& copy) {
  return begins_with(name, copy.from) ? copy.to + name.substr(copy.from.size()) : name;
}

class Carrying {
 public:
  Carrying(const TransitionPlan& plan, const ChainReader& gate)
      : plan_(plan),
        carries_("carries", plan.carries),
        resets_("resets", plan.resets),
        source_(state_source(gate)) {}

  NextState run() {
    const Value metadata = parse_json(source_.metadata_json);
    see_names(metadata);
    next_.start =
        part_of(std::move(source_),
                {.keeps_tensor = [&](const state::TensorNames& names,
                                     const TensorSpec&) { return is_carried(names); },
                 .keeps_empty = [&](const std::string& region) { return !is_reset(region); }});
    for (const std::string& tensor : next_.start.gone) next_.reset.push_back(tensor);
    reset_members();
    for (const TransitionCopy& copy : plan_.copies) add_copy(copy);
    return std::move(next_);
  }

 private:
  // All that a pattern may mean.
  void see_names(const Value& metadata) {
    const auto see = [&](std::string_view name) {
      resets_.see({.path = name, .region = {}, .name = name});
    };
    for_each_tensor(source_, [&](const state::TensorNames& names, const TensorSpec&) {
      for_each_key_of(names, [&](const state::TensorNames& part) {
        carries_.see(part);
        resets_.see(part);
      });
    });
    for (const RegionSource& region : source_.regions)
      if (region.tensors.empty())
        for_each_key_of(
            {.path = region.spec.name, .region = region.spec.name, .name = region.spec.name},
            [&](const state::TensorNames& part) { see(part.path); });
    for (const Value::Member& member : metadata.members()) see(member.name);
    if (const Value* const tree = python_tree(metadata))
      for_each_key(*tree, [&](const std::string& key, const Value&) { see(key); });
    carries_.check();
    resets_.check();
  }

  bool is_carried(const state::TensorNames& names) const {
    if (fits_record(plan_.resets, names)) return false;
    return plan_.carries.empty() || fits_record(plan_.carries, names);
  }

  bool is_reset(std::string_view name) {
    if (!fits_record(plan_.resets, {.path = name, .region = name, .name = name})) return false;
    next_.reset.emplace_back(name);
    return true;
  }

  void reset_members() {
    Value& metadata = next_.start.metadata;
    std::erase_if(metadata.members(),
                  [&](const Value::Member& member) { return is_reset(member.name); });
    if (Value* const tree = python_tree(metadata))
      erase_keys(*tree, [&](const std::string& key, const Value&) { return is_reset(key); });
  }

  void add_copy(const TransitionCopy& copy) {
    bool has_any = false;
    std::map<std::string, std::string, std::less<>> names;
    std::vector<RegionSource>& regions = next_.start.state.regions;
    const std::size_t originals = regions.size();
    for (std::size_t r = 0; r < originals; ++r) {
      const bool is_whole = begins_with(regions[r].spec.name, copy.from);
      RegionSource copied{.spec = regions[r].spec, .tensors = {}};
      copied.spec.name = renamed(copied.spec.name, copy);
      for (const TensorSource& tensor : regions[r].tensors) {
        if (!is_whole && !begins_with(tensor.spec.name, copy.from)) continue;
        TensorSource& made = copied.tensors.emplace_back(tensor);
        made.spec.name = renamed(made.spec.name, copy);
        names.emplace(tensor.spec.name, made.spec.name);
        next_.copied.push_back(copied.spec.name + "/" + made.spec.name);
      }
      if (copied.tensors.empty() && !is_whole) continue;
      has_any = true;
      if (is_whole) {
        require_free(copied.spec.name,
                     std::ranges::find(regions, copied.spec.name, [](const RegionSource& region) {
                       return region.spec.name;
                     }) == regions.end());
        regions.push_back(std::move(copied));
        continue;
      }
      for (TensorSource& tensor : copied.tensors) {
        const std::string& name = tensor.spec.name;
        require_free(name, std::ranges::find(regions[r].tensors, name, [](const TensorSource& own) {
                             return own.spec.name;
                           }) == regions[r].tensors.end());
        regions[r].tensors.push_back(std::move(tensor));
      }
    }
    if (copy_texts(copy, names)) has_any = true;
    if (has_any) return;
    fail_argument(ErrorCode::not_found, "copies", fmt::format("'{}'", printable(copy.from, 60)),
                  "what the name of a region, a tensor or a member begins with");
  }

  bool copy_texts(const TransitionCopy& copy,
                  const std::map<std::string, std::string, std::less<>>& names) {
    Value& metadata = next_.start.metadata;
    bool has_any = false;
    if (const Value* const member = metadata.find(copy.from)) {
      require_free(copy.to, metadata.find(copy.to) == nullptr);
      Value copied = *member;
      metadata.add(copy.to, std::move(copied));
      has_any = true;
    }
    Value* const tree = python_tree(metadata);
    const Value* const node = tree == nullptr ? nullptr : find_key(*tree, copy.from);
    if (node == nullptr) return has_any;
    require_free(copy.to, find_key(*tree, copy.to) == nullptr);
    Value copied = *node;
    rename_tensors(copied, names);
    add_key(*tree, copy.to, std::move(copied));
    return true;
  }

  static void require_free(const std::string& name, bool is_free) {
    if (is_free) return;
    fail_argument(ErrorCode::duplicate, "copies", fmt::format("'{}'", printable(name, 60)),
                  "a name that nothing has that is carried over");
  }

  const TransitionPlan& plan_;
  state::PatternUse carries_;
  state::PatternUse resets_;
  StateSource source_;
  NextState next_;
};

}  // namespace

void check_gate(const TransitionPlan& plan, const Value& metadata) {
  const Value* const tree = python_tree(metadata);
  for (const TransitionCheck& check : plan.checks) {
    const Value* found = find_path(metadata, check.key);
    if (found == nullptr && tree != nullptr) found = find_path(*tree, check.key);
    if (found != nullptr && has_value(*found, check.value)) continue;
    throw UsageError(
        ErrorCode::wrong_state,
        fmt::format("the gate '{}' is not what the transition needs", plan.gate),
        {.field = printable(check.key),
         .value =
             found == nullptr || found->has_tensors() ? "nothing" : printable(to_json(*found), 100),
         .bound = fmt::format("{}", check.value)});
  }
}

NextState next_state(const TransitionPlan& plan, const ChainReader& gate) {
  return Carrying(plan, gate).run();
}

void check_model(const NextState& next, std::span<const ExpectedTensor> model,
                 const std::filesystem::path& gate) {
  const std::set<std::string_view> copied(next.copied.begin(), next.copied.end());
  std::vector<HeldTensor> held;
  for (const RegionSource& region : next.start.state.regions) {
    for (const TensorSource& tensor : region.tensors) {
      if (copied.contains(region.spec.name + "/" + tensor.spec.name)) continue;
      held.push_back({.region = region.spec.name,
                      .name = tensor.spec.name,
                      .dtype = tensor.spec.dtype,
                      .shape = tensor.spec.shape});
    }
  }
  require_fit(compare_with_model(held, model), gate);
}

StatePart anchor_state(const TransitionPlan& plan, const ChainReader& gate) {
  StateSource state = state_source(gate);
  state::PatternUse use("anchor", plan.anchor);
  for_each_tensor(state, [&](const state::TensorNames& names, const TensorSpec&) {
    for_each_key_of(names, [&](const state::TensorNames& part) { use.see(part); });
  });
  use.check();
  return part_of(std::move(state), {.keeps_tensor =
                                        [&](const state::TensorNames& names, const TensorSpec&) {
                                          return fits_record(plan.anchor, names);
                                        },
                                    .keeps_empty = [](const std::string&) { return false; },
                                    .forgets_training = true});
}

}  // namespace thalia::store
