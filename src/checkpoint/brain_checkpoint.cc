// BrainCheckpoint: one call from a state in memory to a file and back. Each function is a
// composition: state/ turns a brain into tensors and back, the container writes and reads them, and
// a frame around the whole file comes on top where the target's name asks for one. What is decided
// here is only which of these parts a file or a name needs. docs/format/states.md describes what a
// brain is in a file.
//
// No function keeps state between calls. The options that save() and save_async() share are checked
// by the same code in packing.cc.
#include "thalia/state/checkpoint.h"

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "checkpoint/background.h"
#include "checkpoint/packing.h"
#include "checkpoint/validate.h"
#include "container/read/reader_of.h"
#include "format/constants.h"
#include "formats/v01/file_start.h"
#include "formats/v01/state.h"
#include "formats/v01/wrapper.h"
#include "io/memory/allocation_limit.h"
#include "state/brain/stored_region.h"
#include "state/brain/stored_tensor.h"
#include "state/delta/file_chain.h"
#include "state/tensor/conversion.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/v01.h"
#include "thalia/reader.h"
#include "thalia/state/delta.h"
#include "thalia/state/metadata.h"
#include "thalia/verify.h"
#include "thalia/version.h"

namespace thalia::checkpoint {
namespace {

// Brains in files of version 0.1, for BrainCheckpoint.
//
// Files of version 0.1 behind the interface of BrainCheckpoint (docs/format/v01.md). Such a file
// has no index, so every function reads all of it, and a selection of regions is made afterwards.
// restore() gives what the original program's load gives; without it, tensors stay as they are
// stored.

/// True for a file of version 0.1, also inside a frame; false for everything else, checkpoint or
/// not. @throws IoError; FormatError if a frame is broken.
bool is_v01(const io::InputFile& source, Access access);

/// All regions are read at once. @throws as read_v01(); UsageError (not_found).
BrainState load_v01_brain(const io::InputFile& source, const BrainLoadOptions& options,
                          BrainLoadReport& report);

BrainInfo describe_v01_brain(const io::InputFile& source, const ReadOptions& options);

/// Reads the whole file. @throws where anything in it is wrong.
void check_v01_brain(const io::InputFile& source, const VerifyOptions& options);

using std::filesystem::path;

using Names = std::unordered_set<std::string>;

void keep_only(RegionSet& set, std::string_view prefix, const Names& wanted) {
  RegionSet kept;
  for (const std::string& name : set.names()) {
    if (wanted.contains(std::string(prefix) + name)) kept.add(name, std::move(set.at(name)));
  }
  set = std::move(kept);
}

// A connection goes with either of its ends, and is reported.
void keep_only(BrainState& brain, const std::vector<std::string>& names, BrainLoadReport& report) {
  const Names wanted(names.begin(), names.end());
  for (const std::string& name : names) {
    const bool known = name.starts_with(state::kPathwayPrefix)
                           ? brain.pathways.contains(name.substr(state::kPathwayPrefix.size()))
                           : brain.regions.contains(name);
    if (!known)
      throw UsageError(ErrorCode::not_found, "no such region", {.region = printable(name)});
  }
  keep_only(brain.regions, "", wanted);
  keep_only(brain.pathways, state::kPathwayPrefix, wanted);
  std::erase_if(brain.connectivity.all(), [&](const BrainConnection& connection) {
    const bool is_whole = wanted.contains(connection.source) && wanted.contains(connection.target);
    if (!is_whole)
      report.connections_left_out.push_back(connection.source + "->" + connection.target);
    return !is_whole;
  });
}

// The largest number if it overflows, which no limit allows.
std::uint64_t dense_bytes(const Tensor& tensor) {
  return tensor.shape().byte_length(tensor.dtype()).value_or(~std::uint64_t{0});
}

// As the original program does: sparse tensors become dense, and under a precision policy f16 and
// f64 become f32.
void restore(Value& tree, bool to_f32, const state::LoadContext& context) {
  const unsigned threads = context.options.work.threads;
  for_each_tensor(tree, [&](const std::string&, Tensor& tensor) {
    if (!tensor.is_dense()) context.budget->take("payload", dense_bytes(tensor));
    tensor = tensor.to_dense();
    if (to_f32 && (tensor.dtype() == DType::f16 || tensor.dtype() == DType::f64))
      tensor = state::convert_tensor(tensor, DType::f32, threads);
  });
}

// In the original, "fp32" says that nothing was converted.
bool has_policy(const Value& metadata) {
  const Value* policy = metadata.find("precision_policy");
  return policy != nullptr && policy->kind() == Value::Kind::string &&
         policy->as_string() != "fp32";
}

void restore(BrainState& brain, const state::LoadContext& context) {
  const bool to_f32 = has_policy(brain.metadata);
  for (RegionSet* set : {&brain.regions, &brain.pathways}) {
    for (const std::string& name : set->names()) restore(set->at(name).state, to_f32, context);
  }
  restore(brain.state, to_f32, context);
}

bool is_v01(const io::InputFile& source, Access access) {
  const auto version =
      formats::version_in(formats::read_file_start(source.bytes(access)->fd(), source.path()));
  return version && version->major == 0;
}

BrainState load_v01_brain(const io::InputFile& source, const BrainLoadOptions& options,
                          BrainLoadReport& report) {
  const V01File file = formats::read_v01(source, options.chain.read);
  if (options.on_warning) {
    for (const std::string& warning : file.warnings) options.on_warning(warning);
  }
  BrainState brain = from_v01(file.document);
  // A lazy load leaves no region out; these are all in memory anyway.
  if (!options.regions.empty() && !options.lazy) keep_only(brain, options.regions, report);
  if (options.restore) {
    restore(brain, {{.input = {.limits = options.chain.read.input.limits},
                     .work = options.chain.read.work},
                    file.file_bytes});
  }
  return brain;
}

BrainInfo describe_v01_brain(const io::InputFile& source, const ReadOptions& options) {
  const V01File file = formats::read_v01(source, options);
  const V01Header& header = file.document.header;
  BrainInfo info{header, source.path(), file.file_bytes, header.version.to_string()};
  const BrainState brain = from_v01(file.document);
  info.regions = brain.regions.names();
  info.pathways = brain.pathways.names();
  info.connections = brain.connectivity.size();
  info.metadata = file.document.metadata;
  info.growth_history = checkpoint_metadata(info.metadata).growth_history;
  return info;
}

void check_v01_brain(const io::InputFile& source, const VerifyOptions& options) {
  formats::read_v01(source, {.input = options.input, .work = options.work});
}

}  // namespace
}  // namespace thalia::checkpoint

