// Element types against tables that the original program made.
#include "thalia/formats/loom_network.h"

#include <bit>
#include <filesystem>
#include <limits>

#include "boost_test.h"
#include "formats/loom/vectors.h"
#include "integrity/sha256.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/formats/loom.h"

using namespace thalia;
using test::Expected;

BOOST_AUTO_TEST_SUITE(loom_dtype)

namespace {

Expected codec_table(const char* name) {
  return test::read_expected(std::filesystem::path(THALIA_SOURCE_ROOT) /
                             "tests/data/formats/loom/codec" / name);
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

std::vector<float> restored(LoomDType dtype, std::vector<std::uint8_t> packed, float scale,
                            std::uint64_t count) {
  return unpack_loom_weights(dtype, as_byte_span(packed), scale, count);
}

constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace

BOOST_AUTO_TEST_CASE(names_are_read_as_the_original_reads_them) {
  for (const auto& [name, known] : codec_table("dtype_aliases.json").members) {
    const LoomDType dtype = parse_loom_dtype(name);
    BOOST_TEST(static_cast<unsigned>(dtype) == known.at("id").number(), name);
    BOOST_TEST(loom_dtype_name(dtype) == known.at("name").text);
  }
  BOOST_TEST(!loom_dtype_from_name("double"));
  BOOST_TEST(!loom_dtype_from_name(""));
  for (std::uint8_t id = 0; id < kLoomDTypeCount; ++id) {
    const auto dtype = static_cast<LoomDType>(id);
    BOOST_TEST((loom_dtype_from_name(loom_dtype_name(dtype)) == dtype));
  }
}

BOOST_AUTO_TEST_CASE(sizes_are_those_of_packed_elements) {
  const std::uint64_t kBytes15[] = {120, 60, 30, 30, 15, 15, 120, 60, 30, 15, 120,
                                    60,  30, 15, 8,  8,  8,  4,   4,  4,  2};
  for (std::uint8_t id = 0; id < kLoomDTypeCount; ++id)
    BOOST_TEST((loom_packed_bytes(static_cast<LoomDType>(id), 15) == kBytes15[id]));
  BOOST_TEST(!loom_packed_bytes(LoomDType::float64, std::uint64_t{1} << 61));
  BOOST_TEST((loom_packed_bytes(LoomDType::binary, UINT64_MAX) == std::uint64_t{1} << 61));
  BOOST_TEST(loom_element_count(LoomDType::int16, 5) == 2u);
  BOOST_TEST(loom_element_count(LoomDType::ternary, 5) == 20u);
}

BOOST_AUTO_TEST_CASE(all_bytes_decode_as_in_the_original_and_encode_back) {
  std::vector<std::byte> bytes;
  for (unsigned i = 0; i < 256; ++i) bytes.push_back(static_cast<std::byte>(i));
  unsigned seen = 0;
  for (const Expected& one : codec_table("decode_bytes_0_255.json").elements) {
    const LoomDType dtype = parse_loom_dtype(one.at("dtype").text);
    const auto elements = decode_loom_weights(dtype, bytes);
    BOOST_TEST(test::hex(elements) == test::hex(test::elements_of(one.at("decoded"))),
               one.at("dtype").text);
    BOOST_TEST((encode_loom_weights(dtype, elements) == bytes));
    ++seen;
  }
  BOOST_TEST(seen == kLoomDTypeCount);
}

BOOST_AUTO_TEST_CASE(decoders_give_the_bits_of_the_original) {
  const Expected table = codec_table("scalar.json");
  const auto check = [](const Expected& list, auto decode) {
    BOOST_TEST(!list.elements.empty());
    for (std::size_t i = 0; i < list.elements.size(); ++i)
      BOOST_TEST(bits_of(decode(i)) == bits_of(test::float_of(list.elements[i].text)), i);
  };
  check(table.at("e4m3_decode_bits"),
        [](std::size_t i) { return loom_fp8e4m3_to_float(static_cast<std::uint8_t>(i)); });
  check(table.at("e5m2_decode_bits"),
        [](std::size_t i) { return loom_fp8e5m2_to_float(static_cast<std::uint8_t>(i)); });
  check(table.at("fp4_decode_bits"),
        [](std::size_t i) { return loom_fp4_to_float(static_cast<std::uint8_t>(i)); });
  const auto& codes = table.at("f16_decode_in").elements;
  check(table.at("f16_decode_bits"), [&](std::size_t i) {
    return loom_float16_to_float(static_cast<std::uint16_t>(codes.at(i).number()));
  });
}

BOOST_AUTO_TEST_CASE(encoders_give_the_codes_of_the_original) {
  const Expected table = codec_table("scalar.json");
  const Expected& encode = table.at("encode");
  const auto values = test::floats_of(encode.at("in_bits"));
  const auto code = [&](const char* list, std::size_t i) {
    return encode.at(list).elements.at(i).number();
  };
  const std::pair<const char*, LoomDType> kQuantised[] = {
      {"native_quant_int8", LoomDType::int8},       {"native_quant_uint8", LoomDType::uint8},
      {"native_quant_int4", LoomDType::int4},       {"native_quant_uint4", LoomDType::uint4},
      {"native_quant_int2", LoomDType::int2},       {"native_quant_uint2", LoomDType::uint2},
      {"native_quant_ternary", LoomDType::ternary}, {"native_quant_binary", LoomDType::binary}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    BOOST_TEST_CONTEXT(values[i]) {
      BOOST_TEST(loom_fp8e4m3_from_float(values[i]) == code("e4m3", i));
      BOOST_TEST(loom_fp8e5m2_from_float(values[i]) == code("e5m2", i));
      BOOST_TEST(loom_float16_from_float(values[i]) == code("f16", i));
      BOOST_TEST(loom_bfloat16_from_float(values[i]) == code("bf16", i));
      BOOST_TEST(loom_fp4_from_float(values[i]) == code("fp4_scale1", i));
      for (const auto& [list, dtype] : kQuantised) {
        // A scale of 1 would be replaced: the value is doubled, and so is the scale.
        const float doubled = values[i] * 2;
        if (std::isinf(doubled) != std::isinf(values[i])) continue;
        const LoomNative native = morph_loom_weights(dtype, {&doubled, 1}, 2);
        const auto element = decode_loom_weights(dtype, native.packed).at(0);
        BOOST_TEST(std::to_integer<unsigned>(element) == code(list, i), list);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_scale_of_one_is_computed_and_any_other_is_kept) {
  const std::vector<float> weights = {0.5f, -2, 1};
  const std::pair<LoomDType, float> kScales[] = {{LoomDType::int8, 2.0f / 127},
                                                 {LoomDType::uint16, 2.0f / 127},
                                                 {LoomDType::float16, 2.0f / 127},
                                                 {LoomDType::int4, 2.0f / 7},
                                                 {LoomDType::uint4, 2.0f / 7},
                                                 {LoomDType::fp4, 2.0f / 3},
                                                 {LoomDType::int2, 2},
                                                 {LoomDType::uint2, 2},
                                                 {LoomDType::ternary, 2},
                                                 {LoomDType::binary, 3.5f / 3}};
  for (const auto& [dtype, scale] : kScales) {
    BOOST_TEST(morph_loom_weights(dtype, weights).scale == scale, loom_dtype_name(dtype));
    BOOST_TEST(loom_auto_scale(dtype, weights) == scale);
    BOOST_TEST(morph_loom_weights(dtype, weights, 0.25f).scale == 0.25f);
  }
  BOOST_TEST(morph_loom_weights(LoomDType::float32, weights).scale == 1);
  const std::vector<float> zeros(3);
  BOOST_TEST(morph_loom_weights(LoomDType::int8, zeros).scale == 1);
  BOOST_TEST(morph_loom_weights(LoomDType::binary, zeros).scale == 1);
  BOOST_TEST(morph_loom_weights(LoomDType::int8, {}).scale == 1);
}

// As amd64 casts them: 8 bits wrap, wider types do not clamp, and what no integer holds is the
// least one.
BOOST_AUTO_TEST_CASE(casts_of_what_does_not_fit_are_the_originals) {
  const auto element = [](LoomDType dtype, float value) {
    const LoomNative native = morph_loom_weights(dtype, {&value, 1}, 0.5f);
    std::vector<std::byte> bytes = decode_loom_weights(dtype, native.packed);
    bytes.resize(8);
    return std::bit_cast<std::int64_t>(
        *reinterpret_cast<const std::array<std::byte, 8>*>(bytes.data()));
  };
  BOOST_TEST(element(LoomDType::int8, 63.75f) == 128);  // 127.5 is 128, which is -128
  BOOST_TEST(element(LoomDType::int8, 150) == 44);
  BOOST_TEST(element(LoomDType::int8, kInf) == 0);
  BOOST_TEST(element(LoomDType::uint8, -3) == 0);
  BOOST_TEST(element(LoomDType::uint8, 500) == 255);
  BOOST_TEST(element(LoomDType::uint8, kInf) == 0);
  BOOST_TEST(element(LoomDType::int16, 35000) == 4464);
  BOOST_TEST(element(LoomDType::int16, 2e9f) == 0);
  BOOST_TEST(element(LoomDType::uint16, -3.25f) == 7);
  BOOST_TEST(element(LoomDType::uint16, kInf) == 0);
  BOOST_TEST(element(LoomDType::int32, 2e9f) == 0x80000000ll);
  BOOST_TEST(element(LoomDType::uint32, -1.5e9f) == 3000000000ll);
  BOOST_TEST(element(LoomDType::int64, 1e19f) == std::numeric_limits<std::int64_t>::min());
  BOOST_TEST(element(LoomDType::uint64, -6) == 12);
  BOOST_TEST(static_cast<std::uint64_t>(element(LoomDType::uint64, 0x1p62f)) == std::uint64_t{1}
                                                                                    << 63);
  BOOST_TEST(element(LoomDType::uint64, std::numeric_limits<float>::quiet_NaN()) == 0);
  BOOST_TEST(element(LoomDType::int64, 1.25f) == 3);  // half away from zero
  BOOST_TEST(element(LoomDType::int64, -1.25f) == -3);
}

BOOST_AUTO_TEST_CASE(a_scale_of_zero_counts_as_one_for_some_types) {
  for (const LoomDType dtype : {LoomDType::int8, LoomDType::int4, LoomDType::int2})
    BOOST_TEST(restored(dtype, {0x51}, 0, 1)[0] != 0, loom_dtype_name(dtype));
  BOOST_TEST(restored(LoomDType::binary, {0x80}, 0, 2) == std::vector<float>({1, -1}));
  BOOST_TEST(restored(LoomDType::fp4, {0x20}, 0, 1)[0] == 1);
  for (const LoomDType dtype : {LoomDType::uint8, LoomDType::uint4, LoomDType::fp8e4m3})
    BOOST_TEST(restored(dtype, {0x11}, 0, 1)[0] == 0, loom_dtype_name(dtype));
  BOOST_CHECK_EXCEPTION(restored(LoomDType::int16, {1, 0, 1}, 1, 2), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
}

// Pieces of 4,096 elements are packed one by one.
BOOST_AUTO_TEST_CASE(many_elements_are_as_few) {
  std::vector<float> weights;
  for (int i = 0; i < 10001; ++i) weights.push_back(static_cast<float>((i * 37) % 201 - 100));
  for (std::uint8_t id = 0; id < kLoomDTypeCount; ++id) {
    const auto dtype = static_cast<LoomDType>(id);
    const LoomNative native = morph_loom_weights(dtype, weights, 13);
    BOOST_TEST((loom_packed_bytes(dtype, weights.size()) == native.packed.size()));
    const auto all = unpack_loom_weights(dtype, native.packed, 13, weights.size());
    for (const std::size_t i : {0u, 1u, 4095u, 4096u, 4099u, 8192u, 10000u}) {
      const LoomNative one = morph_loom_weights(dtype, {&weights[i], 1}, 13);
      BOOST_TEST(unpack_loom_weights(dtype, one.packed, 13, 1)[0] == all[i],
                 loom_dtype_name(dtype));
    }
  }
}

BOOST_AUTO_TEST_CASE(blocks_of_4_bits_are_the_originals) {
  for (const Expected& one : codec_table("q4_0.json").elements) {
    const auto weights = test::floats_of(one.at("in_bits"));
    const auto blob = encode_loom_q4_0(weights);
    BOOST_TEST(test::hex(integrity::sha256(blob)) == one.at("entity_blob_sha256").text);
    const auto expected = test::floats_of(one.at("dequant_bits"));
    const auto decoded = decode_loom_q4_0(blob);
    BOOST_TEST(test::hex(as_byte_span(decoded)) == test::hex(as_byte_span(expected)));
    BOOST_TEST(decode_loom_q4_0(blob, weights.size()).size() == weights.size());
    BOOST_TEST(loom_q4_0_blocks(blob) == one.at("blocks").elements.size());
  }
}

BOOST_AUTO_TEST_CASE(damaged_blocks_are_refused) {
  const std::vector<float> weights(70, 0.5f);
  const std::vector<std::byte> blob = encode_loom_q4_0(weights);
  for (std::size_t length = 0; length < blob.size(); length += length < 32 ? 1 : 97)
    BOOST_CHECK_THROW(decode_loom_q4_0(ByteSpan(blob).first(length)), FormatError);
  BOOST_CHECK_THROW(decode_loom_q4_0(blob, 97), UsageError);
  for (const std::size_t at : {0u, 3u, 4u, 7u}) {
    std::vector<std::byte> damaged = blob;
    damaged[at] = std::byte{0xff};
    BOOST_CHECK_EXCEPTION(decode_loom_q4_0(damaged), FormatError,
                          test::has_code(ErrorCode::truncated));
  }
  // Fewer words than the blocks have, in a blob of the right length.
  std::vector<std::byte> few(8 + 4 * 4 + 4 * 4);
  few[0] = std::byte{4}, few[4] = std::byte{4};
  BOOST_CHECK_EXCEPTION(decode_loom_q4_0(few), FormatError,
                        test::has_code(ErrorCode::inconsistent));
  ReadLimits tight;
  tight.max_allocation_bytes = 383;
  BOOST_CHECK_EXCEPTION(decode_loom_q4_0(blob, {}, tight), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
}

// 2 rows of 17: 0 is -1, 1 is 0, 2 is +1, from the lowest bits up, and each row ends its word.
BOOST_AUTO_TEST_CASE(packed_ternary_is_row_by_row) {
  std::vector<std::int8_t> values(34);
  values[0] = 1, values[1] = -1, values[16] = 1, values[17] = -1, values[33] = 1;
  const LoomBitNet matrix{.rows = 2, .cols = 17, .offset = 5, .scale = 0.5f};
  const auto blob = encode_loom_bitnet(matrix, values);
  BOOST_TEST(test::hex(blob) ==
             "0200000011000000050000000000003f0200000004000000"
             "525555550200000054555555"
             "02000000");
  const auto facts = loom_bitnet_facts(blob);
  BOOST_TEST((facts.rows == 2 && facts.cols == 17 && facts.offset == 5 && facts.scale == 0.5f));
  const auto decoded = decode_loom_bitnet(blob);
  BOOST_REQUIRE(decoded.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    BOOST_TEST(decoded[i] == 0.5f * static_cast<float>(values[i]), i);

  for (std::size_t length = 0; length < blob.size(); ++length)
    BOOST_CHECK_THROW(decode_loom_bitnet(ByteSpan(blob).first(length)), FormatError);
  for (const std::size_t at : {0u, 3u, 5u, 16u, 20u}) {
    std::vector<std::byte> damaged = blob;
    damaged[at] ^= std::byte{0x40};
    BOOST_CHECK_THROW(decode_loom_bitnet(damaged), FormatError);
  }
  std::vector<std::byte> three = blob;
  three[24] |= std::byte{3};
  BOOST_CHECK_EXCEPTION(decode_loom_bitnet(three), FormatError,
                        test::says(ErrorCode::bad_value, "element 0"));
  values[3] = 2;
  BOOST_CHECK_THROW(encode_loom_bitnet(matrix, values), UsageError);
  values.pop_back();
  BOOST_CHECK_THROW(encode_loom_bitnet(matrix, values), UsageError);
}

BOOST_AUTO_TEST_SUITE_END()
