#include "base/dtype_facts.h"

#include <set>
#include <string_view>

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(dtype)

BOOST_AUTO_TEST_CASE(facts_agree_with_each_other) {
  std::set<std::string_view> names;
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const DTypeFacts& facts = dtype_facts(DType{code});
    BOOST_TEST_CONTEXT(facts.name) {
      BOOST_TEST(names.insert(facts.name).second);
      BOOST_TEST((dtype_from_name(facts.name) == DType{code}));
      BOOST_TEST((facts.kind == DTypeKind::complex) == dtype_is_complex(DType{code}));
      const unsigned width = dtype_is_complex(DType{code}) ? facts.bits / 2 : facts.bits;
      BOOST_TEST(facts.alignment == (width + 7) / 8);
      const FloatFields& fields = facts.fields;
      const bool has_fields = facts.kind == DTypeKind::floating || facts.kind == DTypeKind::complex;
      BOOST_TEST((fields.exponent_bits > 0) == has_fields);
      // A scale has no sign.
      if (has_fields && fields.mantissa_bits > 0)
        BOOST_TEST(1u + fields.exponent_bits + fields.mantissa_bits == width);
    }
  }
  BOOST_TEST(names.size() == kDTypeCount);
}

// docs/format/format.md, "Small floats"; IEEE 754.
BOOST_AUTO_TEST_CASE(least_normal_numbers_are_known) {
  BOOST_TEST(least_normal(DType::f16) == 0x1p-14);
  BOOST_TEST(least_normal(DType::bf16) == 0x1p-126);
  BOOST_TEST(least_normal(DType::f32) == 0x1p-126);
  BOOST_TEST(least_normal(DType::c64) == 0x1p-126);
  BOOST_TEST(least_normal(DType::f64) == 0x1p-1022);
  BOOST_TEST(least_normal(DType::f8_e4m3) == 0x1p-6);
  BOOST_TEST(least_normal(DType::f8_e4m3fnuz) == 0x1p-7);
  BOOST_TEST(least_normal(DType::f8_e5m2fnuz) == 0x1p-15);
  BOOST_TEST(least_normal(DType::f6_e3m2) == 0x1p-2);
  BOOST_TEST(least_normal(DType::f4_e2m1) == 1);
  BOOST_TEST(least_normal(DType::f8_e8m0) == 0);
  BOOST_TEST(least_normal(DType::i8) == 0);
  BOOST_TEST(least_normal(DType::boolean) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
