#include "cli/print/tensor_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/print/print.h"

namespace thalia::cli {
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

void TensorTotals::add(const ListedTensor& tensor) {
  OfDType& of_dtype = dtypes_[static_cast<std::uint8_t>(tensor.layout.dtype)];
  ++of_dtype.tensors;
  of_dtype.elements += tensor.elements();
  of_dtype.logical_bytes += tensor.logical_bytes;
  ++tensors_;
  elements_ += tensor.elements();
  if (tensor.is_parameter()) parameters_ += tensor.elements();
  logical_bytes_ += tensor.logical_bytes;
  add_to(stored_bytes_, tensor.stored_bytes);
  add_to(value_bytes_, tensor.value_bytes());
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

template <typename Visit>
void TensorTotals::for_each_dtype(const Visit& visit) const {
  std::array<std::uint8_t, kDTypeCount> order;
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  // Stable, so that dtypes of as many elements keep the order of their codes.
  std::stable_sort(order.begin(), order.end(), [&](std::uint8_t a, std::uint8_t b) {
    return dtypes_[a].elements > dtypes_[b].elements;
  });
  for (const std::uint8_t code : order) {
    if (dtypes_[code].tensors > 0) visit(dtype_name(static_cast<DType>(code)), dtypes_[code]);
  }
}

std::vector<std::string_view> TensorTotals::codec_names() const {
  std::vector<std::string_view> names;
  for (const Codec codec : codecs_) names.push_back(codec_name(codec));
  return names;
}

std::string TensorTotals::dtypes_text() const {
  std::string text;
  for_each_dtype([&](std::string_view name, const OfDType& of) {
    if (!text.empty()) text += ", ";
    text += name;
    if (elements_ != 0) {
      text += fmt::format(" {:.1f} %",
                          100 * static_cast<double>(of.elements) / static_cast<double>(elements_));
    }
    text += fmt::format(" ({}, {})", counted(of.tensors, "tensor", "tensors"),
                        human_bytes(of.logical_bytes));
  });
  return text.empty() ? "none" : text;
}

void TensorTotals::add_dtypes(JsonWriter& json) const {
  json.begin_array();
  for_each_dtype([&](std::string_view name, const OfDType& of) {
    json.begin_object().member("dtype", name).member("tensor_count", of.tensors);
    json.member("elements", of.elements).member("logical_bytes", of.logical_bytes).end_object();
  });
  json.end_array();
}

std::string TensorTotals::compression_text() const {
  if (compressed_ == 0) return "none";
  std::string text = fmt::format("{} ({} of {}", fmt::join(codec_names(), ", "),
                                 grouped(compressed_), counted(tensors_, "tensor", "tensors"));
  if (stored_bytes_) {
    text += fmt::format(", {} for {}, {}", human_bytes(*stored_bytes_), human_bytes(logical_bytes_),
                        ratio_text(logical_bytes_, *stored_bytes_));
  }
  return text + ")";
}

}  // namespace thalia::cli
