#include "inspect/tensor_totals.h"

#include <algorithm>
#include <functional>

namespace thalia::inspect {
namespace {

// A sum with something unknown is unknown.
void add_to(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& bytes) {
  if (sum && bytes) {
    *sum += *bytes;
  } else {
    sum.reset();
  }
}

}  // namespace

std::optional<std::uint64_t> value_bytes_of(const AnyTensor& tensor) noexcept {
  switch (tensor.layout.encoding) {
    case Encoding::dense:
    case Encoding::csr:
    case Encoding::coo:
    case Encoding::xor_base:
      return tensor.logical_bytes;
    case Encoding::quantized:
      return tensor.layout.shape.byte_length(tensor.layout.dtype);
    case Encoding::same_as_base:
    case Encoding::sparse_delta:
    case Encoding::low_rank_delta:
      break;
  }
  return std::nullopt;
}

void TensorTotals::add(const AnyTensor& tensor) {
  DTypeTotal& of_dtype = dtypes_[static_cast<std::uint8_t>(tensor.layout.dtype)];
  of_dtype.dtype = tensor.layout.dtype;
  ++of_dtype.tensors;
  of_dtype.elements += tensor.elements();
  of_dtype.logical_bytes += tensor.logical_bytes;
  ++tensors_;
  elements_ += tensor.elements();
  parameters_.add(tensor);
  logical_bytes_ += tensor.logical_bytes;
  add_to(stored_bytes_, tensor.stored_bytes);
  add_to(value_bytes_, value_bytes_of(tensor));
  if (tensor.is_compressed()) ++compressed_;
  if (tensor.bits) ++quantized_;
  if (tensor.quantization) {
    const TensorQuantization& known = *tensor.quantization;
    lossy_generation_ = std::max(lossy_generation_.value_or(0), known.lossy_generation);
    max_lossy_generations_ =
        std::max(max_lossy_generations_.value_or(0), known.max_lossy_generations);
  }
  codecs_.insert(tensor.codecs.begin(), tensor.codecs.end());
}

std::vector<DTypeTotal> TensorTotals::dtypes() const {
  std::vector<DTypeTotal> there;
  for (const DTypeTotal& total : dtypes_)
    if (total.tensors > 0) there.push_back(total);
  // Stable, so that dtypes of as many elements keep the order of their codes.
  std::ranges::stable_sort(there, std::ranges::greater(), &DTypeTotal::elements);
  return there;
}

std::vector<std::string_view> TensorTotals::codec_names() const {
  std::vector<std::string_view> names;
  for (const Codec codec : codecs_) names.push_back(codec_name(codec));
  return names;
}

}  // namespace thalia::inspect
