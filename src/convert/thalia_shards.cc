// Each file is opened as one by itself, and what it has is held against the index. An index that is
// replaced meanwhile is opened anew: a save puts its index in place in one step, and removes files
// of the older model only after that.
#include "convert/thalia_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iterator>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "convert/conversions.h"
#include "convert/flat_thalia.h"
#include "convert/merge_plan.h"
#include "convert/thalia_file.h"
#include "formats/safetensors/index.h"
#include "formats/safetensors/index_match.h"
#include "formats/safetensors/opened_model.h"
#include "io/file/input_file.h"
#include "io/file/posix_file.h"
#include "io/path/base_file.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"
#include "thalia/state/delta.h"

namespace thalia::formats {
namespace {

using Shards = std::vector<std::shared_ptr<const FlatThalia>>;

// All parts of a model, held against their index.
struct OpenedShards {
  ModelIndex content;
  std::uint64_t index_bytes;
  std::vector<io::InputFile> files;
  std::vector<Reader> readers;
  Shards sources;
};

// What an index names was named by a stranger: a regular file, and within the policy's folder.
io::InputFile find_shard(const path& file, const ChainOptions& options) {
  io::BaseFile found = io::open_base(file, options.read.input.access, options.bases);
  if (found.bytes) return io::InputFile(std::move(found.bytes));
  const ErrorContext context{.path = file.string(), .section = "index"};
  if (found.reason.empty()) throw IoError("open of a file that the index names", ENOENT, context);
  throw FormatError(ErrorCode::bad_value, "the index names this file: " + found.reason, context);
}

class ThaliaShards final : public OpenedFile {
 public:
  ThaliaShards(path index, OpenedShards opened, const OpenOptions& options)
      : index_(std::move(index)),
        files_(std::move(opened.files)),
        shards_(std::move(opened.sources)),
        options_(options) {
    options_.as_stored = true;
    facts_.file_bytes = opened.index_bytes;
    for (std::size_t f = 0; f < shards_.size(); ++f)
      add_shard(opened.content.files[f], shards_[f]->facts(), f);
  }

  std::vector<path> files() const override {
    std::vector<path> files{index_};
    for (const io::InputFile& file : files_) files.push_back(file.path());
    return files;
  }
  std::vector<LinkFacts> links(const std::string&) const override {
    std::vector<LinkFacts> links;
    for (const io::InputFile& file : files_)
      std::ranges::move(open_thalia(file, options_)->links(file.path().string()),
                        std::back_inserter(links));
    return links;
  }
  Tensor read(std::size_t i) const override {
    const Place& at = places_.at(i);
    return with_path(files_[at.file].path().native(),
                     [&] { return shards_[at.file]->read(at.tensor); });
  }
  void visit(std::size_t i, const PieceSink& sink) const override {
    const Place& at = places_.at(i);
    with_path(files_[at.file].path().native(), [&] { shards_[at.file]->visit(at.tensor, sink); });
  }
  std::optional<RegionPlace> place(std::size_t i) const override {
    return shards_[places_[i].file]->place(places_[i].tensor);
  }

 private:
  struct Place {
    std::size_t file;
    std::size_t tensor;
  };

  void add_shard(const std::string& name, const OpenedFacts& shard, std::size_t file) {
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
      AnyTensor tensor = shard.tensors[i];
      tensor.offset.reset();  // of several files it tells nothing
      facts_.tensors.push_back(std::move(tensor));
      places_.push_back({.file = file, .tensor = i});
    }
  }

