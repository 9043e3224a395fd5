// Q4_0 and BitNet blobs. Both hold 32-bit little-endian words, and in both the first element of a
// word is in its lowest bits: the other way round than native elements.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "format/little_endian.h"
#include "io/memory/allocation_limit.h"
#include "thalia/formats/loom.h"

namespace thalia {
namespace formats::loom {
namespace {

constexpr std::uint64_t kBlock = 32;
constexpr std::uint64_t kWordsOfBlock = 4;
// The original pads to this, for the sake of its GPU buffers.
constexpr std::uint64_t kWordsMultiple = 64;
constexpr std::uint64_t kLeastWords = 512;

struct Q4Start {
  format::le32 scales;
  format::le32 words;
};
THALIA_ON_DISK(Q4Start, 8);

struct BitNetStart {
  format::le32 rows;
  format::le32 cols;
  format::le32 offset;
  format::le32 scale;  ///< the bits of an f32
  format::le32 row_words;
  format::le32 words;
};
THALIA_ON_DISK(BitNetStart, 24);
constexpr std::uint64_t kLanes = 16;

template <typename Start>
Start read_start(ByteSpan blob, std::string_view section) {
  if (blob.size() < sizeof(Start)) {
    throw FormatError(ErrorCode::truncated, "no room for what the blob begins with",
                      {.section = std::string(section),
                       .value = fmt::format("{} bytes", blob.size()),
                       .bound = std::to_string(sizeof(Start))});
  }
  Start start;
  std::memcpy(&start, blob.data(), sizeof(start));
  return start;
}

void check_blob_size(ByteSpan blob, std::uint64_t expected, std::string_view section) {
  if (blob.size() == expected) return;
  throw FormatError(blob.size() < expected ? ErrorCode::truncated : ErrorCode::inconsistent,
                    "the blob is not as long as its counts say",
                    {.section = std::string(section),
                     .value = fmt::format("{} bytes", blob.size()),
                     .bound = std::to_string(expected)});
}

Q4Start checked_q4(ByteSpan blob) {
  const auto start = read_start<Q4Start>(blob, "q4_0");
  check_blob_size(blob, sizeof(start) + 4ull * start.scales + 4ull * start.words, "q4_0");
  if (kWordsOfBlock * start.scales > start.words) {
    throw FormatError(ErrorCode::inconsistent, "fewer words than the blocks have",
                      {.section = "q4_0",
                       .field = "nPacked",
                       .value = std::to_string(start.words),
                       .bound = std::to_string(kWordsOfBlock * start.scales)});
  }
  return start;
}

BitNetStart checked_bitnet(ByteSpan blob) {
  const auto start = read_start<BitNetStart>(blob, "bitnet_ternary");
  check_blob_size(blob, sizeof(start) + 4ull * start.words, "bitnet_ternary");
  const std::uint64_t row_words = (start.cols + kLanes - 1) / kLanes;
  if (start.row_words != row_words || start.words != start.rows * row_words) {
    throw FormatError(ErrorCode::inconsistent, "words that do not follow from rows and columns",
                      {.section = "bitnet_ternary",
                       .field = "nWords",
                       .value = fmt::format("{} of {} a row", std::uint32_t{start.words},
                                            std::uint32_t{start.row_words}),
                       .bound = fmt::format("{} of {}", start.rows * row_words, row_words)});
  }
  return start;
}

std::uint32_t word_at(ByteSpan bytes, std::uint64_t i) noexcept {
  format::le32 word;
  std::memcpy(&word, bytes.data() + 4 * i, sizeof(word));
  return word;
}

void put_word(std::vector<std::byte>& out, std::uint64_t at, std::uint32_t value) {
  const format::le32 word(value);
  std::memcpy(out.data() + at, &word, sizeof(word));
}

}  // namespace
}  // namespace formats::loom

namespace loom = formats::loom;

std::vector<std::byte> encode_loom_q4_0(std::span<const float> weights) {
  const std::uint64_t blocks = (weights.size() + loom::kBlock - 1) / loom::kBlock;
  const std::uint64_t words =
      std::max(loom::kLeastWords, (loom::kWordsOfBlock * blocks + loom::kWordsMultiple - 1) /
                                      loom::kWordsMultiple * loom::kWordsMultiple);
  if (words > UINT32_MAX) {
    fail_argument(ErrorCode::bad_argument, "weights", fmt::format("{} words", words),
                  "2^32 - 1 words");
  }
  std::vector<std::byte> blob(sizeof(loom::Q4Start) + 4 * blocks + 4 * words);
  loom::put_word(blob, 0, static_cast<std::uint32_t>(blocks));
  loom::put_word(blob, 4, static_cast<std::uint32_t>(words));
  const std::uint64_t codes = sizeof(loom::Q4Start) + 4 * blocks;
  for (std::uint64_t b = 0; b < blocks; ++b) {
    const auto block = weights.subspan(
        b * loom::kBlock, std::min<std::uint64_t>(loom::kBlock, weights.size() - b * loom::kBlock));
    float most = 0;
    for (const float weight : block)
      if (std::abs(weight) > most) most = std::abs(weight);
    const float scale = most / 7;
    loom::put_word(blob, sizeof(loom::Q4Start) + 4 * b, std::bit_cast<std::uint32_t>(scale));
    if (scale == 0) continue;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const double level = std::round(static_cast<double>(block[i] / scale));
      // NaN is 0, as its cast to 8 bits is in the original.
      const int code = std::isnan(level) ? 0 : static_cast<int>(std::clamp(level, -8.0, 7.0));
      blob[codes + 16 * b + i / 2] |=
          static_cast<std::byte>((static_cast<unsigned>(code) & 15) << (i % 2 * 4));
    }
  }
  return blob;
}

