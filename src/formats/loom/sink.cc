// Writing both kinds of files of tensors that came from one of them. As the same kind, description
// and blobs are put together as they were; as the other, the network is loaded as the original
// would load it, in memory, and saved as it would save it.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "formats/loom/blob_layout.h"
#include "formats/loom/file_text.h"
#include "formats/loom/load.h"
#include "formats/loom/opened.h"
#include "formats/loom/source_metadata.h"
#include "formats/loom/weights.h"
#include "formats/source/list_names.h"
#include "formats/source/lost_metadata.h"
#include "io/memory/allocation_limit.h"
#include "thalia/files.h"
#include "thalia/formats/loom.h"

namespace thalia::formats {
namespace loom {
namespace {

/// What is to be written: each blob of the description with its tensor.
struct Plan {
  LoomSourceMetadata source;
  std::vector<std::size_t> tensors;  ///< of each blob, of the input
  std::vector<std::string> losses;
};

[[noreturn]] void refuse_foreign(std::string_view kind) {
  throw UnsupportedError(
      ErrorCode::unsupported_feature,
      fmt::format("a {} needs the network of layers that its weights belong to: only what was read "
                  "from loom's files is written as one",
                  kind));
}

[[noreturn]] void refuse_tensor(ErrorCode code, std::string message, std::string_view name,
                                std::string value = {}, std::string bound = {}) {
  throw UnsupportedError(
      code, std::move(message),
      {.tensor = printable(name), .value = std::move(value), .bound = std::move(bound)});
}

// The tensor's bytes take the place of the blob's. If they have another float type, the blob gets
// that type, and so does its layer; f32 in the place of codes are what OpenOptions::dequantize
// gave.
void fit_blob(BlobRecord& blob, const SinkTensor& tensor, const ListedLayers& layers) {
  const TensorLayout& layout = tensor.layout;
  if (layout.encoding != Encoding::dense)
    refuse_tensor(ErrorCode::unsupported_feature, "the format holds dense tensors only",
                  tensor.name);
  const auto length = layout.shape.byte_length(layout.dtype);
  if (!length)
    refuse_tensor(ErrorCode::unsupported_feature, "more bytes than a file has", tensor.name);
  const bool blocks = blob_kind(blob.path) != BlobKind::weights;
  const LoomDType stored = blob.native ? parse_loom_dtype(blob.dtype) : LoomDType::float32;
  blob.length = *length;
  if (!blocks && loom_dtype_as_thalia(stored) == layout.dtype) return;
  const bool raw = layout.dtype == DType::u8 && (blocks || !loom_dtype_as_thalia(stored) ||
                                                 *length % loom_element_bytes(stored) != 0);
  if (raw) return;
  const auto type = float_type(layout.dtype);
  if (blocks || !type) {
    throw UnsupportedDtypeError(std::string(dtype_name(layout.dtype)),
                                "the blob cannot be written with this element type",
                                {.tensor = printable(tensor.name),
                                 .value = std::string(dtype_name(layout.dtype)),
                                 .bound = printable(blob.dtype)});
  }
  blob.dtype = loom_dtype_name(*type);
  blob.native = true;
  const ListedLayers::Found found = layers.find(blob.path);
  if (found.layer != nullptr && found.suffix.empty()) found.layer->dtype = *type;
}

Plan make_plan(std::string_view kind, const SinkInput& input, const SinkOptions& options) {
  Plan plan;
  std::vector<std::string> other_keys;
  auto source = source_metadata_from_json(input.metadata, options.limits, other_keys);
  if (!source) refuse_foreign(kind);
  plan.source = *std::move(source);
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < input.tensors.size(); ++i) places.emplace(input.tensors[i].name, i);
  Document& document = plan.source.document;
  const ListedLayers layers(document.network);
  for (BlobRecord& blob : document.blobs) {
    const auto found = places.find(blob.path);
    if (found == places.end())
      refuse_tensor(ErrorCode::unsupported_feature,
                    "the network has this tensor, and the input lacks it", blob.path);
    plan.tensors.push_back(found->second);
    fit_blob(blob, input.tensors[found->second], layers);
    places.erase(found);
  }
  std::vector<std::string> extra;
  for (const SinkTensor& tensor : input.tensors)
    if (places.contains(tensor.name)) extra.push_back(printable(tensor.name));
  if (!extra.empty())
    plan.losses.push_back(
        fmt::format("tensors that the network does not have: {}", list_names(extra)));
  add_lost_metadata(plan.losses, input, other_keys);
  return plan;
}

// What JSON checkpoints have no place for.
void check_for_checkpoint(Plan& plan) {
  Document& document = plan.source.document;
  const ListedLayers layers(document.network);
  std::vector<std::string> lost;
  for (const BlobRecord& blob : document.blobs) {
    const ListedLayers::Found found = layers.find(blob.path);
    if (found.layer != nullptr && !found.suffix.empty()) {
      refuse_tensor(ErrorCode::unsupported_feature,
                    "JSON checkpoints hold no parts of layers, only .entity files do", blob.path);
    }
    if (found.layer == nullptr) {
      lost.push_back(printable(blob.path));
    } else if (plan.source.kind == LoomFileKind::checkpoint) {
      with_tensor(printable(blob.path), [&] {
        check_weights(*found.layer,
                      {.dtype = found.layer->dtype, .native = blob.native, .length = blob.length});
      });
    }
  }
  if (document.network.transformer)
    plan.losses.emplace_back("what the header says of the transformer");
  if (!lost.empty())
    plan.losses.push_back(fmt::format("tensors beside the layers: {}", list_names(lost)));
}

void announce(const Plan& plan, const SinkOptions& options) {
  if (options.announce) options.announce(plan.losses);
}

/// Counts what has been written.
class Progressed {
 public:
  Progressed(const std::vector<BlobRecord>& blobs, const SinkOptions& options) : options_(options) {
    for (const BlobRecord& blob : blobs) total_ += blob.length;
  }
  void add(std::uint64_t bytes) {
    done_ += bytes;
    if (options_.save.work.progress) options_.save.work.progress(done_, total_);
  }

