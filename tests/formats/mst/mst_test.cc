// Files that the original mithril program wrote, in tests/data/formats/mithril; what is in them was
// read by an independent program, too.
#include "thalia/formats/mithril.h"

#include <filesystem>
#include <functional>
#include <string>

#include "boost_test.h"
#include "codec/frame/zstd_frame.h"
#include "format/little_endian.h"
#include "integrity/sha256.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using test::bytes_of;
using test::text_of;

BOOST_AUTO_TEST_SUITE(mst)

namespace {

std::filesystem::path vector_path(const char* name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/mithril" / name;
}
std::string vector_bytes(const char* name) {
  return test::read_file(vector_path(name));
}
std::string digest(const Tensor& tensor) {
  return test::hex(integrity::sha256(tensor.bytes()));
}

MstFile from_text(const std::string& text, const ReadLimits& limits = {}) {
  const auto owner = std::make_shared<const std::string>(text);
  return MstFile::from_bytes({.bytes = bytes_of(*owner), .owner = owner}, "test.mst", limits);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  // The header's length comes before it.
  const std::uint64_t length = static_cast<unsigned char>(text[8]) +
                               256u * static_cast<unsigned char>(text[9]) + to.size() - from.size();
  text[8] = static_cast<char>(length & 0xff);
  text[9] = static_cast<char>(length >> 8);
  return text;
}

bool reads_whole(const std::string& bytes) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const MstFile file = from_text(bytes, limits);
    for (const MstTensor& tensor : file.tensors()) static_cast<void>(file.read(tensor.name));
    return true;
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_the_original_are_read) {
  const MstFile file = MstFile::open(vector_path("small.mst"));
  BOOST_TEST(file.tensors().size() == 4u);
  BOOST_TEST(file.level() == 3);
  BOOST_TEST(file.byte_grouping());
  BOOST_TEST(file.file_bytes() == 2131u);
  BOOST_TEST(
      (file.metadata() == std::vector<std::pair<std::string, std::string>>{{"format", "pt"}}));
  const Tensor f32 = file.read("w.f32");
  BOOST_TEST((f32.dtype() == DType::f32 && f32.shape() == Shape({16, 16})));
  BOOST_TEST(digest(f32) == "2ff26335738e9d2a31da08ff35632b897c2b0b6474af8805b4ce5a95b75edb18");
  BOOST_TEST(text_of(f32.bytes()) == vector_bytes("raw.f32"));
  BOOST_TEST(digest(file.read("w.bf16")) ==
             "518b48b6dd9b2b447c51baac7c0cdd8b3a060d74d99d534987924e116df27d36");
  BOOST_TEST(text_of(file.read("ids").bytes()) == vector_bytes("raw.i64"));
  BOOST_TEST((file.read("empty").shape() == Shape({0})));
  BOOST_CHECK_EXCEPTION(file.read("w"), UsageError, test::has_code(ErrorCode::not_found));

  const MstFile plain = MstFile::open(vector_path("nogroup_l19.mst"));
  BOOST_TEST(plain.level() == 19);
  BOOST_TEST(!plain.byte_grouping());
  BOOST_TEST(text_of(plain.read("w.bf16").bytes()) == vector_bytes("raw.bf16"));
}

BOOST_AUTO_TEST_CASE(streams_of_the_original_are_decoded) {
  const auto decoded = [](const char* stream, DType dtype, std::uint64_t size,
                          const std::string& previous) {
    const std::string bytes = vector_bytes(stream);
    return text_of(decode_mithril_stream(bytes_of(bytes), dtype, size, bytes_of(previous)));
  };
  BOOST_TEST((decoded("pipeline_bf16.zst", DType::bf16, 512, "") == vector_bytes("raw.bf16")));
  BOOST_TEST((decoded("pipeline_f32.zst", DType::f32, 1024, "") == vector_bytes("raw.f32")));
  BOOST_TEST((decoded("delta_bf16.zst", DType::bf16, 512, vector_bytes("raw.bf16")) ==
              vector_bytes("raw.bf16.next")));
  BOOST_CHECK_THROW(decoded("delta_bf16.zst", DType::bf16, 512, "short"), UsageError);
  BOOST_CHECK_THROW(decoded("pipeline_bf16.zst", DType::bf16, 511, ""), UsageError);
  BOOST_CHECK_THROW(decoded("pipeline_bf16.zst", DType::bf16, 514, ""), CompressionError);
  BOOST_CHECK_THROW(decoded("pipeline_bf16.zst", DType::bf16, 510, ""), CompressionError);
  BOOST_CHECK_THROW(decoded("pipeline_bf16.zst", DType::bf16, 1ull << 35, ""), CompressionError);
}

