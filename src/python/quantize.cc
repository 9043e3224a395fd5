// Weights of a file as codes of a few bits.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "inspect/sensitivity.h"
#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "thalia/state/quantization.h"

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

}  // namespace

void bind_quantize(nb::module_& module) {
  bind_quantize_results(module);
  module.def("quantize", run_quantize, nb::arg("path"), nb::arg("target"), nb::arg("bits"),
             nb::arg("group_size"), nb::arg("adaptive"), nb::arg("include"), nb::arg("exclude"),
             nb::arg("min_elements"), nb::arg("max_generations").none(),
             nb::arg("sensitivity").none(), nb::arg("access"), nb::arg("save"));
}

}  // namespace thalia::python
