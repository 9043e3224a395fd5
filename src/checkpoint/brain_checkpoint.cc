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
#include <optional>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "checkpoint/background.h"
#include "checkpoint/packing.h"
#include "checkpoint/v01.h"
#include "format/constants.h"
#include "state/delta/access.h"
#include "thalia/paths.h"
#include "thalia/reader.h"
#include "thalia/state/delta.h"
#include "thalia/state/metadata.h"
#include "thalia/verify.h"
#include "thalia/version.h"

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
std::optional<Reader> open_unless_v01(const path& source, const ReadOptions& options) {
  try {
    return Reader::open(source, options);
  } catch (const FormatError&) {
    if (!checkpoint::is_v01(source)) throw;
  } catch (const UnsupportedError&) {
    if (!checkpoint::is_v01(source)) throw;
  }
  return std::nullopt;
}

// That the texts are those of a state. Throws where they are not.
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
  checkpoint::complete(result, checkpoint::writer_of(stored, target, options.save).commit());
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
  outcome->set_save(container::AsyncSaverAccess::save(
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

BrainState BrainCheckpoint::load(const path& source, const BrainLoadOptions& options,
                                 BrainLoadReport* report) {
  BrainLoadOptions limited = options;
  limited.chain = chain_of(options);
  const std::optional<Reader> opened = open_unless_v01(source, limited.chain.read);
  if (opened) return load(*opened, limited, report);
  BrainLoadReport of_no_use;
  BrainLoadReport& told = report == nullptr ? of_no_use : *report;
  told = {};
  return checkpoint::load_v01_brain(source, limited, told);
}

BrainState BrainCheckpoint::load(const Reader& reader, const BrainLoadOptions& options,
                                 BrainLoadReport* report) {
  BrainLoadReport of_no_use;
  BrainLoadReport& told = report == nullptr ? of_no_use : *report;
  told = {};
  state::BrainReadOptions read{.regions = options.regions,
                               .lazy = options.lazy,
                               .state = {.restore = options.restore,
                                         .input = {.limits = options.chain.read.input.limits},
                                         .work = options.chain.read.work},
                               .read_tensors = options.read_tensors,
                               .connections_left_out = &told.connections_left_out};
  warn_of_newer_minor(reader.header().version, options);
  if (!reader.header().flags.delta) return state::read_brain(reader, read);
  if (!options.resolve_deltas) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "a delta",
                           {.field = "resolve_deltas", .value = "false", .bound = "true"});
  }
  if (!options.read_tensors) return state::read_brain(reader, read);
  const ChainReader chain = ChainReader::open(reader, chain_of(options));
  read.fetch = [chain](const TensorView& view, const std::shared_ptr<io::MemoryBudget>& budget) {
    return DeltaAccess::read(chain, view, budget);
  };
  return state::read_brain(chain.reader(), read);
}

BrainInfo BrainCheckpoint::info(const path& source, const ReadOptions& options) {
  const std::optional<Reader> opened = open_unless_v01(source, options);
  if (!opened) return checkpoint::describe_v01_brain(source, options);
  const Reader& reader = *opened;
  const FileHeader header = reader.header();
  BrainInfo info{.path = source,
                 .file_bytes = file_bytes(source),
                 .version = header.version.to_string(),
                 .timestamp = header.timestamp,
                 .total_neurons = header.total_neurons,
                 .total_synapses = header.total_synapses,
                 .training_steps = header.training_steps,
                 .connections = reader.connection_count(),
                 .is_delta = header.flags.delta};
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

BrainValidation BrainCheckpoint::validate(const path& source, const VerifyOptions& options,
                                          const std::vector<path>& search,
                                          const BasePolicy& bases) {
  BrainValidation validation;
  try {
    if (checkpoint::is_v01(source)) {
      checkpoint::check_v01_brain(source, options);
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
    if (report.ok()) {
      check_state(Reader::open(source, {.input = options.input}), options.input.limits);
      validation.valid = true;
    }
    // Validation answers a question: a file that cannot be read at all is an answer too.
  } catch (const std::exception& error) {
    validation.issues.emplace_back(error.what());
  }
  return validation;
}

}  // namespace thalia
