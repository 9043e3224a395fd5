// Headers of .npy arrays; numpy_test.py holds them against NumPy itself.
#include "formats/source/npy_header.h"

#include <string>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::formats;
using test::bytes_of;
using test::says;

BOOST_AUTO_TEST_SUITE(npy_headers)

namespace {

// An array file of version 1.0 with this text, and `elements` bytes after it.
std::string file_of(const std::string& text, std::size_t elements) {
  std::string file("\x93NUMPY\1\0", 8);
  file += static_cast<char>(text.size() & 0xff);
  file += static_cast<char>(text.size() >> 8);
  return file + text + std::string(elements, '\1');
}

NpyHeader parse(const std::string& file) {
  const std::string start = file.substr(0, kMostNpyHeader);
  return parse_npy_header(bytes_of(start), file.size());
}

std::string text_with(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
}

NpyHeader parse_text(const std::string& text, std::size_t elements) {
  return parse(file_of(text, elements));
}

}  // namespace

// The bytes of numpy.save(…, numpy.arange(3)) by NumPy 2.4.6.
BOOST_AUTO_TEST_CASE(headers_are_those_of_numpy) {
  const std::string header = make_npy_header("<i8", false, {3});
  std::string expected("\x93NUMPY\1\0v\0{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }",
                       67);
  expected += std::string(60, ' ') + "\n";
  BOOST_TEST(header == expected);
  BOOST_TEST(make_npy_header("<i8", true, {3, 70}).find("True, 'shape': (3, 70), }") !=
             std::string::npos);
  BOOST_TEST(make_npy_header("<i8", false, {}).find("'shape': (), }") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_made_is_read_back) {
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{3}, Shape{2, 3}, Shape{1, 2, 1, 2, 1, 2, 1, 3}}) {
    for (const unsigned version : {1u, 2u, 3u}) {
      for (const std::uint64_t bytes : {0, 200, 1000, 10'000, 99'999}) {
        const std::string header = make_npy_header("<f4", shape.rank() == 2, shape, bytes, version);
        const NpyHeader read = parse(header + std::string(*shape.byte_length(DType::f32), '\0'));
        BOOST_TEST((read.shape == shape));
        BOOST_TEST(read.fortran_order == (shape.rank() == 2));
        BOOST_TEST(read.version == version);
        BOOST_TEST(read.header_bytes == header.size());
        BOOST_TEST((read.type.dtype == DType::f32));
        const bool kept = bytes >= 200 && bytes <= 10'000;
        BOOST_TEST(header.size() == (kept ? bytes : 128));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_way_to_write_the_literal_is_read) {
  for (const char* const text :
       {"{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
        "  {\"shape\": (2, 3,), \"descr\": \"<f4\", \"fortran_order\": False, }  \n",
        "{'shape': (2L, 3L), 'fortran_order': False, 'descr': '<f4'}",
        "{\n'descr' : '=f4' ,\t'fortran_order' : False , 'shape' : ( 2 , 3 ) , }",
        "{'descr': 'float32', 'fortran_order': False, 'shape': (002, 3)}"}) {
    BOOST_TEST_CONTEXT(text)
    BOOST_TEST((parse_text(text, 24).shape == Shape{2, 3}));
  }
}

BOOST_AUTO_TEST_CASE(types_are_known_by_all_their_names) {
  const struct {
    const char* descr;
    DType dtype;
    bool swapped;
    std::uint32_t opaque;
  } kCases[] = {{"<f4", DType::f32, false, 0},
                {">f4", DType::f32, true, 0},
                {">c16", DType::c128, true, 0},
                {"|u1", DType::u8, false, 0},
                {">u1", DType::u8, false, 0},
                {"|b1", DType::boolean, false, 0},
                {"?", DType::boolean, false, 0},
                {"f2", DType::f16, false, 0},
                {"<V2", DType::bf16, false, 0},
                {"|V2", DType::u8, false, 2},
                {"<V1", DType::u8, false, 1},
                {"|V99999", DType::u8, false, 99'999},
                {"<f1", DType::f8_e5m2, false, 0},
                {"bfloat16", DType::bf16, false, 0},
                {"float8_e4m3fn", DType::f8_e4m3, false, 0}};
  for (const auto& one : kCases) {
    BOOST_TEST_CONTEXT(one.descr) {
      const auto type = npy_type(one.descr);
      BOOST_REQUIRE(type.has_value());
      BOOST_TEST((type->dtype == one.dtype));
      BOOST_TEST(type->swapped == one.swapped);
      BOOST_TEST(type->opaque == one.opaque);
    }
  }
  for (const char* const descr : {"", "<", "<f", "<f16", "<<f4", "<f4 ", "f3", "V", "|V0", "|V01",
                                  "|V999999", "|V-1", "|O", "<U3", "int128"})
    BOOST_TEST(!npy_type(descr), descr);
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    BOOST_TEST(npy_descr(dtype).empty() == dtype_is_packed(dtype));
    if (!npy_descr(dtype).empty()) BOOST_TEST(npy_type(npy_descr(dtype)).has_value());
  }
}

BOOST_AUTO_TEST_CASE(hostile_headers_are_refused) {
  const std::string deep(5'000, '(');
  const struct {
    std::string text;
    std::size_t elements;
    ErrorCode code;
    const char* says;
  } kCases[] = {
      {text_with("'<f4'", deep), 0, ErrorCode::bad_value, "an extent"},
      {text_with("'<f4'", "(" + deep), 0, ErrorCode::bad_value, "an extent"},
      {std::string(5'000, '{'), 0, ErrorCode::bad_value, "quotes"},
      {text_with(std::string(5'000, '['), "()"), 0, ErrorCode::unsupported_dtype, "records"},
      {text_with("'" + std::string(9'000, 'x') + "'", "()"), 0, ErrorCode::unsupported_dtype,
       "unknown element type"},
      {text_with("'<f4'", "(-1,)"), 0, ErrorCode::bad_value, "-1"},
      {text_with("'<f4'", "(4294967296, 4294967296)"), 0, ErrorCode::truncated, "2^64"},
      {text_with("'<f4'", "(4611686018427387905,)"), 4, ErrorCode::truncated, "2^64"},
      {text_with("'<f4'", "(18446744073709551616,)"), 0, ErrorCode::out_of_bounds, "2^64"},
      {text_with("'<f4'", "(" + std::string(3'000, '9') + ",)"), 0, ErrorCode::out_of_bounds,
       "shape"},
      {text_with("'|V8'", "(2305843009213693953,)"), 8, ErrorCode::truncated, "2^64"},
      {text_with("'<f4'", "(2,)"), 7, ErrorCode::truncated, "shape"},
      {text_with("'<f4'", "(2,)"), 9, ErrorCode::inconsistent, "shape"},
      {text_with("'<f4'", "(2)"), 8, ErrorCode::bad_value, "comma"},
      {text_with("'<f4'", "[2]"), 8, ErrorCode::bad_value, "("},
      {text_with("'<f4'", "2"), 8, ErrorCode::bad_value, "("},
      {text_with("'<f4'", "(2.0,)"), 8, ErrorCode::bad_value, ")"},
      {text_with("'<f4'", "(1,1,1,1,1,1,1,1,1)"), 4, ErrorCode::unsupported_feature,
       "too many dimensions"},
      {text_with("'|V3'", "(1,1,1,1,1,1,1,1)"), 3, ErrorCode::unsupported_feature,
       "too many dimensions"},
      {text_with("b'<f4'", "()"), 4, ErrorCode::bad_value, "quotes"},
      {text_with("'\\x3cf4'", "()"), 4, ErrorCode::bad_value, "escapes"},
      {text_with("'<f4", "()"), 4, ErrorCode::bad_value, "}"},
      {text_with("'|O'", "()"), 8, ErrorCode::unsupported_dtype, "a pickle"},
      {text_with("'<U3'", "()"), 12, ErrorCode::unsupported_dtype, "texts"},
      {text_with("'<M8[ns]'", "()"), 8, ErrorCode::unsupported_dtype, "dates"},
      {text_with("('<f4', (2,))", "()"), 8, ErrorCode::unsupported_dtype, "records"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", 4, ErrorCode::bad_value, "True"},
      {"{'descr': '<f4', 'fortran_order': False}", 4, ErrorCode::bad_value, "shape"},
      {"{'descr': '<f4', 'shape': (), 'fortran_order': False, 'x': 1}", 4, ErrorCode::bad_value,
       "key"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4,
       ErrorCode::inconsistent, "twice"},
      {text_with("'<f4'", "()") + "x", 4, ErrorCode::bad_value, "end"},
      {text_with("'<f4'", "()") + text_with("'<f4'", "()"), 4, ErrorCode::bad_value, "end"},
      {"__import__('os').system('true')", 4, ErrorCode::bad_value, "{"},
      {"", 4, ErrorCode::bad_value, "{"},
  };
  for (const auto& one : kCases) {
    BOOST_TEST_CONTEXT(one.text.substr(0, 80))
    BOOST_CHECK_EXCEPTION(parse_text(one.text, one.elements), Error, says(one.code, one.says));
  }
}

BOOST_AUTO_TEST_CASE(lengths_and_versions_that_lie_are_refused) {
  const std::string good = make_npy_header("<f4", false, {2}) + std::string(8, '\0');
  BOOST_TEST((parse(good).shape == Shape{2}));
  const auto changed = [&](std::size_t at, char value) {
    std::string file = good;
    file[at] = value;
    return file;
  };
  BOOST_CHECK_EXCEPTION(parse(changed(0, 'x')), FormatError, says(ErrorCode::bad_magic, "magic"));
  for (const auto& [at, value] : {std::pair<std::size_t, char>{6, 0}, {6, 4}, {7, 1}})
    BOOST_CHECK_EXCEPTION(parse(changed(at, value)), UnsupportedError,
                          says(ErrorCode::unsupported_version, "version"));
  BOOST_CHECK_EXCEPTION(parse(changed(9, '\x7f')), FormatError,
                        says(ErrorCode::truncated, "header_length"));
  // A version with four bytes of length: a text of 4 GiB, and one that the file has room for.
  std::string wide("\x93NUMPY\2\0\xff\xff\xff\xff", 12);
  BOOST_CHECK_EXCEPTION(parse(wide + std::string(200, ' ')), FormatError,
                        says(ErrorCode::truncated, "header_length"));
  wide = std::string("\x93NUMPY\2\0\0\0\x10\0", 12);
  BOOST_CHECK_EXCEPTION(parse(wide + std::string(2'000'000, '(')), FormatError,
                        says(ErrorCode::limit_exceeded, "header_length"));
}

BOOST_AUTO_TEST_CASE(no_truncated_array_is_read) {
  const std::string good = make_npy_header("<f4", false, {2}) + std::string(8, '\0');
  for (std::size_t length = 0; length < good.size(); ++length)
    BOOST_CHECK_THROW(parse(good.substr(0, length)), FormatError);
}

BOOST_AUTO_TEST_CASE(every_flipped_byte_of_a_header_is_survived) {
  const std::string good = make_npy_header("<f4", true, {2, 3}) + std::string(24, '\0');
  unsigned refused = 0;
  for (std::size_t i = 0; i < 128; ++i) {
    for (const int bit : {0, 1, 3, 5, 7}) {
      std::string file = good;
      file[i] = static_cast<char>(file[i] ^ (1 << bit));
      try {
        // What is read is of the size that the file has.
        const NpyHeader header = parse(file);
        BOOST_TEST(*header.logical_shape().byte_length(header.type.dtype) + header.header_bytes ==
                   file.size());
      } catch (const FormatError&) {
        ++refused;
      } catch (const UnsupportedError&) {
        ++refused;
      }
    }
  }
  BOOST_TEST(refused > 500u);
}

BOOST_AUTO_TEST_SUITE_END()
