// What the sink makes of metadata that are no GGUF file's, or that somebody has edited, and of
// tensors that ggml lacks.
#include <string>

#include "boost_test.h"
#include "formats/gguf/carrying.h"
#include "formats/gguf/files.h"
#include "support/errors.h"
#include "thalia/formats/gguf.h"

BOOST_AUTO_TEST_SUITE(gguf_metadata)

namespace {

using namespace thalia;
using namespace test::gguf;

}  // namespace

BOOST_AUTO_TEST_CASE(metadata_of_others_become_key_values) {
  const GgufFile file =
      file_of({.metadata = R"({"name":"n","yes":true,"i":-3,"big":18446744073709551615,
    "x":1.5,"e":1e3,"format":"safetensors"})"});
  BOOST_TEST(file.key_values()[0].key == "general.architecture");
  BOOST_TEST((*file.find("general.architecture") == GgufValue(std::string("unknown"))));
  BOOST_TEST((*file.find("name") == GgufValue(std::string("n"))));
  BOOST_TEST((*file.find("yes") == GgufValue(true)));
  BOOST_TEST((*file.find("i") == GgufValue(std::int64_t{-3})));
  BOOST_TEST((*file.find("big") == GgufValue(UINT64_MAX)));
  BOOST_TEST((*file.find("x") == GgufValue(1.5)));
  BOOST_TEST((*file.find("e") == GgufValue(1000.0)));
  BOOST_TEST((*file.find("format") == GgufValue(std::string("safetensors"))));
  const GgufFile named = file_of({.metadata = R"({"a":1,"general.architecture":"llama"})"});
  BOOST_TEST(named.key_values().size() == 2u);
  BOOST_TEST((*named.find("general.architecture") == GgufValue(std::string("llama"))));
}

BOOST_AUTO_TEST_CASE(what_becomes_no_key_value_is_announced) {
  const Written out = written({.metadata = R"({"null":null,"list":[1],"object":{},"huge":1e999,
    "long":99999999999999999999,"":"x","twice":1,"twice":2,"general.alignment":64,
    "general.architecture":7})",
                               .training_steps = 5});
  BOOST_TEST_REQUIRE(out.losses.size() == 2u);
  BOOST_TEST(out.losses[0] == "metadata: 'null', 'list', 'object' and 6 more");
  BOOST_TEST(out.losses[1] == "the count of training steps");
  BOOST_TEST(test::gguf::from_text(out.bytes).key_values().size() == 2u);
}

BOOST_AUTO_TEST_CASE(edited_key_values_count_where_they_fit) {
  const auto lost = [](const std::string& value, const char* key = "k") {
    const Written out =
        written({.metadata = std::string(R"({"format":"gguf","gguf":{"key_values":{")") + key +
                             "\":" + value + R"(,"good":{"u8":1}}}})"});
    const GgufFile file = test::gguf::from_text(out.bytes);
    BOOST_TEST((*file.find("good") == GgufValue(std::uint8_t{1})));
    BOOST_TEST(file.key_values().size() == (out.losses.empty() ? 2u : 1u), value);
    return !out.losses.empty();
  };
  for (const char* const good :
       {R"({"u8":255})", R"({"i64":-9223372036854775808})", R"({"f32":1})", R"({"f32":1e-60})",
        R"({"f64":{"hex":"7ff8000000000001"}})", R"({"string":{"hex":""}})", R"({"bool":false})",
        R"({"u16[]":[]})", R"({"string[]":["a",{"hex":"ff"}]})"})
    BOOST_TEST(!lost(good), good);
  for (const char* const bad : {"1",
                                "null",
                                "[]",
                                "{}",
                                R"({"u8":256})",
                                R"({"u8":-1})",
                                R"({"u8":1.0})",
                                R"({"u8":"1"})",
                                R"({"i8":128})",
                                R"({"u64":18446744073709551616})",
                                R"({"f32":1e39})",
                                R"({"f64":1e999})",
                                R"({"f32":"nan"})",
                                R"({"f32":{"hex":"7fc0000"}})",
                                R"({"f32":{"hex":"7fc0000g"}})",
                                R"({"f32":{"hex":"7FC00000"}})",
                                R"({"f32":{}})",
                                R"({"f32":{"hex":1}})",
                                R"({"f32":{"hex":"00000000","hex":"00000000"}})",
                                R"({"f32":{"bits":"00000000"}})",
                                R"({"bool":1})",
                                R"({"string":1})",
                                R"({"string":{"hex":"f"}})",
                                R"({"u8":{"hex":"01"}})",
                                R"({"u8":1,"u8":1})",
                                R"({"u9":1})",
                                R"({"[]":[]})",
                                R"({"u8[]":1})",
                                R"({"u8[]":[1,256]})",
                                R"({"u8[][]":[]})",
                                R"({"bool[]":[true,null]})",
                                R"({"array":[]})"})
    BOOST_TEST(lost(bad), bad);
  BOOST_TEST(lost(R"({"u8":1})", ""));
  BOOST_TEST(lost(R"({"u32":33})", "general.alignment"));
  BOOST_TEST(lost(R"({"u32":2097152})", "general.alignment"));
  BOOST_TEST(lost(R"({"u64":64})", "general.alignment"));
  BOOST_TEST(!lost(R"({"u32":64})", "general.alignment"));
}

