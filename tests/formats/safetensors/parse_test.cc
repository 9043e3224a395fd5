#include "formats/safetensors/parse.h"

#include <cstddef>
#include <string>

#include "boost_test.h"
#include "formats/samples.h"
#include "formats/source/dtype_names.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(safetensors_parse)

namespace {

constexpr std::uint64_t kLimit = formats::kSafetensorsHeaderLimit;

// The error that a file is refused with, as "code: text"; "good" if it is not refused.
std::string verdict(const std::string& file, std::uint64_t limit = kLimit) {
  try {
    formats::parse_safetensors(bytes_of(file), limit);
    return "good";
  } catch (const Error& error) {
    return std::string(error_code_name(error.code())) + ": " + error.what();
  }
}

std::string header_verdict(std::string_view header, std::size_t data_bytes = 0) {
  return verdict(safetensors_bytes(header, data_bytes));
}

std::string tensor_verdict(std::string_view dtype, std::string_view shape, std::string_view offsets,
                           std::size_t data_bytes) {
  return header_verdict(one_tensor(dtype, shape, offsets), data_bytes);
}

// What parsing gives is inside the file, whatever the file says.
void check_consistent(const std::string& file) {
  try {
    const ByteSpan bytes = bytes_of(file);
    const auto parsed = formats::parse_safetensors(bytes, kLimit);
    std::size_t total = 0;
    for (const NamedArray& tensor : parsed.tensors) {
      total += tensor.bytes.size();
      BOOST_REQUIRE(tensor.shape.byte_length(tensor.dtype) == tensor.bytes.size());
      BOOST_REQUIRE(tensor.bytes.data() >= bytes.data());
      BOOST_REQUIRE(tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size());
    }
    BOOST_REQUIRE(total <= bytes.size() - 8);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(reads_names_dtypes_shapes_bytes_and_metadata) {
  const std::string file = safetensors_bytes(
      R"({"__metadata__":{"b":"1","a":"2"},"s":{"dtype":"U8","shape":[],"data_offsets":[4,5]},)"
      R"("m":{"shape":[2,1],"data_offsets":[0,4],"dtype":"BF16"}}  )",
      5);
  const auto parsed = formats::parse_safetensors(bytes_of(file), kLimit);
  BOOST_TEST_REQUIRE(parsed.tensors.size() == 2u);
  BOOST_TEST(parsed.tensors[0].name == "m");
  BOOST_TEST((parsed.tensors[0].dtype == DType::bf16));
  BOOST_TEST((parsed.tensors[0].shape == Shape{2, 1}));
  BOOST_TEST(text_of(parsed.tensors[0].bytes) == std::string("\0\1\2\3", 4));
  BOOST_TEST(parsed.tensors[1].name == "s");
  BOOST_TEST((parsed.tensors[1].shape == Shape{}));
  BOOST_TEST(text_of(parsed.tensors[1].bytes) == "\4");
  BOOST_TEST((parsed.metadata == SafetensorsMetadata{{"b", "1"}, {"a", "2"}}));
}

BOOST_AUTO_TEST_CASE(absent_and_empty_metadata_differ) {
  const std::string absent = safetensors_bytes("{}");
  const std::string empty = safetensors_bytes(R"({"__metadata__":{}})");
  BOOST_TEST(!formats::parse_safetensors(bytes_of(absent), kLimit).metadata.has_value());
  BOOST_TEST(formats::parse_safetensors(bytes_of(empty), kLimit).metadata.value().empty());
}

BOOST_AUTO_TEST_CASE(header_length_is_checked_before_the_header) {
  BOOST_TEST(
      verdict("") ==
      "truncated: header at offset 0: the file is empty, as a copy or download that failed leaves "
      "it: got 0 bytes, expected at least 8");
  BOOST_TEST(
      verdict("1234567").starts_with("truncated: header at offset 0: no room for the header's"));
  BOOST_TEST(
      verdict(std::string("\3\0\0\0\0\0\0\0{}", 10)) ==
      "truncated: header.length at offset 0: got 3, expected at most 2, what is left of the file");
  BOOST_TEST(verdict(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10))
                 .starts_with("truncated: header.length at offset 0: got 18446744073709551615"));
}

BOOST_AUTO_TEST_CASE(header_limit_can_be_lowered_and_raised) {
  const std::string file = safetensors_bytes("{}      ");
  BOOST_TEST(verdict(file, 8) == "good");
  BOOST_TEST(verdict(file, 7).starts_with("limit_exceeded: "));
  BOOST_TEST(verdict(file, 7).find("max_safetensors_header_bytes") != std::string::npos);
  // What is longer than the file is damage, whatever the limit.
  const std::string hundred_million_and_one("\x01\xe1\xf5\x05\0\0\0\0{}", 10);
  BOOST_TEST(verdict(hundred_million_and_one).starts_with("truncated: "));
  BOOST_TEST(verdict(hundred_million_and_one, kLimit + 1).starts_with("truncated: "));
}

BOOST_AUTO_TEST_CASE(header_is_one_json_object_from_its_first_byte) {
  BOOST_TEST(header_verdict("{}") == "good");
  BOOST_TEST(header_verdict("{} \t\r\n") == "good");
  BOOST_TEST(header_verdict("").starts_with("bad_value: header at offset 8: the header does not"));
  BOOST_TEST(header_verdict(" {}").starts_with("bad_value: header at offset 8"));
  BOOST_TEST(header_verdict("[]").starts_with("bad_value: header at offset 8"));
  BOOST_TEST(header_verdict("{").starts_with("bad_json: header: "));
  BOOST_TEST(header_verdict("{}x").starts_with("bad_json: header: "));
  BOOST_TEST(header_verdict(std::string_view("{}\0", 3)).starts_with("bad_json: header: "));
  BOOST_TEST(header_verdict("{\"\xff\":1}").starts_with("bad_json: header: "));
}

BOOST_AUTO_TEST_CASE(refuses_repeated_keys) {
  const std::string t = R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  BOOST_TEST(header_verdict("{" + t + "," + t + "}", 1) ==
             "inconsistent: header (tensor 't'): the name is there twice");
  BOOST_TEST(header_verdict(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("\u0074":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                            2)
                 .starts_with("inconsistent: "));
  BOOST_TEST(
      header_verdict(R"({"t":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1) ==
      "inconsistent: header.dtype (tensor 't'): the field is there twice");
  BOOST_TEST(header_verdict(R"({"__metadata__":{},"__metadata__":{}})")
                 .starts_with("inconsistent: header.__metadata__"));
  BOOST_TEST(header_verdict(R"({"__metadata__":{"a":"1","a":"1"}})") ==
             "inconsistent: header.__metadata__: the key is there twice: got a");
}

BOOST_AUTO_TEST_CASE(metadata_maps_strings_to_strings) {
  BOOST_TEST(header_verdict(R"({"__metadata__":{"a":1}})") ==
             "bad_value: header.__metadata__[a]: got number, expected string");
  BOOST_TEST(header_verdict(R"({"__metadata__":null,"__metadata__":null})")
                 .starts_with("inconsistent: header.__metadata__"));
  BOOST_TEST(header_verdict(R"({"__metadata__":["a"]})").starts_with("bad_value: "));
  BOOST_TEST(header_verdict(R"({"__metadata__":{"a":{"b":"c"}}})").starts_with("bad_value: "));
}

BOOST_AUTO_TEST_CASE(a_tensor_has_exactly_dtype_shape_and_data_offsets) {
  BOOST_TEST(header_verdict(R"({"t":{"shape":[1],"data_offsets":[0,1]}})", 1) ==
             "bad_value: header.dtype (tensor 't'): the field is missing");
  BOOST_TEST(header_verdict(R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", 1) ==
             "bad_value: header.shape (tensor 't'): the field is missing");
  BOOST_TEST(header_verdict(R"({"t":{"dtype":"U8","shape":[1]}})", 1) ==
             "bad_value: header.data_offsets (tensor 't'): the field is missing");
  BOOST_TEST(header_verdict(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":{}}})", 1) ==
             "bad_value: header.x (tensor 't'): unknown field");
  BOOST_TEST(header_verdict(R"({"t":null})") ==
             "bad_value: header (tensor 't'): got null, expected object");
  BOOST_TEST(header_verdict(R"({"t":["U8",[1],[0,1]]})", 1).starts_with("bad_value: "));
}

BOOST_AUTO_TEST_CASE(refuses_fields_of_another_kind) {
  BOOST_TEST(tensor_verdict("8", "[1]", "[0,1]", 1) ==
             "bad_value: header.dtype (tensor 't'): got number, expected string");
  BOOST_TEST(tensor_verdict("\"U8\"", "1", "[0,1]", 1).starts_with("bad_value: header.shape"));
  BOOST_TEST(
      tensor_verdict("\"U8\"", "[\"1\"]", "[0,1]", 1).starts_with("bad_value: header.shape"));
  for (const char* extent : {"-1", "1.0", "1e0", "18446744073709551616", "-0"}) {
    BOOST_TEST_CONTEXT(extent) {
      BOOST_TEST(tensor_verdict("\"U8\"", std::string("[") + extent + "]", "[0,1]", 1) ==
                 std::string("bad_value: header.shape (tensor 't'): got ") + extent +
                     ", expected a whole number from 0 to 2^64 - 1");
    }
  }
  for (const char* offsets : {"[]", "[0]", "[0,1,1]"}) {
    BOOST_TEST_CONTEXT(offsets) {
      BOOST_TEST(tensor_verdict("\"U8\"", "[1]", offsets, 1)
                     .starts_with("bad_value: header.data_offsets"));
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_unknown_dtypes_and_more_than_eight_dimensions) {
  BOOST_TEST(tensor_verdict("\"f32\"", "[1]", "[0,4]", 4) ==
             "unsupported_dtype: header.dtype (tensor 't'): unknown dtype: got f32");
  BOOST_TEST(tensor_verdict("\"I4\"", "[2]", "[0,1]", 1).starts_with("unsupported_dtype: "));
  BOOST_TEST(tensor_verdict("\"U8\"", "[1,1,1,1,1,1,1,1]", "[0,1]", 1) == "good");
  BOOST_TEST(tensor_verdict("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]", 1) ==
             "unsupported_feature: header.shape (tensor 't'): too many dimensions: got 9, expected "
             "at most 8");
}

BOOST_AUTO_TEST_CASE(size_is_that_of_dtype_and_shape) {
  BOOST_TEST(
      tensor_verdict("\"F32\"", "[2]", "[0,4]", 4) ==
      "inconsistent: header.data_offsets (tensor 't'): got [0, 4] of 4 bytes, expected 8 bytes "
      "for F32 [2]");
  BOOST_TEST(tensor_verdict("\"F32\"", "[]", "[0,4]", 4) == "good");
  BOOST_TEST(tensor_verdict("\"F32\"", "[0,7]", "[0,0]", 0) == "good");
  BOOST_TEST(tensor_verdict("\"F32\"", "[0,7]", "[0,4]", 4).starts_with("inconsistent: "));
}

BOOST_AUTO_TEST_CASE(every_dtype_has_its_size) {
  for (const DType dtype : safetensors_dtypes()) {
    const std::string name = "\"" + std::string(formats::safetensors_dtype_name(dtype)) + "\"";
    const std::size_t bytes = dtype_bits(dtype);  // of eight elements
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(tensor_verdict(name, "[8]", "[0," + std::to_string(bytes) + "]", bytes) == "good");
      BOOST_TEST(tensor_verdict(name, "[8]", "[0," + std::to_string(bytes + 1) + "]", bytes + 1)
                     .starts_with("inconsistent: "));
    }
  }
  BOOST_TEST(safetensors_dtypes().size() == 22u);
}

BOOST_AUTO_TEST_CASE(packed_elements_fill_whole_bytes) {
  BOOST_TEST(tensor_verdict("\"F4\"", "[3,2]", "[0,3]", 3) == "good");
  BOOST_TEST(tensor_verdict("\"F6_E2M3\"", "[4]", "[0,3]", 3) == "good");
  BOOST_TEST(tensor_verdict("\"F4\"", "[3]", "[0,2]", 2) ==
             "bad_value: header.shape (tensor 't'): its F4 elements are no whole number of bytes: "
             "got [3]");
  BOOST_TEST(tensor_verdict("\"F6_E3M2\"", "[2]", "[0,2]", 2).starts_with("bad_value: "));
}

BOOST_AUTO_TEST_CASE(refuses_overflow_on_the_way_to_the_size) {
  BOOST_TEST(tensor_verdict("\"F32\"", "[4611686018427387904]", "[0,0]", 0) ==
             "out_of_bounds: header.shape (tensor 't'): overflow in the size of its F32 elements: "
             "got [4611686018427387904], expected at most 2^64 - 1 bits");
  BOOST_TEST(tensor_verdict("\"U8\"", "[4294967296,4294967296]", "[0,0]", 0)
                 .starts_with("out_of_bounds: "));
  // The reference multiplies from the left and stops at the overflow, not at the zero after it.
  BOOST_TEST(tensor_verdict("\"U8\"", "[18446744073709551615,2,0]", "[0,0]", 0)
                 .starts_with("out_of_bounds: "));
  BOOST_TEST(tensor_verdict("\"U8\"", "[0,18446744073709551615,2]", "[0,0]", 0) == "good");
}

BOOST_AUTO_TEST_CASE(tensors_cover_the_data_without_holes_or_overlap) {
  const auto two = [](std::string_view a, std::string_view b) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + std::string(a) +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + std::string(b) + "}}";
  };
  BOOST_TEST(header_verdict(two("[0,2]", "[2,4]"), 4) == "good");
  BOOST_TEST(header_verdict(two("[2,4]", "[0,2]"), 4) == "good");
  BOOST_TEST(header_verdict(two("[0,2]", "[1,3]"), 3) ==
             "inconsistent: header.data_offsets (tensor 'b'): overlaps the tensor before it: got "
             "[1, 3], expected a begin of 2");
  BOOST_TEST(header_verdict(two("[0,2]", "[0,2]"), 2).starts_with("inconsistent: "));
  BOOST_TEST(header_verdict(two("[0,2]", "[3,5]"), 5) ==
             "inconsistent: header.data_offsets (tensor 'b'): leaves a hole before it: got [3, 5], "
             "expected a begin of 2");
  BOOST_TEST(header_verdict(two("[1,3]", "[3,5]"), 5).starts_with("inconsistent: "));
  BOOST_TEST(tensor_verdict("\"U8\"", "[2]", "[2,0]", 2) ==
             "bad_value: header.data_offsets (tensor 't'): got [2, 0], expected begin <= end");
}

BOOST_AUTO_TEST_CASE(file_is_exactly_header_and_data) {
  BOOST_TEST(tensor_verdict("\"U8\"", "[4]", "[0,4]", 3) ==
             "truncated: data at offset 61: the file ends before its tensors do: got 3 bytes, "
             "expected 4");
  BOOST_TEST(tensor_verdict("\"U8\"", "[4]", "[0,4]", 5) ==
             "inconsistent: data at offset 61: there is more after the last tensor: got 5 bytes, "
             "expected 4");
  BOOST_TEST(header_verdict("{}", 1).starts_with("inconsistent: data"));
  BOOST_TEST(tensor_verdict("\"U8\"", "[1152921504606846976]", "[0,1152921504606846976]", 4)
                 .starts_with("truncated: data"));
}

BOOST_AUTO_TEST_CASE(empty_tensors_share_their_offset_in_the_headers_order) {
  const std::string file =
      safetensors_bytes(R"({"z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                        R"("m":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                        R"("y":{"dtype":"U8","shape":[0,3],"data_offsets":[1,1]},)"
                        R"("x":{"dtype":"F64","shape":[2,0],"data_offsets":[1,1]}})",
                        1);
  const auto parsed = formats::parse_safetensors(bytes_of(file), kLimit);
  std::string names;
  for (const NamedArray& tensor : parsed.tensors) names += tensor.name;
  BOOST_TEST(names == "zmyx");
  BOOST_TEST(header_verdict(one_tensor("\"U8\"", "[0]", "[1,1]")).starts_with("inconsistent: "));
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  for (const char* name : {"metadata.safetensors", "ranks.safetensors", "none.safetensors"}) {
    const std::string file = read_file(golden(name));
    BOOST_TEST(verdict(file) == "good");
    for (std::size_t length = 0; length < file.size(); ++length) {
      BOOST_TEST_CONTEXT(name << " cut to " << length) {
        BOOST_TEST(verdict(file.substr(0, length)) != "good");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_flip_of_a_header_byte_gives_an_error_or_a_consistent_file) {
  for (const char* name : {"metadata.safetensors", "ranks.safetensors"}) {
    std::string file = read_file(golden(name));
    const std::size_t header_end = file.rfind('}') + 1;
    for (std::size_t i = 0; i < header_end; ++i) {
      const char good = file[i];
      for (const unsigned flip : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 255u}) {
        file[i] = static_cast<char>(static_cast<unsigned char>(good) ^ flip);
        check_consistent(file);
      }
      file[i] = good;
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
