// Two models of any formats, compared for what other trainers publish.
#include "thalia/formats/weight_delta.h"

#include <array>
#include <memory>
#include <vector>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "convert/conversions.h"
#include "convert/formats.h"
#include "formats/weight_sync/weight_writers.h"
#include "io/output/atomic_file.h"

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

}  // namespace

WeightDeltaResult write_weight_delta(const std::filesystem::path& base,
                                     const std::filesystem::path& input,
                                     const std::filesystem::path& output,
                                     const WeightDeltaOptions& options) {
  const Stopwatch watch;
  const Opened before = open_model(base, options.chain);
  const Opened after = open_model(input, options.chain);
  for (const Opened* one : {&before, &after}) io::refuse_read(output, one->read);
  WeightDeltaResult result =
      options.kind == WeightDeltaKind::slime
          ? formats::write_slime_delta(*before.file, *after.file, output, options)
          : formats::write_trl_delta(*before.file, *after.file, output, options);
  for (std::size_t i = 0; i < before.file->tensor_count(); ++i) {
    const TensorLayout layout = before.file->stored(i).layout;
    result.base_bytes += layout.shape.byte_length(layout.dtype).value_or(0);
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace thalia
