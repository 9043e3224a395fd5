// Where each tensor of a decoder goes, by its name.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "formats/hugging_face/config.h"
#include "formats/source/tensor_sink.h"

namespace thalia::formats::hugging_face {

/// The tensors that a block may have.
enum DecoderPart : std::size_t {
  kInputNorm,
  kQuery,
  kKey,
  kValue,
  kOutput,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kOutputBias,
  kQueryNorm,
  kKeyNorm,
  kAttentionNorm,
  kMiddleNorm,
  kGate,
  kUp,
  kDown,
  kGateBias,
  kUpBias,
  kDownBias,
  kFeedForwardNorm,
  kRoles,
};
/// Number of a tensor of the input.
using Place = std::optional<std::size_t>;
using Block = std::array<Place, kRoles>;

struct TensorPlaces {
  Place embeddings, final_norm;
  Place head;  ///< nullopt: the embeddings
  std::vector<Block> blocks{};
  std::uint64_t vocabulary = 0;
  std::vector<std::string> losses{};
};

/// Every tensor has one place, its shape is what the config says, its type f32, f16 or bf16.
/// @throws UnsupportedError naming tensors that are missing, that are otherwise, or that have no
/// place.
TensorPlaces place_tensors(const std::vector<SinkTensor>& tensors, const DecoderConfig& config);

}  // namespace thalia::formats::hugging_face
