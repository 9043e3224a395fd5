// A model from memory: the plan and the order of the writes are those of every model; how one file
// is written depends on its kind.
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "container/write/file_digest.h"
#include "formats/safetensors/model_writer.h"
#include "formats/safetensors/parse.h"
#include "formats/safetensors/place.h"
#include "formats/safetensors/shard_plan.h"
#include "formats/safetensors/source_metadata.h"
#include "formats/safetensors/writer.h"
#include "formats/source/region_ids.h"
#include "io/folder/lock.h"
#include "thalia/formats/file_facts.h"
#include "thalia/formats/safetensors.h"
#include "thalia/types.h"
#include "thalia/writer.h"

namespace thalia {
namespace {

using namespace formats::safetensors;

// Writes the files of a plan one after the other. What it is made of is borrowed.
class ModelFiles {
 public:
  ModelFiles(std::vector<NamedArray> tensors, const std::optional<SafetensorsMetadata>& metadata,
             const ModelPlan& plan, const ModelSaveOptions& options)
      : tensors_(std::move(tensors)),
        metadata_(formats::source_metadata_to_json(metadata)),
        options_(options),
        written_{.total = plan.data_bytes} {}

  std::uint64_t write(const std::filesystem::path& path, const PlannedFile& file,
                      const OutputOptions& output) {
    load(path, file);
    return options_.kind == ShardKind::thalia ? write_thalia(path, file, output)
                                              : write_safetensors(path, file, output);
  }

 private:
  void load(const std::filesystem::path& path, const PlannedFile& file) {
    if (!options_.payloads) return;
    const std::vector<ByteSpan> payloads = options_.payloads(file.header.order);
    if (payloads.size() != file.header.order.size()) {
      fail_argument(ErrorCode::size_mismatch, "payloads", std::to_string(payloads.size()),
                    std::to_string(file.header.order.size()));
    }
    for (std::size_t k = 0; k < payloads.size(); ++k) {
      NamedArray& tensor = tensors_[file.header.order[k]];
      tensor.bytes = payloads[k];
      check_payload_size(path, tensor);
    }
  }

  std::uint64_t write_safetensors(const std::filesystem::path& path, const PlannedFile& file,
                                  const OutputOptions& output) {
    return write_file(
        path, file.header, output, options_.save.work, written_,
        [this](std::size_t i, const formats::PieceSink& sink) { sink(tensors_[i].bytes); });
  }

  std::uint64_t write_thalia(const std::filesystem::path& path, const PlannedFile& file,
                             const OutputOptions& output) {
    SaveOptions save = options_.save;
    save.output = output;
    save.file_uuid.reset();  // no two files have one
    if (options_.save.work.progress) {
      save.work.progress = [this](std::uint64_t done, std::uint64_t) {
        options_.save.work.progress(written_.done + done, written_.total);
      };
    }
    Writer writer(path, save);
    add_tensors(writer, file);
    writer.set_metadata(metadata_);
    // A save with a digest removes that of the file that it replaces.
    if (!save.sha256 && output.replace) container::remove_sha256_file(path, output);
    const std::uint64_t bytes = writer.commit().file_bytes;
    written_.done += file.header.data_bytes;
    return bytes;
  }

  void add_tensors(Writer& writer, const PlannedFile& file) const {
    formats::RegionIds regions;
    for (const std::size_t i : file.header.order) {
      const NamedArray& tensor = tensors_[i];
      writer.add_tensor(regions.of(writer, region_for_name(tensor.name, {})),
                        {.name = tensor.name,
                         .dtype = tensor.dtype,
                         .shape = tensor.shape,
                         .role = role_of_name(tensor.name, tensor.shape.rank())},
                        tensor.bytes);
    }
  }

  std::vector<NamedArray> tensors_;
  const std::string metadata_;
  const ModelSaveOptions& options_;
  Written written_;
};

}  // namespace

ModelSaved save_model(const std::filesystem::path& path, const std::vector<NamedArray>& tensors,
                      const std::optional<SafetensorsMetadata>& metadata,
                      const ModelSaveOptions& options) {
  if (!options.payloads) check_payload_sizes(path, tensors);
  const OutputOptions& output = options.save.output;
  const std::stop_token& cancel = options.save.work.cancel;
  const ModelTarget target = model_target(path, options.kind);
  io::HeldFolder folder(target.folder, output.durability, cancel);
  ModelPlan plan = plan_model(path, tensors, metadata,
                              {.kind = options.kind,
                               .max_shard_bytes = options.max_shard_bytes,
                               .align = options.align,
                               .max_header_bytes = formats::kSafetensorsHeaderLimit});
  plan.is_whole_folder = target.is_folder;
  ModelFiles files(tensors, metadata, plan, options);
  ModelSaved saved{.path = plan.path};
  for (const PlannedFile& file : plan.files) saved.files.push_back(file.name);
  saved.output_bytes =
      write_model(folder, plan, path, output, cancel, {},
                  [&](const std::filesystem::path& own_path, const PlannedFile& file,
                      const OutputOptions& own) { return files.write(own_path, file, own); });
  return saved;
}

}  // namespace thalia
