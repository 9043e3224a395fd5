#include "codec/float/conversion.h"

#include <array>
#include <cfenv>
#include <cstring>
#include <numeric>
#include <vector>

#include "boost_test.h"
#include "codec/float/samples.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/sanitizers.h"

using namespace thalia;
using codec::convert_elements;
using codec::InstructionSet;
using test::element_at;
using test::elements_of;
using test::nearest;
using test::rounding_samples;
using test::value_of;

BOOST_AUTO_TEST_SUITE(float_conversion)

namespace {

constexpr std::array kTypes{DType::f32, DType::f64, DType::f16, DType::bf16};
constexpr std::array kHalves{DType::f16, DType::bf16};

std::vector<InstructionSet> present_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : codec::kInstructionSets)
    if (codec::has_instruction_set(set)) sets.push_back(set);
  return sets;
}

std::vector<std::byte> converted(DType from, DType to, ByteSpan in, InstructionSet set) {
  std::vector<std::byte> out(in.size() * 8 / dtype_bits(from) * dtype_bits(to) / 8);
  convert_elements(from, to, in, out, set);
  return out;
}

std::uint64_t converted_bits(DType from, DType to, std::uint64_t bits,
                             InstructionSet set = InstructionSet::portable) {
  return element_at(to, converted(from, to, elements_of(from, {bits}), set), 0);
}

std::uint64_t bits_of(double number) {
  return std::bit_cast<std::uint64_t>(number);
}

std::vector<std::byte> all_halves(DType dtype) {
  std::vector<std::uint64_t> bits(1u << 16);
  std::iota(bits.begin(), bits.end(), 0u);
  return elements_of(dtype, bits);
}

struct HalfKind {
  std::uint64_t infinity;
  std::uint64_t quiet;
};
HalfKind kind_of(DType half) {
  return half == DType::f16 ? HalfKind{0x7C00, 0x200} : HalfKind{0x7F80, 0x40};
}

}  // namespace

// f32, the f16 that torch 1.13's Tensor.half() gives for it, and the f32 that comes back; from the
// original program's saving and loading with the policy fp16.
BOOST_AUTO_TEST_CASE(converts_as_the_original_program_does) {
  struct Row {
    std::uint32_t f32, f16, back;
  };
  constexpr Row kRows[] = {
      {0x00000000, 0x0000, 0x00000000}, {0x80000000, 0x8000, 0x80000000},
      {0x3f800000, 0x3c00, 0x3f800000}, {0x3dcccccd, 0x2e66, 0x3dccc000},
      {0x477fe000, 0x7bff, 0x477fe000}, {0x477fefe6, 0x7bff, 0x477fe000},
      {0x477ff000, 0x7c00, 0x7f800000}, {0x322bcc77, 0x0000, 0x00000000},
      {0x337ffae5, 0x0001, 0x33800000}, {0x32fffae5, 0x0000, 0x00000000},
      {0x33000000, 0x0000, 0x00000000}, {0x387fda40, 0x03ff, 0x387fc000},
      {0x3f802000, 0x3c01, 0x3f802000}, {0x3f801000, 0x3c00, 0x3f800000},
      {0x3f803000, 0x3c02, 0x3f804000}, {0x7f800000, 0x7c00, 0x7f800000},
      {0x7fc00000, 0x7e00, 0x7fc00000}, {0xc788b800, 0xfc00, 0xff800000},
      {0x40490fdb, 0x4248, 0x40490000},
  };
  for (const Row& row : kRows) {
    BOOST_TEST(converted_bits(DType::f32, DType::f16, row.f32) == row.f16);
    BOOST_TEST(converted_bits(DType::f16, DType::f32, row.f16) == row.back);
  }
}

