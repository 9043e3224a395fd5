#include "inspect/listed_tensor.h"

#include <algorithm>
#include <limits>

#include "thalia/tensor_role.h"

namespace thalia::inspect {

std::uint64_t ListedTensor::elements() const noexcept {
  if (is_sparse(layout.encoding)) return layout.nnz;
  return layout.shape.element_count().value_or(std::numeric_limits<std::uint64_t>::max());
}

bool ListedTensor::is_compressed() const noexcept {
  return std::ranges::any_of(codecs, [](Codec codec) { return codec != Codec::none; });
}

bool ListedTensor::is_parameter() const {
  const unsigned rank = layout.shape.rank();
  const Role known = role ? likely_role(*role, name, rank) : role_of_name(name, rank);
  return is_weights(known) || known == Role::bias || known == Role::normalization;
}

std::optional<std::uint64_t> ListedTensor::value_bytes() const noexcept {
  switch (layout.encoding) {
    case Encoding::dense:
    case Encoding::csr:
    case Encoding::coo:
    case Encoding::xor_base:
      return logical_bytes;
    case Encoding::quantized:
      return layout.shape.byte_length(layout.dtype);
    case Encoding::same_as_base:
    case Encoding::sparse_delta:
    case Encoding::low_rank_delta:
      break;
  }
  return std::nullopt;
}

}  // namespace thalia::inspect
