#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <string>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "formats/weight_sync/weight_writers.h"

namespace thalia::formats::weight_sync {
namespace {

[[noreturn]] void refuse_model(std::string_view tensor, std::string value, std::string bound,
                               std::string message) {
  throw UsageError(
      ErrorCode::bad_argument, std::move(message),
      {.tensor = printable(tensor), .value = std::move(value), .bound = std::move(bound)});
}

std::string words(const TensorLayout& layout) {
  return fmt::format("{} {}", dtype_name(layout.dtype), layout.shape.to_string());
}

// The tensor of the base that is the same one of another time.
std::size_t place_in(const OpenedFile& base, const AnyTensor& tensor) {
  const auto place = base.find(tensor.name);
  if (!place)
    refuse_model(tensor.name, "", "", "the base lacks this tensor, and a delta can add none");
  const TensorLayout& before = base.stored(*place).layout;
  if (tensor.layout.encoding != Encoding::dense)
    refuse_model(tensor.name, std::string(encoding_name(tensor.layout.encoding)), "dense", "");
  if (before != tensor.layout)
    refuse_model(tensor.name, words(tensor.layout), words(before),
                 "not the type or shape of the base");
  return *place;
}

}  // namespace

ModelPair::ModelPair(const OpenedFile& base, const OpenedFile& next) : base_(base), next_(next) {
  for (std::size_t i = 0; i < next.tensor_count(); ++i)
    places_.push_back(place_in(base, next.stored(i)));
  if (base.tensor_count() == places_.size()) return;
  for (std::size_t i = 0; i < base.tensor_count(); ++i) {
    const AnyTensor tensor = base.stored(i);
    if (!next.find(tensor.name))
      refuse_model(tensor.name, "", "",
                   "the new model lacks this tensor, and a delta can remove none");
  }
}

void ModelPair::compare(std::span<const std::size_t> tensors, const Work& work,
                        const Compare& compare) const {
  parallel_for(tensors.size(), resolve_threads(work.threads, tensors.size()), [&](std::size_t k) {
    stop_if_cancelled(work.cancel);
    const std::size_t i = tensors[k];
    const Tensor before = base_.read(places_[i]);
    const Tensor after = next_.read(i);
    with_tensor(printable(next_.stored(i).name),
                [&] { compare(i, before.bytes(), after.bytes()); });
  });
}

void ModelPair::compare(const Work& work, const Compare& compare) const {
  std::vector<std::size_t> all(places_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  this->compare(all, work, compare);
}

}  // namespace thalia::formats::weight_sync
