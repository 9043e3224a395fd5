// Each file is opened as one by itself, and what it has is held against the index. An index that is
// replaced meanwhile is opened anew: a save puts its index in place in one step, and removes files
// of the older model only behind that.
#include "interop/convert/thalia_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "interop/convert/conversions.h"
#include "interop/convert/thalia_source.h"
#include "interop/safetensors/index_match.h"
#include "interop/safetensors/opened_model.h"
#include "io/base_file.h"
#include "io/file_bytes.h"
#include "io/posix_file.h"
#include "thalia/delta.h"
#include "thalia/formats/model_index.h"
#include "thalia/paths.h"

namespace thalia::interop {
namespace {

using Shards = std::vector<std::shared_ptr<const ThaliaSource>>;

// What an index names was named by a stranger: a regular file, and within the policy's folder.
void check_shard(const path& file, const SourceOptions& options) {
  const io::BaseFile found = io::open_base(file, options.read.input.access, options.bases);
  if (found.bytes) return;
  const ErrorContext context{.path = file.string(), .section = "index"};
  if (found.reason.empty()) throw IoError("open of a file that the index names", ENOENT, context);
  throw FormatError(ErrorCode::bad_value, "the index names this file: " + found.reason, context);
}

std::shared_ptr<const ThaliaSource> open_shard(const path& file, const SourceOptions& options) {
  stop_if_cancelled(options.read.work.cancel);
  check_shard(file, options);
  return with_path(file.native(), [&] {
    const ResolvedFile resolved(
        file, {}, {.read = options.read, .search = options.search, .bases = options.bases});
    return std::make_shared<const ThaliaSource>(resolved.reader(), RegionGrouping{}, options.read);
  });
}

class ThaliaShards final : public SourceFile {
 public:
  ThaliaShards(path index, const ModelIndex& content, std::uint64_t index_bytes, Shards shards)
      : index_(std::move(index)), shards_(std::move(shards)) {
    facts_.file_bytes = index_bytes;
    for (std::size_t f = 0; f < shards_.size(); ++f) {
      files_.push_back(folder_of(index_) / content.files[f]);
      add_shard(content.files[f], shards_[f]->facts(), f);
    }
  }

  std::vector<path> files() const override {
    std::vector<path> files{index_};
    files.insert(files.end(), files_.begin(), files_.end());
    return files;
  }
  Tensor read(std::size_t i) const override {
    const Place& at = places_.at(i);
    return with_path(files_[at.file].native(), [&] { return shards_[at.file]->read(at.tensor); });
  }
  void visit(std::size_t i, const PieceSink& sink) const override {
    const Place& at = places_.at(i);
    with_path(files_[at.file].native(), [&] { shards_[at.file]->visit(at.tensor, sink); });
  }
  std::optional<SourcePlace> place(std::size_t i) const override {
    return shards_[places_[i].file]->place(places_[i].tensor);
  }

 private:
  struct Place {
    std::size_t file;
    std::size_t tensor;
  };

  void add_shard(const std::string& name, const SourceFacts& shard, std::size_t file) {
    if (file == 0) {
      facts_.version = shard.version;
      facts_.metadata = shard.metadata;
    } else if (shard.metadata != facts_.metadata) {
      facts_.losses.push_back(
          fmt::format("metadata of {}: other than those of the first file", printable(name)));
    }
    if (!facts_.training_steps) facts_.training_steps = shard.training_steps;
    facts_.file_bytes += shard.file_bytes;
    for (const std::string& loss : shard.losses)
      if (std::ranges::find(facts_.losses, loss) == facts_.losses.end())
        facts_.losses.push_back(loss);
    facts_.place_losses.insert(facts_.place_losses.end(), shard.place_losses.begin(),
                               shard.place_losses.end());
    for (std::size_t i = 0; i < shard.tensors.size(); ++i) {
      SourceTensor tensor = shard.tensors[i];
      tensor.offset.reset();  // of several files it tells nothing
      facts_.tensors.push_back(std::move(tensor));
      places_.push_back({.file = file, .tensor = i});
    }
  }

  path index_;
  std::vector<path> files_;
  Shards shards_;
  std::vector<Place> places_;
};

std::shared_ptr<const SourceFile> open_once(const path& index, const io::FileBytes& text,
                                            const SourceOptions& options) {
  const ModelIndex content = read_model_index(index, options.read.input.limits);
  if (content.kind != ShardKind::thalia && !content.files.empty()) {
    throw FormatError(ErrorCode::bad_value, "the index names no .thalia files",
                      {.path = index.string(), .section = "index", .value = content.files.front()});
  }
  Shards shards;
  std::vector<safetensors::ShardContent> held;
  for (const std::string& name : content.files) {
    shards.push_back(open_shard(folder_of(index) / name, options));
    safetensors::ShardContent& one = held.emplace_back();
    one.is_known = true;
    for (const SourceTensor& tensor : shards.back()->facts().tensors)
      one.tensors.push_back(tensor.name);
  }
  safetensors::refuse_mismatch(safetensors::compare_with_index(content, held), content,
                               index.string());
  return std::make_shared<ThaliaShards>(index, content, text.bytes().size(), std::move(shards));
}

}  // namespace

std::shared_ptr<const SourceFile> open_thalia_shards(const std::filesystem::path& path,
                                                     const SourceOptions& options) {
  const std::filesystem::path index = find_model(path);
  for (int tries = 1;; ++tries) {
    const auto text = io::FileBytes::open(index, options.read.input.access);
    try {
      return open_once(index, *text, options);
    } catch (const Error&) {
      if (tries >= safetensors::kOpenTries || io::is_at_path(text->fd(), index)) throw;
    }
  }
}

}  // namespace thalia::interop
