#include "thalia/brain_checkpoint.h"

#include <array>
#include <chrono>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/random.h"
#include "model/stored_brain.h"
#include "thalia/checkpoint_metadata.h"
#include "thalia/format/constants.h"
#include "thalia/reader.h"
#include "thalia/verify.h"
#include "thalia/version.h"
#include "thalia/wrap.h"

namespace thalia {
namespace {

using std::filesystem::path;

// What a save is to put around the file and into it.
struct Packing {
  std::optional<format::Codec> wrapper;  ///< frames around the whole
  std::optional<format::Codec> chunks;   ///< nullopt: automatic
};

std::optional<format::Codec> codec_of_name(const path& target) {
  const path extension = target.extension();
  if (extension == ".zst") return format::Codec::zstd;
  if (extension == ".lz4") return format::Codec::lz4;
  return std::nullopt;
}

Packing packing_for(const path& target, BrainCompression compression) {
  const auto named = codec_of_name(target);
  std::optional<format::Codec> asked;
  switch (compression) {
    case BrainCompression::by_name:
      return {.wrapper = named, .chunks = format::Codec::store};
    case BrainCompression::none:
      asked = format::Codec::store;
      break;
    case BrainCompression::zstd:
      asked = format::Codec::zstd;
      break;
    case BrainCompression::lz4:
      asked = format::Codec::lz4;
      break;
    case BrainCompression::automatic:
      break;
  }
  if (!named) return {.wrapper = std::nullopt, .chunks = asked};
  if (asked == named) return {.wrapper = named, .chunks = format::Codec::store};
  fail_argument(
      ErrorCode::bad_argument, "compression", printable(target.filename().string()),
      fmt::format("{}, or a name that does not end in '{}'",
                  *named == format::Codec::zstd ? "zstd" : "lz4", target.extension().string()),
      "the name asks for another compression than the option");
}

std::uint64_t seconds_since_1970() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(
      duration_cast<seconds>(system_clock::now().time_since_epoch()).count());
}

Value completed_metadata(const BrainState& brain, const BrainSaveOptions& options) {
  Value merged = brain.metadata;
  for (const auto& [name, value] : options.metadata.members()) merged[name] = value;
  for (const char* ours : {"version", "thalia_version", "created"}) merged.erase(ours);
  CheckpointMetadata metadata = checkpoint_metadata(merged);
  metadata.version =
      fmt::format("{}.{}.{}", format::kMajorVersion, format::kMinorVersion, format::kPatchVersion);
  metadata.thalia_version = library_version();
  metadata.created = iso_time(options.save.timestamp.value_or(seconds_since_1970()));
  if (!options.precision_policy.keeps_all())
    metadata.other["precision_policy"] = to_string(options.precision_policy);
  return to_value(metadata);
}

model::StoreOptions store_options(const BrainSaveOptions& options) {
  model::StoreOptions store{.sparse = options.sparse,
                            .include_homeostatic = options.include_homeostatic,
                            .threads = options.save.threads};
  if (!options.precision_policy.keeps_all()) {
    store.choose_dtype = [&policy = options.precision_policy](const std::string& of, Role role,
                                                              const Tensor& tensor) {
      return decide(policy, of, role, tensor.dtype(), tensor.element_count());
    };
  }
  return store;
}

model::StoredBrain stored_brain(const BrainState& brain, const BrainSaveOptions& options) {
  model::StoredBrain stored = model::store_brain(brain, store_options(options));
  stored.metadata_json = model::metadata_text(completed_metadata(brain, options));
  return stored;
}

SaveOptions save_options(const BrainSaveOptions& options, const Packing& packing) {
  SaveOptions save = options.save;
  save.compression = packing.chunks;
  save.compression_level = options.compression_level;
  return save;
}

PrecisionStatistics statistics_of(const model::StoredBrain& brain) {
  PrecisionStatistics statistics;
  const auto add = [&](const model::StoredTensor& stored) {
    statistics.add(stored.tensor.dtype(), stored.tensor.bytes().size());
  };
  for (const model::StoredRegion& region : brain.regions) {
    for (const model::StoredTensor& tensor : region.tensors) add(tensor);
  }
  for (const model::StoredConnectionTensors& connection : brain.connections) {
    add(connection.weights);
    if (connection.delays) add(*connection.delays);
  }
  return statistics;
}

std::string sentence(const Finding& finding) {
  std::string text = finding.section;
  if (finding.offset != 0) text += fmt::format(" at {}", finding.offset);
  if (!finding.region.empty()) text += fmt::format(", region '{}'", printable(finding.region));
  if (!finding.tensor.empty()) text += fmt::format(", tensor '{}'", printable(finding.tensor));
  return text + ": " + finding.message;
}

// A file of a name of its own in the target's folder, gone when this is.
class TemporaryName {
 public:
  explicit TemporaryName(const path& target) {
    std::array<std::byte, 8> random;
    io::fill_random(random);
    std::string name = "." + target.filename().string() + ".";
    for (const std::byte byte : random) name += fmt::format("{:02x}", std::to_integer<int>(byte));
    path_ = target.parent_path() / (name + ".tmp");
  }
  ~TemporaryName() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  const path& get() const { return path_; }

