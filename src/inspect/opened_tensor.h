// One tensor as cat sees it, whichever format its file has.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "inspect/sparse_entries.h"
#include "thalia/bytes.h"
#include "thalia/delta.h"
#include "thalia/tensor.h"
#include "thalia/tensor_layout.h"
#include "thalia/tensor_value.h"

namespace thalia::inspect {

struct OpenedTensor {
  std::string region;  ///< empty where the format has none
  std::string name;
  TensorLayout layout{};

  /// Reads a part densely, row-major, packed as the dtype is; one range a dimension. Holds the file
  /// open.
  std::function<void(std::span<const SliceRange>, MutableByteSpan)> read;
  /// Of csr and coo only; their tensor() has the bytes in its own encoding.
  std::shared_ptr<const SparseEntries> entries;
};

/// One that is quantized is restored whole. @throws what reading it throws.
OpenedTensor source_of(const TensorView& view, const ReadLimits& limits);
/// A tensor of the full state that a delta and its bases make up.
OpenedTensor source_of(const ChainReader& chain, const TensorView& view, const ReadLimits& limits);
/// Told which bytes of a tensor are read next.
using BeforeRead = std::function<void(const Tensor& tensor, ByteSpan part)>;
OpenedTensor source_of(const Tensor& tensor, std::string region, std::string name,
                       const BeforeRead& before_read = {});

/// `name` is "region/tensor", or the tensor's own name where only one has it; as it is, or as ls
/// escapes it. @throws UsageError (not_found, bad_argument); what opening the file throws.
OpenedTensor open_tensor(const std::filesystem::path& path, std::string_view name,
                         const ChainOptions& options);

}  // namespace thalia::inspect
