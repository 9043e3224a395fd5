// migrate() and the three conversions between 0.1 and 1.0. A target is written whole or not at all,
// and the source is never changed: that is why the two must be different files. Payloads are
// converted as they are stored, without restoring sparse tensors or half precision, so that
// as little as possible changes on the way.
#include "thalia/formats/convert.h"

#include <fmt/format.h>

#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "checkpoint/packing.h"
#include "container/file/delta_prefix.h"
#include "container/read/reader_of.h"
#include "container/wrap/packed.h"
#include "container/wrap/unwrap.h"
#include "convert/conversions.h"
#include "convert/migrations.h"
#include "formats/safetensors/index.h"
#include "formats/v01/file_start.h"
#include "formats/v01/metadata.h"
#include "formats/v01/state.h"
#include "formats/v01/text.h"
#include "formats/v01/wrapper.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"
#include "thalia/formats/v01.h"
#include "thalia/state/checkpoint.h"

namespace thalia {
namespace {

using std::filesystem::path;

void write_original(const path& target, const V01Document& document, const MigrateOptions& options,
                    bool aligned, MigrateResult& result) {
  for (const V01Entry& entry : document.entries)
    for_each_tensor(entry.state, [&](const std::string&, const Tensor&) { ++result.tensors; });
  result.output_bytes = write_v01(target, document,
                                  {.compression = {.codec = container::wrapper_codec(target)},
                                   .aligned = aligned,
                                   .output = options.save.output,
                                   .work = options.save.work});
}

// 1.0 to 1.0 is a copy, which resolves deltas and drops dead bytes.
void same_major(const io::InputFile& source, const path& target, const MigrateOptions& options,
                MigrateResult& result) {
  if (container::wrapper_codec(target)) {
    fail_argument(ErrorCode::bad_argument, "target", printable(target.filename().string()),
                  "a name that does not end in .zst or .lz4",
                  "files of 1.0 are compressed by compress_checkpoint()");
  }
  ConvertOptions convert_options{.to = FileFormat::thalia};
  convert_options.chain = options.chain;
  convert_options.save = options.save;
  ConvertResult converted = formats::convert_input(source, target, convert_options);
  result.losses = std::move(converted.losses);
  result.tensors = converted.tensors;
  result.output_bytes = converted.output_bytes;
}

// The bytes of the source; for a model in parts, those of all its files.
std::uint64_t bytes_of(const io::InputFile& source, const MigrateOptions& options) {
  const InputOptions& input = options.chain.read.input;
  const auto& file = source.bytes(input.access);
  std::uint64_t bytes = file->bytes().size();
  if (!formats::is_in_parts(source, input.access)) return bytes;
  for (const std::string& name : formats::safetensors::read_index(*file, input.limits).files)
    bytes += file_bytes(folder_of(source.path()) / name);
  return bytes;
}

void check_asked_for(const path& source, const FormatVersion& from, const FormatVersion& to,
                     const MigrateOptions& options) {
  const Migration migration = can_migrate(from, to);
  if (!migration.possible) {
    throw UnsupportedError(ErrorCode::unsupported_version, migration.reason,
                           {.path = source.string(),
                            .field = "target_version",
                            .value = fmt::format("{} to {}", from.to_string(), to.to_string())});
  }
  if (!migration.automatic && !options.across_major) {
    fail_argument(ErrorCode::bad_argument, "across_major", "false", "true", migration.reason);
  }
}

void tell(const MigrateOptions& options, const std::vector<std::string>& losses) {
  if (options.on_losses && !losses.empty()) options.on_losses(losses);
}

// A delta of the original gets an error of its own: it has the magic of no full file.
FormatVersion version_of(const io::InputFile& source, Access access) {
  if (formats::is_in_parts(source, access)) return {};  // parts are of the version that has them
  const std::string path = source.path().string();
  const std::vector<std::byte> start =
      formats::read_file_start(source.bytes(access)->fd(), source.path());
  if (const auto version = formats::version_in(start)) return *version;
  if (formats::begins_as_v01_delta(start)) formats::refuse_v01_delta(path);
  if (container::is_delta(start) || container::begins_packed(start)) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a delta is of no other version, resolve it first",
                           {.path = path, .section = "delta"});
  }
  throw FormatError(ErrorCode::bad_magic, "no .thalia file",
                    {.path = path, .section = "header", .field = "magic", .offset = 0});
}

}  // namespace

