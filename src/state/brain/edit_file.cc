// Each edit is one append. A region that loses or renames a tensor is written anew: its tensors are
// taken over as they are stored, and the tree of its metadata, which names them, is changed with
// them. All other texts stay as they are, but for white space.
#include "thalia/state/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "container/append/copied_tensor.h"
#include "container/file/short_name.h"
#include "state/brain/edit_tree.h"
#include "state/brain/stored_region.h"
#include "state/precision/glob.h"
#include "state/value/path_names.h"
#include "state/value/value_json.h"
#include "thalia/reader.h"
#include "thalia/state/brain.h"

namespace thalia {
namespace {

using std::filesystem::path;

using state::edit_tree;
using state::NewName;
using state::NewNames;

class FileEdit {
 public:
  FileEdit(const path& file, const AppendOptions& options)
      : limits_(options.change.input.limits),
        appender_(file, options),
        reader_(Reader::open(file, {.input = options.change.input, .work = options.change.work})) {}

  const Reader& reader() const noexcept { return reader_; }
  Appender& appender() noexcept { return appender_; }

  Value metadata() const { return object_of(reader_.metadata_json()); }

  /// Calls visit(names, region, i) for each tensor of a region.
  template <typename Visit>
  void for_each_tensor(const Visit& visit) const {
    for (std::uint32_t r = 0; r < reader_.region_count(); ++r) {
      const RegionView region = reader_.region(r);
      for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
        const TensorView tensor = region.tensor(i);
        const std::string full =
            state::path_in_region(region.name(), component_of_role(tensor.role()), tensor.name());
        visit(state::TensorNames{.path = full, .region = region.name(), .name = tensor.name()},
              region, i);
      }
    }
  }

  void rewrite(const RegionView& region, const NewNames& names) {
    RegionSpec spec = container::region_to_write(region);
    if (!spec.metadata_json.empty()) {
      Value metadata = object_of(spec.metadata_json);
      if (Value* tree = metadata.find(state::kTreeMember); tree != nullptr) edit_tree(*tree, names);
      if (region.name() == state::kBrainRegion)
        state::forget_connections(metadata, removed_connections());
      spec.metadata_json = to_json(metadata);
    }
    const RegionId id = appender_.replace_region(std::move(spec));
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const auto found = names.find(region.tensor(i).name());
      if (found == names.end()) {
        appender_.copy_tensor(id, region, i);
      } else if (found->second) {
        appender_.copy_tensor(id, region, i, *found->second);
      }
    }
  }

  /// With its connections, of which the brain's own region may tell: rewrite() that one then.
  void remove_region(const RegionView& region) {
    appender_.remove_region(region.name());
    removed_.insert(container::short_name_string(region.name()));
  }

 private:
  std::vector<bool> removed_connections() const {
    std::vector<bool> goes(reader_.connection_count());
    for (std::uint32_t i = 0; i < goes.size(); ++i) {
      const ConnectionView connection = reader_.connection(i);
      goes[i] = removed_.contains(connection.source) || removed_.contains(connection.target);
    }
    return goes;
  }

  Value object_of(std::string_view json) const {
    return json.empty() ? Value::object() : state::parse_json_object(json, limits_);
  }

  const ReadLimits limits_;
  Appender appender_;  ///< first: it locks the file that is read
  Reader reader_;
  std::set<std::string> removed_;  ///< short names of regions
};

// The object that has, or is to have, the last part of the key, which is left in `key`.
Value& owner_of(Value& metadata, std::string_view& key, bool create) {
  Value* owner = &metadata;
  while (owner->find(key) == nullptr) {
    const std::size_t dot = key.find('.');
    if (dot == std::string_view::npos || dot == 0 || dot + 1 == key.size()) break;
    const std::string_view part = key.substr(0, dot);
    Value* next = owner->find(part);
    if (next == nullptr && !create) break;
    if (next == nullptr) next = &owner->add(std::string(part), Value::object());
    if (!next->is_object()) {
      throw UsageError(ErrorCode::bad_argument, "a part of the key is no object",
                       {.field = "metadata",
                        .value = fmt::format("'{}'", printable(part)),
                        .bound = fmt::format("an object, found {}", kind_name(next->kind()))});
    }
    owner = next;
    key.remove_prefix(dot + 1);
  }
  return *owner;
}

