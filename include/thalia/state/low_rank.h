// Changes of matrices as a few products of vectors: lossy deltas. What to ask write_delta() for,
// and what it says of each. docs/format/deltas.md, "low_rank_delta".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thalia/state/tensor_value.h"

namespace thalia {

/// The singular value decomposition of a matrix's change tells which of it matters: leading pairs
/// of vectors get up to 8 bits a number, those after them fewer, the tail none, each bit where it
/// takes most of the squared error away. After ImPart (arXiv:2504.13237) and Delta-CoMe
/// (arXiv:2406.08903), which choose widths by rank.
///
/// Only dense matrices of f32, f16, f64 or bf16 with finite numbers whose base has the same type
/// and shape, and only where it takes fewer bytes than an exact way. All else is stored exactly.
struct LowRankOptions {
  /// Bits of codes that a matrix may have, an element; above 0.
  double bits_per_element = 0.5;
  std::uint32_t max_rank = 64;  ///< products at most; 1 or more
  /// A matrix is stored exactly where more than this of its change is lost: the root of the sum of
  /// squared errors, divided by that of the change. 0 to 1.
  double max_relative_error = 1;
  /// Patterns as in QuantizationOptions: which tensors; by default weights and embeddings
  /// (likely_role() of thalia/types.h). DeltaLossOptions::exclude counts before it.
  std::vector<std::string> include{};
  std::uint64_t min_elements = 4096;  ///< smaller matrices are stored exactly
  /// As QuantizationOptions'. Deltas over each other do not add to the count, as each starts from
  /// what the one below it makes.
  std::optional<std::uint16_t> max_generations{};
};

/// What became of a matrix. `relative_error` is that of the change: 1 where nothing of it comes
/// back.
struct LowRankReport : TensorLoss {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint32_t rank = 0;          ///< products that are stored
  std::uint64_t stored_bytes = 0;  ///< before compression
};

}  // namespace thalia
