// Blobs are in the order in which the original's converter writes them, and each tensor goes into
// one of them: it is read once, and converted as it passes.
#include "formats/hugging_face/write_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "codec/float/conversion.h"
#include "formats/hugging_face/config.h"
#include "formats/hugging_face/tensor_places.h"
#include "formats/loom/document.h"
#include "formats/loom/file_text.h"
#include "formats/loom/opened.h"
#include "formats/loom/source_metadata.h"
#include "formats/source/lost_metadata.h"
#include "thalia/files.h"

namespace thalia::formats {
namespace hugging_face {
namespace {

/// A part of a blob, in elements of the blob's type.
struct BlobPart {
  std::optional<std::size_t> tensor;  ///< of the input; nullopt: zeros
  std::uint64_t count = 0;
};

struct DecoderNetwork {
  loom::Document document;  ///< in the order in which the original's converter writes blobs
  std::vector<std::vector<BlobPart>> parts{};  ///< of each blob; each tensor once
  std::vector<std::string> losses{};
};

// That of all layers: it holds the halves exactly, and the original cannot run a transformer whose
// layers are bfloat16 or float16.
constexpr LoomDType kLayerType = LoomDType::float32;

class Describing {
 public:
  Describing(const std::vector<SinkTensor>& tensors, const DecoderConfig& config,
             const TensorPlaces& places)
      : tensors_(tensors), config_(config), places_(places) {}

  DecoderNetwork made() {
    describe();
    put_globals();
    for (const Block& block : places_.blocks) put_block(block);
    out_.losses = places_.losses;
    out_.losses.insert(out_.losses.end(), config_.losses.begin(), config_.losses.end());
    return std::move(out_);
  }

 private:
  const SinkTensor& tensor(const Place& place) const { return tensors_[place.value()]; }

  void describe() {
    LoomNetwork& network = out_.document.network;
    network.depth = network.rows = network.cols = 1;
    network.layers_per_cell = signed_of(config_.blocks * 4);
    LoomTransformer& transformer = network.transformer.emplace();
    transformer.architecture = "llama_style_decoder";
    transformer.hidden_size = signed_of(config_.hidden);
    transformer.vocab_size = signed_of(places_.vocabulary);
    transformer.lm_head_tied = !places_.head;
    transformer.has_final_norm = true;
    transformer.weight_dtype = loom_dtype_name(kLayerType);
    transformer.dims =
        LoomTransformerDims{.num_layers = signed_of(config_.blocks),
                            .num_heads = signed_of(config_.heads),
                            .num_kv_heads = signed_of(config_.kv_heads),
                            .head_dim = signed_of(config_.head_dim),
                            .query_dim = signed_of(config_.query()),
                            .kv_dim = signed_of(config_.kv()),
                            .intermediate_size = signed_of(config_.inner),
                            .rms_norm_eps = config_.rms_norm_eps,
                            .rope_freq_base = config_.rope_freq_base,
                            .activation = std::string(loom_name(config_.activation))};
  }

  static std::int64_t signed_of(std::uint64_t extent) { return static_cast<std::int64_t>(extent); }

  void put_blob(std::string path, LoomDType dtype, float scale, bool native,
                std::vector<BlobPart> parts) {
    loom::BlobRecord blob{.path = std::move(path),
                          .dtype = std::string(loom_dtype_name(dtype)),
                          .scale = scale,
                          .native = native};
    for (const BlobPart& part : parts) blob.length += part.count * loom_element_bytes(dtype);
    out_.document.blobs.push_back(std::move(blob));
    out_.parts.push_back(std::move(parts));
  }

  std::uint64_t count_of(const Place& place) const {
    return tensor(place).layout.shape.element_count().value_or(0);
  }
  BlobPart part(const Place& place) const { return {.tensor = place, .count = count_of(place)}; }
  static BlobPart part_or_zeros(const Place& place, std::uint64_t count) {
    return {.tensor = place, .count = count};
  }

