// The leading singular vectors of a matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace thalia::state {

/// The sum over k of left_k × right_k is the best approximation of that rank, or nearly so. Both
/// vectors of a pair have the root of the singular value as their length; pairs come in descending
/// order of it.
struct TruncatedSvd {
  std::uint64_t rank = 0;
  std::vector<double> left;   ///< rank × rows: one vector after the other
  std::vector<double> right;  ///< rank × columns
};

/// Any number: the same matrix gives the same vectors.
inline constexpr std::uint64_t kSvdSeed = 0x7468616C6961;

/// The singular vectors of a row-major matrix of finite numbers, at most `most` pairs; those of no
/// size are left out. A randomized range finder with two power iterations (Halko, Martinsson,
/// Tropp, "Finding structure with randomness", SIAM Review 53, 2011, algorithms 4.4 and 5.1) in
/// f32, its random numbers a function of `seed` and the place. The same result in every run of one
/// build; another build may round otherwise, which changes what is stored and not how it is read.
TruncatedSvd truncated_svd(std::span<const float> matrix, std::uint64_t rows, std::uint64_t columns,
                           std::uint64_t most, std::uint64_t seed);

}  // namespace thalia::state
