// Weights of a file, and the numbers of one tensor, as codes of a few bits.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "inspect/sensitivity.h"
#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "thalia/state/quantization.h"
#include "thalia/state/tensor_value.h"
#include "thalia/tensor.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using Patterns = std::vector<std::string>;

QuantizeFileResult run_quantize(const Path& path, const Path& target, double bits,
                                std::uint32_t group_size, bool adaptive, Patterns include,
                                Patterns exclude, std::uint64_t min_elements,
                                std::optional<std::uint16_t> max_generations,
                                const std::optional<Path>& sensitivity, const std::string& access,
                                const Members& save) {
  QuantizationOptions options{.bits = bits,
                              .group_size = group_size,
                              .adaptive = adaptive,
                              .include = std::move(include),
                              .exclude = std::move(exclude),
                              .min_elements = min_elements,
                              .max_generations = max_generations};
  QuantizeFileOptions file{.save = save_options(save), .input = {.access = access_of(access)}};
  const ReadOptions read = read_options(access, "on_first_touch", file.save.work.threads);
  return interruptible([&](const std::stop_token& stop) {
    file.save.work.cancel = stop;
    if (sensitivity) options.sensitivity = inspect::sensitivities_of(*sensitivity, read);
    return quantize_file(path, target, options, file);
  });
}

void bind_quantize_results(nb::module_& module) {
  using Tensor = QuantizedTensorReport;
  bind_result<Tensor>(module, "QuantizedTensor", "What became of a tensor.",
                      field("region", &Tensor::region), field("name", &Tensor::name),
                      field("dtype", &Tensor::dtype, "As which it is loaded: the one that it had."),
                      field("elements", &Tensor::elements),
                      field("bits", &Tensor::bits, "The size of a code, on average."),
                      field("dense_bytes", &Tensor::dense_bytes, "The size of the elements."),
                      field("quantized_bytes", &Tensor::quantized_bytes,
                            "The size of codes and parameters, before compression."),
                      field("max_error", &Tensor::max_error),
                      field("rms_error", &Tensor::rms_error, "The root of the mean squared error."),
                      field("relative_error", &Tensor::relative_error,
                            "That, to the root of the mean squared number."));
  using Result = QuantizeFileResult;
  bind_result<Result>(
      module, "QuantizeResult", "What quantize() did.", field("input_bytes", &Result::input_bytes),
      field("output_bytes", &Result::output_bytes), field("tensors", &Result::tensors),
      field("quantized", &Result::quantized, "In the order of the file."),
      field("not_finite", &Result::not_finite,
            "Tensors that were left as they are, for numbers that are not finite or too far "
            "apart."),
      field("lossy_generation", &Result::lossy_generation,
            "How often weights were rounded so; 0 where nothing was quantized."),
      field("max_lossy_generations", &Result::max_lossy_generations),
      field("seconds", &Result::seconds));
}

// A tensor as codes, and how many it has of what.
class TensorCodes {
 public:
  // @throws UsageError for bytes that are not those of the shape.
  explicit TensorCodes(QuantizedTensor tensor)
      : tensor_(std::make_shared<const QuantizedTensor>(std::move(tensor))) {
    arrays();
  }

  const QuantizedTensor& tensor() const { return *tensor_; }
  QuantizedView arrays() const { return tensor_->arrays(); }
  Payload payload(ByteSpan bytes) const { return {bytes, tensor_}; }

  OwnedBytes restored(unsigned threads) const {
    const std::uint64_t elements = tensor_->shape.element_count().value_or(0);
    const auto out =
        std::make_shared<std::vector<std::byte>>(elements * dtype_bits(tensor_->dtype) / 8);
    interruptible([&](const std::stop_token&) {
      dequantize(tensor_->dtype, elements, arrays(), *out, threads);
    });
    return {*out, out};
  }

 private:
  std::shared_ptr<const QuantizedTensor> tensor_;
};

// (dtype, shape, buffer)
using TensorParts = TupleWith<std::string, Shape, nb::any>;

void check_codes(double bits, std::uint32_t group_size, bool adaptive) {
  check_quantization({.bits = bits, .group_size = group_size, .adaptive = adaptive});
}

