// Order is what makes a save safe. Shards get names that nothing in the folder has, so they may
// appear one by one while the older model stays what it was. The index then replaces the older one
// in one rename, which is when the new model begins to exist; or, where the older one is of a name
// that opens before it, when that is removed. Only after that do the older model's files go. A
// crash leaves one of the two models whole, and files that no index names. The folder is held from
// the plan to the end: of two who save there at once, the later one finds the model of the other
// whole, and replaces it.
#include "formats/safetensors/model_writer.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "container/write/sha256_ending.h"
#include "formats/safetensors/index.h"
#include "formats/safetensors/place.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "io/output/temporary_file.h"
#include "io/system/process.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats::safetensors {
namespace {

std::string sum_name(std::string_view name) {
  return std::string(name) + std::string(container::kSha256Ending);
}

// What this save has put into the folder, until a model consists of it.
class PlacedFiles {
 public:
  explicit PlacedFiles(const std::filesystem::path& folder) : folder_(folder) {}
  // Nothing is allocated here: it may be memory that was refused.
  ~PlacedFiles() {
    for (const std::filesystem::path& path : paths_) remove_file(path);
  }
  PlacedFiles(const PlacedFiles&) = delete;
  PlacedFiles& operator=(const PlacedFiles&) = delete;
  // Also where the write fails: the file may have its name by then.
  template <typename Write>
  std::uint64_t add(const std::string& name, const Write& write) {
    const std::size_t before = paths_.size();
    paths_.push_back(folder_ / name);
    paths_.push_back(folder_ / sum_name(name));
    try {
      return write();
    } catch (const UsageError& error) {
      if (error.code() == ErrorCode::exists) paths_.resize(before);  // it is somebody else's
      throw;
    }
  }
  void keep() { paths_.clear(); }

 private:
  const std::filesystem::path& folder_;
  std::vector<std::filesystem::path> paths_;
};

// An index that got its name is the model, even where something failed after that. Where nobody
// can tell, its files stay: what no index names goes with the next save.
bool may_be_in_place(const ModelPlan& plan) noexcept {
  try {
    return read_text(plan.path) == *plan.index_text;
  } catch (const IoError& error) {
    return error.errno_value() != ENOENT;
  } catch (...) {
    return true;
  }
}

// What was done to names before is on the disk before what is done next.
void sync_names(const std::filesystem::path& folder, const OutputOptions& output) {
  if (output.durability != Durability::none) io::Folder(folder).sync();
}

void place_index(const ModelPlan& plan, const OutputOptions& output, const std::stop_token& cancel,
                 PlacedFiles& placed) {
  // Full durability has synced the folder with each file.
  if (output.durability == Durability::data) sync_names(plan.folder, output);
  OutputFile index(plan.path, output, cancel);
  index.write(as_byte_span(*plan.index_text));
  try {
    index.commit();
  } catch (...) {
    if (may_be_in_place(plan)) placed.keep();
    throw;
  }
  placed.keep();
}

// What is there and will not be once the model is, or is replaced by it.
struct OlderFiles {
  /// What a folder opens as, in the order in which it does; the new model's own name, too.
  std::vector<std::string> opening{};
  /// What these name, and what a crash has left of a model.
  std::vector<std::string> parts{};

