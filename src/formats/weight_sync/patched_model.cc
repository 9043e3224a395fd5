// Tensors that no version changes are those of the model, in its mapping. The others are made anew
// each time that they are read, from the oldest version to the newest.
#include "formats/weight_sync/patched_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/opened.h"
#include "formats/weight_sync/opened_weights.h"
#include "io/folder/folder.h"
#include "io/path/base_file.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats::weight_sync {
namespace {

class PatchedModel final : public OpenedFile {
 public:
  PatchedModel(std::shared_ptr<const OpenedFile> model, WeightPatches patches,
               const OpenOptions& options)
      : model_(std::move(model)), patches_(std::move(patches)), options_(options) {
    facts_ = model_->facts();
    std::unordered_set<std::string_view> names;
    for (const AnyTensor& tensor : facts_.tensors) names.insert(tensor.name);
    for (const auto& patch : patches_) {
      facts_.file_bytes += patch->file_bytes();
      for (const std::string_view name : patch->tensors()) {
        if (names.contains(name)) continue;
        throw FormatError(ErrorCode::inconsistent, "the model that is changed lacks this tensor",
                          {.path = patch->files().front().string(), .tensor = printable(name)});
      }
    }
    for (AnyTensor& tensor : facts_.tensors) {
      const WeightPatch* const last = last_of(tensor.name);
      if (last == nullptr) continue;
      tensor.in_place = false;
      tensor.offset.reset();
      tensor.checksum = last->checksum();
    }
  }

  std::vector<std::filesystem::path> files() const override {
    std::vector<std::filesystem::path> files;
    for (auto patch = patches_.rbegin(); patch != patches_.rend(); ++patch)
      std::ranges::move((*patch)->files(), std::back_inserter(files));
    std::ranges::move(model_->files(), std::back_inserter(files));
    return files;
  }

  std::vector<LinkFacts> links(const std::string& path) const override {
    std::vector<LinkFacts> links;
    for (auto patch = patches_.rbegin(); patch != patches_.rend(); ++patch) {
      links.push_back({{.is_delta = true, .disk_bytes = (*patch)->file_bytes()},
                       links.empty() ? path : (*patch)->files().front().string()});
    }
    const auto files = model_->files();
    links.push_back({{.disk_bytes = model_->facts().file_bytes},
                     files.empty() ? path : files.front().string()});
    return links;
  }

  Tensor read(std::size_t i) const override {
    const AnyTensor& tensor = facts_.tensors.at(i);
    Tensor before = model_->read(i);
    if (last_of(tensor.name) == nullptr) return before;
    const ReadLimits& limits = options_.chain.read.input.limits;
    const std::uint64_t bytes = before.bytes().size();
    io::MemoryBudget budget(limits, bytes);
    const auto state = std::make_shared<std::vector<std::byte>>(
        budget.vector_of<std::byte>("tensor", before.bytes()));
    for (const auto& patch : patches_) {
      stop_if_cancelled(options_.chain.read.work.cancel);
      if (!patch->changes(tensor.name)) continue;
      with_path(patch->files().front().native(), [&] {
        with_tensor(printable(tensor.name), [&] {
          // What a patch takes is given back before the next one.
          io::MemoryBudget rest(limits, bytes, bytes);
          patch->apply(tensor.name, tensor.layout.dtype, *state, rest);
        });
      });
    }
    return Tensor::adopt(tensor.layout, *state, state);
  }

  TensorElements elements(std::size_t i) const override {
    return is_changed(i) ? elements_of(read(i)) : model_->elements(i);
  }
  bool is_mapped(std::size_t i) const override { return !is_changed(i) && model_->is_mapped(i); }
  void visit(std::size_t i, const PieceSink& sink) const override {
    if (is_changed(i)) return sink(read(i).bytes());
    model_->visit(i, sink);
  }
  void check(std::size_t i) const override {
    if (is_changed(i)) {
      static_cast<void>(read(i));
    } else {
      model_->check(i);
    }
  }

 private:
  const WeightPatch* last_of(std::string_view name) const {
    for (auto patch = patches_.rbegin(); patch != patches_.rend(); ++patch)
      if ((*patch)->changes(name)) return patch->get();
    return nullptr;
  }
  bool is_changed(std::size_t i) const { return last_of(facts_.tensors.at(i).name) != nullptr; }

  std::shared_ptr<const OpenedFile> model_;
  WeightPatches patches_;
  OpenOptions options_;
};

}  // namespace

std::shared_ptr<const OpenedFile> patched_model(std::shared_ptr<const OpenedFile> model,
                                                WeightPatches patches, const OpenOptions& options) {
  return std::make_shared<PatchedModel>(std::move(model), std::move(patches), options);
}

std::shared_ptr<const OpenedFile> open_based_on(const std::filesystem::path& model,
                                                const OpenOptions& options) {
  const std::filesystem::path file = find_safetensors_model(model);
  io::BaseFile found = io::open_base(file, options.chain.read.input.access, options.chain.bases);
  if (!found.bytes) {
    const ErrorContext context{.path = file.string()};
    if (found.reason.empty()) throw IoError("open of the model that is changed", ENOENT, context);
    throw FormatError(ErrorCode::bad_value, "the model that is changed: " + found.reason, context);
  }
  return with_path(file.native(), [&] {
    return open_safetensors_file(io::InputFile(std::move(found.bytes)), options);
  });
}

std::filesystem::path named_folder(const std::filesystem::path& file) {
  std::filesystem::path folder = folder_of(file);
  const std::string name = folder.filename().string();
  if (!name.empty() && name != "." && name != "..") return folder;
  return resolved_path(folder);
}

}  // namespace thalia::formats::weight_sync

namespace thalia::formats {

std::shared_ptr<const OpenedFile> open_or_as_stored(OpenFormat open, const io::InputFile& input,
                                                    const OpenOptions& options) {
  if (!options.as_stored || io::Folder::find(input.path())) return open(input, options);
  try {
    return open(input, options);
  } catch (const IoError& error) {
    if (error.errno_value() != ENOENT) throw;
    return open_safetensors_file(input, options);
  }
}

}  // namespace thalia::formats