namespace thalia {
namespace {

using checkpoint::stored_brain;
using checkpoint::wrapper_for;
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
std::optional<Reader> open_unless_v01(const io::InputFile& source, const ReadOptions& options) {
  try {
    return container::open_reader(source, options);
  } catch (const FormatError&) {
    if (!checkpoint::is_v01(source, options.input.access)) throw;
  } catch (const UnsupportedError&) {
    if (!checkpoint::is_v01(source, options.input.access)) throw;
  }
  return std::nullopt;
}

// That the texts are those of a state. Throws if they are not.
void check_state(const Reader& reader, const ReadLimits& limits) {
  state::read_brain(reader, {.state = {.input = {.limits = limits}}, .read_tensors = false});
  parse_growth_history(reader.metadata_json(), limits);
}

ChainOptions chain_of(const BrainLoadOptions& options) {
  ChainOptions chain = options.chain;
  std::uint64_t& most = chain.read.input.limits.max_file_bytes;
  if (most == 0 || (options.max_file_bytes != 0 && options.max_file_bytes < most))
    most = options.max_file_bytes;
  return chain;
}

}  // namespace

BrainSaveResult BrainCheckpoint::save(const BrainState& brain, const path& target,
                                      const BrainSaveOptions& options) {
  return checkpoint::save_brain(brain, target, options, /*check_shapes=*/true);
}

BrainSaveResult checkpoint::save_brain(const BrainState& brain, const path& target,
                                       const BrainSaveOptions& options, bool check_shapes) {
  const Stopwatch watch;
  wrapper_for(target, options.save);  // refuses before anything is converted
  const state::StoredBrain stored = stored_brain(brain, options, check_shapes);
  BrainSaveResult result = checkpoint::result_of(stored, target, options);
  static_cast<SaveResult&>(result) = checkpoint::writer_of(stored, target, options.save).commit();
  result.seconds = watch.seconds();
  return result;
}

SaveHandle<BrainSaveResult> BrainCheckpoint::save_async(AsyncSaver& saver, const BrainState& brain,
                                                        const path& target,
                                                        const BrainSaveOptions& options,
                                                        Snapshot snapshot) {
  wrapper_for(target, options.save);
  state::StoredBrain stored = stored_brain(brain, options);
  auto outcome = std::make_shared<checkpoint::BrainOutcome<BrainSaveResult>>();
  outcome->result() = checkpoint::result_of(stored, target, options);
  outcome->set_save(container::save_async(
      saver, std::make_unique<checkpoint::BrainSave>(std::move(stored), target, options.save,
                                                     snapshot, outcome)));
  return SaveHandle<BrainSaveResult>(std::move(outcome));
}

void BrainCheckpoint::reserve(AsyncSaver& saver, const BrainState& brain, const path& target,
                              const BrainSaveOptions& options) {
  wrapper_for(target, options.save);
  const state::StoredBrain stored = stored_brain(brain, options);
  saver.reserve(checkpoint::writer_of(stored, target, options.save));
}

BrainState BrainCheckpoint::load(const path& named, const BrainLoadOptions& options,
                                 BrainLoadReport* report) {
  const io::InputFile source(named);
  BrainLoadOptions limited = options;
  limited.chain = chain_of(options);
  const std::optional<Reader> opened = open_unless_v01(source, limited.chain.read);
  if (opened) return load(*opened, limited, report);
  BrainLoadReport of_no_use;
  BrainLoadReport& reported = report == nullptr ? of_no_use : *report;
  reported = {};
  if (!options.brain.empty()) {
    throw UsageError(ErrorCode::wrong_state, "no ensemble: files of version 0.1 have one brain",
                     {.path = source.path().string(), .field = "brain"});
  }
  return checkpoint::load_v01_brain(source, limited, reported);
}

BrainState BrainCheckpoint::load(const Reader& reader, const BrainLoadOptions& options,
                                 BrainLoadReport* report) {
  BrainLoadReport of_no_use;
  BrainLoadReport& reported = report == nullptr ? of_no_use : *report;
  reported = {};
  state::BrainReadOptions read{.prefix = options.brain,
                               .regions = options.regions,
                               .lazy = options.lazy,
                               .state = {.restore = options.restore,
                                         .input = {.limits = options.chain.read.input.limits},
                                         .work = options.chain.read.work},
                               .read_tensors = options.read_tensors,
                               .connections_left_out = &reported.connections_left_out};
  warn_of_newer_minor(reader.header().version, options);
  if (!reader.header().flags.delta) return state::read_brain(reader, read);
  if (!options.resolve_deltas) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "a delta",
                           {.field = "resolve_deltas", .value = "false", .bound = "true"});
  }
  if (!options.read_tensors) return state::read_brain(reader, read);
  const ChainReader chain = ChainReader::open(reader, chain_of(options));
  read.fetch = [chain](const TensorView& view, const std::shared_ptr<io::MemoryBudget>& budget) {
    return state::read_tensor(chain, view, budget);
  };
  return state::read_brain(chain.reader(), read);
}

