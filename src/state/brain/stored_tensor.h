// A tensor of a state as a file holds it, and back. docs/format/states.md, "States".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "codec/float/loss.h"
#include "io/memory/allocation_limit.h"
#include "json/writer.h"
#include "thalia/state/brain.h"
#include "thalia/state/tensor_value.h"
#include "thalia/state/value.h"

namespace thalia::state {

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
  bool check_shapes = true;        ///< of regions, as docs/format/states.md asks
  bool roles_by_name = false;      ///< as BrainSaveOptions has it
};

struct StoredTensor {
  TensorSpec spec;
  Tensor tensor;  ///< as it is stored: its layout is the spec's; if it is quantized, before that
  std::shared_ptr<const QuantizedPayload> quantized{};  ///< what is stored in the tensor's place
  // What it was before.
  std::optional<Encoding> was_encoding{};  ///< if it was another
  std::optional<DType> was_dtype{};        ///< if one was chosen for it, be it the same
  codec::ConversionLoss loss{};            ///< what that cost
};

/// `path` is what choose_dtype is asked with. The tensor shares its bytes with the given one if
/// it is stored as it is.
StoredTensor store_tensor(const Tensor& tensor, std::string name, Role role,
                          const std::string& path, const StoreOptions& options);

/// True if write_converted() has something to tell.
bool was_converted(const StoredTensor& tensor) noexcept;
/// Writes the members `_dense`, `_encoding` and `_dtype`, as far as there is something to tell.
void write_converted(JsonWriter& json, const StoredTensor& tensor);

/// Reads a tensor; what it allocates counts in the budget, which may be kept.
using FetchTensor =
    std::function<Tensor(const TensorView&, const std::shared_ptr<io::MemoryBudget>&)>;

/// How tensors of a file become those of a state.
struct LoadContext {
  /// @param stored_bytes of the file, for the limit of what its tensors may take together.
  LoadContext(const StateLoadOptions& load, std::uint64_t stored_bytes, FetchTensor fetched = {})
      : options(load),
        fetch(std::move(fetched)),
        budget(std::make_shared<io::MemoryBudget>(load.input.limits, stored_bytes)) {}

  StateLoadOptions options;
  /// False: nothing of a tensor is read, and an empty one takes its place. What the texts say
  /// of it is checked.
  bool read_tensors = true;
  /// Tensors may have become narrower by a precision policy that only the metadata names.
  bool policy_was_applied = false;
  /// Gives the bytes of a tensor, for a delta what its chain reads, and counts them; none:
  /// Tensor::from().
  FetchTensor fetch;
  /// The memory for all tensors of the file. Copies of a context count together, and so do regions
  /// that are read later.
  std::shared_ptr<io::MemoryBudget> budget;
};

/// The tensor of a file as it was before it was stored, where the options want that. `reported` is
/// an object with the members that write_converted() wrote, or null; if it does not tell the
/// element type and a policy was applied, f16 and bf16 become f32. @throws what `fetch` throws;
/// FormatError for a bad member, and for a dense tensor larger than the limits allow.
Tensor load_tensor(const TensorView& view, const Value& reported, const LoadContext& context);

/// True if the metadata names a precision policy by which tensors may have become narrower.
bool has_narrowing_policy(const Value& metadata) noexcept;

}  // namespace thalia::state
