// The rules for the index arrays of csr and coo tensors. docs/format/format.md, "Rules for csr and
// coo". Shared by the writer, the views and verify.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "thalia/types.h"

namespace thalia::container {

/// What is wrong, in words that name the array, the position and what was expected; nullopt if
/// nothing is.
template <typename Index>
std::optional<std::string> find_csr_fault(const Shape& shape, std::uint64_t nnz,
                                          std::span<const Index> row_pointers,
                                          std::span<const Index> column_indices);
template <typename Index>
std::optional<std::string> find_coo_fault(const Shape& shape, std::uint64_t nnz,
                                          std::span<const Index> indices);

}  // namespace thalia::container