  std::vector<std::string> all() const {
    std::vector<std::string> names = opening;
    names.insert(names.end(), parts.begin(), parts.end());
    return names;
  }
};

bool is_file_there(const io::Folder& folder, const std::string& name) {
  const auto facts = folder.facts(name);
  return facts && facts->kind != io::EntryKind::folder;
}

std::vector<ShardKind> kinds_of(const ModelPlan& plan) {
  if (plan.is_whole_folder) return {kShardKinds.begin(), kShardKinds.end()};
  return {plan.kind};
}

bool is_shard(const ModelPlan& plan, std::string_view name) {
  return std::ranges::any_of(kinds_of(plan),
                             [&](ShardKind kind) { return is_shard_of(name, plan.prefix, kind); });
}

OlderFiles files_replaced(const ModelPlan& plan, const io::Folder& folder) {
  OlderFiles older;
  std::set<std::string> parts;
  for (const ShardKind kind : kinds_of(plan)) {
    const bool is_own = kind == plan.kind && plan.index_text;
    const std::string index =
        is_own ? plan.path.filename().string() : index_name(plan.prefix, kind);
    for (std::string& name : files_named_by(plan.folder / index, kind)) parts.insert(name);
    for (const std::string& name : {file_name(plan.prefix, kind), index})
      if (is_file_there(folder, name)) older.opening.push_back(name);
  }
  for (const io::FolderEntry& entry : folder.entries())
    if (is_shard(plan, entry.name)) parts.insert(entry.name);
  for (const std::string& name : parts)
    if (is_file_there(folder, name) &&
        std::ranges::find(older.opening, name) == older.opening.end())
      older.parts.push_back(name);
  return older;
}

// The file that a temporary one was to become.
std::string_view temporary_target(std::string_view name) {
  const std::size_t random = name.rfind('.', name.rfind('.') - 1);
  return name.substr(1, random - 1);
}

// What only a killed save leaves: checksums of files that are gone, and files that never got their
// names. What a process is writing, as who saves a single file, is not the folder's holder's.
bool is_debris(const ModelPlan& plan, const OlderFiles& older, const std::string& name) {
  const auto is_of_model = [&](std::string_view file) {
    if (is_shard(plan, file)) return true;
    return std::ranges::any_of(kinds_of(plan), [&](ShardKind kind) {
      return file == file_name(plan.prefix, kind) || file == index_name(plan.prefix, kind);
    });
  };
  const auto without_sum = [](std::string_view file) {
    if (file.ends_with(container::kSha256Ending))
      file.remove_suffix(container::kSha256Ending.size());
    return file;
  };
  if (const auto process = io::temporary_process(name))
    return !io::is_process(*process) && is_of_model(without_sum(temporary_target(name)));
  const std::string_view file = without_sum(name);
  return file.size() < name.size() &&
         (is_shard(plan, file) || std::ranges::find(older.parts, file) != older.parts.end());
}

// First what a folder opens as, so that nothing is named and gone. The one of these that does open
// goes last: another may be what a killed save has left. On the disk the order is the same.
void remove_older(const io::Folder& folder, const ModelPlan& plan, const OlderFiles& older,
                  const OutputOptions& output) {
  std::vector<std::string> opening = older.opening;
  std::erase(opening, plan.path.filename().string());
  for (std::size_t left = opening.size(); left > 0; --left) {
    const std::string& name = opening[left - 1];
    if (left == 1 && opening.size() > 1) sync_names(plan.folder, output);
    folder.remove(sum_name(name));
    folder.remove(name);
  }
  if (!opening.empty()) sync_names(plan.folder, output);
  for (const std::string& name : older.parts) remove_file(plan.folder / name);
  const auto is_own = [&](std::string_view name) {
    return std::ranges::any_of(plan.files, [&](const PlannedFile& file) {
      return name == file.name || name == sum_name(file.name);
    });
  };
  for (const io::FolderEntry& entry : folder.entries())
    if (!is_own(entry.name) && is_debris(plan, older, entry.name))
      remove_file(plan.folder / entry.name);
}

// A model may take the place of the one that it is made from, but not if only a part of it is read,
// or goes.
void check_sources(const ModelPlan& plan, const std::vector<std::string>& older,
                   std::span<const std::filesystem::path> sources) {
  const auto is_source = [&](const std::string& name) {
    return std::ranges::any_of(sources, [&](const std::filesystem::path& source) {
      return is_same_file(plan.folder / name, source);
    });
  };
  const auto goes = [&](const std::filesystem::path& source) {
    return std::ranges::any_of(
        older, [&](const std::string& name) { return is_same_file(plan.folder / name, source); });
  };
  if (std::ranges::all_of(older, is_source) && std::ranges::all_of(sources, goes)) return;
  for (const std::string& name : older) io::refuse_read(plan.folder / name, sources);
}

}  // namespace

std::uint64_t write_model(io::HeldFolder& folder, const ModelPlan& plan,
                          const std::filesystem::path& named, const OutputOptions& given,
                          const std::stop_token& cancel,
                          std::span<const std::filesystem::path> sources,
                          const WriteModelFile& write) {
  OutputOptions output = plan.path == named ? given : given.beside();
  if (plan.is_whole_folder) output.link = OutputLink::replaced;
  io::check_output_name(plan.path, output);
  const OlderFiles older = files_replaced(plan, folder.folder());
  if (const auto names = older.all(); !names.empty()) {
    if (!output.replace) io::fail_exists(plan.folder / names.front());
    check_sources(plan, names, sources);
  }
  std::uint64_t bytes = 0;
  if (!plan.index_text) {
    bytes = write(plan.path, plan.files[0], output);
  } else {
    PlacedFiles placed(plan.folder);
    OutputOptions own = output.beside();
    own.replace = false;
    for (const PlannedFile& file : plan.files)
      bytes += placed.add(file.name, [&] { return write(plan.folder / file.name, file, own); });
    place_index(plan, output, cancel, placed);
    bytes += plan.index_text->size();
  }
  if (output.durability == Durability::data) sync_names(plan.folder, output);
  folder.keep();
  remove_older(folder.folder(), plan, older, output);
  return bytes;
}

}  // namespace thalia::formats::safetensors