 private:
  path path_;
};

// The frames go around a whole file, whose tables come last and whose header is written last: it is
// made first, unsynced, beside the target.
std::uint64_t write_wrapped(const model::StoredBrain& stored, const path& target,
                            format::Codec wrapper, const BrainSaveOptions& options,
                            SaveResult& saved) {
  if (options.save.sha256) {
    fail_argument(ErrorCode::bad_argument, "sha256", "true",
                  "false for a file that is compressed as a whole");
  }
  const TemporaryName plain(target);
  SaveOptions save = options.save;
  save.durability = Durability::none;
  save.compression = format::Codec::store;
  saved = model::declared_writer(stored, plain.get(), save).commit();
  return compress_checkpoint(plain.get(), target,
                             {.algorithm = wrapper,
                              .level = options.compression_level,
                              .durability = options.save.durability,
                              .threads = options.save.threads,
                              .cancel = options.save.cancel})
      .output_bytes;
}

}  // namespace

BrainSaveResult BrainCheckpoint::save(const BrainState& brain, const path& target,
                                      const BrainSaveOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Packing packing = packing_for(target, options.compression);
  const model::StoredBrain stored = stored_brain(brain, options);
  SaveResult saved;
  BrainSaveResult result{.path = target};
  if (packing.wrapper) {
    result.file_bytes = write_wrapped(stored, target, *packing.wrapper, options, saved);
    result.compression = *packing.wrapper;
  } else {
    const SaveOptions save = save_options(options, packing);
    saved = model::declared_writer(stored, target, save).commit();
    result.file_bytes = saved.file_bytes;
    result.compression = saved.compression;
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
  result.sha256 = saved.sha256;
  result.precision_policy = to_string(options.precision_policy);
  result.precision_statistics = statistics_of(stored);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

SaveHandle BrainCheckpoint::save_async(AsyncSaver& saver, const BrainState& brain,
                                       const path& target, const BrainSaveOptions& options) {
  const Packing packing = packing_for(target, options.compression);
  if (packing.wrapper) {
    fail_argument(ErrorCode::bad_argument, "path", printable(target.filename().string()),
                  "a name that does not end in .zst or .lz4",
                  "a file that is compressed as a whole is not written in the background");
  }
  const model::StoredBrain stored = stored_brain(brain, options);
  return saver.save_async(model::declared_writer(stored, target, save_options(options, packing)));
}

BrainState BrainCheckpoint::load(const path& source, const BrainLoadOptions& options) {
  const Reader reader = Reader::open(source, options.read);
  return model::read_brain(reader, {.regions = options.regions,
                                    .lazy = options.lazy,
                                    .state = {.restore = options.restore,
                                              .limits = options.read.limits,
                                              .threads = options.read.threads}});
}

BrainInfo BrainCheckpoint::info(const path& source, const ReadOptions& options) {
  const Reader reader = Reader::open(source, options);
  const format::Header& header = reader.header();
  BrainInfo info{.path = source,
                 .file_bytes = std::filesystem::file_size(source),
                 .version = fmt::format("{}.{}.{}", std::uint16_t{header.major_version},
                                        std::uint16_t{header.minor_version},
                                        std::uint16_t{header.patch_version}),
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
    info.metadata = model::read_metadata(reader.metadata_json(), options.limits);
    info.growth_history = checkpoint_metadata(info.metadata).growth_history;
  }
  return info;
}

BrainValidation BrainCheckpoint::validate(const path& source, const VerifyOptions& options) {
  BrainValidation validation;
  try {
    const VerifyReport report = verify(source, options);
    for (const Finding& finding : report.findings) {
      if (finding.severity == Severity::error) validation.issues.push_back(sentence(finding));
    }
    if (report.suppressed != 0)
      validation.issues.push_back(fmt::format("{} more findings", report.suppressed));
    validation.valid = report.ok();
  } catch (const std::exception& error) {
    validation.issues.emplace_back(error.what());
  }
  return validation;
}

}  // namespace thalia
