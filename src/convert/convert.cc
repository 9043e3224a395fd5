// Picks the way from one format to another. Formats without regions are a source and a sink each,
// and go any to any through tensor_flow.h; .thalia files of both versions have ways of their own
// (conversions.h, migrations.h). What two formats cannot both hold is refused here, before the
// output is created. Whatever a conversion gives up on the way is named in result.losses; a
// conversion that loses nothing leaves that empty.
#include "thalia/formats/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "container/read/reader_of.h"
#include "convert/conversions.h"
#include "convert/flat_thalia.h"
#include "convert/formats.h"
#include "convert/migrations.h"
#include "convert/tensor_flow.h"
#include "formats/pt/opened_tree.h"
#include "formats/source/part_name.h"
#include "io/file/posix_file.h"
#include "io/output/atomic_file.h"
#include "io/output/temporary_file.h"
#include "thalia/files.h"
#include "thalia/formats/any_file.h"
#include "thalia/side_file.h"
#include "thalia/state/delta.h"
#include "thalia/types.h"

namespace thalia {
namespace {

void run(const io::InputFile& input, FileFormat from, const std::filesystem::path& output,
         const ConvertOptions& options, ConvertResult& result);

// What lies at the output is about to be replaced, so its content does not count.
FileFormat output_format(const std::filesystem::path& output, const ConvertOptions& options) {
  if (options.to) return *options.to;
  if (const auto format = formats::format_of_name(output)) return *format;
  throw UsageError(ErrorCode::bad_argument, "the output's name tells no format, name one",
                   {.path = output.string(), .field = "to", .bound = formats::written_formats()});
}

void migrate_between(const io::InputFile& input, FileFormat from,
                     const std::filesystem::path& output, FileFormat to,
                     const ConvertOptions& options, ConvertResult& result) {
  if (to == FileFormat::thalia_0_1 && !options.precision.keeps_all()) {
    fail_argument(ErrorCode::bad_argument, "precision", to_string(options.precision), "keep",
                  "files of version 0.1 are written as they are");
  }
  MigrateResult done;
  const MigrateOptions migrate{.on_losses = options.on_losses,
                               .across_major = true,
                               .chain = options.chain,
                               .save = options.save};
  if (to == FileFormat::thalia) {
    formats::v01_to_thalia(input, output, migrate, done);
  } else if (from == FileFormat::thalia) {
    formats::thalia_to_v01(input, output, migrate, done);
  } else {
    formats::v01_to_v01(input, output, migrate, done);
  }
  result.losses = std::move(done.losses);
  result.tensors = done.tensors;
  result.input_bytes = input.bytes(options.chain.read.input.access)->bytes().size();
  result.output_bytes = done.output_bytes;
}

// Half a model converts to half a model, which is said as what the output lacks.
void note_lacking(const std::filesystem::path& input, const std::optional<formats::ModelPart>& part,
                  ConvertResult& result) {
  if (auto lacking = formats::lacking_parts(input, part))
    result.losses.push_back(*std::move(lacking));
}

// `shared_memory`: the output says what is a view of what.
void convert_flat(const io::InputFile& input, FileFormat from, const std::filesystem::path& output,
                  FileFormat to, bool shared_memory, const ConvertOptions& options,
                  ConvertResult& result) {
  const formats::FormatRow& row = formats::format_row(from);
  OpenOptions opening = formats::source_options(options);
  opening.shared_memory = shared_memory;
  const auto source = row.open(input, opening);
  note_lacking(input.path(), source->part(), result);
  if (to == FileFormat::thalia) {
    formats::flow_to_thalia(*source, row, input.path(), output, options, result);
  } else {
    formats::flow_to_format(*source, row, formats::choose_by_name(*source, options.grouping),
                            input.path(), output, formats::format_row(to), options, result);
  }
}

// From or to files of version 0.1. Only .thalia files convert to and from these, tensor by tensor
// as they are. For other formats, and for a precision policy, one is in between, and what each
// of the two steps lost is listed.
void run_v01(const io::InputFile& input, FileFormat from, const std::filesystem::path& output,
             FileFormat to, const ConvertOptions& options, ConvertResult& result) {
  const auto is_thalia = [](FileFormat format) {
    return format == FileFormat::thalia || format == FileFormat::thalia_0_1;
  };
  const bool converts = to == FileFormat::thalia && !options.precision.keeps_all();
  if (is_thalia(from) && is_thalia(to) && !converts)
    return migrate_between(input, from, output, to, options, result);
  const io::TemporaryFile between(output);
  ConvertOptions first = options;
  first.to = FileFormat::thalia;
  first.precision = {};
  first.shard_bytes = {};
  first.dense = first.all_types = false;
  first.save = {.output = between.output(), .work = options.save.work};
  first.save.work.progress = {};
  ConvertResult before;
  if (is_thalia(from)) {
    run(input, from, between.path(), first, before);
  } else {
    convert_flat(input, from, between.path(), FileFormat::thalia, false, first, before);
  }
  ConvertOptions second = options;
  second.to = to;
  second.dequantize = false;
  // As a migrated file, one of the same format keeps the time at which it was saved first.
  const io::InputFile thalia(between.path());
  if (converts && !second.save.timestamp)
    second.save.timestamp = container::open_reader(thalia, options.chain.read).header().timestamp;
  try {
    run(thalia, FileFormat::thalia, output, second, result);
  } catch (Error& error) {
    error.replace_path(between.path().string(), input.path().string());
    throw;
  }
  result.input_bytes = before.input_bytes;
  result.losses.insert(result.losses.begin(), before.losses.begin(), before.losses.end());
}

bool names_side_file(const std::filesystem::path& output, const ConvertOptions& options) {
  return !options.to && output.extension() == ".meta";
}

void write_side_file(const std::filesystem::path& input, const std::filesystem::path& output,
                     const ConvertOptions& options, ConvertResult& result) {
  const std::string loss = "payloads: a side file has none";
  if (options.on_losses) options.on_losses({loss});
  const MetadataFileResult written = write_metadata_file(
      input, output,
      {.output = options.save.output,
       .input = options.chain.read.input,
       .work = {.threads = options.chain.read.work.threads, .cancel = options.save.work.cancel}});
  result.input_bytes = written.input_bytes;
  result.output_bytes = written.output_bytes;
  result.tensors = written.tensors;
  if (written.tensors != 0) result.losses.push_back(loss);
}

// A file's tensors as those of a format without regions: as they are, or each view of one by
// itself.
class Exported {
 public:
  Exported(const Reader& reader, FileFormat to, const ConvertOptions& options)
      : file_(std::make_shared<const formats::FlatThalia>(reader, options.grouping,
                                                          options.chain.read)),
        source_(file_) {
    if (formats::format_row(to).holds_views) return;
    auto apart = formats::pt::tree_tensors(file_, options.chain.read.input.limits);
    if (!apart) return;
    source_ = std::move(apart->source);
    stored_ = std::move(apart->stored);
  }

