// A tensor of a state as a file holds it, and back. docs/states.md, "States".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "codec/float/loss.h"
#include "json/writer.h"
#include "thalia/state_options.h"
#include "thalia/tensor_value.h"
#include "thalia/value.h"

namespace thalia::model {

/// The element type in which a tensor is to be stored. The path is the dotted one from the state's
/// root: "regions.cortex.weights.w_ff".
using ChooseDType = std::function<DType(const std::string& path, Role role, const Tensor& tensor)>;

class Quantizer;
struct QuantizedPayload;

struct StoreOptions {
  SparseStorage sparse = SparseStorage::automatic;
  bool include_homeostatic = true;
  ChooseDType choose_dtype{};      ///< none: each in its own
  unsigned threads = 0;            ///< that convert elements; 0: one a core
  Quantizer* quantizer = nullptr;  ///< of tensors of regions; none: nothing is quantized
  bool check_shapes = true;        ///< as check_shapes() does
};

struct StoredTensor {
  TensorSpec spec;
  Tensor tensor;  ///< as it is stored: its layout is the spec's; where it is quantized, before that
  std::shared_ptr<const QuantizedPayload> quantized{};  ///< what is stored in the tensor's place
  // What it was before.
  std::optional<Encoding> was_encoding{};  ///< where it was another
  std::optional<DType> was_dtype{};        ///< where one was chosen for it, be it the same
  codec::ConversionLoss loss{};            ///< what that cost
};

/// `path` is what choose_dtype is asked with. The tensor shares its bytes with the given one where
/// it is stored as it is.
StoredTensor store_tensor(const Tensor& tensor, std::string name, Role role,
                          const std::string& path, const StoreOptions& options);

/// True where write_origin() has something to tell.
bool has_origin(const StoredTensor& tensor) noexcept;
/// Writes the members `_dense`, `_encoding` and `_dtype`, as far as there is something to tell.
void write_origin(JsonWriter& json, const StoredTensor& tensor);

/// How tensors of a file become those of a state.
struct LoadContext {
  StateLoadOptions options{};
  /// Tensors may have become narrower by a precision policy that only the metadata tells of.
  bool policy_was_applied = false;
  /// Gives the bytes of a tensor, for a delta what its chain reads; none: Tensor::from().
  std::function<Tensor(const TensorView&)> fetch{};
  /// Bytes of the file, and what was allocated for its tensors so far. Copies of a context count
  /// together, and so do regions that are read later.
  std::uint64_t stored_bytes = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> allocated =
      std::make_shared<std::atomic<std::uint64_t>>(0);

  /// Counts bytes that are about to be allocated. @throws FormatError (limit_exceeded).
  void allocate(std::uint64_t bytes) const;
};

/// The tensor of a file as it was before it was stored, where the options want that. `origin` is an
/// object with the members that write_origin() wrote, or null; where it does not tell the element
/// type and a policy was applied, f16 and bf16 become f32. @throws what `fetch` throws; FormatError
/// for a bad member, and for a dense tensor larger than the limits allow.
Tensor load_tensor(const TensorView& view, const Value& origin, const LoadContext& context);

/// True where the metadata names a precision policy by which tensors may have become narrower.
bool has_narrowing_policy(const Value& metadata) noexcept;

}  // namespace thalia::model
