#include "thalia/state/precision.h"

#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using test::says;

BOOST_AUTO_TEST_SUITE(precision)

namespace {

// By the rules of the original program.
DType stored(PrecisionPolicy policy, std::string_view path, DType dtype = DType::f32,
             std::uint64_t count = 100) {
  policy.matching = CategoryMatching::original;
  return stored_dtype(policy, path, Role::other, dtype, count);
}

DType stored_by_role(const PrecisionPolicy& policy, Role role, std::string_view path) {
  return stored_dtype(policy, path, role, DType::f32, 100);
}

}  // namespace

// tests/data/precision/original_rules.txt names its source.
BOOST_AUTO_TEST_CASE(decides_as_the_original_program_does) {
  std::ifstream file(THALIA_SOURCE_ROOT "/tests/data/precision/original_rules.txt");
  unsigned rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string path, expected;
    std::uint64_t count = 0;
    BOOST_REQUIRE(fields >> path >> count);
    for (const std::string_view policy : {"fp32", "fp16", "mixed"}) {
      BOOST_REQUIRE(fields >> expected);
      if (expected == "-") continue;
      const DType dtype = stored(parse_precision_policy(policy), path, DType::f32, count);
      BOOST_TEST(dtype_name(dtype) == expected, policy << ": " << path);
    }
    ++rows;
  }
  BOOST_TEST(rows == 29u);
}

BOOST_AUTO_TEST_CASE(predefined_policies_are_the_table_of_the_document) {
  using enum Precision;
  BOOST_TEST((parse_precision_policy("fp32") ==
              PrecisionPolicy{fp32, fp32, fp32, fp32, fp32, fp32, fp32}));
  BOOST_TEST((parse_precision_policy("fp16") ==
              PrecisionPolicy{fp16, fp32, fp32, fp16, fp32, fp16, fp32}));
  BOOST_TEST((parse_precision_policy("bf16") ==
              PrecisionPolicy{bf16, fp32, fp32, bf16, fp32, bf16, fp32}));
  BOOST_TEST((parse_precision_policy("mixed") ==
              PrecisionPolicy{automatic, fp32, fp32, fp16, fp32, fp16, fp32}));
  BOOST_TEST((parse_precision_policy("keep") == PrecisionPolicy{}));
  BOOST_CHECK_EXCEPTION(parse_precision_policy("fp8"), UsageError,
                        says(ErrorCode::bad_argument, "unknown precision policy: got 'fp8'",
                             "fp32, fp16, bf16, mixed, keep"));
}

BOOST_AUTO_TEST_CASE(touches_floating_point_numbers_only) {
  const PrecisionPolicy fp16 = parse_precision_policy("fp16"),
                        fp32 = parse_precision_policy("fp32");
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    const bool touched =
        dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
    BOOST_TEST((stored(fp16, "weights", dtype) == (touched ? DType::f16 : dtype)));
    BOOST_TEST((stored(fp32, "spikes", dtype) == (touched ? DType::f32 : dtype)));
    BOOST_TEST((stored(PrecisionPolicy{}, "weights", dtype) == dtype));
  }
}

BOOST_AUTO_TEST_CASE(automatic_halves_what_is_above_a_mebibyte) {
  const PrecisionPolicy mixed = parse_precision_policy("mixed");
  const auto weights = [&](DType dtype, std::uint64_t count) {
    return stored(mixed, "weights", dtype, count);
  };
  BOOST_TEST((weights(DType::f32, 1 << 18) == DType::f32));
  BOOST_TEST((weights(DType::f32, (1 << 18) + 1) == DType::f16));
  BOOST_TEST((weights(DType::f64, 1 << 17) == DType::f32));
  BOOST_TEST((weights(DType::f64, (1 << 17) + 1) == DType::f16));
  BOOST_TEST((weights(DType::f16, 1 << 19) == DType::f32));
  BOOST_TEST((weights(DType::bf16, (1 << 19) + 1) == DType::f16));
  BOOST_TEST((weights(DType::f64, ~std::uint64_t{0}) == DType::f16));
}

BOOST_AUTO_TEST_CASE(the_first_fitting_pattern_counts_before_the_category) {
  PrecisionPolicy policy = parse_precision_policy("fp16");
  policy.patterns = {{"cortex/*/w_keep", Precision::keep},
                     {"weights/w_*", Precision::bf16},
                     {"w_ff", Precision::fp32}};
  BOOST_TEST((stored(policy, "regions.cortex.weights.w_keep", DType::f64) == DType::f64));
  BOOST_TEST((stored(policy, "regions.cortex.weights.w_ff") == DType::bf16));
  BOOST_TEST((stored(policy, "w_ff") == DType::f32));
  BOOST_TEST((stored(policy, "regions.cortex.weights.x") == DType::f16));
  BOOST_TEST((stored(policy, "regions.cortex.spikes") == DType::f32));
}

