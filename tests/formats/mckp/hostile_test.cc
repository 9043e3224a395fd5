// MCKP files that lie or are damaged.
#include <cstring>
#include <functional>
#include <string>

#include "base/fail.h"
#include "boost_test.h"
#include "codec/frame/lz4_block.h"
#include "codec/frame/zstd_extent.h"
#include "codec/frame/zstd_frame.h"
#include "format/little_endian.h"
#include "formats/mckp/format.h"
#include "formats/mckp/parts.h"
#include "formats/mckp/samples.h"
#include "integrity/xxh64.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using test::mckp_bytes;
using test::NamedTensors;
using test::one_tensor;
using test::open_bytes;
using test::Parts;
using test::structure;

BOOST_AUTO_TEST_SUITE(mckp_hostile)

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Everything is asked for; any error of the library is fine, any other is not.
bool reads_whole(const std::string& bytes) {
  MckpReadOptions options{.chain = {.read = {.work = {.threads = 1}}}};
  options.chain.read.input.limits.max_allocation_bytes = 1 << 22;
  try {
    const MckpFile file = open_bytes(bytes, options);
    file.verify();
    for (const MckpTensor& tensor : file.tensors()) {
      const Tensor base = test::zero_bytes(tensor.layout());
      static_cast<void>(tensor.method.delta ? file.read(tensor.name, base)
                                            : file.read(tensor.name));
    }
    return true;
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
  return false;
}

std::string varied_file() {
  const NamedTensors tensors{{"f", test::normal_f32({60}, 1)},
                             {"zeros", Tensor::zeros(DType::bf16, {300})},
                             {"noise", test::random_tensor(DType::u8, {20}, 1)},
                             {"empty", Tensor::zeros(DType::i64, {0})},
                             {"csr", test::sparse_f64(Encoding::csr)}};
  return mckp_bytes(tensors,
                    {.header = {.training_step = 3,
                                .metadata = R"({"a":1})",
                                .previous = MckpPrevious{"before", {}}}},
                    {{"zeros", Tensor::zeros(DType::bf16, {300})}});
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_handmade_file_is_read) {
  const Parts parts = one_tensor("abc", 3, 0);
  const MckpFile file = open_bytes(parts.bytes(), {.verify = true});
  BOOST_TEST(test::text_of(file.read("t").bytes()) == "abc");
  // Keys that this version does not know are passed over.
  Parts more = parts;
  more.json = replaced(more.json, R"("training_step")", R"("later":[{}],"training_step")");
  BOOST_TEST(reads_whole(more.bytes()));
}

BOOST_AUTO_TEST_CASE(no_truncated_file_is_read) {
  const std::string whole = varied_file();
  BOOST_TEST(reads_whole(whole));
  for (std::size_t length = 0; length < whole.size(); ++length)
    BOOST_TEST(!reads_whole(whole.substr(0, length)), length);
  BOOST_TEST(!reads_whole(whole + "x"));
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_is_detected) {
  const std::string whole = varied_file();
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      BOOST_TEST(!reads_whole(damaged), "byte " << i << ", bit " << bit);
    }
}

// The frame of a header need not have a checksum. The file's own is compared then, unasked.
BOOST_AUTO_TEST_CASE(a_header_without_a_checksum_is_not_used_unchecked) {
  const Parts good = one_tensor("abc", 3, 0);
  Parts other = good;
  other.json = replaced(other.json, R"("training_step":null)", R"("training_step":1000)");
  std::string damaged = other.bytes();
  BOOST_TEST(open_bytes(damaged).header().training_step.value() == 1000u);
  const std::string sums = good.bytes().substr(good.bytes().size() - 16);
  damaged.replace(damaged.size() - 16, 16, sums);
  BOOST_CHECK_EXCEPTION(open_bytes(damaged), IntegrityError,
                        test::says(ErrorCode::checksum_mismatch, "footer", "test.mckp"));
}