BOOST_AUTO_TEST_CASE(every_half_widens_to_its_value_and_comes_back) {
  for (const DType half : kHalves) {
    const auto [infinity, quiet] = kind_of(half);
    const std::vector<std::byte> in = all_halves(half);
    for (const DType wide : {DType::f32, DType::f64}) {
      const auto out = converted(half, wide, in, InstructionSet::portable);
      const auto back = converted(wide, half, out, InstructionSet::portable);
      std::size_t wrong = 0;
      for (std::uint64_t bits = 0; bits < 1u << 16; ++bits) {
        const bool is_nan = (bits & 0x7FFF) > infinity;
        if (!is_nan) {
          const std::uint64_t got = element_at(wide, out, bits);
          wrong += value_of(wide, got) != value_of(half, bits);
          wrong += got >> (dtype_bits(wide) - 1) != bits >> 15;
        }
        wrong += element_at(half, back, bits) != (is_nan ? bits | quiet : bits);
      }
      BOOST_TEST(wrong == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(rounds_f32_and_f64_to_the_nearest_half) {
  for (const DType wide : {DType::f32, DType::f64}) {
    const std::vector<std::uint64_t> samples = rounding_samples(wide);
    const std::vector<std::byte> in = elements_of(wide, samples);
    for (const DType half : kHalves) {
      const auto out = converted(wide, half, in, InstructionSet::portable);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < samples.size(); i += test::kSanitized ? 7 : 1)
        wrong += element_at(half, out, i) != nearest(half, value_of(wide, samples[i]));
      BOOST_TEST(wrong == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(rounds_f64_to_f32_and_back_as_a_cast_does) {
  const std::vector<std::uint64_t> samples = rounding_samples(DType::f64);
  const std::vector<std::byte> in = elements_of(DType::f64, samples);
  const auto narrow = converted(DType::f64, DType::f32, in, InstructionSet::portable);
  const auto wide = converted(DType::f32, DType::f64, narrow, InstructionSet::portable);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto cast = static_cast<float>(std::bit_cast<double>(samples[i]));
    wrong += element_at(DType::f32, narrow, i) != std::bit_cast<std::uint32_t>(cast);
    wrong += element_at(DType::f64, wide, i) != bits_of(cast);
  }
  BOOST_TEST(wrong == 0u);
}

// Just above the middle of 1 and the next half. Rounded to f32 first it would be that middle, and
// then 1.
BOOST_AUTO_TEST_CASE(rounds_f64_once) {
  for (const InstructionSet set : present_sets()) {
    const double f16_middle = 1 + 0x1p-11, bf16_middle = 1 + 0x1p-8;
    const auto eight = [&](double number, DType to) {
      const std::vector<std::uint64_t> bits(17, bits_of(number));
      return converted(DType::f64, to, elements_of(DType::f64, bits), set);
    };
    const auto all_are = [](ByteSpan halves, std::uint64_t bits) {
      for (std::size_t i = 0; i < 17; ++i)
        if (element_at(DType::f16, halves, i) != bits) return false;
      return true;
    };
    BOOST_TEST(all_are(eight(f16_middle, DType::f16), 0x3C00));
    BOOST_TEST(all_are(eight(f16_middle + 0x1p-40, DType::f16), 0x3C01));
    BOOST_TEST(all_are(eight(bf16_middle, DType::bf16), 0x3F80));
    BOOST_TEST(all_are(eight(bf16_middle + 0x1p-40, DType::bf16), 0x3F81));
    // Between two subnormal bf16, of 2^-133 each, and subnormal as an f32.
    BOOST_TEST(all_are(eight(0x1.8p-133, DType::bf16), 2));
    BOOST_TEST(all_are(eight(0x1.8p-133 - 0x1p-170, DType::bf16), 1));
    BOOST_TEST(all_are(eight(-0x1p-1074, DType::bf16), 0x8000));
  }
}

BOOST_AUTO_TEST_CASE(nan_stays_a_quiet_nan_with_its_sign_and_payload) {
  for (const InstructionSet set : present_sets()) {
    struct Row {
      DType from, to;
      std::uint64_t in, out;
    };
    constexpr std::uint64_t kOne = 1;
    const Row rows[] = {
        {DType::f32, DType::f16, 0x7F800001, 0x7E00},
        {DType::f32, DType::f16, 0xFF802000, 0xFE01},
        {DType::f32, DType::f16, 0x7FC02000 | 0x1FFF, 0x7E01},
        {DType::f32, DType::bf16, 0x7F800001, 0x7FC0},
        {DType::f32, DType::bf16, 0xFFFFFFFF, 0xFFFF},
        {DType::f64, DType::f16, (0x7FFull << 52) | 1, 0x7E00},
        {DType::f64, DType::f16, (0xFFFull << 52) | (kOne << 42), 0xFE01},
        {DType::f64, DType::bf16, (0xFFFull << 52) | (kOne << 45), 0xFFC1},
        {DType::f64, DType::f32, (0x7FFull << 52) | (kOne << 29), 0x7FC00001},
        {DType::f16, DType::f32, 0xFC01, 0xFFC02000},
        {DType::bf16, DType::f32, 0x7F81, 0x7FC10000},
        {DType::f32, DType::f64, 0x7F800001, (0x7FF8ull << 48) | (kOne << 29)},
    };
    for (const Row& row : rows) {
      const std::vector<std::uint64_t> in(33, row.in);
      const auto out = converted(row.from, row.to, elements_of(row.from, in), set);
      for (const std::size_t i : {0u, 15u, 31u, 32u})
        BOOST_TEST(element_at(row.to, out, i) == row.out);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_instruction_set_gives_the_same_bytes) {
  for (const DType from : kTypes) {
    std::vector<std::byte> in;
    if (dtype_bits(from) == 16) {
      in = all_halves(from);
    } else {
      in = elements_of(from, rounding_samples(from));
      const auto noise = test::random_bytes(1 << 20);  // NaNs among it
      in.insert(in.end(), noise.begin(), noise.end());
    }
    for (const DType to : kTypes) {
      const auto expected = converted(from, to, in, InstructionSet::portable);
      for (const InstructionSet set : present_sets())
        BOOST_TEST((converted(from, to, in, set) == expected));
    }
  }
}

BOOST_AUTO_TEST_CASE(takes_any_length_and_any_address) {
  const std::byte untouched{0xA5};
  for (const DType from : kTypes) {
    const std::size_t from_bytes = dtype_bits(from) / 8;
    for (const DType to : kTypes) {
      const std::size_t to_bytes = dtype_bits(to) / 8;
      for (std::size_t count = 0; count < 70; ++count) {
        const std::size_t shift = count % 9;
        const auto in = test::random_bytes(shift + count * from_bytes, count + 1);
        const ByteSpan elements = ByteSpan(in).subspan(shift);
        const auto expected = converted(from, to, elements, InstructionSet::portable);
        for (const InstructionSet set : present_sets()) {
          std::vector<std::byte> out(shift + 1 + count * to_bytes + 1, untouched);
          const MutableByteSpan target = MutableByteSpan(out).subspan(shift + 1, count * to_bytes);
          convert_elements(from, to, elements, target, set);
          const bool same = std::equal(target.begin(), target.end(), expected.begin());
          const bool kept = out[shift] == untouched && out.back() == untouched;
          BOOST_TEST((same && kept), dtype_name(from) << " to " << dtype_name(to) << ", " << count);
        }
      }
    }
  }
}

#ifdef __x86_64__
BOOST_AUTO_TEST_CASE(heeds_no_mode_of_the_thread) {
  const auto in = elements_of(DType::f64, rounding_samples(DType::f64));
  const auto narrow = converted(DType::f64, DType::f32, in, InstructionSet::portable);
  const auto halves = converted(DType::f32, DType::f16, narrow, InstructionSet::portable);
  const unsigned before = __builtin_ia32_stmxcsr();
  // Towards zero, subnormals flushed, and taken for zero.
  constexpr unsigned kMode = 0x1F80 | 0x6000 | 0x8000 | 0x40;
  for (const InstructionSet set : present_sets()) {
    __builtin_ia32_ldmxcsr(kMode);
    const auto got = converted(DType::f64, DType::f32, in, set);
    const auto got_halves = converted(DType::f32, DType::f16, got, set);
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    BOOST_TEST(after == kMode);
    BOOST_TEST((got == narrow));
    BOOST_TEST((got_halves == halves));
  }
}
#endif

BOOST_AUTO_TEST_CASE(refuses_other_types_and_sizes) {
  const std::vector<std::byte> in(12);
  std::vector<std::byte> out(6);
  const auto refuses = [&](DType from, DType to, ErrorCode code, const char* field) {
    BOOST_CHECK_EXCEPTION(convert_elements(from, to, in, out), UsageError, test::says(code, field));
  };
  convert_elements(DType::f32, DType::f16, in, out);
  refuses(DType::i32, DType::f16, ErrorCode::dtype_mismatch, "from: got i32");
  refuses(DType::f32, DType::i16, ErrorCode::dtype_mismatch, "to: got i16");
  refuses(DType::f64, DType::f16, ErrorCode::size_mismatch, "in: got 12 bytes");
  refuses(DType::f16, DType::bf16, ErrorCode::size_mismatch, "out: got 6 bytes");
  refuses(DType::f32, DType::f32, ErrorCode::size_mismatch, "out: got 6 bytes");
}

BOOST_AUTO_TEST_SUITE_END()
