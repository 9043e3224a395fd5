#include "codec/cpu/element_samples.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "boost_test.h"
#include "codec/float/conversion.h"
#include "support/bytes.h"
#include "thalia/error.h"

namespace thalia::test {
namespace {

using codec::Content;
using codec::ElementLayout;

constexpr std::byte kFence{0xA5};
constexpr std::size_t kFenceBytes = 64;

// Two neighbours are a pair of Box and Muller's.
std::vector<double> normal_numbers(std::size_t count, std::uint64_t seed) {
  const Bytes noise = random_bytes((count + 1) * 8, seed);
  const auto uniform = [&](std::size_t i) {
    std::uint64_t bits;
    std::memcpy(&bits, noise.data() + 8 * i, sizeof(bits));
    return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  };
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t pair = i / 2 * 2;
    const double radius = std::sqrt(-2 * std::log(uniform(pair)));
    const double angle = 2 * std::numbers::pi * uniform(pair + 1);
    out.push_back(radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)));
  }
  return out;
}

DType float_type(ElementLayout layout) {
  return layout.element_bytes == 8   ? DType::f64
         : layout.element_bytes == 4 ? DType::f32
         : layout.exponent_bits == 5 ? DType::f16
                                     : DType::bf16;
}

void append(Bytes& bytes, std::uint64_t value, std::size_t width) {
  for (std::size_t k = 0; k < width; ++k) bytes.push_back(static_cast<std::byte>(value >> (8 * k)));
}

// Both signs of zero, the smallest and the greatest subnormal, one, infinity, NaNs.
Bytes special_floats(ElementLayout layout, std::size_t count) {
  const unsigned bits = 8u * layout.element_bytes;
  const unsigned mantissa = bits - 1 - layout.exponent_bits;
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const std::uint64_t infinity = ((std::uint64_t{1} << layout.exponent_bits) - 1) << mantissa;
  const std::uint64_t one = infinity >> 1 & ~((std::uint64_t{1} << mantissa) - 1);
  const std::uint64_t subnormal = (std::uint64_t{1} << mantissa) - 1;
  const std::uint64_t values[] = {
      0, sign, 1, subnormal, one, infinity, infinity + 1, infinity | subnormal, one | sign};
  const Bytes noise = random_bytes(count);
  Bytes out;
  for (const std::byte byte : noise)
    append(out, values[std::to_integer<std::size_t>(byte) % std::size(values)],
           layout.element_bytes);
  return out;
}

// Half zeros, half numbers from 1 to 2: fewer exponents than there are codes for them.
Bytes zeros_and_ones(ElementLayout layout, std::size_t count) {
  std::vector<double> numbers;
  for (const std::byte byte : random_bytes(count)) {
    const int noise = std::to_integer<int>(byte);
    numbers.push_back(noise % 2 == 0 ? 0 : 1 + noise / 260.0);
  }
  Bytes out(count * layout.element_bytes);
  codec::convert_elements(DType::f64, float_type(layout), as_byte_span(numbers), out);
  return out;
}

}  // namespace

Bytes normal_elements(ElementLayout layout, std::size_t count, std::uint64_t seed) {
  const std::vector<double> numbers = normal_numbers(count, seed);
  Bytes out;
  if (layout.content == Content::floats && layout.element_bytes > 1) {
    std::vector<double> weights;
    for (const double number : numbers) weights.push_back(0.02 * number);
    out.resize(count * layout.element_bytes);
    codec::convert_elements(DType::f64, float_type(layout), as_byte_span(weights), out);
    return out;
  }
  for (const double number : numbers)
    append(out, static_cast<std::uint64_t>(std::lround(30 * number)), layout.element_bytes);
  return out;
}

std::vector<ElementSample> element_samples(ElementLayout layout) {
  const std::size_t width = layout.element_bytes;
  std::vector<ElementSample> out;
  for (std::size_t length = 0; length <= 200; ++length) {
    Bytes bytes = normal_elements(layout, length / width + 1, length + 1);
    bytes.resize(length);
    out.push_back({"weights of " + std::to_string(length) + " bytes", std::move(bytes)});
  }
  Bytes odd = normal_elements(layout, 20011);
  odd.resize(odd.size() + 1 + width / 2, std::byte{0x5A});
  out.push_back({"weights and an odd end", std::move(odd)});
  out.push_back({"weights in whole blocks", normal_elements(layout, 16384)});
  out.push_back({"zeros", Bytes(10000, std::byte{0})});
  out.push_back({"one value", Bytes(9999, std::byte{0x3C})});
  Bytes rare = Bytes(40000, std::byte{0});
  rare[20003] = std::byte{0x80};
  out.push_back({"one other value", std::move(rare)});
  Bytes every;
  for (unsigned i = 0; i < 40000; ++i) every.push_back(static_cast<std::byte>(i * i / 300));
  out.push_back({"every byte", std::move(every)});
  out.push_back({"noise", random_bytes(30001)});
  Bytes some = random_bytes(30000);
  for (std::size_t i = 0; i < some.size(); ++i)
    if (i % width == width - 1) some[i] &= std::byte{0x81};
  out.push_back({"noise in some planes", std::move(some)});
  if (layout.content == Content::floats && width > 1) {
    out.push_back({"special floats", special_floats(layout, 10000)});
    out.push_back({"zeros and ones", zeros_and_ones(layout, 20000)});
  }
  return out;
}

