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
#include "thalia/state/quantization.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using Patterns = std::vector<std::string>;

Members quantized_dict(const QuantizedTensorReport& tensor) {
  nb::dict out;
  out["region"] = text_object(tensor.region);
  out["name"] = text_object(tensor.name);
  out["dtype"] = dtype_name(tensor.dtype);
  out["elements"] = tensor.elements;
  out["bits"] = tensor.bits;
  out["dense_bytes"] = tensor.dense_bytes;
  out["quantized_bytes"] = tensor.quantized_bytes;
  out["max_error"] = tensor.max_error;
  out["rms_error"] = tensor.rms_error;
  out["relative_error"] = tensor.relative_error;
  return out;
}

Members run_quantize(const Path& path, const Path& target, double bits, std::uint32_t group_size,
                     bool adaptive, Patterns include, Patterns exclude, std::uint64_t min_elements,
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
  const QuantizeFileResult result = interruptible([&](const std::stop_token& stop) {
    file.save.work.cancel = stop;
    if (sensitivity) options.sensitivity = inspect::sensitivities_of(*sensitivity, read);
    return quantize_file(path, target, options, file);
  });
  nb::list quantized;
  for (const QuantizedTensorReport& tensor : result.quantized)
    quantized.append(quantized_dict(tensor));
  nb::dict out;
  out["input_bytes"] = result.input_bytes;
  out["output_bytes"] = result.output_bytes;
  out["tensors"] = result.tensors;
  out["quantized"] = quantized;
  out["not_finite"] = text_list(result.not_finite);
  out["lossy_generation"] = result.lossy_generation;
  out["max_lossy_generations"] = result.max_lossy_generations;
  out["seconds"] = result.seconds;
  return out;
}

}  // namespace

void bind_quantize(nb::module_& module) {
  module.def("quantize", run_quantize, nb::arg("path"), nb::arg("target"), nb::arg("bits"),
             nb::arg("group_size"), nb::arg("adaptive"), nb::arg("include"), nb::arg("exclude"),
             nb::arg("min_elements"), nb::arg("max_generations").none(),
             nb::arg("sensitivity").none(), nb::arg("access"), nb::arg("save"));
}

}  // namespace thalia::python
