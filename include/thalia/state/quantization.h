// Quantization: weights as codes of a few bits. Lossy, and marked so in the file.
//
//   auto result = thalia::quantize_file("model.thalia", "small.thalia",
//                                       {.bits = 4, .group_size = 64, .exclude = {"*.embed*"}});
//   for (const auto& tensor : result.quantized) report(tensor.name, tensor.relative_error);
//
// A quantized tensor is loaded as the type that it had: by BrainCheckpoint, Tensor::from() and
// TensorView::read_dense(). docs/format/format.md, "quantized".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/result.h"
#include "thalia/state/tensor_value.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

class Reader;

/// What a file says of a quantized tensor.
struct TensorQuantization {
  unsigned bits = 0;             ///< of every code; 0 where each group has a width of its own
  double mean_bits = 0;          ///< of a code; parameters are not counted
  std::uint32_t group_size = 0;  ///< elements that share parameters; 0: all
  double max_error = 0;          ///< |number - what comes out|, when it was quantized
  double rms_error = 0;
  std::uint16_t lossy_generation =
      0;  ///< how often the numbers were rounded so, this time included
  std::uint16_t max_lossy_generations = 0;
  Digest128 content_hash;  ///< of the elements that come out
};

/// nullopt of a tensor that is not quantized. Reads no payload. @throws FormatError.
std::optional<TensorQuantization> quantization_of(const TensorView& tensor);

/// A tensor that may be quantized.
struct QuantizationTarget {
  std::string path;  ///< dotted, from the state's root: "regions.cortex.weights.w_ff"
  std::string_view region;
  std::string_view name;
  Role role = Role::weights;
  DType dtype = DType::f32;
  Shape shape{};
};

/// Which tensors, and how. Only dense tensors of f32, f16, f64 and bf16 can be quantized; those
/// with NaN or infinities are left as they are. Matrices of connections are always left as they
/// are.
struct QuantizationOptions {
  /// The size of a code: 1 to 8. With groups of different widths the mean, which need not be whole.
  double bits = 8;
  /// Elements that share a minimum and a scale: a multiple of 8 up to 65,536, or 0 for all.
  /// Parameters add 64 bits a group (128 of f64).
  std::uint32_t group_size = 128;
  /// Each group gets a width of its own, 0 to 8 bits, so that the sum of sensitivity² × error² over
  /// the tensor is the least that its mean of `bits` allows: steps of width are taken in the order
  /// of what they gain a bit, on the lower convex hull of each group's measured errors (Shoham and
  /// Gersho, 1988). A tensor with sensitivities is treated so in any case.
  bool adaptive = false;
  /// The sensitivity of each weight, as a tensor with as many elements in the same order, and of
  /// any of the four types. Signs are not looked at. nullopt: none are known, all weights count
  /// alike. That bits should go where the loss is sensitive is DynaQuant's idea (arXiv:2306.11800),
  /// which sorts weights into classes by quantiles where this weighs each error.
  std::function<std::optional<Tensor>(const QuantizationTarget&)> sensitivity{};
  /// Patterns as in a PrecisionPattern. If there are some, tensors that fit one are quantized,
  /// whatever their role; else weights and embeddings (likely_role() of thalia/types.h).
  std::vector<std::string> include{};
  std::vector<std::string> exclude{};  ///< counts before `include`
  std::uint64_t min_elements = 1024;   ///< smaller tensors are left as they are
  /// Bound on lossy generations. A bound that the state carries from an earlier loss counts too,
  /// the lower one of the two. nullopt: that one, or 10.
  std::optional<std::uint16_t> max_generations{};
};

/// @throws UsageError (bad_argument) naming the option and what it can be.
void check_quantization(const QuantizationOptions& options);

/// What became of a tensor. `relative_error` is rms_error / root of the numbers' mean square; 0
/// where all are 0.
struct QuantizedTensorReport : TensorLoss {
  std::uint64_t elements = 0;
  std::uint64_t dense_bytes = 0;      ///< of the elements
  std::uint64_t quantized_bytes = 0;  ///< codes and parameters, before compression
};

struct QuantizeTensorOptions {
  double bits = 8;  ///< this and the next two as QuantizationOptions'
  std::uint32_t group_size = 128;
  bool adaptive = false;
  unsigned threads = 0;  ///< 0: one a core
};

/// A tensor as codes in memory, as a file holds it.
struct QuantizedTensor {
  DType dtype = DType::f32;  ///< of the elements that come out
  Shape shape{};
  unsigned bits = 0;  ///< as TensorQuantization's
  std::uint32_t group_size = 0;
  std::vector<std::byte> bytes{};  ///< the arrays: docs/format/format.md, "quantized"
  QuantizedTensorReport report{};  ///< without names

  /// Points into `bytes`.
  QuantizedView arrays() const;
};

/// Quantizes one tensor, for who stores it himself. @param sensitivity none, or as
/// QuantizationOptions::sensitivity gives it. nullopt where a number is NaN or infinite, or a
/// group's lie too far apart. @throws UsageError for an option that cannot be, a tensor that is not
/// dense or of another type than f32, f16, f64 and bf16, and sensitivities of another number of
/// elements.
std::optional<QuantizedTensor> quantize(const Tensor& tensor,
                                        const QuantizeTensorOptions& options = {},
                                        const Tensor* sensitivity = nullptr);

/// Restores elements of quantize(), TensorView::quantized() or a stream of codes, as every reader
/// of the format does. @param out `elements` of `dtype`. @throws UsageError for arrays that do not
/// fit each other or `elements`, or another size of `out`; FormatError naming the array and the
/// group for a width or parameter that cannot be.
void dequantize(DType dtype, std::uint64_t elements, const QuantizedView& arrays,
                MutableByteSpan out, unsigned threads = 0);

struct QuantizeFileOptions {
  SaveOptions save{};
  InputOptions input{};
};

struct QuantizeFileResult : RewriteResult {
  std::vector<QuantizedTensorReport> quantized;  ///< in the order of the file
  std::vector<std::string> not_finite;  ///< paths of those left for their NaN or infinities
  std::uint16_t lossy_generation = 0;   ///< of the output; 0 where nothing was quantized
  std::uint16_t max_lossy_generations = 0;
};

/// Writes `input` to `output` with tensors quantized; all others are taken over as they are stored,
/// quantized ones too. The tensors that are quantized are restored in memory and kept there as
/// codes until the file is written. An output that is there is replaced as by a save. A delta, and
/// a model in several files, is read as a ResolvedFile of the output's folder.
/// @throws UsageError for a bad option, a pattern that fits no tensor (not_found), sensitivities of
/// another number of elements, a state that went through its bound of lossy generations already, or
/// an output that is one of several files that are read; as reading and saving do.
QuantizeFileResult quantize_file(const std::filesystem::path& input,
                                 const std::filesystem::path& output,
                                 const QuantizationOptions& options,
                                 const QuantizeFileOptions& file_options = {});
/// The same of a full file that is open. @throws as above; UnsupportedError for a delta.
QuantizeFileResult quantize_file(const Reader& input, const std::filesystem::path& output,
                                 const QuantizationOptions& options,
                                 const QuantizeFileOptions& file_options = {});

}  // namespace thalia
