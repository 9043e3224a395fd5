// Deltas over a base of another floating point type, as a precision policy that begins, ends or
// changes between two saves makes them.
#include <limits>

#include "codec/float/conversion.h"
#include "state/delta/check.h"
#include "support/files.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_conversion)

BOOST_AUTO_TEST_CASE(every_floating_point_type_is_compared_with_every_other) {
  std::mt19937_64 random(19);
  const TemporaryFolder folder;
  const std::filesystem::path base = folder / "base.thalia";
  const std::filesystem::path delta = folder / "one.delta.thalia";
  const std::vector<DType> types{DType::f32, DType::f16, DType::bf16, DType::f64};
  const auto as = [](const Tensor& tensor, DType dtype) {
    return Tensor::filled({.dtype = dtype, .shape = tensor.shape()}, [&](MutableByteSpan out) {
      codec::convert_elements(tensor.dtype(), dtype, tensor.bytes(), out);
    });
  };
  Tensor before = normal_tensor({70, 301}, random);
  before.mutable_as<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  before.mutable_as<float>()[4] = 1e30f;  // an infinity of f16
  Tensor few = before;
  few.mutable_as<float>()[5] = 1;
  Tensor all = before;
  for (float& value : all.mutable_as<float>()) value *= 1.01f;
  for (const DType from : types) {
    for (const DType to : types) {
      if (from == to) continue;
      BOOST_TEST_CONTEXT(dtype_name(from) << " to " << dtype_name(to)) {
        const Tensor one = as(before, from);
        save_full({.regions = {{"r", {{"same", {one}}, {"few", {one}}, {"all", {one}}}}}}, base);
        // What the base holds may be less than what it was made from.
        const SampleState after{.regions = {{"r",
                                             {{"same", {as(one, to)}},
                                              {"few", {as(as(few, from), to)}},
                                              {"all", {as(all, to)}}}}}};
        const DeltaResult result = save_delta(after, base, delta);
        BOOST_TEST(result.converted == 3u);
        BOOST_TEST(result.whole == 0u);
        BOOST_TEST(result.listed_elements == 1u);
        check_chain(ChainReader::open(delta), after);
        BOOST_TEST(verify_chain(delta).ok());
        // And on: of the type that it has now, and back.
        const std::filesystem::path next = folder / "next.delta.thalia";
        for (const DType last : {to, from}) {
          const SampleState more{.regions = {{"r", {{"all", {as(few, last)}}}}}};
          save_delta(more, delta, next);
          check_chain(ChainReader::open(next), more);
        }
        Tensor grown = Tensor::zeros(DType::f32, {75, 310});
        for (float& value : grown.mutable_as<float>()) value = 0.25f;
        const SampleState larger{.regions = {{"r", {{"all", {as(grown, to)}}}}}};
        save_delta(larger, base, next);
        check_chain(ChainReader::open(next), larger);
      }
    }
  }
}

// The indices of csr and coo stay, and their values lie elsewhere: nothing is taken from such a
// base, and that is told.
BOOST_AUTO_TEST_CASE(what_cannot_be_converted_is_counted) {
  const test::TemporaryFolder folder;
  const std::filesystem::path base = folder / "base.thalia", delta = folder / "delta.thalia";
  const auto state = [](DType dtype) {
    Tensor dense = Tensor::zeros(DType::f32, {8, 8});
    dense.mutable_as<float>()[9] = 1;
    const Tensor converted = Tensor::filled({.dtype = dtype, .shape = {8, 8}}, [&](auto out) {
      codec::convert_elements(DType::f32, dtype, dense.bytes(), out);
    });
    return SampleState{.regions = {{"r",
                                    {{"csr", {converted.to_csr()}},
                                     {"coo", {converted.to_coo()}},
                                     {"dense", {converted}}}}}};
  };
  save_full(state(DType::f32), base);
  const DeltaResult result = save_delta(state(DType::f16), base, delta);
  BOOST_TEST(result.converted == 1u);
  BOOST_TEST(result.whole == 2u);
  BOOST_TEST(result.unlike == 2u);
  check_chain(ChainReader::open(delta), state(DType::f16));
  BOOST_TEST(save_delta(state(DType::f32), base, delta).unlike == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