  const formats::OpenedFile& source() const noexcept { return *source_; }
  DType choose(std::size_t i, formats::PrecisionRun& precision) const {
    return file_->choose(stored(i), source_->facts().tensors[i].layout, precision);
  }
  /// Errors of a sink know the names of a format without regions alone.
  void add_region(Error& error) const {
    const auto& tensors = source_->facts().tensors;
    const auto found = std::ranges::find_if(tensors, [&](const AnyTensor& tensor) {
      return printable(tensor.name) == error.context().tensor;
    });
    if (found == tensors.end()) return;
    const std::size_t i = stored(static_cast<std::size_t>(found - tensors.begin()));
    error.add_region(printable(file_->region_of(i)));
  }

 private:
  std::size_t stored(std::size_t i) const { return stored_.empty() ? i : stored_[i]; }

  std::shared_ptr<const formats::FlatThalia> file_;
  std::shared_ptr<const formats::OpenedFile> source_;
  std::vector<std::size_t> stored_;  ///< where views were taken apart
};

void export_thalia(const io::InputFile& input, const std::filesystem::path& output, FileFormat to,
                   const ConvertOptions& options, ConvertResult& result) {
  const formats::ResolvedInput resolved = formats::resolved_for(input, output, options);
  const Reader& reader = resolved.reader;
  note_lacking(input.path(), std::nullopt, result);
  if (to == FileFormat::thalia) {
    if (options.on_losses && !result.losses.empty()) options.on_losses(result.losses);
    std::vector<std::uint32_t> all(reader.region_count());
    std::iota(all.begin(), all.end(), 0u);
    formats::copy_thalia(reader, all, output, options, result);
  } else {
    const Exported exported(reader, to, options);
    const auto choose = [&](std::size_t i, formats::PrecisionRun& precision) {
      return exported.choose(i, precision);
    };
    try {
      formats::flow_to_format(exported.source(), formats::format_row(FileFormat::thalia), choose,
                              input.path(), output, formats::format_row(to), options, result);
    } catch (Error& error) {
      exported.add_region(error);
      throw;
    }
  }
  // The input of a delta is the whole chain, not the resolved file.
  if (resolved.copied_bytes != 0) result.input_bytes = resolved.copied_bytes;
}

// An option that is set has to have an effect.
void check_options(FileFormat from, FileFormat to, const ConvertOptions& options) {
  using enum FileFormat;
  const auto name = [&] { return file_format_name(to); };
  const auto refuse = [](const char* option, std::string why) {
    fail_argument(ErrorCode::bad_argument, option, "on", "off", std::move(why));
  };
  if (options.dense && (to == thalia || to == thalia_0_1))
    refuse("dense", fmt::format("{} files hold sparse tensors as they are", name()));
  constexpr FileFormat kCoded[] = {gguf, pt, entity, loom_json, mithril_quantized};
  if (options.dequantize && std::ranges::find(kCoded, from) == std::end(kCoded)) {
    refuse("dequantize",
           fmt::format("{} files have no types with codes of their own", file_format_name(from)));
  }
  if (options.all_types && to != gptrs && to != gptrsten && to != gguf)
    refuse("all_types", fmt::format("{} files have no further types", name()));
  constexpr FileFormat kCompressed[] = {thalia, mckp, mst, mithril_quantized, npz};
  const bool has_codec = options.save.automatic_codec ||
                         options.save.compression.codec.value_or(Codec::none) != Codec::none;
  if (has_codec && std::ranges::find(kCompressed, to) == std::end(kCompressed)) {
    fail_argument(ErrorCode::bad_argument, "codec", "a codec", "none",
                  fmt::format("{} files are not compressed", name()));
  }
  if (to != thalia && options.save.sha256) {
    fail_argument(ErrorCode::bad_argument, "sha256", "on", "off",
                  "it is written beside .thalia files");
  }
  if (to != mckp && options.base) {
    fail_argument(ErrorCode::bad_argument, "base", printable(options.base->string()), "none",
                  fmt::format("{} files are not made deltas so", name()));
  }
  if (to != safetensors && options.shard_bytes) {
    fail_argument(ErrorCode::bad_argument, "shard_bytes", std::to_string(*options.shard_bytes),
                  "none", fmt::format("{} files have no shards", name()));
  }
  if (options.shard_bytes == 0)
    fail_argument(ErrorCode::bad_argument, "shard_bytes", "0", "1 or more");
}

void run(const io::InputFile& input, FileFormat from, const std::filesystem::path& output,
         const ConvertOptions& options, ConvertResult& result) {
  const FileFormat to = output_format(output, options);
  if (!file_format_is_written(to)) {
    throw UnsupportedError(
        ErrorCode::unsupported_feature, "files of this format are read only",
        {.path = output.string(), .field = "to", .value = std::string(file_format_name(to))});
  }
  check_options(from, to, options);
  if (from == FileFormat::thalia_0_1 || to == FileFormat::thalia_0_1) {
    run_v01(input, from, output, to, options, result);
    return;
  }
  with_path(input.path().native(), [&] {
    if (from == FileFormat::thalia) {
      export_thalia(input, output, to, options, result);
    } else {
      convert_flat(input, from, output, to, formats::format_row(to).holds_views, options, result);
    }
  });
}

}  // namespace

ConvertResult convert(const std::filesystem::path& named, const std::filesystem::path& output,
                      const ConvertOptions& options) {
  return formats::convert_input(formats::opened_path(named, options.from), output, options);
}

// All that follows looks at one open file.
ConvertResult formats::convert_input(const io::InputFile& input, const path& output,
                                     const ConvertOptions& options) {
  const Stopwatch watch;
  ConvertResult result{.output = output};
  // .meta is no format of its own but a part of a .thalia file, of which nothing else is read.
  if (names_side_file(output, options)) {
    write_side_file(input.path(), output, options, result);
  } else {
    const FileFormat from =
        options.from ? *options.from : formats::format_of(input, options.chain.read.input.access);
    formats::check_not_read(input, output, options.save.output, formats::source_options(options),
                            from);
    run(input, from, output, options, result);
  }
  result.seconds = watch.seconds();
  return result;
}

namespace formats {

ResolvedInput resolved_for(const io::InputFile& input, const path& output,
                           const ConvertOptions& options) {
  return resolve_input(input, folder_of(output), options.chain);
}

// Nothing is read from where nothing lies, and what is not to be replaced is refused later.
void check_not_read(const io::InputFile& input, const path& output, const OutputOptions& written,
                    const OpenOptions& options, FileFormat from) {
  if (!written.replace || !is_file(output)) return;
  const bool in_parts = from == FileFormat::thalia_shards;
  if (!in_parts && is_same_file(input.path(), output)) return;
  const std::vector<path> files = files_read(input, options, from);
  if (in_parts || !is_same_file(files.front(), output)) io::refuse_read(output, files);
}

TensorSpec spec_of(const TensorView& tensor) {
  TensorLayout layout = tensor.layout();
  if (layout.encoding == Encoding::quantized) layout.encoding = Encoding::dense;  // on the way
  return TensorSpec::of(std::string(tensor.name()), layout, tensor.role());
}

}  // namespace formats
}  // namespace thalia
