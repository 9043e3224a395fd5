// The config of a checkpoint, as gpt.rs's ModelConfig takes it.
#include <string>

#include "boost_test.h"
#include "formats/gptrs/samples.h"
#include "support/errors.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(gptrs_config)

namespace {

std::string with_runtime(const std::string& runtime) {
  return R"({"kind":"gpt","runtime":)" + runtime + "}";
}
std::string with_policy(const std::string& policy) {
  return with_runtime(R"({"functional_overrides":{"attention":)" + policy + "}}");
}
std::string with_streaming(const std::string& members) {
  return with_runtime(R"({"weight_streaming":)" + members + "}");
}

}  // namespace

BOOST_AUTO_TEST_CASE(members_are_taken_as_the_original_takes_them) {
  const GptrsModelConfig plain = parse_gptrs_config(
      " {\"other\": [1], \"kind\": 3, \"config\": {\"b\": 0.10, \"a\": 1e5}, \"kind\": \"gpt\"}\n");
  BOOST_TEST(plain.kind == "gpt");
  BOOST_TEST(plain.config == R"({"b":0.10,"a":1e5})");
  BOOST_TEST(parse_gptrs_config(R"({"kind":""})").config == "null");
  for (const char* const runtime : {"null", "{}", R"({"later":true})"})
    BOOST_TEST(!parse_gptrs_config(with_runtime(runtime)).weight_streaming.enabled);

  const GptrsModelConfig full =
      test::gptrs_from(test::gptrs_vector("cfg_runtime.gptrschk")).model_config();
  BOOST_TEST((full.functional_overrides ==
              std::vector<std::pair<std::string, std::string>>{{"attention", "force=flash"}}));
  BOOST_TEST(full.weight_streaming.enabled);
  BOOST_TEST((full.weight_streaming.device_budget_bytes == 1024u));
  BOOST_TEST(!full.weight_streaming.prefetch_layers);
  const GptrsWeightStreaming all =
      parse_gptrs_config(
          with_streaming(R"({"enabled":false,"device_weights_percent":0.5,"prefetch_layers":2,)"
                         R"("cache_budget_cap_bytes":18446744073709551615,)"
                         R"("small_param_persist_threshold":null})"))
          .weight_streaming;
  BOOST_TEST((all.device_weights_percent == 0.5));
  BOOST_TEST((all.prefetch_layers == 2u));
  BOOST_TEST((all.cache_budget_cap_bytes == ~0ull));
  BOOST_TEST(!all.small_param_persist_threshold);
}

BOOST_AUTO_TEST_CASE(policies_are_those_of_the_original) {
  const auto quoted = [](const std::string& policy) { return with_policy('"' + policy + '"'); };
  for (const char* const policy : {"", "  ", "force=flash", " force=a b ", "benchmark", "Benchmark",
                                   "benchmark(cache=1)", "BENCHMARK(cache=128) "})
    BOOST_TEST(parse_gptrs_config(quoted(policy)).functional_overrides.size() == 1u, policy);
  const auto refused = test::says(ErrorCode::bad_value, "runtime.functional_overrides.attention");
  for (const char* const policy :
       {"flash", "force=", "benchmark()", "benchmark(cache=0)", "benchmark(cache=)",
        "benchmark(cache=-1)", "benchmark(cache=1", "benchmarks"})
    BOOST_CHECK_EXCEPTION(parse_gptrs_config(quoted(policy)), FormatError, refused);
  for (const char* const value : {"1", "null", "[]"})
    BOOST_CHECK_EXCEPTION(parse_gptrs_config(with_policy(value)), FormatError, refused);
}

