// Regions as the original program had them, small, for the tests of growth.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "thalia/state/brain.h"

namespace thalia::test {

/// A dense tensor with the elements start, start + 1, …
Tensor counting(DType dtype, const Shape& shape, double start = 1);
/// A tensor's elements, dense.
std::vector<double> numbers(const Tensor& tensor);
const Tensor& tensor_at(const BrainRegion& region, std::string_view path);
/// True where `whole` has the bits of `corner` at the same indices.
bool keeps_corner(const Tensor& whole, const Tensor& corner);

/// 20 neurons in two populations of ten an action, 64 inputs: d1 and d2 weights, eligibility,
/// traces, neurons, value estimates of one an action.
BrainRegion striatum();
/// dg 12, ca3 8, ca1 6 neurons with six matrices between them, and a sequence position.
BrainRegion hippocampus();
/// 6 neurons, 4 inputs from "thalamus", 3 from "pfc", recurrent; every component.
BrainRegion cortex();
/// cortex and striatum, a connection from the one to the other and one from cortex to itself, and
/// a pathway "cortex_to_striatum" with inputs from cortex.
BrainState brain();

}  // namespace thalia::test