  void put_globals() {
    put_blob("transformer.embeddings", LoomDType::float32, 0, false, {part(places_.embeddings)});
    if (places_.head)
      put_blob("transformer.lm_head", LoomDType::float32, 0, false, {part(places_.head)});
    put_blob("transformer.final_norm", LoomDType::float32, 0, false, {part(places_.final_norm)});
  }

  LoomLayer& add_layer(LoomLayerType type) {
    std::vector<LoomLayer>& layers = out_.document.network.layers;
    LoomLayer layer{.type = type};
    layer.l = static_cast<std::int64_t>(layers.size());
    // What the original's cells have before they become something.
    layer.activation = LoomActivation::relu;
    return layers.emplace_back(std::move(layer));
  }

  std::string path_of_last() const {
    return fmt::format("layers.{}", out_.document.network.layers.size() - 1);
  }

  void put_norm(const Place& place) {
    LoomLayer& layer = add_layer(LoomLayerType::rms_norm);
    layer.input_height = layer.output_height = signed_of(config_.hidden);
    put_blob(path_of_last(), LoomDType::float32, 1, true, {part(place)});
  }

  void put_component(const Place& place, std::string_view suffix) {
    if (place)
      put_blob(fmt::format("{}.{}", path_of_last(), suffix), LoomDType::float32, 0, false,
               {part(place)});
  }

  void put_block(const Block& block) {
    put_norm(block[kInputNorm]);
    LoomLayer& attention = add_layer(LoomLayerType::multi_head_attention);
    attention.dtype = kLayerType;
    attention.d_model = signed_of(config_.hidden);
    attention.num_heads = signed_of(config_.heads);
    attention.num_kv_heads = signed_of(config_.kv_heads);
    attention.head_dim = signed_of(config_.head_dim);
    attention.query_dim = signed_of(config_.query());
    attention.rope_freq_base = config_.rope_freq_base;
    put_blob(path_of_last(), kLayerType, 1, true,
             {part(block[kQuery]), part(block[kKey]), part(block[kValue]), part(block[kOutput]),
              part_or_zeros(block[kQueryBias], config_.query()),
              part_or_zeros(block[kKeyBias], config_.kv()),
              part_or_zeros(block[kValueBias], config_.kv()),
              part_or_zeros(block[kOutputBias], config_.hidden)});
    put_component(block[kAttentionNorm], "inner_norm");
    put_component(block[kQueryNorm], "q_norm");
    put_component(block[kKeyNorm], "k_norm");
    put_norm(block[kMiddleNorm]);
    LoomLayer& gated = add_layer(LoomLayerType::swiglu);
    gated.dtype = kLayerType;
    gated.activation = config_.activation;
    gated.input_height = signed_of(config_.hidden);
    gated.output_height = signed_of(config_.inner);
    put_blob(path_of_last(), kLayerType, 1, true,
             {part(block[kGate]), part(block[kUp]), part(block[kDown]),
              part_or_zeros(block[kGateBias], config_.inner),
              part_or_zeros(block[kUpBias], config_.inner),
              part_or_zeros(block[kDownBias], config_.hidden)});
    put_component(block[kFeedForwardNorm], "inner_norm");
  }

  const std::vector<SinkTensor>& tensors_;
  const DecoderConfig& config_;
  const TensorPlaces& places_;
  DecoderNetwork out_;
};

DecoderNetwork decoder_network(const std::vector<SinkTensor>& tensors, std::string_view config,
                               const ReadLimits& limits) {
  const DecoderConfig read = read_config(config, limits);
  const TensorPlaces places = place_tensors(tensors, read);
  return Describing(tensors, read, places).made();
}

/// The elements of a tensor that comes in pieces, as those of a blob's type.
class Converter {
 public:
  Converter(DType from, DType to) : from_(from), to_(to) {}