void set_member(Value& metadata, const MetadataMember& member) {
  std::string_view key = member.key;
  if (key.empty())
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "metadata key", .value = "''", .bound = "a name"});
  Value& owner = owner_of(metadata, key, member.value.has_value());
  if (member.value) {
    owner[key] = *member.value;
    return;
  }
  if (owner.erase(key)) return;
  throw UsageError(ErrorCode::not_found,
                   "the metadata has no such member" +
                       suggestion_among(key, owner.members(), &Value::Member::name),
                   {.field = "metadata key", .value = printable(member.key)});
}

}  // namespace

EditFileResult set_in_file(const path& file, const std::vector<MetadataMember>& members,
                           std::optional<std::uint64_t> training_steps,
                           const AppendOptions& options) {
  return with_path(file.native(), [&] {
    FileEdit edit(file, options);
    EditFileResult result;
    if (!members.empty()) {
      Value metadata = edit.metadata();
      for (const MetadataMember& member : members) {
        set_member(metadata, member);
        result.changed.push_back(member.key);
      }
      edit.appender().set_metadata(to_json(metadata));
    }
    if (training_steps) edit.appender().set_training_steps(*training_steps);
    result.append = edit.appender().commit();
    return result;
  });
}

EditFileResult rename_in_file(const path& file, std::string_view from, std::string_view to,
                              const AppendOptions& options) {
  return with_path(file.native(), [&] {
    FileEdit edit(file, options);
    state::PatternUse use("tensor", {std::string(from)});
    std::vector<std::pair<std::uint32_t, std::string>> found;  // region and name
    EditFileResult result;
    edit.for_each_tensor(
        [&](const state::TensorNames& names, const RegionView& region, std::uint32_t) {
          use.see(names);
          if (!names.fit(from)) return;
          found.emplace_back(region.index(), names.name);
          result.changed.push_back(names.shown());
        });
    use.check();
    if (found.size() > 1) {
      throw UsageError(ErrorCode::bad_argument, "several tensors are called so",
                       {.field = "tensor",
                        .value = printable(from),
                        .bound = fmt::format("one, such as '{}'", printable(result.changed[0]))});
    }
    const RegionView region = edit.reader().region(found[0].first);
    const std::string prefix = fmt::format("{}/", region.name());
    if (to.starts_with(prefix)) to.remove_prefix(prefix.size());
    if (to.empty()) fail_argument(ErrorCode::bad_argument, "new name", "''", "1 or more bytes");
    edit.rewrite(region, {{found[0].second, std::string(to)}});
    result.append = edit.appender().commit();
    return result;
  });
}

EditFileResult remove_from_file(const path& file, const std::vector<std::string>& patterns,
                                const AppendOptions& options) {
  return with_path(file.native(), [&] {
    FileEdit edit(file, options);
    EditFileResult result;
    std::set<std::uint32_t> regions;
    std::vector<std::string> of_tensors;
    for (const std::string& pattern : patterns) {
      const auto region = edit.reader().find_region(pattern);
      if (!region) of_tensors.push_back(pattern);
      if (region && regions.insert(region->index()).second) result.changed.push_back(pattern);
    }
    state::PatternUse use("tensor", of_tensors);
    std::map<std::uint32_t, NewNames> tensors;
    edit.for_each_tensor(
        [&](const state::TensorNames& names, const RegionView& region, std::uint32_t) {
          use.see(names);
          const bool goes = std::ranges::any_of(
              of_tensors, [&](const std::string& pattern) { return names.fit(pattern); });
          if (!goes || regions.contains(region.index())) return;
          tensors[region.index()].emplace(names.name, std::nullopt);
          result.changed.push_back(names.shown());
        });
    use.check();
    for (const std::uint32_t region : regions) edit.remove_region(edit.reader().region(region));
    const auto brain = edit.reader().find_region(state::kBrainRegion);
    if (brain && !regions.empty() && !regions.contains(brain->index())) tensors[brain->index()];
    for (const auto& [region, names] : tensors) edit.rewrite(edit.reader().region(region), names);
    result.append = edit.appender().commit();
    return result;
  });
}

}  // namespace thalia