namespace formats {

void v01_to_thalia(const io::InputFile& source, const path& target, const MigrateOptions& options,
                   MigrateResult& result) {
  V01File file = read_v01(source, options.chain.read);
  result.warnings = std::move(file.warnings);
  const std::uint64_t replaced = replace_lone_surrogates(file.document);
  if (replaced != 0) {
    result.losses.push_back(
        fmt::format("{} lone surrogates in texts, which UTF-8 has not, become U+FFFD", replaced));
  }
  tell(options, result.losses);
  BrainSaveOptions save{.sparse = SparseStorage::as_is, .save = options.save};
  // A migrated file keeps the time at which it was saved first.
  if (!save.save.timestamp) save.save.timestamp = file.document.header.timestamp;
  const BrainSaveResult saved =
      checkpoint::save_brain(from_v01(file.document), target, save, /*check_shapes=*/false);
  result.tensors = saved.tensors;
  result.output_bytes = saved.file_bytes;
}

void thalia_to_v01(const io::InputFile& source, const path& target, const MigrateOptions& options,
                   MigrateResult& result) {
  // As they are stored: the original has sparse tensors and half precision too, and the same note
  // on them in its metadata.
  const ResolvedInput file = resolve_input(source, folder_of(target), options.chain);
  const BrainState brain =
      BrainCheckpoint::load(file.reader, {.restore = false, .chain = options.chain});
  V01StateOptions state{.timestamp = options.save.timestamp,
                        .limits = options.chain.read.input.limits,
                        .stored_bytes = bytes_of(source, options)};
  // A brain that came from 0.1 has the time of the original in a note; parts have one each.
  if (!state.timestamp && !noted_v01_timestamp(brain) &&
      !is_in_parts(source, options.chain.read.input.access))
    state.timestamp = container::open_reader(source, options.chain.read).header().timestamp;
  V01Conversion conversion = to_v01(brain, state);
  tell(options, conversion.losses);
  write_original(target, conversion.document, options, /*aligned=*/false, result);
  result.losses = std::move(conversion.losses);
}

void v01_to_v01(const io::InputFile& source, const path& target, const MigrateOptions& options,
                MigrateResult& result) {
  V01File file = read_v01(source, options.chain.read);
  result.warnings = std::move(file.warnings);
  write_original(target, file.document, options, file.aligned, result);
}

}  // namespace formats

MigrateResult migrate(const path& named, const path& target, const FormatVersion& target_version,
                      const MigrateOptions& options) {
  const Stopwatch watch;
  const io::InputFile source(find_model(named));
  MigrateResult result{.from = version_of(source, options.chain.read.input.access),
                       .to = target_version};
  check_asked_for(named, result.from, target_version, options);
  // The source is read while the target is written.
  if (is_same_file(named, target)) {
    fail_argument(ErrorCode::bad_argument, "target", printable(target.string()),
                  "another file than the source");
  }
  result.input_bytes = bytes_of(source, options);
  if (result.from.major == 0 && target_version.major == 0) {
    formats::v01_to_v01(source, target, options, result);
  } else if (result.from.major == 0) {
    formats::v01_to_thalia(source, target, options, result);
  } else {
    if (result.from.minor != 0 || result.from.patch != 0) {
      result.warnings.push_back(
          fmt::format("format version {} is read as 1.0.0", result.from.to_string()));
    }
    if (target_version.major == 0) {
      formats::thalia_to_v01(source, target, options, result);
    } else {
      same_major(source, target, options, result);
    }
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace thalia