BOOST_AUTO_TEST_CASE(roles_decide) {
  using Category = PrecisionCategory;
  const auto is = [](Role role, std::string_view path, Category category) {
    BOOST_TEST(category_name(category_of_role(role, path)) == category_name(category),
               role_name(role) << ": " << path);
  };
  is(Role::weights, "regions.cortex.weights.bias", Category::biases);
  is(Role::weights, "regions.bias.weights.raw", Category::weights);
  is(Role::weights, "model.layers.0.q_bias", Category::biases);
  is(Role::weights, "debiased", Category::weights);
  is(Role::homeostatic, "scaling_factors", Category::thresholds);
  is(Role::region_state, "raw_membrane", Category::membrane);
  is(Role::region_state, "v_mem", Category::membrane);
  is(Role::region_state, "g_exc", Category::conductances);
  is(Role::region_state, "Conductance_E", Category::conductances);
  is(Role::region_state, "v_threshold", Category::thresholds);
  is(Role::region_state, "refractory", Category::other);
  is(Role::learning_state, "stp.u", Category::traces);
  is(Role::learning_state, "regions.r.learning_state.bcm_theta", Category::thresholds);
  is(Role::learning_state, "bcm_thresholds", Category::thresholds);
  is(Role::embedding, "wte.weight", Category::weights);
  is(Role::bias, "weights.q", Category::biases);
  for (const Role role : {Role::normalization, Role::oscillator, Role::neuromodulator,
                          Role::optimizer, Role::buffer, Role::other})
    is(role, "weights.w_theta", Category::other);

  const PrecisionPolicy fp16 = parse_precision_policy("fp16");
  BOOST_TEST((stored_by_role(fp16, Role::region_state, "raw_membrane") == DType::f32));
  BOOST_TEST((stored_by_role(fp16, Role::weights, "m") == DType::f16));
}

BOOST_AUTO_TEST_CASE(optimizer_state_stays_unless_a_pattern_names_it) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16}) {
    for (const char* text : {"fp16", "fp32", "default=bf16", "weights=bf16,biases=fp16"}) {
      const PrecisionPolicy policy = parse_precision_policy(text);
      BOOST_TEST((stored_dtype(policy, "m.exp_avg", Role::optimizer, dtype, 100) == dtype), text);
    }
  }
  const PrecisionPolicy named = parse_precision_policy("*.exp_avg=bf16");
  BOOST_TEST((stored_by_role(named, Role::optimizer, "m.exp_avg") == DType::bf16));
  // The original program knows no roles.
  const PrecisionPolicy original = parse_precision_policy("default=fp16,match=original");
  BOOST_TEST((stored_by_role(original, Role::optimizer, "m.exp_avg") == DType::f16));
}

BOOST_AUTO_TEST_CASE(categories_are_found_in_any_case_and_in_order) {
  BOOST_TEST((category_of_path("REGIONS.R.WEIGHTS.X") == PrecisionCategory::weights));
  BOOST_TEST((category_of_path("lateral_b_w_") == PrecisionCategory::weights));
  BOOST_TEST((category_of_path("regions.r.learning_state.x") == PrecisionCategory::conductances));
  BOOST_TEST((category_of_path("") == PrecisionCategory::other));
}

BOOST_AUTO_TEST_CASE(types_go_by_all_their_names) {
  for (const char* name : {"fp16", "f16", "float16", "half"}) {
    BOOST_TEST((precision_from_name(name) == Precision::fp16));
    BOOST_TEST((parse_precision_policy(name) == parse_precision_policy("fp16")));
  }
  BOOST_TEST((parse_precision_policy("bfloat16") == parse_precision_policy("bf16")));
  BOOST_TEST((parse_precision_policy("float32") == parse_precision_policy("fp32")));
  BOOST_TEST((parse_precision_policy("weights=bfloat16,default=f32").weights == Precision::bf16));
}

BOOST_AUTO_TEST_CASE(reads_custom_policies) {
  BOOST_TEST((parse_precision_policy("mixed") == parse_precision_policy("mixed")));
  BOOST_TEST(
      (parse_precision_policy("weights=fp16") == PrecisionPolicy{.weights = Precision::fp16}));
  const PrecisionPolicy policy = parse_precision_policy(
      "weights/*=fp16,w_*=auto,traces=bf16,default=fp32,match=original,membrane=keep");
  BOOST_TEST((policy.weights == Precision::fp32));
  BOOST_TEST((policy.traces == Precision::bf16));
  BOOST_TEST((policy.membrane == Precision::keep));
  BOOST_TEST((policy.matching == CategoryMatching::original));
  BOOST_REQUIRE(policy.patterns.size() == 2u);
  BOOST_TEST((policy.patterns[0] == PrecisionPattern{"weights/*", Precision::fp16}));
  BOOST_TEST((policy.patterns[1] == PrecisionPattern{"w_*", Precision::automatic}));
}