// Codes that were kept by their payload and what else Python sees of them.
TensorCodes kept_codes(const std::string& dtype, const Shape& shape, unsigned bits,
                       std::uint32_t group_size, nb::handle payload, double mean_bits,
                       double max_error, double rms_error) {
  const HeldBuffer held(payload, HeldBuffer::Use::read);
  QuantizedTensor tensor{.dtype = dtype_of(dtype),
                         .shape = shape,
                         .bits = bits,
                         .group_size = group_size,
                         .bytes = {held.bytes().begin(), held.bytes().end()}};
  tensor.report.bits = mean_bits;
  tensor.report.max_error = max_error;
  tensor.report.rms_error = rms_error;
  return TensorCodes(std::move(tensor));
}

// None where a number is not finite.
std::optional<TensorCodes> quantize_tensor(const TensorParts& tensor,
                                           const std::optional<TensorParts>& sensitivity,
                                           double bits, std::uint32_t group_size, bool adaptive,
                                           unsigned threads) {
  const HeldBuffer held(tensor[2], HeldBuffer::Use::read);
  const Tensor numbers = tensor_in(held, tensor[0], tensor[1]);
  std::optional<HeldBuffer> held_too;
  std::optional<Tensor> weights;
  if (sensitivity) {
    held_too.emplace((*sensitivity)[2], HeldBuffer::Use::read);
    weights = tensor_in(*held_too, (*sensitivity)[0], (*sensitivity)[1]);
  }
  auto made = interruptible([&](const std::stop_token&) {
    return quantize(
        numbers,
        QuantizeTensorOptions{
            .bits = bits, .group_size = group_size, .adaptive = adaptive, .threads = threads},
        weights ? &*weights : nullptr);
  });
  if (!made) return std::nullopt;
  return TensorCodes(*std::move(made));
}

void bind_codes(nb::module_& module) {
  nb::class_<TensorCodes>(module, "TensorCodes")
      .def_prop_ro("dtype", [](const TensorCodes& self) { return dtype_name(self.tensor().dtype); })
      .def_prop_ro("shape",
                   [](const TensorCodes& self) -> const Shape& { return self.tensor().shape; })
      .def_prop_ro("bits", [](const TensorCodes& self) { return self.tensor().bits; })
      .def_prop_ro("group_size", [](const TensorCodes& self) { return self.tensor().group_size; })
      .def_prop_ro("mean_bits", [](const TensorCodes& self) { return self.tensor().report.bits; })
      .def_prop_ro("max_error",
                   [](const TensorCodes& self) { return self.tensor().report.max_error; })
      .def_prop_ro("rms_error",
                   [](const TensorCodes& self) { return self.tensor().report.rms_error; })
      .def_prop_ro(
          "parameter_dtype",
          [](const TensorCodes& self) { return dtype_name(self.arrays().parameter_dtype); })
      .def_prop_ro(
          "widths",
          [](const TensorCodes& self) { return self.payload(std::as_bytes(self.arrays().widths)); })
      .def_prop_ro("minima",
                   [](const TensorCodes& self) { return self.payload(self.arrays().minima); })
      .def_prop_ro("scales",
                   [](const TensorCodes& self) { return self.payload(self.arrays().scales); })
      .def_prop_ro("codes",
                   [](const TensorCodes& self) { return self.payload(self.arrays().codes); })
      .def_prop_ro("payload",
                   [](const TensorCodes& self) { return self.payload(self.tensor().bytes); })
      .def("restored", &TensorCodes::restored, nb::arg("threads"));
  module.def("check_codes", check_codes, nb::arg("bits"), nb::arg("group_size"),
             nb::arg("adaptive"));
  module.def("quantize_tensor", quantize_tensor, nb::arg("tensor"), nb::arg("sensitivity").none(),
             nb::arg("bits"), nb::arg("group_size"), nb::arg("adaptive"), nb::arg("threads"));
  module.def("kept_codes", kept_codes, nb::arg("dtype"), nb::arg("shape"), nb::arg("bits"),
             nb::arg("group_size"), nb::arg("payload"), nb::arg("mean_bits"), nb::arg("max_error"),
             nb::arg("rms_error"));
}

}  // namespace

void bind_quantize(nb::module_& module) {
  bind_quantize_results(module);
  bind_codes(module);
  module.def("quantize", run_quantize, nb::arg("path"), nb::arg("target"), nb::arg("bits"),
             nb::arg("group_size"), nb::arg("adaptive"), nb::arg("include"), nb::arg("exclude"),
             nb::arg("min_elements"), nb::arg("max_generations").none(),
             nb::arg("sensitivity").none(), nb::arg("access"), nb::arg("save"));
}

}  // namespace thalia::python