  path index_;
  std::vector<io::InputFile> files_;
  Shards shards_;
  OpenOptions options_;
  std::vector<Place> places_;
};

OpenedShards open_once(const io::FileBytes& text, const ChainOptions& options) {
  const path& index = text.path();
  OpenedShards opened{.content = safetensors::read_index(text, options.read.input.limits),
                      .index_bytes = text.bytes().size(),
                      .files = {},
                      .readers = {},
                      .sources = {}};
  const ModelIndex& content = opened.content;
  if (content.kind != ShardKind::thalia && !content.files.empty()) {
    throw FormatError(ErrorCode::bad_value, "the index names no .thalia files",
                      {.path = index.string(), .section = "index", .value = content.files.front()});
  }
  std::vector<safetensors::ShardContent> held;
  for (const std::string& name : content.files) {
    const path file = folder_of(index) / name;
    stop_if_cancelled(options.read.work.cancel);
    const io::InputFile& found = opened.files.emplace_back(find_shard(file, options));
    with_path(file.native(), [&] {
      const Reader& reader = opened.readers.emplace_back(resolve_input(found, {}, options).reader);
      opened.sources.push_back(
          std::make_shared<const FlatThalia>(reader, RegionGrouping{}, options.read));
    });
    safetensors::ShardContent& one = held.emplace_back();
    one.is_known = true;
    for (const AnyTensor& tensor : opened.sources.back()->facts().tensors)
      one.tensors.push_back(tensor.name);
  }
  safetensors::refuse_mismatch(safetensors::compare_with_index(content, held), content,
                               index.string());
  return opened;
}

OpenedShards open_shards(const io::InputFile& index, const ChainOptions& options) {
  const Access access = options.read.input.access;
  auto text = index.bytes(access);
  for (int tries = 1;; ++tries) {
    try {
      return open_once(*text, options);
    } catch (const Error&) {
      if (tries >= safetensors::kOpenTries || io::is_at_path(text->fd(), index.path())) throw;
    }
    text = io::FileBytes::open(index.path(), access);
  }
}

bool is_same(const RegionSpec& a, const RegionSpec& b) {
  const auto facts = [](const RegionSpec& spec) {
    return std::tie(spec.config_json, spec.metadata_json, spec.n_neurons, spec.n_inputs,
                    spec.neuron_type, spec.homeostatic_updated);
  };
  return facts(a) == facts(b);
}

// The regions of all parts, those of one name as one.
class JoinedRegions {
 public:
  void add(RegionSource region, const path& file) {
    const auto [place, is_new] = places_.emplace(region.spec.name, regions_.size());
    if (is_new) {
      regions_.push_back(std::move(region));
      return;
    }
    RegionSource& found = regions_[place->second];
    if (!is_same(found.spec, region.spec)) {
      throw UsageError(ErrorCode::duplicate, "an earlier part has other texts or sizes for it",
                       {.path = file.string(), .region = printable(region.spec.name)});
    }
    std::ranges::move(region.tensors, std::back_inserter(found.tensors));
  }
  std::vector<RegionSource> finish() && { return std::move(regions_); }

 private:
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<RegionSource> regions_;
};

}  // namespace

std::shared_ptr<const OpenedFile> open_thalia_shards(const io::InputFile& input,
                                                     const OpenOptions& options) {
  return std::make_shared<ThaliaShards>(input.path(), open_shards(input, options.chain), options);
}

VerifyReport verify_thalia_shards(const io::InputFile& input, const OpenOptions& options,
                                  const VerifyOptions& verify, bool /*resolve*/) {
  container::Findings findings(verify.max_findings);
  findings.find_of_named([&] {
    const auto& index = input.bytes(options.chain.read.input.access);
    for (const std::string& name :
         safetensors::read_index(*index, options.chain.read.input.limits).files) {
      findings.find_of_named([&] {
        findings.add_report(verify_chain(folder_of(input.path()) / name, verify,
                                         options.chain.search, options.chain.bases),
                            printable(name) + ": ");
      });
    }
    // Opening would fail with the first of these.
    if (findings.ok()) open_thalia_shards(input, options);
  });
  return std::move(findings).finish();
}

ShardsState open_shards_state(const io::InputFile& input, const ChainOptions& options) {
  const OpenedShards opened = open_shards(input, options);
  ShardsState out{.state = {}, .files = {input.path()}, .file_bytes = opened.index_bytes};
  StateSource& joined = out.state;
  const MergePreference none;
  MergeConflicts conflicts(opened.readers, none);
  std::string metadata = merge_metadata(opened.readers, options.read.input.limits, conflicts);
  conflicts.throw_if_open();
  if (!metadata.empty()) joined.metadata_json = std::move(metadata);
  JoinedRegions regions;
  for (const Reader& reader : opened.readers) {
    out.files.push_back(reader.path());
    out.file_bytes += reader.file_bytes();
    StateSource part = state_source(ChainReader::open(reader, options));
    joined.training_steps = std::max(joined.training_steps, part.training_steps);
    for (RegionSource& region : part.regions) regions.add(std::move(region), reader.path());
    std::ranges::move(part.connections, std::back_inserter(joined.connections));
  }
  joined.regions = std::move(regions).finish();
  return out;
}

}  // namespace thalia::formats
