// Roles of tensors by their names. The rules are those of docs/format/states.md, "Roles of names",
// in the order that they have there; the first that fits counts. A name that tells nothing is a
// weight's.

#include "thalia/types.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace thalia {
namespace {

using Words = std::span<const std::string_view>;

// Names that optimizers give what they keep: "state.0.exp_avg_sq", "m.momentum", "opt_state.0.nu".
constexpr std::array<std::string_view, 8> kOptimizerWords{
    "optimizer", "optim", "momentum", "moment1", "moment2", "adam", "adamw", "sgd"};
constexpr std::array<std::string_view, 5> kOptimizerParts{"exp_avg", "opt_state", "square_avg",
                                                          "grad_avg", "acc_delta"};
constexpr std::array<std::string_view, 12> kBuffers{"running_mean",
                                                    "running_var",
                                                    "num_batches_tracked",
                                                    "inv_freq",
                                                    "position_ids",
                                                    "token_type_ids",
                                                    "relative_position_index",
                                                    "masked_bias",
                                                    "attention_mask",
                                                    "causal_mask",
                                                    "cos_cached",
                                                    "sin_cached"};
constexpr std::array<std::string_view, 9> kNormalizationWords{
    "norm", "layernorm", "rmsnorm", "batchnorm", "groupnorm", "instancenorm", "ln", "bn", "gn"};
constexpr std::array<std::string_view, 4> kScales{"weight", "scale", "gamma", "beta"};
constexpr std::array<std::string_view, 2> kBiasWords{"bias", "biases"};
constexpr std::array<std::string_view, 8> kEmbeddingWords{
    "embed", "embedding", "embeddings", "emb", "embd", "embs", "wte", "wpe"};

bool is_one_of(std::string_view word, Words words) {
  return std::ranges::find(words, word) != words.end();
}

// Whether one of the name's words, in lower case, is what `matches` looks for. Nothing is
// allocated: files have many tensors. All words that are looked for are short.
template <typename Matches>
bool any_word(std::string_view name, const Matches& matches) {
  std::array<char, 16> word;
  std::size_t length = 0;
  const auto ends = [&] {
    const bool found =
        length != 0 && length <= word.size() && matches(std::string_view(word.data(), length));
    length = 0;
    return found;
  };
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      if (length < word.size()) word[length] = is_upper ? static_cast<char>(c - 'A' + 'a') : c;
      ++length;
    } else if (ends()) {
      return true;
    }
  }
  return ends();
}

bool has_word(std::string_view name, Words words) {
  return any_word(name, [&](std::string_view word) { return is_one_of(word, words); });
}

// "norm1" and "layernorm" count, "normal" does not: digits at the end are the number of a layer.
bool names_normalization(std::string_view name) {
  return any_word(name, [](std::string_view word) {
    return is_one_of(word.substr(0, word.find_last_not_of("0123456789") + 1), kNormalizationWords);
  });
}

// The last name of a path, and the one before it, which is the layer that it belongs to.
struct LastNames {
  std::string_view layer;
  std::string_view name;

  explicit LastNames(std::string_view path) {
    const std::size_t end = path.find_last_of("./");
    name = path.substr(end + 1);
    if (end != std::string_view::npos) layer = path.substr(0, end);
    layer = layer.substr(layer.find_last_of("./") + 1);
  }
};

}  // namespace

Role role_of_name(std::string_view name, unsigned rank) {
  const auto holds = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (has_word(name, kOptimizerWords) || std::ranges::any_of(kOptimizerParts, holds))
    return Role::optimizer;
  const LastNames last(name);
  // How often torch's optimizers have stepped, a number that half precision would end at 65504.
  if (rank == 0 && last.name == "step") return Role::optimizer;
  // A "bias" of three axes and more is the mask that GPT-2 keeps beside its attention.
  if (is_one_of(last.name, kBuffers) || (last.name == "bias" && rank > 2)) return Role::buffer;
  if (rank <= 1) {
    if (names_normalization(last.layer) || names_normalization(last.name) ||
        is_one_of(last.name, kScales))
      return Role::normalization;
  }
  if (has_word(last.name, kBiasWords) || last.name == "b") return Role::bias;
  if (rank > 1 && (has_word(last.layer, kEmbeddingWords) || has_word(last.name, kEmbeddingWords)))
    return Role::embedding;
  return Role::weights;
}

Role likely_role(Role role, std::string_view name, unsigned rank) {
  return role == Role::weights ? role_of_name(name, rank) : role;
}

}  // namespace thalia
