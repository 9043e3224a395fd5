// Files made to make a reader allocate, overflow, recurse or read elsewhere. The shapes are those
// of the faults that other readers of GGUF had: counts and lengths beyond the file, products of
// dimensions that wrap, arrays of arrays, an alignment of zero, names that repeat.
#include <cstdint>
#include <string>

#include "boost_test.h"
#include "formats/gguf/files.h"
#include "support/errors.h"
#include "thalia/formats/gguf.h"

BOOST_AUTO_TEST_SUITE(gguf_hostile)

namespace {

using namespace thalia;
using test::gguf::Bytes;
using test::gguf::from_text;
using test::gguf::start;

void refused(const Bytes& file, ErrorCode code, const char* says, const char* also = "test.gguf") {
  BOOST_TEST_CONTEXT(says)
  BOOST_CHECK_EXCEPTION(from_text(file.bytes), Error, test::says(code, says, also));
}

// A file of one tensor with 64 bytes of data.
Bytes with_tensor(std::initializer_list<std::uint64_t> dimensions, std::uint32_t type,
                  std::uint64_t offset = 0) {
  return start(1, 0).tensor("w", dimensions, type, offset).pad().raw(std::string(64, '\1'));
}
// A file of one key/value, whose type and bytes are given, and nothing else.
Bytes with_value(std::uint32_t type, const Bytes& value, const char* key = "k") {
  return start(0, 1).text(key).u32(type).raw(value.bytes).raw(std::string(64, '\0'));
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_no_gguf_file_is_refused) {
  refused(Bytes(), ErrorCode::truncated, "the file is empty");
  refused(Bytes().raw("GGUX"), ErrorCode::bad_magic, "GGUX", "GGUF");
  refused(Bytes().raw("GGU"), ErrorCode::truncated, "magic");
  refused(Bytes().raw("GGUF").u32(3).u64(0), ErrorCode::truncated, "kv_count");
}

BOOST_AUTO_TEST_CASE(counts_beyond_the_file_allocate_nothing) {
  refused(start(UINT64_MAX, 0), ErrorCode::truncated, "tensor_count", "at most 0");
  refused(start(1ull << 63, 0), ErrorCode::truncated, "tensor_count");
  refused(start(0, UINT64_MAX), ErrorCode::truncated, "kv_count", "at most 0");
  refused(start(0, 1ull << 60).raw(std::string(1000, '\0')), ErrorCode::truncated, "kv_count");
  refused(start(42, 0).raw(std::string(1000, '\0')), ErrorCode::truncated, "tensor_count");
  for (const std::uint64_t length : {UINT64_MAX, std::uint64_t{1} << 63, std::uint64_t{1000}}) {
    refused(start(0, 1).u64(length).raw("keykeykeykey"), ErrorCode::truncated, "key");
    refused(with_value(8, Bytes().u64(length)), ErrorCode::truncated, "value");
    refused(with_value(9, Bytes().u32(8).u64(1).u64(length)), ErrorCode::truncated, "value");
    refused(start(1, 0).u64(length).raw(std::string(40, 'n')), ErrorCode::truncated, "name");
    for (std::uint32_t type = 0; type <= 12; ++type)
      if (type != 9)
        refused(with_value(9, Bytes().u32(type).u64(length)), ErrorCode::truncated, "array_length");
  }
}

BOOST_AUTO_TEST_CASE(limits_of_the_caller_count) {
  ReadLimits limits;
  limits.max_tensors = 1;
  const Bytes two = start(2, 0).tensor("a", {0}, 0, 0).tensor("b", {0}, 0, 0).pad();
  BOOST_CHECK_EXCEPTION(from_text(two.bytes, limits), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_tensors"));
  limits = {};
  limits.max_file_bytes = two.bytes.size() - 1;
  BOOST_CHECK_EXCEPTION(from_text(two.bytes, limits), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_file_bytes"));
  // 10,000 empty texts of 8 bytes each would be objects of 32.
  const Bytes texts = with_value(9, Bytes().u32(8).u64(10'000).raw(std::string(80'000, '\0')));
  BOOST_TEST(from_text(texts.bytes).key_values().size() == 1u);
  limits = {};
  limits.max_allocation_bytes = 200'000;
  BOOST_CHECK_EXCEPTION(from_text(texts.bytes, limits), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
  // Restored elements are more than their blocks.
  const Bytes blocks =
      start(1, 0).tensor("w", {256 * 64}, 35, 0).pad().raw(std::string(66 * 64, '\1'));
  limits.max_allocation_bytes = 60'000;
  const GgufFile file = from_text(blocks.bytes, limits);
  BOOST_TEST(file.read("w").bytes().size() == 66u * 64);
  BOOST_CHECK_EXCEPTION(file.dequantize("w"), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_allocation_bytes", "'w'"));
}

BOOST_AUTO_TEST_CASE(values_of_no_type_are_refused) {
  refused(with_value(13, Bytes()), ErrorCode::bad_value, "value_type", "got 13");
  refused(with_value(UINT32_MAX, Bytes()), ErrorCode::bad_value, "value_type");
  refused(with_value(9, Bytes().u32(13).u64(0)), ErrorCode::bad_value, "element_type");
  refused(with_value(7, Bytes().u8(2)), ErrorCode::bad_value, "bool", "0 or 1");
  refused(with_value(9, Bytes().u32(7).u64(2).u8(1).u8(255)), ErrorCode::bad_value, "bool");
}

BOOST_AUTO_TEST_CASE(arrays_of_arrays_are_refused_however_deep) {
  refused(with_value(9, Bytes().u32(9).u64(1).u32(4).u64(0)), ErrorCode::unsupported_feature,
          "array of arrays");
  Bytes deep;
  for (int i = 0; i < 100'000; ++i) deep.u32(9).u64(1);
  refused(with_value(9, deep), ErrorCode::unsupported_feature, "array of arrays");
}

BOOST_AUTO_TEST_CASE(keys_are_different_and_texts) {
  const auto keys = [](std::string_view a, std::string_view b) {
    return start(0, 2).text(a).u32(0).u8(1).text(b).u32(0).u8(2).pad();
  };
  BOOST_TEST(from_text(keys("a", "b").bytes).key_values().size() == 2u);
  refused(keys("a", "a"), ErrorCode::bad_name, "the key is there twice");
  refused(keys("", "a"), ErrorCode::bad_name, "the key is empty");
  refused(keys("a", "\xff"), ErrorCode::bad_name, "the key is not UTF-8");
}

BOOST_AUTO_TEST_CASE(the_alignment_is_a_power_of_two) {
  const auto with_alignment = [](std::uint32_t type, const Bytes& value) {
    return with_value(type, value, "general.alignment");
  };
  for (const std::uint32_t bad : {0u, 3u, 33u, UINT32_MAX})
    refused(with_alignment(4, Bytes().u32(bad)), ErrorCode::bad_value, "general.alignment",
            "a power of two");
  refused(with_alignment(5, Bytes().u32(32)), ErrorCode::bad_value, "general.alignment", "i32");
  refused(with_alignment(10, Bytes().u64(32)), ErrorCode::bad_value, "general.alignment", "u64");
  refused(with_alignment(8, Bytes().text("32")), ErrorCode::bad_value, "general.alignment");
  for (const std::uint32_t large : {1u << 21, 1u << 31})
    refused(with_alignment(4, Bytes().u32(large)), ErrorCode::unsupported_feature,
            "general.alignment", "1048576");
  BOOST_TEST(from_text(with_alignment(4, Bytes().u32(1u << 20)).bytes).alignment() == 1u << 20);
}

BOOST_AUTO_TEST_CASE(names_are_different_and_texts) {
  const auto names = [](std::string_view a, std::string_view b) {
    return start(2, 0).tensor(a, {0}, 0, 0).tensor(b, {0}, 0, 0).pad();
  };
  BOOST_TEST(from_text(names("a", "").bytes).tensors().size() == 2u);
  BOOST_TEST(from_text(names("a", std::string(200, 'n')).bytes).tensors().size() == 2u);
  refused(names("a", "a"), ErrorCode::bad_name, "the name is there twice");
  refused(names("a", "\x80"), ErrorCode::bad_name, "UTF-8");
  // ggml would cut it at the zero.
  refused(names("a", std::string_view("a\0", 2)), ErrorCode::bad_name, "zero bytes");
}

BOOST_AUTO_TEST_CASE(dimensions_that_overflow_are_refused) {
  refused(with_tensor({1ull << 32, 1ull << 32}, 0), ErrorCode::out_of_bounds, "dimensions",
          "overflow");
  refused(with_tensor({1ull << 31, 1ull << 31, 4}, 0), ErrorCode::out_of_bounds, "dimensions");
  refused(with_tensor({INT64_MAX, 2}, 24), ErrorCode::truncated, "offset");
  refused(with_tensor({UINT64_MAX}, 24), ErrorCode::out_of_bounds, "dimensions", "2^63 - 1");
  refused(with_tensor({UINT64_MAX, 2, 1, 1}, 0), ErrorCode::out_of_bounds, "dimensions");
  refused(with_tensor({1ull << 62}, 0), ErrorCode::out_of_bounds, "dimensions");
  // 2^58 blocks of 84 bytes are 5 × 2^62 bytes and more.
  refused(with_tensor({1ull << 62, 16}, 10), ErrorCode::out_of_bounds, "dimensions");
  // Nothing in it, however long its rows would be.
  BOOST_TEST(from_text(with_tensor({INT64_MAX, 0}, 28).bytes).read("w").bytes().empty());
  BOOST_TEST(from_text(with_tensor({INT64_MAX - 31, 0}, 8).bytes).read("w").bytes().empty());
  refused(with_tensor({1, 1, 1, 1, 1}, 0), ErrorCode::unsupported_feature, "n_dimensions",
          "at most 4");
  refused(start(1, 0).text("w").u32(UINT32_MAX).raw(std::string(100, '\0')),
          ErrorCode::unsupported_feature, "n_dimensions");
}

BOOST_AUTO_TEST_CASE(rows_are_whole_blocks) {
  refused(with_tensor({16, 2}, 2), ErrorCode::bad_value, "dimensions", "multiple of 32");
  refused(with_tensor({}, 8), ErrorCode::bad_value, "dimensions", "multiple of 32");
  refused(with_tensor({128, 2}, 12), ErrorCode::bad_value, "dimensions", "multiple of 256");
}

BOOST_AUTO_TEST_CASE(types_that_nobody_knows_are_refused_by_number) {
  for (const std::uint32_t type : {4u, 5u, 31u, 33u, 36u, 38u, 43u, 1000u, UINT32_MAX})
    refused(with_tensor({1}, type), ErrorCode::unsupported_dtype, "type",
            std::to_string(type).c_str());
}

BOOST_AUTO_TEST_CASE(tensors_lie_in_the_file_and_apart) {
  refused(with_tensor({17}, 0), ErrorCode::truncated, "ends after the file", "'w'");
  refused(with_tensor({1}, 0, 64).raw("\1"), ErrorCode::truncated, "ends after the file");
  refused(with_tensor({0}, 0, 96), ErrorCode::truncated, "ends after the file");
  refused(with_tensor({1}, 0, UINT64_MAX - 31), ErrorCode::truncated, "ends after the file");
  refused(with_tensor({1}, 0, 4), ErrorCode::bad_value, "offset", "a multiple of 32");
  const auto two = [](std::uint64_t a, std::uint64_t b) {
    return start(2, 0)
        .tensor("a", {16}, 0, a)
        .tensor("b", {8}, 0, b)
        .pad()
        .raw(std::string(96, '\1'));
  };
  BOOST_TEST(from_text(two(0, 64).bytes).tensors().size() == 2u);
  BOOST_TEST(from_text(two(32, 0).bytes).tensors().size() == 2u);
  for (const auto& [a, b] : {std::pair(0, 0), std::pair(0, 32), std::pair(32, 64)})
    refused(two(a, b), ErrorCode::inconsistent, "overlaps another tensor");
  // The header's padding is missing, so there is no data.
  refused(start(1, 0).tensor("w", {0}, 0, 0), ErrorCode::truncated, "padding");
}

BOOST_AUTO_TEST_SUITE_END()