BrainInfo BrainCheckpoint::info(const path& named, const ReadOptions& options) {
  const io::InputFile source(named);
  const std::optional<Reader> opened = open_unless_v01(source, options);
  if (!opened) return checkpoint::describe_v01_brain(source, options);
  const Reader& reader = *opened;
  const FileHeader header = reader.header();
  BrainInfo info{header, named, source.bytes(options.input.access)->bytes().size(),
                 header.version.to_string()};
  info.connections = reader.connection_count();
  info.is_delta = header.flags.delta;
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const std::string_view name = reader.region(i).name();
    if (name.starts_with(state::kPathwayPrefix)) {
      info.pathways.emplace_back(name.substr(state::kPathwayPrefix.size()));
    } else if (name != state::kBrainRegion) {
      info.regions.emplace_back(name);
    }
  }
  if (!reader.metadata_json().empty()) {
    info.metadata = state::read_metadata(reader.metadata_json(), options.input.limits);
    info.growth_history = parse_growth_history(reader.metadata_json(), options.input.limits);
  }
  return info;
}

BrainValidation BrainCheckpoint::validate(const path& named, const VerifyOptions& options,
                                          const std::vector<path>& search,
                                          const BasePolicy& bases) {
  return checkpoint::validate_brain(named, options, search, bases).validation;
}

checkpoint::ValidatedBrain checkpoint::validate_brain(const path& named,
                                                      const VerifyOptions& options,
                                                      const std::vector<path>& search,
                                                      const BasePolicy& bases) {
  ValidatedBrain validated;
  BrainValidation& validation = validated.validation;
  const io::InputFile source(named);
  try {
    if (is_v01(source, options.input.access)) {
      check_v01_brain(source, options);
      validation.valid = true;
      return validated;
    }
    const VerifyReport report = state::verify_chain(source, options, search, bases);
    for (const Finding& finding : report.findings) {
      if (finding.severity == Severity::error) validation.issues.push_back(sentence(finding));
    }
    if (report.suppressed_errors != 0)
      validation.issues.push_back(fmt::format("{} more findings", report.suppressed_errors));
    // Warnings alone leave a file valid.
    if (report.ok()) {
      // The reader opens the bytes that were verified, whatever the path leads to by now.
      Reader reader = container::open_reader(source, {.input = options.input});
      check_state(reader, options.input.limits);
      validation.valid = true;
      validated.reader = std::move(reader);
    }
    // Validation answers a question: a file that cannot be read at all is an answer too.
  } catch (const std::exception& error) {
    validation.issues.emplace_back(error.what());
  }
  return validated;
}

}  // namespace thalia