BOOST_AUTO_TEST_CASE(bytes_are_grouped_as_the_originals_tests_say) {
  const auto grouped = [](const std::string& text, DType dtype) {
    std::vector<std::byte> frame;
    codec::zstd_encode(3, bytes_of(text), frame);
    return text_of(decode_mithril_stream(frame, dtype, text.size()));
  };
  BOOST_TEST((grouped("\xAA\xBB\xCC\x11\x22\x33", DType::bf16) == "\xAA\x11\xBB\x22\xCC\x33"));
  BOOST_TEST((grouped("\1\x11\2\x12\3\x13\4\x14", DType::f32) == "\1\2\3\4\x11\x12\x13\x14"));
  BOOST_TEST((grouped("12345678", DType::f64) == "12345678"));
  BOOST_TEST((grouped("", DType::f16) == ""));
}

BOOST_AUTO_TEST_CASE(wrappers_are_known_and_taken_apart) {
  std::vector<std::byte> frame;
  codec::zstd_encode(3, bytes_of("a pickle"), frame);
  const auto number = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const std::string dcp = "MCPT\1" + number(format::le64(8)) + text_of(frame);
  const std::string deepspeed = "MDSC\1" + number(format::le32(8)) + text_of(frame);
  BOOST_TEST((mithril_wrapper(bytes_of(dcp)) == MithrilWrapper::dcp));
  BOOST_TEST((mithril_wrapper(bytes_of(deepspeed)) == MithrilWrapper::deepspeed));
  BOOST_TEST(!mithril_wrapper(bytes_of("MCP")));
  BOOST_TEST(!mithril_wrapper(bytes_of("MCKP")));
  for (const std::string& file : {dcp, deepspeed}) {
    BOOST_TEST(text_of(unwrap_mithril(bytes_of(file))) == "a pickle");
    for (std::size_t length = 0; length < file.size(); ++length)
      BOOST_CHECK_THROW(unwrap_mithril(bytes_of(file).first(length)), FormatError);
    std::string other = file;
    other[4] = 2;
    BOOST_CHECK_THROW(unwrap_mithril(bytes_of(other)), UnsupportedError);
    other = file;
    other[5] = 9;
    BOOST_CHECK_THROW(unwrap_mithril(bytes_of(other)), CompressionError);
  }
}

BOOST_AUTO_TEST_CASE(no_truncated_file_is_read) {
  const std::string whole = vector_bytes("small.mst");
  BOOST_TEST(reads_whole(whole));
  for (std::size_t length = 0; length < whole.size(); ++length)
    BOOST_TEST(!reads_whole(whole.substr(0, length)), length);
}

// There are no checksums, so a flip may go unseen: nothing worse may come of it.
BOOST_AUTO_TEST_CASE(every_flipped_byte_is_survived) {
  const std::string whole = vector_bytes("small.mst");
  unsigned read = 0;
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      read += reads_whole(damaged) ? 1u : 0u;
    }
  BOOST_TEST(read < 3 * whole.size());
}

