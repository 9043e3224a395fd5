// Order is what makes a save safe. Shards get names that nothing in the folder has, so they may
// appear one by one while the older model stays what it was. The index then replaces the older one
// in one rename, which is when the new model begins to exist; where the older one is a whole file,
// which opens before an index, when that is removed. Only behind that do the older model's files
// go. A crash leaves one of the two models whole, and files that no index names. The
// folder is held from the plan to the end: of two who save there at once, the later one finds the
// model of the other whole, and replaces it.
#include "formats/safetensors/model_writer.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "formats/safetensors/index.h"
#include "formats/safetensors/place.h"
#include "formats/safetensors/writer.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats::safetensors {
namespace {

// What this save has put into the folder, until a model consists of it.
class PlacedFiles {
 public:
  explicit PlacedFiles(const std::filesystem::path& folder) : folder_(folder) {}
  ~PlacedFiles() {
    for (const std::string& name : names_) remove_file(folder_ / name);
  }
  PlacedFiles(const PlacedFiles&) = delete;
  PlacedFiles& operator=(const PlacedFiles&) = delete;
  void add(const std::string& name) { names_.push_back(name); }
  void keep() { names_.clear(); }

 private:
  const std::filesystem::path& folder_;
  std::vector<std::string> names_;
};

// An index that got its name is the model, even where the sync of the folder failed behind that.
bool is_in_place(const ModelPlan& plan) noexcept {
  try {
    return read_text(plan.path) == *plan.index_text;
  } catch (const Error&) {
    return false;
  }
}

// What was done to names before is on the disk before what is done behind.
void sync_names(const std::filesystem::path& folder, const OutputOptions& output) {
  if (output.durability != Durability::none) io::Folder(folder).sync();
}

void place_index(const ModelPlan& plan, const OutputOptions& output, const Work& work,
                 PlacedFiles& placed) {
  // Full durability has synced the folder with each file.
  if (output.durability == Durability::data) sync_names(plan.folder, output);
  OutputFile index(plan.path, output, work.cancel);
  index.write(as_byte_span(*plan.index_text));
  try {
    index.commit();
  } catch (const Error&) {
    if (is_in_place(plan)) placed.keep();
    throw;
  }
  placed.keep();
}

// What is there and will not be once the model is: its own path first, then the older model's files
// and what a crash has left of one.
std::vector<std::string> files_replaced(const ModelPlan& plan, const io::Folder& folder) {
  const std::string index = plan.prefix + std::string(kIndexSuffix);
  std::set<std::string> gone;
  for (const std::string& name : files_named_by(plan.index_text ? plan.path : plan.folder / index))
    gone.insert(name);
  gone.insert(plan.index_text ? plan.prefix + std::string(kFileSuffix) : index);
  for (const io::FolderEntry& entry : folder.entries())
    if (is_shard_of(entry.name, plan.prefix)) gone.insert(entry.name);
  std::vector<std::string> names{plan.path.filename().string()};
  gone.erase(names.front());
  names.insert(names.end(), gone.begin(), gone.end());
  std::erase_if(names, [&](const std::string& name) {
    const auto facts = folder.facts(name);
    return !facts || facts->kind == io::EntryKind::folder;
  });
  return names;
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
                          const Work& work, std::span<const std::filesystem::path> sources,
                          const EmitPayload& emit) {
  const OutputOptions output = plan.path == named ? given : given.beside();
  io::check_output_name(plan.path, output);
  const std::vector<std::string> older = files_replaced(plan, folder.folder());
  if (!output.replace && !older.empty()) io::fail_exists(plan.folder / older.front());
  check_sources(plan, older, sources);
  Written written{.total = plan.data_bytes};
  std::uint64_t bytes = 0;
  if (!plan.index_text) {
    bytes = write_file(plan.path, plan.files[0].header, output, work, written, emit);
    // The file is what opens by now. The index goes first of the rest: without its files it would
    // be a model that cannot be opened.
    if (folder.folder().remove(plan.prefix + std::string(kIndexSuffix)))
      sync_names(plan.folder, output);
  } else {
    PlacedFiles placed(plan.folder);
    OutputOptions own = output.beside();
    own.replace = false;
    for (const PlannedFile& file : plan.files) {
      bytes += write_file(plan.folder / file.name, file.header, own, work, written, emit);
      placed.add(file.name);
    }
    place_index(plan, output, work, placed);
    if (output.durability == Durability::data) sync_names(plan.folder, output);
    // A whole file is opened before an index: the new model is what opens once it is gone.
    if (folder.folder().remove(plan.prefix + std::string(kFileSuffix)))
      sync_names(plan.folder, output);
    bytes += plan.index_text->size();
  }
  folder.keep();
  const std::string own = plan.path.filename().string();
  for (const std::string& name : older)
    if (name != own) remove_file(plan.folder / name);
  return bytes;
}

}  // namespace thalia::formats::safetensors

namespace thalia {

SafetensorsModelSaved save_safetensors_model(const std::filesystem::path& path,
                                             const std::vector<NamedArray>& tensors,
                                             const std::optional<SafetensorsMetadata>& metadata,
                                             const SafetensorsModelSaveOptions& options) {
  using namespace formats::safetensors;
  check_payload_sizes(path, tensors);
  io::HeldFolder folder(model_target(path).folder, options.output.durability, options.work.cancel);
  const ModelPlan plan = plan_model(path, tensors, metadata,
                                    {.max_shard_bytes = options.max_shard_bytes,
                                     .align = options.align,
                                     .max_header_bytes = formats::kSafetensorsHeaderLimit});
  SafetensorsModelSaved saved{.path = plan.path};
  for (const PlannedFile& file : plan.files) saved.files.push_back(file.name);
  saved.output_bytes =
      write_model(folder, plan, path, options.output, options.work, {},
                  [&](std::size_t i, const formats::PieceSink& sink) { sink(tensors[i].bytes); });
  return saved;
}

}  // namespace thalia