// The file's checksum covers the blocks, too: these are found by what a single read looks at.
BOOST_AUTO_TEST_CASE(reading_one_tensor_finds_damage_of_its_block) {
  const std::string whole = varied_file();
  const MckpFile good = open_bytes(whole);
  const MckpTensor& tensor = *good.find("f");
  const std::uint64_t end = tensor.offset + 4 + 1 + 20 + tensor.compressed_size;
  for (std::uint64_t i = tensor.offset; i < end; ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    BOOST_CHECK_THROW(open_bytes(damaged).read("f"), Error);
  }
}

BOOST_AUTO_TEST_CASE(prelude_and_footer_are_checked) {
  const Parts good = one_tensor("abc", 3, 0);
  const auto refuse = [&](const std::function<void(Parts&)>& change, ErrorCode code,
                          const char* says) {
    Parts parts = good;
    change(parts);
    BOOST_CHECK_EXCEPTION(open_bytes(parts.bytes()), Error, test::says(code, says));
  };
  refuse([](Parts& p) { p.version = 2; }, ErrorCode::unsupported_version, "version");
  refuse([](Parts& p) { p.version = 0; }, ErrorCode::unsupported_version, "version");
  refuse([](Parts& p) { p.flags = 64; }, ErrorCode::unsupported_feature, "flags");
  for (const std::uint32_t flag : {1u, 2u, 4u, 8u, 16u, 32u})
    refuse([=](Parts& p) { p.flags = flag; }, ErrorCode::inconsistent, "flags");
  refuse([](Parts& p) { p.total = 4; }, ErrorCode::inconsistent, "total_compressed_size");
  refuse([](Parts& p) { p.blocks += "x"; }, ErrorCode::inconsistent, "footer");
  refuse([](Parts& p) { p.blocks.pop_back(); }, ErrorCode::out_of_bounds, "compressed_size");
  refuse([](Parts& p) { p.blocks.clear(); }, ErrorCode::out_of_bounds, "offset");
  std::string other = good.bytes();
  other[0] = 'm';
  BOOST_CHECK_EXCEPTION(open_bytes(other), FormatError, test::has_code(ErrorCode::bad_magic));
  other = good.bytes();
  std::memset(&other[12], 0xff, 4);
  BOOST_CHECK_EXCEPTION(open_bytes(other), FormatError,
                        test::says(ErrorCode::truncated, "header_length"));
  // Two frames, no frame, and a frame with something after it.
  std::vector<std::byte> frame;
  codec::zstd_encode(3, test::bytes_of(good.json), frame);
  const std::string once = test::text_of(frame);
  for (const std::string& header :
       {once + once, std::string(), good.json, once + "x", once.substr(0, once.size() - 1)})
    BOOST_CHECK_THROW(open_bytes(good.with_header(header)), CompressionError);
}