BOOST_AUTO_TEST_CASE(what_the_original_refuses_is_refused) {
  const struct {
    std::string text;
    ErrorCode code;
    const char* says;
  } kCases[] = {
      {"", ErrorCode::bad_json, "config"},
      {"{}x", ErrorCode::bad_json, "config"},
      {"[]", ErrorCode::bad_json, "config"},
      {R"("gpt")", ErrorCode::bad_json, "config"},
      {"{}", ErrorCode::bad_value, "kind"},
      {R"({"kind":null})", ErrorCode::bad_value, "kind"},
      {R"({"kind":"gpt","kind":1})", ErrorCode::bad_value, "kind"},
      {with_runtime("[]"), ErrorCode::bad_value, "runtime"},
      {with_runtime(R"({"functional_overrides":[]})"), ErrorCode::bad_value,
       "functional_overrides"},
      {with_streaming("true"), ErrorCode::bad_value, "weight_streaming"},
      {with_streaming(R"({"enabled":1})"), ErrorCode::bad_value, "enabled"},
      {with_streaming(R"({"device_budget_bytes":-1})"), ErrorCode::bad_value,
       "device_budget_bytes"},
      {with_streaming(R"({"device_budget_bytes":1.0})"), ErrorCode::bad_value, "got 1.0"},
      {with_streaming(R"({"prefetch_layers":"1"})"), ErrorCode::bad_value, "prefetch_layers"},
      {with_streaming(R"({"device_weights_percent":"1"})"), ErrorCode::bad_value, "percent"},
      {std::string(300, '['), ErrorCode::bad_json, "config"},
      {R"({"kind":"gpt","config":)" + std::string(300, '[') + std::string(300, ']') + "}",
       ErrorCode::limit_exceeded, "config"},
  };
  for (const auto& one : kCases) BOOST_TEST_CONTEXT(one.text) {
      BOOST_CHECK_EXCEPTION(parse_gptrs_config(one.text), FormatError,
                            test::says(one.code, one.says));
      test::HandFile file;
      file.config = one.text;
      BOOST_CHECK_EXCEPTION(test::gptrs_from(file.bytes()), FormatError,
                            test::says(one.code, one.says, "test.gptrs"));
    }
}

BOOST_AUTO_TEST_CASE(limits_of_streaming_become_those_of_a_source) {
  const auto options = [](const std::string& members) {
    return param_source_options(parse_gptrs_config(with_streaming(members)).weight_streaming);
  };
  const ParamSourceOptions full = options(
      R"({"enabled":true,"device_budget_bytes":1,"device_weights_percent":0.5,)"
      R"("cache_budget_cap_bytes":3,"prefetch_layers":4,"small_param_persist_threshold":5})");
  BOOST_TEST((full.budget_bytes == 1u));
  BOOST_TEST((full.budget_share == 0.5));
  BOOST_TEST((full.budget_cap_bytes == 3u));
  BOOST_TEST(full.prefetch_layers == 4u);
  BOOST_TEST((full.small_bytes == 5u));
  for (const char* const none : {"{}", R"({"enabled":true})", R"({"enabled":false})"})
    BOOST_TEST(!options(none).budget_bytes, none);
  for (const char* const member :
       {"device_budget_bytes", "device_weights_percent", "cache_budget_cap_bytes",
        "prefetch_layers", "small_param_persist_threshold"})
    BOOST_CHECK_EXCEPTION(options(std::string("{\"") + member + "\":0}"), FormatError,
                          test::says(ErrorCode::bad_value, member, "unless enabled"));
  for (const char* const share : {"1.5", "-1"})
    BOOST_CHECK_EXCEPTION(
        options(std::string(R"({"enabled":true,"device_weights_percent":)") + share + "}"),
        FormatError, test::says(ErrorCode::bad_value, "device_weights_percent"));
}

BOOST_AUTO_TEST_CASE(only_the_config_of_a_gpt_is_wrapped) {
  const std::string good =
      R"({"vocab_size":8,"context_length":4,"embed_dim":4,"num_layers":1,"num_heads":2,)"
      R"("mlp_ratio":2,"dropout":0,"kind":7,"functional_overrides":{}})";
  const auto open = [](const std::string& config) {
    test::HandFile file;
    file.config = config;
    return test::gptrs_from(file.bytes(), {.untagged_config = true});
  };
  BOOST_TEST(open(good).config_was_untagged());
  BOOST_TEST(open(good).config_text() == good);
  BOOST_TEST(!open(R"({"kind":"x"})").config_was_untagged());
  const auto without = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& text :
       {without("vocab_size", "vocab"), without(":8", ":8.5"), without(":4", ":-4"),
        without("\"dropout\":0", "\"dropout\":null"), without("\"mlp_ratio\":2,", "")})
    BOOST_CHECK_EXCEPTION(open(text), FormatError, test::says(ErrorCode::bad_value, "kind"));
}

BOOST_AUTO_TEST_SUITE_END()
