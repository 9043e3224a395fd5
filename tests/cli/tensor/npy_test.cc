#include "cli/tensor/npy.h"

#include <array>
#include <string>
#include <vector>

#include "boost_test.h"

using namespace thalia;
using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(npy)

// numpy.lib.format: magic, version 1.0, header length, dictionary, spaces, newline.
BOOST_AUTO_TEST_CASE(header_is_that_of_numpy) {
  const std::string header = npy_header(DType::f32, {3, 4});
  BOOST_TEST(header.size() == 128u);
  BOOST_TEST(header.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  BOOST_TEST(static_cast<int>(header[8]) == 118);
  BOOST_TEST(static_cast<int>(header[9]) == 0);
  const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
  BOOST_TEST(header.substr(10, dictionary.size()) == dictionary);
  BOOST_TEST(header.find_first_not_of(' ', 10 + dictionary.size()) == header.size() - 1);
  BOOST_TEST(header.back() == '\n');
}

BOOST_AUTO_TEST_CASE(elements_start_on_64_bytes_for_every_rank) {
  std::vector<std::uint64_t> extents;
  for (unsigned rank = 0; rank <= Shape::kMaxRank; ++rank) {
    const std::string header =
        npy_header(DType::c128, Shape(std::span<const std::uint64_t>(extents)));
    BOOST_TEST(header.size() % 64 == 0u);
    const auto length =
        static_cast<unsigned char>(header[8]) + 256u * static_cast<unsigned char>(header[9]);
    BOOST_TEST(header.size() == 10 + length);
    extents.push_back(~std::uint64_t{0});
  }
}

BOOST_AUTO_TEST_CASE(tuples_of_none_and_of_one_are_python) {
  BOOST_TEST(npy_header(DType::u8, {}).find("'shape': (), }") != std::string::npos);
  BOOST_TEST(npy_header(DType::u8, {7}).find("'shape': (7,), }") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(types_that_numpy_lacks_are_widened) {
  BOOST_TEST(npy_dtype(DType::bf16) == "<f4");
  BOOST_TEST(npy_dtype(DType::ternary) == "|i1");
  const std::array<std::uint16_t, 2> bf16{0x3F80, 0xC000};
  std::string out;
  append_npy(out, DType::bf16, as_byte_span(bf16), 2);
  BOOST_TEST(out == std::string("\x00\x00\x80\x3F\x00\x00\x00\xC0", 8));
}

BOOST_AUTO_TEST_CASE(packed_types_take_a_byte_each) {
  const std::array<std::uint8_t, 2> packed{0b11100100, 0b00000001};
  std::string out;
  append_npy(out, DType::i2, as_byte_span(packed), 5);
  BOOST_TEST(out == std::string("\x00\x01\xFE\xFF\x01", 5));
  out.clear();
  append_npy(out, DType::binary, as_byte_span(packed), 3);
  BOOST_TEST(out == std::string("\xFF\xFF\x01", 3));
  out.clear();
  append_npy(out, DType::boolean, as_byte_span(packed), 2);
  BOOST_TEST(out == std::string("\x01\x01", 2));
}

BOOST_AUTO_TEST_CASE(types_that_numpy_has_are_copied) {
  const std::array<float, 2> values{1.0f, -2.0f};
  std::string out;
  append_npy(out, DType::f32, as_byte_span(values), 2);
  BOOST_TEST(out == std::string("\x00\x00\x80\x3F\x00\x00\x00\xC0", 8));
}

BOOST_AUTO_TEST_SUITE_END()