BOOST_AUTO_TEST_CASE(headers_that_contradict_themselves_are_refused) {
  const Parts good = one_tensor("abc", 3, 0);
  const struct {
    const char* from;
    const char* to;
    ErrorCode code;
    const char* says;
  } kCases[] = {
      {"\"offset\":0", "\"offset\":1", ErrorCode::out_of_bounds, "offset"},
      {"\"offset\":0", "\"offset\":18446744073709551615", ErrorCode::out_of_bounds, "offset"},
      {"\"compressed_size\":3", "\"compressed_size\":18446744073709551615",
       ErrorCode::out_of_bounds, "compressed_size"},
      {"\"compressed_size\":3", "\"compressed_size\":2", ErrorCode::inconsistent, "last block"},
      {"\"compressed_size\":3", "\"compressed_size\":-3", ErrorCode::bad_value, "compressed_size"},
      {"\"compressed_size\":3", "\"compressed_size\":3.0", ErrorCode::bad_value, "compressed_size"},
      {"\"shape\":[3]", "\"shape\":[4]", ErrorCode::inconsistent, "original_size"},
      {"\"shape\":[3]", "\"shape\":[4294967296,4294967296,2]", ErrorCode::out_of_bounds, "shape"},
      {"\"shape\":[3]", "\"shape\":[3,1,1,1,1,1,1,1,1]", ErrorCode::unsupported_feature, "shape"},
      {"\"shape\":[3]", "\"shape\":3", ErrorCode::bad_value, "shape"},
      {"{\"original_size\":3", "{\"original_size\":4", ErrorCode::inconsistent, "original_size"},
      {"\"dtype\":\"U8\"", "\"dtype\":\"u8\"", ErrorCode::unsupported_dtype, "dtype"},
      {"\"dtype\":\"U8\"", "\"dtype\":\"F32\"", ErrorCode::inconsistent, "original_size"},
      {"\"dtype\":\"U8\",", "", ErrorCode::bad_value, "dtype"},
      {"\"dtype\":\"U8\"", "\"dtype\":\"U8\",\"dtype\":\"U8\"", ErrorCode::inconsistent, "dtype"},
      {"\"name\":\"t\"", "\"name\":7", ErrorCode::bad_value, "name"},
      {"\"method\":0", "\"method\":4294967296", ErrorCode::bad_value, "method"},
      {"\"method\":0", "\"method\":5", ErrorCode::unsupported_feature, "method"},
      {"\"method\":0", "\"method\":16384", ErrorCode::unsupported_feature, "method"},
      {"\"method\":0", "\"method\":2048", ErrorCode::inconsistent, "sparse"},
      {"\"method\":0", "\"method\":512", ErrorCode::inconsistent, "method"},
      {"\"method\":0", "\"method\":131584", ErrorCode::inconsistent, "method"},
      {"\"method\":0", "\"method\":131072", ErrorCode::inconsistent, "method"},
      {"\"method\":0", "\"method\":256", ErrorCode::inconsistent, "previous_key"},
      {"\"method\":0", "\"method\":1024", ErrorCode::inconsistent, "quantized"},
      {"\"quant\":null",
       "\"quant\":{\"scheme\":\"uniform\",\"bits\":8,\"min\":\"00000000\","
       "\"scale\":\"00000000\"}",
       ErrorCode::inconsistent, "quant"},
      {"\"quant\":null", "\"quant\":{\"scheme\":\"groups\"}", ErrorCode::unsupported_feature,
       "scheme"},
      {"\"previous_key\":null", "\"previous_key\":\"x\"", ErrorCode::inconsistent, "previous_key"},
      {"\"content_hash\":null", "\"content_hash\":\"AB\"", ErrorCode::bad_value, "content_hash"},
      {"\"content_hash\":null", "\"content_digests\":\"md5\"", ErrorCode::unsupported_feature,
       "content_digests"},
      {"\"metadata\":{}", "\"metadata\":[]", ErrorCode::bad_value, "metadata"},
      {"\"tensor_metadata\"", "\"tensors\"", ErrorCode::bad_value, "tensor_metadata"},
      {"\"metadata\":{}}", "\"metadata\":{}", ErrorCode::bad_json, "header"},
      {"\"training_step\":null", "\"training_step\":-1", ErrorCode::bad_value, "training_step"},
      {"\"training_step\":null", "\"training_step\":18446744073709551616", ErrorCode::bad_value,
       "training_step"},
      {"\"training_step\":null", "\"training_step\":\"1\"", ErrorCode::bad_value, "training_step"},
      {"\"training_step\":null", "\"training_step\":null,\"training_step\":null",
       ErrorCode::inconsistent, "training_step"},
      {"\"training_step\":null", "\"training_step\":null,\"metadata\":{}", ErrorCode::inconsistent,
       "metadata"},
      {"\"previous_key\":null", "\"previous_key\":7", ErrorCode::bad_value, "previous_key"},
      {"\"previous_checkpoint_hash\":null", "\"previous_checkpoint_hash\":7", ErrorCode::bad_value,
       "previous_checkpoint_hash"},
      {"\"compression_params\":{}", "\"compression_params\":[]", ErrorCode::bad_value,
       "compression_params"},
      {"\"shape\":[3]", "\"shape\":[-3]", ErrorCode::bad_value, "shape"},
      {"\"shape\":[3]", "\"shape\":[\"3\"]", ErrorCode::bad_value, "shape"},
      {"\"quant\":null", "\"quant\":[]", ErrorCode::bad_value, "quant"},
      {"\"method\":0", "\"method\":\"0\"", ErrorCode::bad_value, "method"},
      {"\"xxh64\":\"", "\"xxh64\":\"0", ErrorCode::bad_value, "xxh64"},
  };
  for (const auto& one : kCases) {
    Parts parts = good;
    parts.json = replaced(parts.json, one.from, one.to);
    BOOST_TEST_CONTEXT(one.to)
    BOOST_CHECK_EXCEPTION(open_bytes(parts.bytes()), Error, test::says(one.code, one.says));
  }
  Parts twice = good;
  const std::size_t from = twice.json.find("{\"name\"");
  const std::string entry =
      twice.json.substr(from, twice.json.find(']', twice.json.find("xxh64")) - from);
  twice.json = replaced(twice.json, entry, entry + "," + entry);
  twice.json = replaced(twice.json, "{\"original_size\":3", "{\"original_size\":6");
  BOOST_CHECK_EXCEPTION(open_bytes(twice.bytes()), FormatError,
                        test::says(ErrorCode::bad_name, "another tensor"));
  // Blocks that overlap: the second begins where the first does.
  Parts overlap = good;
  overlap.json = replaced(overlap.json, entry, entry + "," + replaced(entry, "\"t\"", "\"u\""));
  overlap.json = replaced(overlap.json, "{\"original_size\":3", "{\"original_size\":6");
  BOOST_CHECK_EXCEPTION(open_bytes(overlap.bytes()), FormatError,
                        test::says(ErrorCode::out_of_bounds, "offset"));
}

