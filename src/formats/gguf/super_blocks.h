// Blocks of 256 elements: most have groups of 16 or 32 with small scales of their own, which one or
// two halves scale again. A group's scale is rounded before it meets an element.
// docs/format/gguf.md, "Blocks".
#pragma once

#include "formats/gguf/block_reading.h"

namespace thalia::formats::gguf {

// Two halves of 128 elements; in each, bits 2s and 2s + 1 of 32 bytes are elements 32s to 32s + 31.
struct BlockQ2K {
  static constexpr unsigned kElements = 256, kBytes = 84;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const std::uint8_t* const codes = in + 16;
    const float scales = half(in + 80), minima = half(in + 82);
    for (unsigned group = 0; group < 16; ++group) {
      const float scale = scales * static_cast<float>(in[group] & 15);
      const float minimum = minima * static_cast<float>(in[group] >> 4);
      const std::uint8_t* const from = codes + 32 * (group / 8) + 16 * (group % 2);
      const unsigned shift = 2 * (group / 2 % 4);
      for (unsigned i = 0; i < 16; ++i)
        out[16 * group + i] = scale * static_cast<float>(from[i] >> shift & 3) - minimum;
    }
  }
};

// The low bits lie as in Q2_K. Bit k of 32 bytes is the third bit of elements 32k to 32k + 31, and
// if it is not set, 4 is taken away. The 16 scales have 6 bits: the low 4 lie in 8 bytes, the
// high 2 in 4 bytes.
struct BlockQ3K {
  static constexpr unsigned kElements = 256, kBytes = 110;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const std::uint8_t* const codes = in + 32;
    const std::uint8_t* const scales = in + 96;
    const float of_scales = half(in + 108);
    for (unsigned group = 0; group < 16; ++group) {
      const unsigned low = scales[group % 8] >> (4 * (group / 8)) & 15u;
      const unsigned high = scales[8 + group % 4] >> (2 * (group / 4)) & 3u;
      const float scale = of_scales * static_cast<float>(static_cast<int>(low | high << 4) - 32);
      const std::uint8_t* const from = codes + 32 * (group / 8) + 16 * (group % 2);
      const std::uint8_t* const third = in + 16 * (group % 2);
      const unsigned shift = 2 * (group / 2 % 4), bit = group / 2;
      for (unsigned i = 0; i < 16; ++i) {
        const int code = (from[i] >> shift & 3) | (third[i] >> bit & 1) << 2;
        out[16 * group + i] = scale * static_cast<float>(code - 4);
      }
    }
  }
};

// Eight scales and eight minima of 6 bits in 12 bytes, as Q4_K and Q5_K have them.
struct ScalesAndMinima {
  std::uint8_t scales[8];
  std::uint8_t minima[8];

  explicit ScalesAndMinima(const std::uint8_t* in) noexcept {
    for (unsigned i = 0; i < 4; ++i) {
      scales[i] = in[i] & 63;
      minima[i] = in[4 + i] & 63;
      scales[4 + i] = static_cast<std::uint8_t>((in[8 + i] & 15) | in[i] >> 6 << 4);
      minima[4 + i] = static_cast<std::uint8_t>(in[8 + i] >> 4 | in[4 + i] >> 6 << 4);
    }
  }
};

// The low halves of 32 bytes are one group, the high ones the next.
struct BlockQ4K {
  static constexpr unsigned kElements = 256, kBytes = 144;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scales = half(in), minima = half(in + 2);
    const ScalesAndMinima small(in + 4);
    for (unsigned pair = 0; pair < 4; ++pair) {
      const std::uint8_t* const from = in + 16 + 32 * pair;
      for (unsigned high = 0; high < 2; ++high) {
        const unsigned group = 2 * pair + high;
        const float scale = scales * static_cast<float>(small.scales[group]);
        const float minimum = minima * static_cast<float>(small.minima[group]);
        for (unsigned i = 0; i < 32; ++i)
          out[32 * group + i] = scale * static_cast<float>(from[i] >> (4 * high) & 15) - minimum;
      }
    }
  }
};

