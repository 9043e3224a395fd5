// A file of weights does not say which layers they are of, and a linear layer alone can have an
// adapter. Names and shapes tell: a matrix NAME.weight that is not called like an embedding.
#include "formats/weight_sync/lora_tensors.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/float/conversion.h"
#include "state/low_rank/matrix_change.h"
#include "thalia/types.h"

namespace thalia::formats::weight_sync {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kBias = ".bias";

// Modules by the last part of their names: embeddings that no rule of roles knows, and linear
// layers that it takes for embeddings.
constexpr std::array<std::string_view, 2> kEmbeddings{"shared", "relative_attention_bias"};
constexpr std::array<std::string_view, 1> kLinear{"embed_out"};

bool is_embedding(std::string_view name, std::string_view module) {
  const std::string_view last = module.substr(module.find_last_of('.') + 1);
  if (std::ranges::find(kLinear, last) != kLinear.end()) return false;
  return role_of_name(name, 2) == Role::embedding ||
         std::ranges::find(kEmbeddings, last) != kEmbeddings.end();
}

// Why an adapter cannot hold a change of the tensor; empty: it can.
std::string reason_against(const AnyTensor& before, const AnyTensor& after) {
  for (const AnyTensor* one : {&before, &after}) {
    const TensorLayout& layout = one->layout;
    if (layout.encoding != Encoding::dense) return std::string(encoding_name(layout.encoding));
    if (layout.shape.rank() != 2) return "no matrix";
    if (!codec::is_convertible(layout.dtype)) return std::string(dtype_name(layout.dtype));
  }
  if (before.layout.shape != after.layout.shape) return "another shape than the base's";
  if (!after.name.ends_with(kWeight) || after.name.size() == kWeight.size())
    return "not the weight of a layer";
  if (is_embedding(after.name, after.name.substr(0, after.name.size() - kWeight.size())))
    return "an embedding";
  return {};
}

bool is_same(const Tensor& before, const Tensor& after) {
  if (before.encoding() != after.encoding() || before.shape() != after.shape()) return false;
  const ByteSpan old = before.bytes(), now = after.bytes();
  if (before.dtype() == after.dtype())
    return old.size() == now.size() &&
           (now.empty() || std::memcmp(old.data(), now.data(), now.size()) == 0);
  if (!codec::is_convertible(before.dtype()) || !codec::is_convertible(after.dtype())) return false;
  const auto change = state::matrix_change({before.dtype(), old}, {after.dtype(), now});
  return change && std::ranges::all_of(*change, [](float x) { return x == 0; });
}

// Conv1D of transformers, which GPT-2 has, keeps inputs × outputs. A bias has as many elements as
// there are outputs, which tells the two apart unless a matrix is square: then as most others of
// the model with a bias.
void find_transposed(const OpenedFile& next, std::vector<LoraTensor>& tensors) {
  const auto bias_of = [&](const LoraTensor& tensor) -> std::uint64_t {
    const auto place = next.find(tensor.module + std::string(kBias));
    if (!place) return 0;
    const Shape& shape = next.stored(*place).layout.shape;
    return shape.rank() == 1 ? shape[0] : 0;
  };
  std::vector<LoraTensor*> square;
  std::uint64_t transposed = 0, usual = 0;
  for (LoraTensor& tensor : tensors) {
    const std::uint64_t bias = bias_of(tensor);
    if (bias == 0) continue;
    const AnyTensor stored = next.stored(tensor.after);
    const Shape& shape = stored.layout.shape;
    if (shape[0] == shape[1]) {
      square.push_back(&tensor);
    } else if (bias == shape[1]) {
      tensor.is_transposed = true;
      ++transposed;
    } else if (bias == shape[0]) {
      ++usual;
    }
  }
  for (LoraTensor* tensor : square) tensor->is_transposed = transposed > usual;
}

}  // namespace

LoraTensors find_lora_tensors(const OpenedFile& base, const OpenedFile& next, const Work& work) {
  struct Other {
    std::size_t before;
    std::size_t after;
    LeftOutTensor tensor;
    bool changed = false;
  };
  LoraTensors out;
  std::vector<Other> others;
  for (std::size_t i = 0; i < next.tensor_count(); ++i) {
    AnyTensor after = next.stored(i);
    const auto place = base.find(after.name);
    if (!place) {
      out.left_out.push_back({std::move(after.name), "the base lacks it"});
      continue;
    }
    std::string reason = reason_against(base.stored(*place), after);
    if (reason.empty()) {
      out.tensors.push_back({.before = *place,
                             .after = i,
                             .module = after.name.substr(0, after.name.size() - kWeight.size())});
    } else {
      others.push_back({*place, i, {std::move(after.name), std::move(reason)}});
    }
  }
  for (std::size_t i = 0; i < base.tensor_count(); ++i) {
    AnyTensor before = base.stored(i);
    if (!next.find(before.name))
      out.left_out.push_back({std::move(before.name), "the new model lacks it"});
  }
  parallel_for(others.size(), resolve_threads(work.threads, others.size()), [&](std::size_t i) {
    stop_if_cancelled(work.cancel);
    Other& other = others[i];
    other.changed = !is_same(base.read(other.before), next.read(other.after));
  });
  for (Other& other : others)
    if (other.changed) out.left_out.push_back(std::move(other.tensor));
  find_transposed(next, out.tensors);
  return out;
}

}  // namespace thalia::formats::weight_sync