BOOST_AUTO_TEST_CASE(texts_parse_to_the_policy_that_they_were_made_of) {
  for (const std::string_view text :
       {"fp32", "fp16", "bf16", "mixed", "keep", "weights=fp16", "default=bf16", "*/a=keep",
        "match=original", "a.b=fp32,biases=auto,match=original", "x=*=fp16"}) {
    const PrecisionPolicy policy = parse_precision_policy(text);
    BOOST_TEST((parse_precision_policy(to_string(policy)) == policy), to_string(policy));
  }
  BOOST_TEST(to_string(PrecisionPolicy{.patterns = {{"w_ff", Precision::fp16}}}) ==
             R"("w_ff"=fp16)");
  BOOST_TEST(to_string(parse_precision_policy("bf16")) == "bf16");
  const auto shortened = [](std::string_view text) {
    return to_string(parse_precision_policy(text));
  };
  BOOST_TEST(shortened("default=keep,weights/*=fp16,biases=keep") == "weights/*=fp16");
  BOOST_TEST(shortened("default=fp32,biases=keep,traces=fp32,match=original") ==
             "biases=keep,default=fp32,match=original");
}

// Patterns of the characters that mean something in the text, and names that do.
BOOST_AUTO_TEST_CASE(every_policy_comes_back_from_its_text) {
  const std::string_view pieces[]{"w",       "ff",   ",",    "=",       "\"",  "\\",
                                  "*",       "?",    ".",    "/",       " ",   "match",
                                  "weights", "fp16", "role", "default", "\n",  "\xC3\xA4",
                                  "keep",    "'",    "\"=",  ",\"",     "\\\""};
  std::mt19937_64 random(15);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 5000; ++round) {
    PrecisionPolicy policy;
    for (std::size_t i = 0; i < kPrecisionCategoryCount; ++i)
      policy.of(static_cast<PrecisionCategory>(i)) = static_cast<Precision>(below(5));
    if (below(2) == 0) policy = PrecisionPolicy{};
    for (std::uint64_t n = below(4); n > 0; --n) {
      PrecisionPattern& pattern = policy.patterns.emplace_back();
      for (std::uint64_t length = below(6); length > 0; --length)
        pattern.glob += pieces[below(std::size(pieces))];
      pattern.precision = static_cast<Precision>(below(5));
    }
    if (below(2) == 0) policy.matching = CategoryMatching::role;
    const std::string text = to_string(policy);
    BOOST_REQUIRE_MESSAGE(parse_precision_policy(text) == policy, text);
  }
}

BOOST_AUTO_TEST_CASE(refuses_texts_that_are_none) {
  const auto refuses = [](std::string_view text, ErrorCode code, const char* part) {
    BOOST_CHECK_EXCEPTION(parse_precision_policy(text), UsageError, says(code, part));
  };
  refuses("", ErrorCode::bad_argument, "got '', expected fp32, fp16, bf16, mixed, keep, KEY=");
  refuses("fp8", ErrorCode::bad_argument, "unknown precision policy: got 'fp8'");
  refuses("weights=fp8", ErrorCode::bad_argument, "invalid precision: got 'weights=fp8'");
  refuses("weights=fp16,", ErrorCode::bad_argument, "got ''");
  refuses("=fp16", ErrorCode::bad_argument, "got '=fp16'");
  refuses("wieghts=fp16", ErrorCode::bad_argument,
          "unknown category: got 'wieghts', expected weights,");
  refuses("weights=fp16,weights=fp32", ErrorCode::duplicate, "weights=fp32");
  refuses("match=name", ErrorCode::bad_argument, "expected original, role");
  refuses("a/b=", ErrorCode::bad_argument, "expected fp32, fp16, bf16, auto, keep");
  refuses(R"("w_ff")", ErrorCode::bad_argument, R"(got '"w_ff"')");
  refuses(R"("w_ff=fp16)", ErrorCode::bad_argument, R"(got '"w_ff=fp16')");
  refuses(R"("w_ff\)", ErrorCode::bad_argument, "unknown precision policy");
  refuses(R"("w_ff"x=fp16)", ErrorCode::bad_argument, "unknown precision policy");
  refuses(R"("w_ff"=fp8,biases=fp16)", ErrorCode::bad_argument, R"(got '"w_ff"=fp8',)");
  refuses(R"("w_ff"=fp16,)", ErrorCode::bad_argument, "got ''");
}

BOOST_AUTO_TEST_CASE(knows_whether_anything_can_change) {
  BOOST_TEST(PrecisionPolicy{}.keeps_all());
  BOOST_TEST(parse_precision_policy("a/*=keep").keeps_all());
  BOOST_TEST(!parse_precision_policy("a/*=fp32").keeps_all());
  BOOST_TEST(!parse_precision_policy("conductances=fp32").keeps_all());
  BOOST_TEST(!parse_precision_policy("fp32").keeps_all());
}

BOOST_AUTO_TEST_SUITE_END()