BOOST_AUTO_TEST_CASE(other_members_of_the_format_are_announced_and_change_nothing) {
  const Written out = written(
      {.metadata =
           R"({"format":"gguf","gguf":{"key_values":[],"tensors":7,"x":{"y":[1]}},"gguf":{}})"});
  BOOST_TEST_REQUIRE(out.losses.size() == 1u);
  BOOST_TEST(out.losses[0] == "metadata: 'gguf.key_values', 'gguf.tensors', 'gguf.x' and 1 more");
  BOOST_TEST((out.bytes == start(0, 0).pad().bytes));
  BOOST_CHECK_THROW(written({.metadata = "[]"}), FormatError);
  BOOST_CHECK_THROW(written({.metadata = R"({"gguf":{"key_values":{"a":{"u8":1}})"}), FormatError);
}

// {"type":…,"shape":…} counts only if it is just what the tensor's shape of bytes says.
BOOST_AUTO_TEST_CASE(edited_types_of_tensors_are_not_trusted) {
  const auto metadata = [](const std::string& tensor) {
    return R"({"format":"gguf","gguf":{"key_values":{},"tensors":{"w":)" + tensor + "}}}";
  };
  const auto good = one_tensor(DType::u8, {2, 34}, metadata(R"({"type":"Q8_0","shape":[2,32]})"));
  BOOST_TEST((file_of(good).tensor("w").type == GgmlType::q8_0));
  for (const char* const bad :
       {R"({"type":"Q8_0","shape":[2,64]})", R"({"type":"Q8_0","shape":[32,2]})",
        R"({"type":"Q8_0","shape":[2,33]})", R"({"type":"Q8_0","shape":[]})", R"({"type":"Q8_0"})",
        R"({"type":"Q8_0","shape":[2,32],"x":1})", R"({"shape":[2,32]})",
        R"({"type":"Q9_0","shape":[2,32]})", R"({"type":"Q8_0","shape":[2,-32]})",
        R"({"type":"Q8_0","shape":"2"})", R"({"type":"F32"})", R"({"type":8,"shape":[2,32]})",
        R"({"type":"Q8_0","shape":[0,18446744073709551584]})",
        R"({"type":"Q8_0","shape":[1,1,1,1,1,1,1,1,2,32]})", "[]", "1"})
    refused<UnsupportedError>(one_tensor(DType::u8, {2, 34}, metadata(bad)),
                              ErrorCode::unsupported_dtype, "'w'");
  // Elements are what their dtype says.
  const auto other = one_tensor(DType::i16, {2, 34}, metadata(R"({"type":"F16"})"));
  BOOST_TEST((file_of(other).tensor("w").type == GgmlType::i16));
  const auto floats =
      one_tensor(DType::f32, {2, 34}, metadata(R"({"type":"Q8_0","shape":[2,32]})"));
  BOOST_TEST((file_of(floats).tensor("w").type == GgmlType::f32));
}

BOOST_AUTO_TEST_CASE(tensors_that_ggml_lacks_are_refused_by_name) {
  for (const DType dtype : {DType::u8, DType::u16, DType::u32, DType::u64, DType::boolean,
                            DType::f8_e4m3, DType::f4_e2m1, DType::i4, DType::c64})
    refused<UnsupportedError>(one_tensor(dtype, {2, 2}), ErrorCode::unsupported_dtype, "'w'");
  refused<UnsupportedError>(one_tensor(DType::f32, {1, 1, 1, 1, 1}), ErrorCode::unsupported_feature,
                            "'w'");
  SinkInput input = one_tensor(DType::f32, {4, 4});
  input.tensors[0].layout.encoding = Encoding::csr;
  refused<UnsupportedError>(input, ErrorCode::unsupported_feature, "csr");
  input = one_tensor(DType::f32, {1});
  input.tensors[0].name.assign(64, 'n');
  refused<UnsupportedError>(input, ErrorCode::unsupported_feature, "at most 63");
  BOOST_TEST(!written(input, nullptr, true).bytes.empty());
  // Hands on nothing where 4 bytes were said.
  refused<UsageError>(one_tensor(DType::f32, {1}), ErrorCode::size_mismatch, "got 0 bytes");
}

BOOST_AUTO_TEST_CASE(every_type_of_elements_is_written) {
  for (const GgmlTypeFacts& facts : ggml_types()) {
    if (!facts.dtype) continue;
    BOOST_TEST((file_of(one_tensor(*facts.dtype, {3, 5})).tensor("w").type == facts.type));
  }
}

BOOST_AUTO_TEST_SUITE_END()