BOOST_AUTO_TEST_CASE(hostile_headers_are_refused) {
  const std::string good = vector_bytes("nogroup_l19.mst");
  BOOST_TEST(reads_whole(replaced(good, "\"BF16\"", "\"bfloat16\"")));
  BOOST_TEST(reads_whole(replaced(good, "\"metadata\":{},", "")));
  const struct {
    const char* from;
    const char* to;
    ErrorCode code;
    const char* says;
  } kCases[] = {
      {"\"compressed_offset\":0", "\"compressed_offset\":1", ErrorCode::out_of_bounds,
       "compressed_size"},
      {"\"compressed_offset\":0", "\"compressed_offset\":18446744073709551615",
       ErrorCode::out_of_bounds, "compressed_offset"},
      {"\"compressed_size\":455", "\"compressed_size\":456", ErrorCode::out_of_bounds,
       "compressed_size"},
      {"\"uncompressed_size\":512", "\"uncompressed_size\":514", ErrorCode::inconsistent,
       "uncompressed_size"},
      {"\"shape\":[256]", "\"shape\":[4294967296,4294967296]", ErrorCode::inconsistent,
       "uncompressed_size"},
      {"\"BF16\"", "\"I16\"", ErrorCode::unsupported_dtype, "I16"},
      {"\"zstd\"", "\"lz4\"", ErrorCode::unsupported_feature, "algorithm"},
      {"\"byte_grouping\":false", "\"byte_grouping\":0", ErrorCode::bad_value, "byte_grouping"},
      {"\"tensors\"", "\"other\"", ErrorCode::bad_value, "tensors"},
      {"\"metadata\":{}", "\"metadata\":{\"a\":1}", ErrorCode::bad_value, "metadata"},
      {"\"metadata\":{}", "\"metadata\":{\"a\":\"1\",\"a\":\"2\"}", ErrorCode::inconsistent,
       "twice"},
      {"\"shape\":[256]", "\"shape\":[-256]", ErrorCode::bad_value, "shape"},
      {"\"shape\":[256]", "\"shape\":256", ErrorCode::bad_value, "shape"},
      {"\"shape\":[256]", "\"shape\":[256],\"shape\":[256]", ErrorCode::inconsistent, "shape"},
      {"\"compressed_size\":455", "\"compressed_size\":1e3", ErrorCode::bad_value,
       "compressed_size"},
      {"\"compressed_offset\":0", "\"compressed_offset\":\"0\"", ErrorCode::bad_value,
       "compressed_offset"},
      {"\"compressed_offset\":0", "\"compressed_offset\":18446744073709551616",
       ErrorCode::bad_value, "compressed_offset"},
      {"\"zstd\"", "7", ErrorCode::bad_value, "algorithm"},
      {"\"BF16\"", "null", ErrorCode::bad_value, "dtype"},
      {"{\"tensors\"", "[\"tensors\"", ErrorCode::bad_json, "header"},
  };
  for (const auto& one : kCases) {
    BOOST_TEST_CONTEXT(one.to)
    BOOST_CHECK_EXCEPTION(from_text(replaced(good, one.from, one.to)), Error,
                          test::says(one.code, one.says, "test.mst"));
  }
  for (const char* const level : {"\"x\"", "true", "null", "[3]", "{}"}) {
    const std::string text = replaced(good, "\"level\":19", std::string("\"level\":") + level);
    BOOST_CHECK_EXCEPTION(from_text(text), FormatError,
                          test::says(ErrorCode::bad_value, "level", "number"));
  }
  std::string other = good;
  other[4] = 2;
  BOOST_CHECK_THROW(from_text(other), UnsupportedError);
  other[4] = 0;  // what the original takes, too
  BOOST_TEST(reads_whole(other));
  // A tensor of far more than its frame can hold is refused before memory is asked for.
  const MstFile bomb =
      from_text(replaced(replaced(good, "\"shape\":[256]", "\"shape\":[2147483648]"),
                         "\"uncompressed_size\":512", "\"uncompressed_size\":4294967296"));
  BOOST_CHECK_THROW(bomb.read("w.bf16"), CompressionError);
  ReadLimits tight;
  tight.max_allocation_bytes = 511;
  BOOST_CHECK_EXCEPTION(from_text(good, tight).read("w.bf16"), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
}

// Ungrouped, decoding holds the 512 bytes of the tensor; else those and as many grouped ones.
BOOST_AUTO_TEST_CASE(the_limit_is_on_all_that_decoding_holds_at_once) {
  const auto limit = [](std::uint64_t bytes) {
    ReadLimits limits;
    limits.max_allocation_bytes = bytes;
    return limits;
  };
  const auto refused = test::has_code(ErrorCode::limit_exceeded);
  const std::string plain = vector_bytes("nogroup_l19.mst"), grouped = vector_bytes("small.mst");
  BOOST_TEST((from_text(plain, limit(512)).read("w.bf16").shape() == Shape({256})));
  const std::uint64_t bytes = from_text(grouped).read("w.bf16").bytes().size();
  BOOST_CHECK_EXCEPTION(from_text(grouped, limit(2 * bytes - 1)).read("w.bf16"), FormatError,
                        refused);
  BOOST_TEST(from_text(grouped, limit(2 * bytes)).read("w.bf16").bytes().size() == bytes);

  const std::string stream = vector_bytes("pipeline_bf16.zst");
  const auto decoded = [&](std::uint64_t most) {
    return decode_mithril_stream(bytes_of(stream), DType::bf16, 512, {}, true, limit(most));
  };
  BOOST_CHECK_EXCEPTION(decoded(1023), FormatError, refused);
  BOOST_TEST(decoded(1024).size() == 512u);
}

BOOST_AUTO_TEST_SUITE_END()
