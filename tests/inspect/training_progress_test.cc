#include "inspect/training_progress.h"

#include <string_view>

#include "boost_test.h"

using thalia::inspect::training_progress;

BOOST_AUTO_TEST_SUITE(training_progress_of_metadata)

BOOST_AUTO_TEST_CASE(steps_are_found_where_programs_write_them) {
  for (const auto& [json, member] :
       {std::pair{R"({"step":1200})", "step"},
        {R"({"lr":0.1,"global_step":"1200"})", "global_step"},
        {R"({"training_step":1200,"step":3})", "training_step"},
        {R"({"ss_steps":"1200"})", "ss_steps"},
        {R"({"trainer":{"global_step":1200}})", "trainer.global_step"},
        {R"({"state":"{\"step\":1200}"})", "state.step"},
        {R"({"format":"safetensors","safetensors":{"metadata":{"step":"1200"}}})",
         "safetensors.metadata.step"}}) {
    const auto progress = training_progress(json);
    BOOST_TEST(progress.steps.value_or(0) == 1200u, json);
    BOOST_TEST(progress.steps_member == member);
  }
}

BOOST_AUTO_TEST_CASE(epochs_need_not_be_whole) {
  BOOST_TEST(training_progress(R"({"epoch":2.5})").epoch.value() == 2.5);
  BOOST_TEST(training_progress(R"({"ss_epoch":"3"})").epoch.value() == 3);
}

BOOST_AUTO_TEST_CASE(what_is_no_number_is_none) {
  for (const std::string_view json :
       {"", "[]", "not json", "{}", R"({"step":null})", R"({"step":-1})", R"({"step":"12 or so"})",
        R"({"steps":[1]})", R"({"state":"{step"})", R"({"a":{"b":{"step":1}}})",
        R"({"format":"a","b":{"c":{"step":1}}})", R"({"format":"a","a":"{}"})"}) {
    const auto progress = training_progress(json);
    BOOST_TEST((!progress.steps && !progress.epoch), json);
    BOOST_TEST(progress.steps_member.empty(), json);
  }
}

BOOST_AUTO_TEST_SUITE_END()