std::vector<ElementLayout> float_layouts() {
  return {{Content::floats, 2, 8},
          {Content::floats, 2, 5},
          {Content::floats, 4, 8},
          {Content::floats, 8, 11}};
}

std::vector<ElementLayout> all_layouts() {
  std::vector<ElementLayout> out = float_layouts();
  out.insert(out.end(), {{Content::floats, 1, 4}, {Content::bytes, 1, 0}});
  for (std::uint8_t width = 1; width <= 8; width = static_cast<std::uint8_t>(2 * width))
    out.push_back({Content::integers, width, 0});
  out.push_back({Content::indices, 4, 0});
  return out;
}

std::vector<codec::VectorSet> present_vector_sets() {
  std::vector<codec::VectorSet> sets;
  for (const codec::VectorSet set : codec::kVectorSets)
    if (codec::has_vector_set(set)) sets.push_back(set);
  return sets;
}

Bytes decode_fenced(const StreamCodec& codec, ByteSpan stored, std::size_t raw_length,
                    codec::VectorSet set) {
  const Bytes exact(stored.begin(), stored.end());
  Bytes fenced(raw_length + 2 * kFenceBytes, kFence);
  const MutableByteSpan raw = MutableByteSpan(fenced).subspan(kFenceBytes, raw_length);
  const auto check_fences = [&] {
    const auto is_fence = [](std::byte byte) { return byte == kFence; };
    BOOST_REQUIRE(std::all_of(fenced.data(), raw.data(), is_fence));
    BOOST_REQUIRE(std::all_of(raw.data() + raw_length, fenced.data() + fenced.size(), is_fence));
  };
  try {
    codec.decode(exact, raw, set);
  } catch (const Error&) {
    check_fences();
    throw;
  }
  check_fences();
  return {raw.begin(), raw.end()};
}

void check_round_trips(const StreamCodec& codec, const std::vector<ElementLayout>& layouts) {
  const auto sets = present_vector_sets();
  Bytes used(100, std::byte{7});
  for (const ElementLayout layout : layouts) {
    for (const ElementSample& sample : element_samples(layout)) {
      BOOST_TEST_CONTEXT(sample.name << ", elements of " << int{layout.element_bytes} << " bytes, "
                                     << int{layout.exponent_bits} << " bits of exponent") {
        Bytes expected;
        const bool shrinks = codec.encode(layout, sample.bytes, expected, sets.front());
        BOOST_TEST((shrinks ? expected.size() < sample.bytes.size() : expected == sample.bytes));
        for (const codec::VectorSet set : sets) {
          // At another address than it was, and into a vector that held another stream.
          Bytes moved(1, std::byte{0});
          moved.insert(moved.end(), sample.bytes.begin(), sample.bytes.end());
          BOOST_TEST(codec.encode(layout, ByteSpan(moved).subspan(1), used, set) == shrinks);
          BOOST_TEST((used == expected));
          if (!shrinks) continue;
          BOOST_TEST((decode_fenced(codec, expected, sample.bytes.size(), set) == sample.bytes));
        }
      }
    }
  }
}

void check_survives_damage(const StreamCodec& codec, ByteSpan stored, std::size_t raw_length) {
  const auto is_refused = [&](ByteSpan bytes, std::size_t length, codec::VectorSet set) {
    try {
      decode_fenced(codec, bytes, length, set);
      return false;
    } catch (const CompressionError&) {
      return true;
    }
  };
  for (const codec::VectorSet set : present_vector_sets()) {
    BOOST_TEST(!is_refused(stored, raw_length, set));
    for (std::size_t length = 0; length < stored.size(); ++length)
      BOOST_TEST(is_refused(stored.first(length), raw_length, set));
    Bytes damaged(stored.begin(), stored.end());
    damaged.push_back(std::byte{0});
    BOOST_TEST(is_refused(damaged, raw_length, set));
    damaged.pop_back();
    for (std::byte& byte : damaged) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        byte ^= std::byte{1} << bit;
        is_refused(damaged, raw_length, set);
        byte ^= std::byte{1} << bit;
      }
    }
    for (std::size_t length = 0; length < 2 * raw_length; ++length)
      if (length != raw_length) is_refused(stored, length, set);
  }
}

std::string refusal(const StreamCodec& codec, ByteSpan stored, std::size_t raw_length) {
  std::string found;
  for (const codec::VectorSet set : present_vector_sets()) {
    std::string text;
    try {
      decode_fenced(codec, stored, raw_length, set);
    } catch (const CompressionError& error) {
      text = error.what();
    }
    if (set == codec::VectorSet::portable) found = text;
    BOOST_TEST(text == found);
  }
  return found;
}

}  // namespace thalia::test
