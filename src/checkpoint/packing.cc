// What every save of a brain does before and after the writing. The metadata is completed here and
// nowhere else: version, library and time of creation are always those of this save, even if the
// brain was loaded from a file that had others. Everything else in it is the caller's.
#include "checkpoint/packing.h"

#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/wrap/unwrap.h"
#include "container/write/file_save.h"
#include "format/constants.h"
#include "io/output/save_time.h"
#include "state/precision/rounding.h"
#include "state/quantize/quantizer.h"
#include "thalia/compress.h"
#include "thalia/state/metadata.h"
#include "thalia/version.h"

namespace thalia::checkpoint {
namespace {

using std::filesystem::path;

Value metadata_of(const BrainState& brain, const BrainSaveOptions& options, bool is_converted) {
  Value merged = brain.metadata;
  for (const auto& [name, value] : options.metadata.members()) merged[name] = value;
  // A state has the types that its tensors have; only a file of others may have narrower ones.
  if (!is_converted) merged.erase("precision_policy");
  Value metadata = completed_metadata(std::move(merged), options.save);
  if (!options.precision_policy.keeps_all())
    metadata["precision_policy"] = to_string(options.precision_policy);
  return metadata;
}

state::StoreOptions store_options(const BrainSaveOptions& options) {
  state::StoreOptions store{.sparse = options.sparse,
                            .include_homeostatic = options.include_homeostatic,
                            .threads = options.save.work.threads,
                            .roles_by_name = options.roles_by_name};
  if (!options.precision_policy.keeps_all()) {
    store.choose_dtype = [&policy = options.precision_policy](const std::string& of, Role role,
                                                              const Tensor& tensor) {
      return stored_dtype(policy, of, role, tensor.dtype(), tensor.element_count());
    };
  }
  return store;
}

PrecisionStatistics statistics_of(const state::StoredBrain& brain) {
  PrecisionStatistics statistics;
  // As stored: a converted or sparse tensor counts with the bytes that it takes in the file.
  state::for_each_stored(brain, [&](const state::StoredTensor& stored, const auto&) {
    statistics.add(stored.tensor.dtype(), stored.tensor.bytes().size());
  });
  return statistics;
}

RoundingLoss rounding_of(const state::StoredBrain& brain) {
  RoundingLoss rounding;
  state::for_each_stored(brain, [&](const state::StoredTensor& stored, const auto& shown) {
    // Names are made of the few that lost something.
    if (stored.loss != codec::ConversionLoss{}) state::add_loss(rounding, shown(), {}, stored.loss);
  });
  return rounding;
}

}  // namespace

Value completed_metadata(Value given, const SaveOptions& options) {
  // Values of these from an earlier file would describe that file.
  for (const char* ours : {"version", "thalia_version", "created"}) given.erase(ours);
  CheckpointMetadata metadata = checkpoint_metadata(given);
  metadata.version =
      fmt::format("{}.{}.{}", format::kMajorVersion, format::kMinorVersion, format::kPatchVersion);
  metadata.thalia_version = library_version();
  metadata.created =
      iso_time(options.timestamp ? *options.timestamp : io::save_time(options.output));
  return to_value(metadata);
}

std::optional<Codec> wrapper_for(const path& target, const SaveOptions& options) {
  const auto named = container::wrapper_codec(target);
  if (!named) return std::nullopt;
  // The name decides; options may agree with it or leave the codec open.
  if (!options.automatic_codec && options.compression.codec.value_or(*named) == *named)
    return named;
  fail_argument(ErrorCode::bad_argument, "codec", printable(target.filename().string()),
                fmt::format("{}, or a name that does not end in '{}'",
                            *named == Codec::zstd ? "zstd" : "lz4", target.extension().string()),
                "the name asks for another codec than the options");
}

Writer writer_of(const state::StoredBrain& stored, const path& target, const SaveOptions& options) {
  const auto wrapper = wrapper_for(target, options);
  if (!wrapper) {
    Writer writer(target, options);
    state::declare(writer, stored);
    return writer;
  }
  SaveOptions plain = options;
  plain.compression = {};
  Writer writer = container::writer_in_frames(
      {.path = target, .codec = *wrapper, .level = options.compression.level}, plain);
  state::declare(writer, stored);
  return writer;
}

state::StoredBrain stored_brain(const BrainState& brain, const BrainSaveOptions& options,
                                bool check_shapes) {
  state::StoreOptions store = store_options(options);
  store.check_shapes = check_shapes;
  Value metadata = metadata_of(brain, options, /*is_converted=*/!check_shapes);
  std::optional<state::Quantizer> quantizer;
  if (options.quantization) {
    quantizer.emplace(*options.quantization, state::lossy_generation_of(metadata),
                      options.save.work.threads);
    store.quantizer = &*quantizer;
  }
  state::StoredBrain stored = state::store_brain(brain, store);
  // Only now is it known whether any tensor was quantized, so the text is made last.
  if (quantizer && !quantizer->reports().empty()) {
    state::set_lossy_generation(metadata, quantizer->generation());
    stored.quantized = quantizer->reports();
  }
  if (quantizer) stored.not_finite = quantizer->not_finite();
  stored.metadata_json = state::metadata_text(metadata);
  return stored;
}

BrainContents contents_of(const state::StoredBrain& stored, const PrecisionPolicy& policy) {
  BrainContents contents{.connections = stored.connections.size(),
                         .precision_policy = to_string(policy),
                         .precision_statistics = statistics_of(stored),
                         .rounding = rounding_of(stored)};
  for (const state::StoredRegion& region : stored.regions) {
    if (region.spec.name.starts_with(state::kPathwayPrefix)) {
      ++contents.pathways;
    } else if (region.spec.name != state::kBrainRegion) {
      ++contents.regions;
    }
  }
  return contents;
}

BrainSaveResult result_of(const state::StoredBrain& stored, const path& target,
                          const BrainSaveOptions& options) {
  return {.path = target,
          .contents = contents_of(stored, options.precision_policy),
          .quantized = stored.quantized,
          .not_finite = stored.not_finite};
}

std::uint64_t wrap(const path& plain, const path& target, Codec wrapper,
                   const SaveOptions& options) {
  CompressOptions frames{.compression = {.codec = wrapper, .level = options.compression.level},
                         .output = options.output,
                         .work = options.work};
  frames.work.progress = {};  // that of the file inside was the whole
  return compress_checkpoint(plain, target, frames).output_bytes;
}

}  // namespace thalia::checkpoint
