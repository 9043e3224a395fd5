// Names of layer types, activations and kinds of softmax.
#include <array>
#include <utility>

#include "formats/loom/fold_case.h"
#include "thalia/formats/loom_network.h"

namespace thalia {
namespace formats::loom {
namespace {

constexpr std::array<std::string_view, kLoomLayerTypeCount> kLayerTypes{"Dense",
                                                                        "MultiHeadAttention",
                                                                        "SwiGLU",
                                                                        "RMSNorm",
                                                                        "CNN1",
                                                                        "CNN2",
                                                                        "CNN3",
                                                                        "RNN",
                                                                        "LSTM",
                                                                        "LayerNorm",
                                                                        "ConvTransposed1D",
                                                                        "ConvTransposed2D",
                                                                        "ConvTransposed3D",
                                                                        "Embedding",
                                                                        "KMeans",
                                                                        "Softmax",
                                                                        "Parallel",
                                                                        "Sequential",
                                                                        "Residual",
                                                                        "Metacognition"};

constexpr std::array<std::pair<std::string_view, LoomActivation>, 8> kActivations{
    {{"ReLU", LoomActivation::relu},
     {"Silu", LoomActivation::silu},
     {"GELU", LoomActivation::gelu},
     {"Tanh", LoomActivation::tanh},
     {"Sigmoid", LoomActivation::sigmoid},
     {"LeakyReLU", LoomActivation::leaky_relu},
     {"ReLU2", LoomActivation::relu2},
     {"Linear", LoomActivation::linear}}};

constexpr std::array<std::string_view, 10> kSoftmaxes{
    "Standard", "Grid",   "Hierarchical", "Temperature", "Gumbel",
    "Masked",   "Sparse", "Adaptive",     "Mixture",     "Entmax"};

}  // namespace
}  // namespace formats::loom

namespace loom = formats::loom;

std::string_view loom_name(LoomLayerType type) noexcept {
  return loom::kLayerTypes[static_cast<std::size_t>(type)];
}

std::string_view loom_name(LoomActivation activation) noexcept {
  for (const auto& [name, value] : loom::kActivations)
    if (value == activation) return name;
  return "Linear";
}

std::string_view loom_name(LoomSoftmax softmax) noexcept {
  return loom::kSoftmaxes[static_cast<std::size_t>(softmax)];
}

LoomLayerType parse_loom_layer_type(std::string_view name) noexcept {
  for (std::uint8_t i = 0; i < kLoomLayerTypeCount; ++i)
    if (loom::equal_fold(name, loom::kLayerTypes[i])) return static_cast<LoomLayerType>(i);
  if (loom::equal_fold(name, "mha") || loom::equal_fold(name, "attention"))
    return LoomLayerType::multi_head_attention;
  return loom::equal_fold(name, "meta") ? LoomLayerType::metacognition : LoomLayerType::dense;
}

LoomActivation parse_loom_activation(std::string_view name) noexcept {
  for (const auto& [known, value] : loom::kActivations)
    if (loom::equal_fold(name, known)) return value;
  if (loom::equal_fold(name, "leaky_relu")) return LoomActivation::leaky_relu;
  return name == "6" ? LoomActivation::relu2 : LoomActivation::linear;
}

LoomSoftmax parse_loom_softmax(std::string_view name) noexcept {
  for (std::size_t i = 0; i < loom::kSoftmaxes.size(); ++i)
    if (name == loom::kSoftmaxes[i]) return static_cast<LoomSoftmax>(i);
  return LoomSoftmax::standard;
}

}  // namespace thalia
