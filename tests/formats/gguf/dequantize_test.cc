// Blocks as numbers, against what the Python package gguf makes of the same bytes.
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/cpu/processor.h"
#include "formats/gguf/dequantize.h"
#include "formats/gguf/files.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/formats/gguf.h"

BOOST_AUTO_TEST_SUITE(gguf_dequantize)

namespace {

using namespace thalia;
using test::gguf::from_text;
using test::gguf::vector_path;

std::vector<float> restored(GgmlType type, ByteSpan blocks, unsigned threads = 1) {
  const GgmlTypeFacts& facts = *ggml_type_facts(type);
  std::vector<float> out(blocks.size() / facts.block_bytes * facts.block_elements);
  dequantize_ggml(type, blocks, out, threads);
  return out;
}

std::uint32_t bits(float number) {
  return std::bit_cast<std::uint32_t>(number);
}

// What is in a NaN is the processor's business.
bool same_numbers(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (bits(a[i]) != bits(b[i]) && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(blocks_of_the_reference_come_out_as_it_has_them) {
  const GgufFile file = GgufFile::open(vector_path("blocks.gguf"));
  const std::string expected = test::read_file(vector_path("blocks.f32"));
  std::size_t at = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    const Tensor numbers = file.dequantize(tensor.name);
    BOOST_TEST((numbers.dtype() == DType::f32 && numbers.shape() == tensor.shape));
    std::vector<float> wanted(numbers.element_count());
    BOOST_REQUIRE(at + 4 * wanted.size() <= expected.size());
    std::memcpy(wanted.data(), expected.data() + at, 4 * wanted.size());
    at += 4 * wanted.size();
    BOOST_TEST(same_numbers(numbers.as<float>(), wanted), tensor.name);
  }
  BOOST_TEST(at == expected.size());
  BOOST_TEST(file.tensors().size() == 16u);
}

BOOST_AUTO_TEST_CASE(every_type_of_blocks_that_dequantizes_is_in_the_vectors_or_below) {
  const GgufFile file = GgufFile::open(vector_path("blocks.gguf"));
  std::vector<std::string> apart;
  for (const GgmlTypeFacts& facts : ggml_types()) {
    if (!facts.dequantizes) continue;
    bool found = false;
    for (const GgufTensor& tensor : file.tensors()) found |= tensor.type == facts.type;
    if (!found) apart.emplace_back(facts.name);
  }
  BOOST_TEST(apart == (std::vector<std::string>{"Q8_K", "Q1_0"}), boost::test_tools::per_element());
}

// The Python package has no dequantizer for these two; ggml's C code multiplies, and chooses a
// sign.
BOOST_AUTO_TEST_CASE(blocks_that_only_ggml_restores) {
  std::vector<std::byte> block(292);
  const float scale = 0.1f;
  std::memcpy(block.data(), &scale, 4);
  for (unsigned i = 0; i < 256; ++i) block[4 + i] = static_cast<std::byte>(i);
  const std::vector<float> numbers = restored(GgmlType::q8_k, block);
  for (unsigned i = 0; i < 256; ++i)
    BOOST_TEST(
        bits(numbers[i]) ==
        bits(0.1f * static_cast<float>(i < 128 ? static_cast<int>(i) : static_cast<int>(i) - 256)));

  std::vector<std::byte> signs(18, std::byte{0b10000001});
  signs[0] = std::byte{0x00};
  signs[1] = std::byte{0x3c};  // 1.0
  const std::vector<float> ones = restored(GgmlType::q1_0, signs);
  for (unsigned i = 0; i < 128; ++i)
    BOOST_TEST(ones[i] == (i % 8 == 0 || i % 8 == 7 ? 1.0f : -1.0f));
}

BOOST_AUTO_TEST_CASE(threads_and_pieces_change_nothing) {
  for (const GgmlTypeFacts& facts : ggml_types()) {
    if (!facts.dequantizes) continue;
    // More than one piece, and no whole number of them.
    const std::size_t blocks = (1u << 18) / facts.block_elements * 2 + 7;
    const std::vector<std::byte> in = test::random_bytes(blocks * facts.block_bytes);
    const std::vector<float> one = restored(facts.type, in), four = restored(facts.type, in, 4);
    BOOST_TEST(std::memcmp(one.data(), four.data(), 4 * one.size()) == 0, facts.name);
    // Each block by itself, at an odd address.
    std::vector<std::byte> odd(facts.block_bytes + 1);
    for (const std::size_t i : {std::size_t{0}, blocks / 2, blocks - 1}) {
      std::memcpy(odd.data() + 1, in.data() + i * facts.block_bytes, facts.block_bytes);
      const std::vector<float> alone = restored(facts.type, ByteSpan(odd).subspan(1));
      BOOST_TEST(
          std::memcmp(alone.data(), one.data() + i * facts.block_elements, 4 * alone.size()) == 0,
          facts.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_set_of_instructions_gives_the_same_bits) {
  for (const GgmlTypeFacts& facts : ggml_types()) {
    if (!facts.dequantizes) continue;
    const std::size_t blocks = 500;
    const std::vector<std::byte> in = test::random_bytes(blocks * facts.block_bytes, 7);
    std::vector<float> wanted;
    for (const codec::VectorSet set : codec::kVectorSets) {
      if (!codec::has_vector_set(set)) continue;
      std::vector<float> out(blocks * facts.block_elements);
      formats::gguf::expand_of(facts.type, set)(reinterpret_cast<const std::uint8_t*>(in.data()),
                                                blocks, out.data());
      if (wanted.empty()) wanted = out;
      BOOST_TEST(same_numbers(out, wanted), facts.name);
    }
  }
}

#ifdef __x86_64__
BOOST_AUTO_TEST_CASE(the_rounding_of_the_thread_does_not_count) {
  const std::vector<std::byte> in = test::random_bytes(144 * 50);
  const std::vector<float> wanted = restored(GgmlType::q4_k, in);
  std::fesetround(FE_UPWARD);
  const std::vector<float> upward = restored(GgmlType::q4_k, in);
  const int mode = std::fegetround();
  std::fesetround(FE_TONEAREST);
  BOOST_TEST(mode == FE_UPWARD);
  BOOST_TEST(std::memcmp(upward.data(), wanted.data(), 4 * wanted.size()) == 0);
}
#endif

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_the_callers_mistake) {
  std::vector<float> out(32);
  const std::vector<std::byte> block(18);
  BOOST_CHECK_EXCEPTION(dequantize_ggml(GgmlType::q4_0, ByteSpan(block).first(17), out), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
  BOOST_CHECK_EXCEPTION(dequantize_ggml(GgmlType::q4_0, block, std::span(out).first(31)),
                        UsageError, test::has_code(ErrorCode::size_mismatch));
  BOOST_CHECK_EXCEPTION(dequantize_ggml(GgmlType::q4_0, {}, out), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
  for (const GgmlType type : {GgmlType::f32, GgmlType::iq2_xxs, GgmlType::q8_1, GgmlType{4}})
    BOOST_CHECK_EXCEPTION(dequantize_ggml(type, block, out), UnsupportedError,
                          test::has_code(ErrorCode::unsupported_dtype));
  dequantize_ggml(GgmlType::q4_0, {}, {});
}

BOOST_AUTO_TEST_CASE(types_are_found_by_number_name_and_dtype) {
  for (const GgmlTypeFacts& facts : ggml_types()) {
    BOOST_TEST(ggml_type_facts(facts.type) == &facts);
    BOOST_TEST(ggml_type_from_name(facts.name) == &facts);
    if (facts.dtype) {
      BOOST_TEST((ggml_type_of(*facts.dtype) == facts.type));
      BOOST_TEST(dtype_bits(*facts.dtype) == 8 * facts.block_bytes);
    }
  }
  BOOST_TEST(ggml_type_facts(GgmlType{31}) == nullptr);
  BOOST_TEST(ggml_type_from_name("Q4_2") == nullptr);
  BOOST_TEST((ggml_type_of(DType::u8) == std::nullopt));
  BOOST_TEST((ggml_bytes(GgmlType::q4_k, Shape({3, 512})) == 3u * 2 * 144));
  BOOST_TEST((ggml_bytes(GgmlType::q4_k, Shape({3, 511})) == std::nullopt));
}

BOOST_AUTO_TEST_SUITE_END()
