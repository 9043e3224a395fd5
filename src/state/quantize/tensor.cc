// One tensor by itself, in the arrays that a file would hold of it.
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/float/conversion.h"
#include "container/read/quantized_arrays.h"
#include "format/payload.h"
#include "state/quantize/importance.h"
#include "state/quantize/payload.h"
#include "thalia/state/quantization.h"

namespace thalia {
namespace {

void require_quantizable(const Tensor& tensor) {
  if (tensor.is_dense() && codec::is_convertible(tensor.dtype())) return;
  fail_argument(ErrorCode::dtype_mismatch, "tensor",
                fmt::format("{} {}", encoding_name(tensor.encoding()), dtype_name(tensor.dtype())),
                "dense f32, f64, f16 or bf16");
}

}  // namespace

QuantizedView QuantizedTensor::arrays() const {
  const std::uint64_t elements = shape.element_count().value_or(0);
  // The codes are what is left after the other arrays, whose lengths do not depend on them.
  auto parts = format::quantized_parts(dtype, shape, bits, group_size, 0);
  if (!parts || parts->codes.offset > bytes.size()) {
    fail_argument(ErrorCode::size_mismatch, "bytes", std::to_string(bytes.size()),
                  "those of the arrays of the tensor's shape");
  }
  parts->codes.length = bytes.size() - parts->codes.offset;
  return container::quantized_view(dtype, bits, group_size == 0 ? elements : group_size, *parts,
                                   bytes);
}

std::optional<QuantizedTensor> quantize(const Tensor& tensor, const QuantizeTensorOptions& options,
                                        const Tensor* sensitivity) {
  const QuantizationOptions all{
      .bits = options.bits, .group_size = options.group_size, .adaptive = options.adaptive};
  check_quantization(all);
  require_quantizable(tensor);
  std::vector<double> importance;
  if (sensitivity != nullptr)
    importance = state::importance_from(*sensitivity, tensor.element_count());
  auto payload =
      state::quantize_payload(tensor.dtype(), tensor.shape(), tensor.bytes(), all, importance,
                              {.number = 1, .most = 1}, resolve_threads(options.threads));
  if (!payload) return std::nullopt;
  return QuantizedTensor{.dtype = tensor.dtype(),
                         .shape = tensor.shape(),
                         .bits = payload->side.bits,
                         .group_size = payload->side.group_size,
                         .bytes = std::move(payload->bytes),
                         .report = std::move(payload->report)};
}

void dequantize(DType dtype, std::uint64_t elements, const QuantizedView& arrays,
                MutableByteSpan out, unsigned threads) {
  if (!codec::is_convertible(dtype)) {
    fail_argument(ErrorCode::dtype_mismatch, "dtype", std::string(dtype_name(dtype)),
                  "f32, f64, f16 or bf16");
  }
  const container::QuantizedArrays checked(dtype, elements, arrays);
  const std::uint64_t width = dtype_bits(dtype) / 8;
  if (out.size() % width != 0 || out.size() / width != elements) {
    fail_argument(ErrorCode::size_mismatch, "out", fmt::format("{} bytes", out.size()),
                  fmt::format("{} elements of {} bytes", elements, width));
  }
  checked.restore_all(out, resolve_threads(threads));
}

}  // namespace thalia