BOOST_AUTO_TEST_CASE(payloads_of_wrong_lengths_are_refused_before_memory_is_asked_for) {
  const auto frame_of = [](const std::string& text) {
    std::vector<std::byte> frame;
    codec::zstd_encode(3, test::bytes_of(text), frame);
    return test::text_of(frame);
  };
  const std::uint64_t huge = std::uint64_t{1} << 35;
  const auto piece = [](std::uint32_t length, const std::string& bytes) {
    return structure(format::le32(length)) + bytes;
  };
  const struct {
    std::string payload;
    std::uint64_t size;
    std::uint32_t method;
  } kCases[] = {
      {"abcd", 3, 0},                           // stored, too long
      {"ab", 3, 0},                             // and too short
      {"", huge, 0},                            // of nothing
      {frame_of("abcd"), 3, 1},                 // a frame of more
      {frame_of("ab"), 3, 1},                   // of less
      {frame_of("abc"), huge, 1},               // of far less
      {frame_of("abc") + frame_of("d"), 3, 1},  // one too many
      {frame_of("abc") + "x", 3, 1},            // something after it
      {frame_of("abc").substr(0, 9), 3, 1},     // half of one
      {"", 3, 1},                               // none
      {"", 3, 2},                               // no piece
      {piece(4, "abcd"), 3, 2},                 // a piece longer than its content
      {piece(3, "abc") + "x", 3, 2},            // something after it
      {piece(0xffffffff, "abc"), 3, 2},         // out of the block
      {piece(3, "abc"), huge, 2},               // far too few
      {piece(1, "\xff"), 300, 2},               // a broken lz4 block
      {piece(1, "\xff"), 300, 3},
      {piece(1, "\xff"), 300, 4},
      {piece(2, "ab"), 3, 4},
  };
  for (const auto& one : kCases) {
    const Parts parts = one_tensor(one.payload, one.size, one.method);
    BOOST_TEST_CONTEXT("method " << one.method << ", size " << one.size << ", payload "
                                 << one.payload.size())
    BOOST_CHECK_THROW(open_bytes(parts.bytes()).read("t"), FormatError);
  }
  // What the file says of a frame counts less than what its bytes can hold.
  std::string lie = frame_of(std::string(300, 'a'));
  BOOST_REQUIRE(codec::zstd_extent(test::bytes_of(lie)).content == 300u);
  MckpReadOptions tight;
  tight.chain.read.input.limits.max_allocation_bytes = 100;
  BOOST_CHECK_EXCEPTION(open_bytes(one_tensor(lie, 300, 1).bytes(), tight).read("t"), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
}

BOOST_AUTO_TEST_CASE(a_header_that_grows_without_bound_is_cut_off) {
  Parts bomb = one_tensor("abc", 3, 0);
  bomb.json = replaced(bomb.json, "\"metadata\":{}",
                       "\"metadata\":{\"x\":\"" + std::string(200'000, 'a') + "\"}");
  BOOST_TEST(reads_whole(bomb.bytes()));
  MckpReadOptions tight;
  tight.chain.read.input.limits.max_json_bytes = 100'000;
  BOOST_CHECK_EXCEPTION(open_bytes(bomb.bytes(), tight), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
  tight = {};
  tight.chain.read.input.limits.max_tensors = 0;
  BOOST_CHECK_EXCEPTION(open_bytes(one_tensor("abc", 3, 0).bytes(), tight), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
}

BOOST_AUTO_TEST_CASE(codes_and_parameters_out_of_range_are_refused) {
  const auto quant = [](const char* bits, const char* minimum, const char* scale) {
    return fmt::format(R"({{"scheme":"uniform","bits":{},"min":"{}","scale":"{}"}})", bits, minimum,
                       scale);
  };
  const auto file = [&](const std::string& payload, const std::string& text) {
    Parts parts = one_tensor(payload, 8, 1024, "F32", "[2]", text);
    parts.flags = 4;
    return parts.bytes();
  };
  const std::string one = "3f800000";
  const Tensor good =
      open_bytes(file(std::string("\1\2"), quant("3", one.c_str(), "40000000"))).read("t");
  BOOST_TEST(good.as<float>()[0] == 3.0f);
  BOOST_TEST(good.as<float>()[1] == 5.0f);
  BOOST_CHECK_THROW(
      open_bytes(file(std::string("\1\x8"), quant("3", one.c_str(), "40000000"))).read("t"),
      FormatError);
  for (const std::string& text :
       {quant("0", "3f800000", "3f800000"), quant("9", "3f800000", "3f800000"),
        quant("3", "7f800000", "3f800000"), quant("3", "3f800000", "7fc00000"),
        quant("3", "3f800000", "bf800000"), quant("3", "3f80000", "3f800000"),
        quant("3", "3F800000", "3f800000"), std::string("{}")})
    BOOST_CHECK_THROW(open_bytes(file(std::string("\1\2"), text)), FormatError);
}

BOOST_AUTO_TEST_CASE(a_previous_file_that_does_not_say_what_it_is_is_not_used) {
  MemoryStorage storage;
  const Tensor tensor = test::random_tensor(DType::u8, {100}, 1);
  storage.put("base", test::bytes_of(one_tensor(test::text_of(tensor.bytes()), 100, 0).bytes()));
  BOOST_TEST(!MckpFile::from_bytes(storage.view("base")).header().content_hash);
  storage.put("delta", test::bytes_of(mckp_bytes({{"t", tensor}},
                                                 {.header = {.previous = MckpPrevious{"base", {}}}},
                                                 {{"t", tensor}})));
  BOOST_CHECK_EXCEPTION(MckpChain::open(storage, "delta"), IntegrityError,
                        test::says(ErrorCode::checksum_mismatch, "previous_checkpoint_hash"));
}

BOOST_AUTO_TEST_SUITE_END()
