// Two models of any formats, compared for what other programs take.
#include "thalia/formats/weight_delta.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "convert/conversions.h"
#include "convert/formats.h"
#include "formats/weight_sync/weight_writers.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "thalia/files.h"
#include "thalia/formats/lora_adapter.h"

namespace thalia {
namespace {

struct Opened {
  std::shared_ptr<const formats::OpenedFile> file;
  std::vector<std::filesystem::path> read;
};

Opened open_model(const std::filesystem::path& named, const ChainOptions& chain) {
  const io::InputFile input(formats::opened_path(named, std::nullopt));
  const OpenOptions options{.chain = chain};
  return with_path(input.path().native(), [&] {
    const FileFormat format = formats::format_of(input, chain.read.input.access);
    Opened opened{.file = formats::format_row(format).open(input, options), .read = {input.path()}};
    for (std::filesystem::path& file : formats::files_read(input, options, format))
      opened.read.push_back(std::move(file));
    return opened;
  });
}

struct Models {
  Opened before;
  Opened after;
};

Models open_models(const std::filesystem::path& base, const std::filesystem::path& input,
                   const std::filesystem::path& output, const ChainOptions& chain) {
  Models models{.before = open_model(base, chain), .after = open_model(input, chain)};
  for (const Opened* one : {&models.before, &models.after}) {
    io::refuse_read(output, one->read);
    // Where the output is a folder, what is read may be one of the files that are replaced in it.
    for (const std::filesystem::path& file : one->read)
      io::refuse_read(output / file.filename(), {&file, 1});
  }
  return models;
}

// What transformers loads the model from: a folder with a configuration.
std::optional<std::string> loadable_folder(const std::filesystem::path& model) {
  const std::filesystem::path path = folder_of(model);
  const auto folder = io::Folder::find(path);
  if (!folder || !folder->facts("config.json")) return std::nullopt;
  return path.string();
}

std::uint64_t element_bytes(const formats::OpenedFile& model) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < model.tensor_count(); ++i) {
    const TensorLayout layout = model.stored(i).layout;
    bytes += layout.shape.byte_length(layout.dtype).value_or(0);
  }
  return bytes;
}

}  // namespace

WeightDeltaResult write_weight_delta(const std::filesystem::path& base,
                                     const std::filesystem::path& input,
                                     const std::filesystem::path& output,
                                     const WeightDeltaOptions& options) {
  const Stopwatch watch;
  const auto [before, after] = open_models(base, input, output, options.chain);
  WeightDeltaResult result =
      options.kind == WeightDeltaKind::slime
          ? formats::write_slime_delta(*before.file, *after.file, output, options)
          : formats::write_trl_delta(*before.file, *after.file, output, options);
  result.base_bytes = element_bytes(*before.file);
  result.seconds = watch.seconds();
  return result;
}

LoraAdapterResult write_lora_adapter(const std::filesystem::path& base,
                                     const std::filesystem::path& input,
                                     const std::filesystem::path& output,
                                     const LoraAdapterOptions& options) {
  const Stopwatch watch;
  const auto [before, after] = open_models(base, input, output, options.chain);
  LoraAdapterResult result = formats::write_adapter(
      *before.file, *after.file, loadable_folder(before.read.front()), output, options);
  result.base_bytes = element_bytes(*before.file);
  result.seconds = watch.seconds();
  return result;
}

}  // namespace thalia
