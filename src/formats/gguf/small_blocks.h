// Blocks of 32 to 128 elements with one scale, or one a 16. In each, expand() writes kElements
// numbers of the kBytes of a block. A number is rounded after each product and each sum: the order
// of these is part of what is exact. docs/format/gguf.md, "Blocks".
#pragma once

#include "formats/gguf/block_reading.h"

namespace thalia::formats::gguf {

// The low halves of the bytes are the first elements, the high ones the others.
struct BlockQ40 {
  static constexpr unsigned kElements = 32, kBytes = 18;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scale = half(in);
    for (unsigned i = 0; i < 16; ++i) {
      out[i] = scale * static_cast<float>((in[2 + i] & 15) - 8);
      out[16 + i] = scale * static_cast<float>((in[2 + i] >> 4) - 8);
    }
  }
};

struct BlockQ41 {
  static constexpr unsigned kElements = 32, kBytes = 20;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scale = half(in), minimum = half(in + 2);
    for (unsigned i = 0; i < 16; ++i) {
      out[i] = scale * static_cast<float>(in[4 + i] & 15) + minimum;
      out[16 + i] = scale * static_cast<float>(in[4 + i] >> 4) + minimum;
    }
  }
};

// The fifth bits lie together, that of element i at bit i.
struct BlockQ50 {
  static constexpr unsigned kElements = 32, kBytes = 22;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scale = half(in);
    const std::uint32_t fifth = little32(in + 2);
    for (unsigned i = 0; i < 16; ++i) {
      const int low = (in[6 + i] & 15) | static_cast<int>((fifth >> i & 1) << 4);
      const int high = (in[6 + i] >> 4) | static_cast<int>((fifth >> (i + 16) & 1) << 4);
      out[i] = scale * static_cast<float>(low - 16);
      out[16 + i] = scale * static_cast<float>(high - 16);
    }
  }
};

struct BlockQ51 {
  static constexpr unsigned kElements = 32, kBytes = 24;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scale = half(in), minimum = half(in + 2);
    const std::uint32_t fifth = little32(in + 4);
    for (unsigned i = 0; i < 16; ++i) {
      const int low = (in[8 + i] & 15) | static_cast<int>((fifth >> i & 1) << 4);
      const int high = (in[8 + i] >> 4) | static_cast<int>((fifth >> (i + 16) & 1) << 4);
      out[i] = scale * static_cast<float>(low) + minimum;
      out[16 + i] = scale * static_cast<float>(high) + minimum;
    }
  }
};

struct BlockQ80 {
  static constexpr unsigned kElements = 32, kBytes = 34;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scale = half(in);
    for (unsigned i = 0; i < 32; ++i)
      out[i] = scale * static_cast<float>(static_cast<std::int8_t>(in[2 + i]));
  }
};

struct BlockIQ4NL {
  static constexpr unsigned kElements = 32, kBytes = 18;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scale = half(in);
    for (unsigned i = 0; i < 16; ++i) {
      out[i] = scale * kUneven[in[2 + i] & 15];
      out[16 + i] = scale * kUneven[in[2 + i] >> 4];
    }
  }
};

// The scale is 2^(e - 128), half of what E8M0 means, as the codes' numbers are twice what they
// mean. e = 255 is no NaN here.
struct BlockMXFP4 {
  static constexpr unsigned kElements = 32, kBytes = 17;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const std::uint32_t e = in[0];
    const auto scale = std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
    for (unsigned i = 0; i < 16; ++i) {
      out[i] = scale * kTwiceE2M1[in[1 + i] & 15];
      out[16 + i] = scale * kTwiceE2M1[in[1 + i] >> 4];
    }
  }
};

// Four scales of E4M3 whose sign does not count, then 8 bytes for the 16 elements of each.
struct BlockNVFP4 {
  static constexpr unsigned kElements = 64, kBytes = 36;
  // Half of what the code means; its one NaN is 0.
  THALIA_GGUF_KERNEL float scale(std::uint8_t code) noexcept {
    if (code == 0x7f) return 0;
    const std::uint32_t exponent = code >> 3 & 15u, mantissa = code & 7u;
    if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
    return std::bit_cast<float>((exponent + 119) << 23 | mantissa << 20);
  }
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    for (unsigned group = 0; group < 4; ++group) {
      const float of_group = scale(in[group]);
      const std::uint8_t* const codes = in + 4 + 8 * group;
      for (unsigned i = 0; i < 8; ++i) {
        out[16 * group + i] = of_group * kTwiceE2M1[codes[i] & 15];
        out[16 * group + 8 + i] = of_group * kTwiceE2M1[codes[i] >> 4];
      }
    }
  }
};

struct BlockQ10 {
  static constexpr unsigned kElements = 128, kBytes = 18;
  THALIA_GGUF_KERNEL void expand(const std::uint8_t* in, float* out) noexcept {
    const float scale = half(in);
    for (unsigned i = 0; i < 128; ++i) out[i] = (in[2 + i / 8] >> i % 8 & 1) != 0 ? scale : -scale;
  }
};

}  // namespace thalia::formats::gguf