 private:
  const SinkOptions& options_;
  std::uint64_t done_ = 0, total_ = 0;
};

// @throws FormatError (limit_exceeded) where the network is larger than memory may be.
LoomNetwork loaded(const Plan& plan, const SinkOptions& options, const EmitPayload& emit) {
  const Document& document = plan.source.document;
  CheckedSum bytes;
  for (const BlobRecord& blob : document.blobs) bytes += blob.length;
  const std::uint64_t total = bytes.value().value_or(UINT64_MAX);
  io::MemoryBudget(options.limits, total).take("blobs", total);
  std::vector<StoredBytes> stored;
  for (std::size_t i = 0; i < document.blobs.size(); ++i) {
    std::vector<std::byte> whole;
    whole.reserve(document.blobs[i].length);
    emit(plan.tensors[i],
         [&](ByteSpan piece) { whole.insert(whole.end(), piece.begin(), piece.end()); });
    stored.push_back(owned_bytes(std::move(whole)));
  }
  const auto bytes_of = [&](std::size_t i) { return stored[i]; };
  if (plan.source.kind == LoomFileKind::entity) {
    const auto all = [](std::uint64_t) { return true; };
    return load_entity(document, options.limits, total, all, bytes_of);
  }
  LoomNetwork network = document.network;
  const ListedLayers layers(network);
  for (std::size_t i = 0; i < document.blobs.size(); ++i) {
    const BlobRecord& blob = document.blobs[i];
    const ListedLayers::Found found = layers.find(blob.path);
    if (found.layer == nullptr || !found.suffix.empty()) continue;  // as JSON checkpoints do
    LoomLayer& layer = *found.layer;
    layer.weights = LoomWeights{.dtype = layer.dtype, .scale = blob.scale};
    (blob.native ? layer.weights->native : layer.weights->master) = stored[i];
  }
  return load_checkpoint(std::move(network), options.limits, total);
}

LoomSaveOptions save_options(const SinkOptions& options) {
  return {.output = options.save.output, .work = options.save.work};
}

}  // namespace
}  // namespace loom

std::uint64_t write_entity(const std::filesystem::path& output, const SinkInput& input,
                           const SinkOptions& options, const EmitPayload& emit) {
  loom::Plan plan = loom::make_plan(".entity file", input, options);
  if (plan.source.kind == loom::LoomFileKind::checkpoint) {
    loom::announce(plan, options);
    return save_entity(output, loom::loaded(plan, options, emit), loom::save_options(options));
  }
  std::vector<loom::BlobRecord>& blobs = plan.source.document.blobs;
  const std::string start = loom::entity_start(plan.source.document.network, blobs, false);
  loom::announce(plan, options);
  loom::Progressed progressed(blobs, options);
  OutputFile out(output, options.save.output, options.save.work.cancel);
  out.write(as_byte_span(start));
  for (const std::size_t tensor : plan.tensors) {
    emit(tensor, [&](ByteSpan piece) {
      out.write(piece);
      progressed.add(piece.size());
    });
  }
  const std::uint64_t bytes = out.size();
  out.commit();
  return bytes;
}

std::uint64_t write_loom_json(const std::filesystem::path& output, const SinkInput& input,
                              const SinkOptions& options, const EmitPayload& emit) {
  loom::Plan plan = loom::make_plan("JSON checkpoint of loom", input, options);
  loom::check_for_checkpoint(plan);
  if (plan.source.kind == loom::LoomFileKind::entity) {
    loom::announce(plan, options);
    return save_loom_json(output, loom::loaded(plan, options, emit), loom::save_options(options));
  }
  const loom::Document& document = plan.source.document;
  loom::announce(plan, options);
  loom::Progressed progressed(document.blobs, options);
  OutputFile out(output, options.save.output, options.save.work.cancel);
  loom::write_checkpoint(
      document.network, document.blobs,
      [&](std::size_t i, const PieceSink& sink) {
        emit(plan.tensors[i], [&](ByteSpan piece) {
          sink(piece);
          progressed.add(piece.size());
        });
      },
      [&](ByteSpan piece) { out.write(piece); });
  const std::uint64_t bytes = out.size();
  out.commit();
  return bytes;
}

}  // namespace thalia::formats
