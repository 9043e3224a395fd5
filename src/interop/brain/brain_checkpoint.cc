// BrainCheckpoint: one call from a state in memory to a file and back. Each function is a
// composition: model/ turns a brain into tensors and back, the container writes and reads them, and
// a frame around the whole file comes on top where the target's name asks for one. What is decided
// here is only which of these parts a file or a name needs. docs/states.md describes what a brain
// is in a file.
//
// No function keeps state between calls. The options that save() and save_async() share are checked
// by the same code in packing.cc.
#include "thalia/brain_checkpoint.h"

#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "format/constants.h"
#include "interop/brain/checkpoint_v01.h"
#include "interop/brain/packing.h"
#include "io/temporary_file.h"
#include "thalia/checkpoint_metadata.h"
#include "thalia/delta.h"
#include "thalia/format_version.h"
#include "thalia/paths.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

namespace thalia {
namespace {

using interop::stored_brain;
using interop::wrapper_for;
using std::filesystem::path;

std::string sentence(const Finding& finding) {
  std::string text = finding.section;
  if (finding.offset != 0) text += fmt::format(" at {}", finding.offset);
  if (!finding.region.empty()) text += fmt::format(", region '{}'", printable(finding.region));
  if (!finding.tensor.empty()) text += fmt::format(", tensor '{}'", printable(finding.tensor));
  return text + ": " + finding.message;
}

void warn_of_newer_minor(const FormatVersion& version, const BrainLoadOptions& options) {
  const FormatVersion known{};
  if (version.minor <= known.minor || !options.on_warning) return;
  options.on_warning(fmt::format("the file is of version {}.{}, this library knows {}.{}",
                                 version.major, version.minor, known.major, known.minor));
}

// Tries 1.0 first. Files of version 0.1 are few, so only a file that 1.0 refuses is looked at
// again, and an ordinary load reads the start of the file once.
std::optional<Reader> open_unless_v01(const path& source, const ReadOptions& options) {
  try {
    return Reader::open(source, options);
  } catch (const FormatError&) {
    if (!interop::is_v01(source)) throw;
  } catch (const UnsupportedError&) {
    if (!interop::is_v01(source)) throw;
  }
  return std::nullopt;
}

// A writer writes the header last, at the front, and frames cannot be written out of order. So the
// plain file is made first, in a temporary file beside the target that needs no sync, and is then
// compressed into the target.
std::uint64_t write_wrapped(const model::StoredBrain& stored, const path& target, Codec wrapper,
                            const SaveOptions& options, SaveResult& saved) {
  // The sum would be that of the temporary file, which nobody sees.
  if (options.sha256) {
    fail_argument(ErrorCode::bad_argument, "sha256", "true",
                  "false for a file that is compressed as a whole");
  }
  const io::TemporaryFile plain(target);
  SaveOptions save = options;
  save.output = {.durability = Durability::none};
  save.compression = {};
  saved = model::declared_writer(stored, plain.path(), save).commit();
  return interop::wrap(plain.path(), target, wrapper, options);
}

// Frames need a second pass over the finished file, which the background writer does not make.
void refuse_wrapper(const path& target, const BrainSaveOptions& options) {
  if (!wrapper_for(target, options.save)) return;
  fail_argument(ErrorCode::bad_argument, "path", printable(target.filename().string()),
                "a name that does not end in .zst or .lz4",
                "a file that is compressed as a whole is not written in the background");
}

}  // namespace

BrainSaveResult BrainCheckpoint::save(const BrainState& brain, const path& target,
                                      const BrainSaveOptions& options) {
  return interop::save_brain(brain, target, options, /*check_shapes=*/true);
}

BrainSaveResult interop::save_brain(const BrainState& brain, const path& target,
                                    const BrainSaveOptions& options, bool check_shapes) {
  const Stopwatch watch;
  const auto wrapper = wrapper_for(target, options.save);
  const model::StoredBrain stored = stored_brain(brain, options, check_shapes);
  SaveResult saved;
  BrainSaveResult result{.path = target};
  if (wrapper) {
    result.file_bytes = write_wrapped(stored, target, *wrapper, options.save, saved);
    result.codec = *wrapper;
  } else {
    saved = model::declared_writer(stored, target, options.save).commit();
    result.file_bytes = saved.file_bytes;
    result.codec = saved.codec;
  }
  result.payload_bytes = saved.payload_bytes;
  result.regions = brain.regions.size();
  result.pathways = brain.pathways.size();
  result.connections = brain.connectivity.size();
  result.tensors = saved.tensors;
  result.sync_seconds = saved.sync_seconds;
  result.total_neurons = saved.total_neurons;
  result.total_synapses = saved.total_synapses;
  result.closing_checksum = saved.closing_checksum;
  result.identity = saved.identity;
  result.digests = std::move(saved.digests);
  result.sha256 = saved.sha256;
  result.precision_policy = to_string(options.precision_policy);
  result.precision_statistics = interop::statistics_of(stored);
  result.quantized = stored.quantized;
  result.not_finite = stored.not_finite;
  result.seconds = watch.seconds();
  return result;
}

SaveHandle BrainCheckpoint::save_async(AsyncSaver& saver, const BrainState& brain,
                                       const path& target, const BrainSaveOptions& options) {
  refuse_wrapper(target, options);
  const model::StoredBrain stored = stored_brain(brain, options);
  return saver.save_async(model::declared_writer(stored, target, options.save));
}

void BrainCheckpoint::reserve(AsyncSaver& saver, const BrainState& brain, const path& target,
                              const BrainSaveOptions& options) {
  refuse_wrapper(target, options);
  const model::StoredBrain stored = stored_brain(brain, options);
  saver.reserve(model::declared_writer(stored, target, options.save));
}

BrainState BrainCheckpoint::load(const path& source, const BrainLoadOptions& options,
                                 BrainLoadReport* report) {
  BrainLoadReport of_no_use;
  BrainLoadReport& told = report == nullptr ? of_no_use : *report;
  told = {};
  const std::optional<Reader> opened = open_unless_v01(source, options.read);
  if (!opened) return interop::load_v01_brain(source, options, told);
  const Reader& reader = *opened;
  model::BrainReadOptions read{.regions = options.regions,
                               .lazy = options.lazy,
                               .state = {.restore = options.restore,
                                         .input = {.limits = options.read.input.limits},
                                         .work = options.read.work},
                               .connections_left_out = &told.connections_left_out};
  warn_of_newer_minor(reader.header().version, options);
  if (!reader.header().flags.delta) return model::read_brain(reader, read);
  if (!options.resolve_deltas) {
    fail_argument(ErrorCode::bad_argument, "resolve_deltas", "false", "true for a delta",
                  "the file holds differences to another one");
  }
  const ChainReader chain = ChainReader::open(
      reader, {.read = options.read, .search = options.search, .bases = options.bases});
  read.fetch = [chain](const TensorView& view) { return chain.read(view); };
  return model::read_brain(chain.reader(), read);
}

BrainInfo BrainCheckpoint::info(const path& source, const ReadOptions& options) {
  const std::optional<Reader> opened = open_unless_v01(source, options);
  if (!opened) return interop::describe_v01_brain(source, options);
  const Reader& reader = *opened;
  const FileHeader header = reader.header();
  BrainInfo info{.path = source,
                 .file_bytes = file_bytes(source),
                 .version = header.version.to_string(),
                 .timestamp = header.timestamp,
                 .total_neurons = header.total_neurons,
                 .total_synapses = header.total_synapses,
                 .training_steps = header.training_steps,
                 .connections = reader.connection_count()};
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const std::string_view name = reader.region(i).name();
    if (name.starts_with(model::kPathwayPrefix)) {
      info.pathways.emplace_back(name.substr(model::kPathwayPrefix.size()));
    } else if (name != model::kBrainRegion) {
      info.regions.emplace_back(name);
    }
  }
  if (!reader.metadata_json().empty()) {
    info.metadata = model::read_metadata(reader.metadata_json(), options.input.limits);
    info.growth_history = checkpoint_metadata(info.metadata).growth_history;
  }
  return info;
}

BrainValidation BrainCheckpoint::validate(const path& source, const VerifyOptions& options,
                                          const std::vector<path>& search,
                                          const BasePolicy& bases) {
  BrainValidation validation;
  try {
    if (interop::is_v01(source)) {
      interop::check_v01_brain(source, options);
      validation.valid = true;
      return validation;
    }
    const VerifyReport report = verify_chain(source, options, search, bases);
    for (const Finding& finding : report.findings) {
      if (finding.severity == Severity::error) validation.issues.push_back(sentence(finding));
    }
    if (report.suppressed_errors != 0)
      validation.issues.push_back(fmt::format("{} more findings", report.suppressed_errors));
    // Warnings alone leave a file valid.
    validation.valid = report.ok();
    // Validation answers a question: a file that cannot be read at all is an answer too.
  } catch (const std::exception& error) {
    validation.issues.emplace_back(error.what());
  }
  return validation;
}

}  // namespace thalia
