// What the tests of conversions between floating point types share.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "thalia/formats/convert.h"
#include "thalia/reader.h"
#include "thalia/types.h"

namespace thalia::test {

/// Fixed identity and a policy.
ConvertOptions with_precision(std::string_view policy, SaveOptions save = {});

/// Numbers that f16 and bf16 lack, as weights are.
std::vector<float> weights(std::size_t count);
/// So many that they pass in several pieces, whose seams would show.
inline constexpr std::size_t kManyWeights = 50'001;

/// One floating point type as another.
std::vector<std::byte> as_type(DType from, DType to, ByteSpan bytes);

/// The logical bytes.
std::vector<std::byte> payload(const TensorView& view);

std::vector<std::byte> joined(const std::vector<ByteSpan>& parts);

}  // namespace thalia::test