// As Q4_K, and bit k of 32 bytes is the fifth bit of group k.
struct BlockQ5K {
  static constexpr unsigned kElements = 256, kBytes = 176;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scales = half(in), minima = half(in + 2);
    const ScalesAndMinima small(in + 4);
    const std::uint8_t* const fifth = in + 16;
    for (unsigned group = 0; group < 8; ++group) {
      const std::uint8_t* const from = in + 48 + 32 * (group / 2);
      const unsigned shift = 4 * (group % 2);
      const float scale = scales * static_cast<float>(small.scales[group]);
      const float minimum = minima * static_cast<float>(small.minima[group]);
      for (unsigned i = 0; i < 32; ++i) {
        const int code = (from[i] >> shift & 15) | (fifth[i] >> group & 1) << 4;
        out[32 * group + i] = scale * static_cast<float>(code) - minimum;
      }
    }
  }
};

// Two halves of 128 elements. In each, the low halves of 64 bytes are the low bits of elements 0 to
// 63, the high ones those of 64 to 127; the high bits lie as the codes of Q2_K.
struct BlockQ6K {
  static constexpr unsigned kElements = 256, kBytes = 210;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scales = half(in + 208);
    for (unsigned group = 0; group < 16; ++group) {
      const unsigned side = group / 8, in_side = group % 8;
      const std::uint8_t* const low = in + 64 * side + 16 * (in_side % 4);
      const std::uint8_t* const high = in + 128 + 32 * side + 16 * (in_side % 2);
      const unsigned low_shift = 4 * (in_side / 4), high_shift = 2 * (in_side / 2);
      const auto small = static_cast<std::int8_t>(in[192 + group]);
      const float scale = scales * static_cast<float>(small);
      for (unsigned i = 0; i < 16; ++i) {
        const int code = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
        out[16 * group + i] = scale * static_cast<float>(code - 32);
      }
    }
  }
};

// Sums of groups follow the codes, for products only.
struct BlockQ8K {
  static constexpr unsigned kElements = 256, kBytes = 292;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const auto scale = std::bit_cast<float>(little32(in));
    for (unsigned i = 0; i < 256; ++i)
      out[i] = scale * static_cast<float>(static_cast<std::int8_t>(in[4 + i]));
  }
};

struct BlockIQ4XS {
  static constexpr unsigned kElements = 256, kBytes = 136;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scales = half(in);
    const unsigned highs = in[2] | static_cast<unsigned>(in[3]) << 8;
    for (unsigned group = 0; group < 8; ++group) {
      const unsigned low = in[4 + group / 2] >> (4 * (group % 2)) & 15u;
      const unsigned high = highs >> (2 * group) & 3u;
      const float scale = scales * static_cast<float>(static_cast<int>(low | high << 4) - 32);
      const std::uint8_t* const from = in + 8 + 16 * group;
      for (unsigned i = 0; i < 16; ++i) {
        out[32 * group + i] = scale * kUneven[from[i] & 15];
        out[32 * group + 16 + i] = scale * kUneven[from[i] >> 4];
      }
    }
  }
};

// Five digits of base 3 a byte, or four in the last four bytes: a byte holds the digits as a
// fraction of 256, rounded up, so that the next digit is what a product with 3 carries out of it.
struct BlockTQ10 {
  static constexpr unsigned kElements = 256, kBytes = 54;
  THALIA_GGUF_KERNEL void digits(const std::uint8_t* in, unsigned bytes, unsigned count,
                                 float scale, float* out) noexcept {
    unsigned power = 1;
    for (unsigned digit = 0; digit < count; ++digit) {
      for (unsigned i = 0; i < bytes; ++i) {
        const int code = static_cast<int>((in[i] * power & 255) * 3 >> 8);
        out[bytes * digit + i] = scale * static_cast<float>(code - 1);
      }
      power *= 3;
    }
  }
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scale = half(in + 52);
    digits(in, 32, 5, scale, out);
    digits(in + 32, 16, 5, scale, out + 160);
    digits(in + 48, 4, 4, scale, out + 240);
  }
};

// Codes as in Q2_K.
struct BlockTQ20 {
  static constexpr unsigned kElements = 256, kBytes = 66;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scale = half(in + 64);
    for (unsigned part = 0; part < 8; ++part) {
      const std::uint8_t* const from = in + 32 * (part / 4);
      const unsigned shift = 2 * (part % 4);
      for (unsigned i = 0; i < 32; ++i)
        out[32 * part + i] = scale * static_cast<float>((from[i] >> shift & 3) - 1);
    }
  }
};

}  // namespace thalia::formats::gguf