  void pass(ByteSpan piece, const PieceSink& sink) {
    if (from_ == to_) return sink(piece);
    const std::size_t width = bytes_of(from_);
    // An element that two pieces share.
    if (!begun_.empty()) {
      const std::size_t had = begun_.size();
      const std::size_t more = std::min(width - had, piece.size());
      // Not insert(), of which gcc 14 warns for no reason.
      begun_.resize(had + more);
      std::copy_n(piece.begin(), more, begun_.begin() + static_cast<std::ptrdiff_t>(had));
      piece = piece.subspan(more);
      if (begun_.size() < width) return;
      convert(begun_, sink);
      begun_.clear();
    }
    const std::size_t whole = piece.size() / width * width;
    constexpr std::size_t kAtOnce = 1 << 16;
    for (std::size_t at = 0; at < whole; at += kAtOnce)
      convert(piece.subspan(at, std::min(kAtOnce, whole - at)), sink);
    begun_.assign(piece.begin() + static_cast<std::ptrdiff_t>(whole), piece.end());
  }

 private:
  static std::size_t bytes_of(DType dtype) { return dtype == DType::f32 ? 4 : 2; }
  void convert(ByteSpan elements, const PieceSink& sink) {
    converted_.resize(elements.size() / bytes_of(from_) * bytes_of(to_));
    codec::convert_elements(from_, to_, elements, converted_);
    sink(converted_);
  }

  DType from_, to_;
  std::vector<std::byte> begun_, converted_;
};

void write_zeros(std::uint64_t bytes, const PieceSink& sink) {
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(bytes, 1 << 16));
  for (; bytes > 0; bytes -= std::min<std::uint64_t>(bytes, zeros.size()))
    sink(ByteSpan(zeros).first(std::min<std::uint64_t>(bytes, zeros.size())));
}

// A model of Hugging Face, one tensor after the other.
std::uint64_t write_model(const std::filesystem::path& output, DecoderNetwork&& model,
                          const SinkInput& input, const SinkOptions& options,
                          const EmitPayload& emit) {
  std::vector<loom::BlobRecord>& blobs = model.document.blobs;
  const std::string start = loom::entity_start(model.document.network, blobs, true);
  if (options.announce) options.announce(model.losses);
  std::uint64_t total = 0, done = 0;
  for (const loom::BlobRecord& blob : blobs) total += blob.length;
  OutputFile out(output, options.save.output, options.save.work.cancel);
  out.write(as_byte_span(start));
  const auto write = [&](ByteSpan piece) {
    out.write(piece);
    done += piece.size();
    if (options.save.work.progress) options.save.work.progress(done, total);
  };
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    const LoomDType dtype = parse_loom_dtype(blobs[i].dtype);
    for (const BlobPart& part : model.parts[i]) {
      if (!part.tensor) {
        write_zeros(part.count * loom_element_bytes(dtype), write);
        continue;
      }
      Converter converter(input.tensors[*part.tensor].layout.dtype,
                          loom_dtype_as_thalia(dtype).value());
      emit(*part.tensor, [&](ByteSpan piece) { converter.pass(piece, write); });
    }
  }
  const std::uint64_t bytes = out.size();
  out.commit();
  return bytes;
}

}  // namespace
}  // namespace hugging_face

std::uint64_t write_entity_of_model(const std::filesystem::path& output, const SinkInput& input,
                                    const SinkOptions& options, const EmitPayload& emit) {
  std::vector<std::string> other_keys;
  if (loom::source_metadata_from_json(input.metadata, options.limits, other_keys))
    return write_entity(output, input, options, emit);
  if (!input.model_config) {
    throw UnsupportedError(
        ErrorCode::unsupported_feature,
        "a .entity file needs the network of layers that its weights belong to: only what was read "
        "from loom's files, and a decoder of Hugging Face with its config.json beside it, is "
        "written as one");
  }
  hugging_face::DecoderNetwork model =
      hugging_face::decoder_network(input.tensors, *input.model_config, options.limits);
  add_lost_metadata(model.losses, input, other_keys);
  return hugging_face::write_model(output, std::move(model), input, options, emit);
}

}  // namespace thalia::formats
