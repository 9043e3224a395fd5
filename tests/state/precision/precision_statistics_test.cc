#include "thalia/state/precision.h"

#include <limits>
#include <string>

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(precision_statistics)

// The original program counts int8 to int64 as "int", and bool, uint8 and all else as "other".
BOOST_AUTO_TEST_CASE(counts_each_dtype_where_the_original_program_does) {
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    std::string_view expected = "other";
    if (dtype == DType::f32) expected = "fp32";
    if (dtype == DType::f16) expected = "fp16";
    if (dtype == DType::bf16) expected = "bf16";
    if (dtype == DType::f64) expected = "fp64";
    for (const DType integer : {DType::i8, DType::i16, DType::i32, DType::i64})
      if (dtype == integer) expected = "int";
    BOOST_TEST(precision_kind_name(precision_kind_of(dtype)) == expected, dtype_name(dtype));
  }
}

BOOST_AUTO_TEST_CASE(adds_up_counts_bytes_and_percents) {
  PrecisionStatistics statistics;
  BOOST_TEST(statistics.percent(PrecisionKind::fp32) == 0);
  statistics.add(DType::f32, 300);
  statistics.add(DType::f32, 100);
  statistics.add(DType::f16, 50);
  statistics.add(DType::i64, 40);
  statistics.add(DType::boolean, 10);
  BOOST_TEST(statistics.share(PrecisionKind::fp32).count == 2u);
  BOOST_TEST(statistics.share(PrecisionKind::fp32).bytes == 400u);
  BOOST_TEST(statistics.percent(PrecisionKind::fp32) == 80);
  BOOST_TEST(statistics.percent(PrecisionKind::integer) == 8);
  BOOST_TEST(statistics.total().count == 5u);
  BOOST_TEST(statistics.total().bytes == 500u);
  BOOST_TEST(statistics.to_json() ==
             R"({"fp32":{"count":2,"bytes":400,"percent":80},)"
             R"("fp16":{"count":1,"bytes":50,"percent":10},)"
             R"("bf16":{"count":0,"bytes":0,"percent":0},)"
             R"("fp64":{"count":0,"bytes":0,"percent":0},)"
             R"("int":{"count":1,"bytes":40,"percent":8},)"
             R"("other":{"count":1,"bytes":10,"percent":2},"total":{"count":5,"bytes":500}})");
}

BOOST_AUTO_TEST_CASE(sums_do_not_wrap) {
  PrecisionStatistics statistics;
  statistics.add(DType::f32, std::numeric_limits<std::uint64_t>::max());
  statistics.add(DType::f16, 7);
  BOOST_TEST(statistics.total().bytes == std::numeric_limits<std::uint64_t>::max());
}

BOOST_AUTO_TEST_SUITE_END()