std::uint64_t loom_q4_0_blocks(ByteSpan blob) {
  return loom::checked_q4(blob).scales;
}

std::vector<float> decode_loom_q4_0(ByteSpan blob, std::optional<std::uint64_t> count,
                                    const ReadLimits& limits) {
  const loom::Q4Start start = loom::checked_q4(blob);
  const std::uint64_t there = loom::kBlock * start.scales;
  if (count && *count > there) {
    fail_argument(ErrorCode::size_mismatch, "count", std::to_string(*count),
                  fmt::format("at most {}", there));
  }
  io::MemoryBudget budget(limits, blob.size());
  const ByteSpan scales = blob.subspan(sizeof(start)), codes = scales.subspan(4ull * start.scales);
  auto weights = budget.vector<float>("q4_0", count.value_or(there));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float scale = std::bit_cast<float>(loom::word_at(scales, i / loom::kBlock));
    const unsigned code = (std::to_integer<unsigned>(codes[i / 2]) >> (i % 2 * 4)) & 15;
    weights[i] =
        static_cast<float>(code > 7 ? static_cast<int>(code) - 16 : static_cast<int>(code)) * scale;
  }
  return weights;
}

std::vector<std::byte> encode_loom_bitnet(const LoomBitNet& matrix,
                                          std::span<const std::int8_t> values) {
  const std::uint64_t elements = std::uint64_t{matrix.rows} * matrix.cols;
  if (values.size() != elements) {
    fail_argument(ErrorCode::size_mismatch, "values", std::to_string(values.size()),
                  std::to_string(elements));
  }
  const std::uint64_t row_words = (matrix.cols + loom::kLanes - 1) / loom::kLanes;
  const std::uint64_t words = matrix.rows * row_words;
  if (words > UINT32_MAX) {
    fail_argument(ErrorCode::bad_argument, "values", fmt::format("{} words", words),
                  "2^32 - 1 words");
  }
  std::vector<std::byte> blob(sizeof(loom::BitNetStart) + 4 * words);
  loom::put_word(blob, 0, matrix.rows);
  loom::put_word(blob, 4, matrix.cols);
  loom::put_word(blob, 8, matrix.offset);
  loom::put_word(blob, 12, std::bit_cast<std::uint32_t>(matrix.scale));
  loom::put_word(blob, 16, static_cast<std::uint32_t>(row_words));
  loom::put_word(blob, 20, static_cast<std::uint32_t>(words));
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] < -1 || values[i] > 1) {
      fail_argument(ErrorCode::bad_argument, "values", std::to_string(values[i]), "-1 to 1");
    }
    const std::uint64_t col = i % matrix.cols;
    const std::uint64_t byte =
        sizeof(loom::BitNetStart) + i / matrix.cols * row_words * 4 + col / 4;
    blob[byte] |= static_cast<std::byte>(static_cast<unsigned>(values[i] + 1) << (col % 4 * 2));
  }
  return blob;
}

LoomBitNet loom_bitnet_facts(ByteSpan blob) {
  const loom::BitNetStart start = loom::checked_bitnet(blob);
  return {.rows = start.rows,
          .cols = start.cols,
          .offset = start.offset,
          .scale = std::bit_cast<float>(std::uint32_t{start.scale})};
}

std::vector<float> decode_loom_bitnet(ByteSpan blob, const ReadLimits& limits) {
  const LoomBitNet matrix = loom_bitnet_facts(blob);
  // At most 16 for each word of the blob, so it does not wrap.
  const std::uint64_t elements = std::uint64_t{matrix.rows} * matrix.cols;
  io::MemoryBudget budget(limits, blob.size());
  const std::uint64_t row_words = (matrix.cols + loom::kLanes - 1) / loom::kLanes;
  const ByteSpan words = blob.subspan(sizeof(loom::BitNetStart));
  auto weights = budget.vector<float>("bitnet_ternary", elements);
  for (std::uint64_t i = 0; i < elements; ++i) {
    const std::uint64_t col = i % matrix.cols;
    const unsigned byte =
        std::to_integer<unsigned>(words[i / matrix.cols * row_words * 4 + col / 4]);
    const unsigned code = (byte >> (col % 4 * 2)) & 3;
    if (code == 3) {
      throw FormatError(ErrorCode::bad_value, {},
                        {.section = "bitnet_ternary",
                         .field = "code",
                         .value = fmt::format("3 of element {}", i),
                         .bound = "0 to 2"});
    }
    weights[i] = (static_cast<float>(code) - 1) * matrix.scale;
  }
  return weights;
}

}  // namespace thalia
