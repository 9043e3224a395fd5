// Quantized tensors that the original mithril program wrote, in tests/data/formats/mithril.
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/frame/zstd_encoder.h"
#include "codec/frame/zstd_frame.h"
#include "format/little_endian.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/mithril.h"

using namespace thalia;
using test::bytes_of;
using test::says;
using test::text_of;

BOOST_AUTO_TEST_SUITE(mithril_quantized_blob)

namespace {

std::filesystem::path original(const std::string& name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/mithril" / name;
}

std::string framed(const std::string& content, int level = 3) {
  std::string frame;
  codec::ZstdEncoder encoder(level);
  const auto append = [&](ByteSpan piece) { frame += text_of(piece); };
  encoder.write(bytes_of(content), append);
  encoder.finish(append);
  return frame;
}

template <typename T>
std::string number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
std::string u64(std::uint64_t value) {
  return number(format::le64(value));
}
std::string u32(std::uint32_t value) {
  return number(format::le32(value));
}

// Fields by hand: 3 codes of int8 unless the caller says otherwise.
struct Content {
  std::string data = u64(3) + "\x01\xff\x7f";
  std::string scales = u64(1) + number(0.5f);
  std::string zero_points = std::string(1, '\0');
  std::string dtype = u32(0);
  std::string shape = u64(1) + u64(3);
  std::string method = u32(0);
  std::string group_size = std::string(1, '\0');
  std::string more{};

  std::string text() const {
    return data + scales + zero_points + dtype + shape + method + group_size + more;
  }
  MithrilQuantized decoded() const {
    const std::string frame = framed(text());
    return decode_mithril_quantized(bytes_of(frame));
  }
};

bool is_read(const std::string& file) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    static_cast<void>(decode_mithril_quantized(bytes_of(file), limits).dequantized());
    return true;
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_the_original_are_read_and_written_again_byte_for_byte) {
  const struct {
    const char* name;
    MithrilMethod method;
    std::size_t scales;
    std::optional<std::uint64_t> group_size;
    std::optional<int> zero_point;
  } kCases[] = {{"quant_int8", MithrilMethod::int8_linear, 1, {}, {}},
                {"quant_nf4_g64", MithrilMethod::nf4, 4, 64, {}},
                {"quant_int4", MithrilMethod::int4, 1, {}, 8}};
  for (const auto& one : kCases) {
    BOOST_TEST_CONTEXT(one.name) {
      const std::string name = one.name;
      const std::string file = test::read_file(original(name + ".zst"));
      const MithrilQuantized tensor = open_mithril_quantized(original(name + ".zst"));
      BOOST_TEST((tensor.method == one.method));
      BOOST_TEST((tensor.original_dtype == DType::bf16));
      BOOST_TEST((tensor.shape == Shape({16, 16})));
      BOOST_TEST(tensor.scales.size() == one.scales);
      BOOST_TEST((tensor.group_size == one.group_size));
      BOOST_TEST(tensor.zero_points.has_value() == one.zero_point.has_value());
      if (one.zero_point) BOOST_TEST(tensor.zero_points->at(0) == *one.zero_point);
      BOOST_TEST((text_of(tensor.dequantized().bytes()) ==
                  test::read_file(original(name + ".dequant.f32"))));
      BOOST_TEST((text_of(encode_mithril_quantized(tensor)) == file));
      BOOST_TEST(mithril_quantized_level(bytes_of(file)) == 3);
    }
  }
  // What EXPECTED.json says of the codes.
  const Tensor codes = open_mithril_quantized(original("quant_int4.zst")).codes;
  BOOST_TEST((codes.dtype() == DType::u4));
  BOOST_TEST(test::hex(codes.bytes().first(4)) == "5aae2594");
}

BOOST_AUTO_TEST_CASE(codes_become_numbers_by_hand) {
  Content content;
  BOOST_TEST((text_of(content.decoded().dequantized().bytes()) ==
              number(0.5f) + number(-0.5f) + number(63.5f)));
  // The first code is the lower half of a byte. 0 and 15 are the ends of the levels.
  content.data = u64(2) + "\xf0\x07";
  content.scales = u64(2) + number(2.0f) + number(3.0f);
  content.method = u32(1);
  content.group_size = "\1" + u64(2);
  BOOST_TEST((text_of(content.decoded().dequantized().bytes()) ==
              number(-2.0f) + number(2.0f) + number(0.0f)));
  // What the original restores of 10 to 25, whose codes are 0 to 15 and whose zero point is 0.
  content = {.data = u64(1) + "\xf0",
             .scales = u64(1) + number(1.0f),
             .zero_points = "\1" + u64(1) + std::string(1, '\0'),
             .shape = u64(2) + u64(1) + u64(2),
             .method = u32(2)};
  BOOST_TEST((text_of(content.decoded().dequantized().bytes()) == number(0.0f) + number(15.0f)));
  // For an empty tensor the original writes a scale of 0 and a zero point.
  content = {.data = u64(0),
             .scales = u64(1) + number(0.0f),
             .zero_points = "\1" + u64(1) + std::string(1, '\0'),
             .shape = u64(2) + u64(0) + u64(5)};
  BOOST_TEST(content.decoded().dequantized().bytes().empty());
  BOOST_TEST((text_of(encode_mithril_quantized(content.decoded())) == framed(content.text())));
}

BOOST_AUTO_TEST_CASE(the_level_is_told_by_the_window_of_the_frame) {
  for (int level = 1; level <= 22; ++level) {
    const std::string frame = framed("0123456789", level);
    const int told = mithril_quantized_level(bytes_of(frame));
    BOOST_TEST((framed("0123456789", told)[5] == frame[5]), level);
    if (level == 1 || level == 3 || level == 19) BOOST_TEST(told == level);
  }
  BOOST_TEST(mithril_quantized_level({}) == 3);
  std::vector<std::byte> frame;
  codec::zstd_encode(1, bytes_of("abc"), frame);
  BOOST_TEST(mithril_quantized_level(frame) == 3);
}

BOOST_AUTO_TEST_CASE(no_truncated_file_and_no_truncated_content_is_read) {
  for (const char* const name : {"quant_int8.zst", "quant_nf4_g64.zst", "quant_int4.zst"}) {
    const std::string whole = test::read_file(original(name));
    BOOST_TEST(is_read(whole));
    for (std::size_t length = 0; length < whole.size(); ++length)
      BOOST_TEST(!is_read(whole.substr(0, length)), length);
    BOOST_TEST(!is_read(whole + "x"));
    BOOST_TEST(!is_read(whole + whole));
  }
  const std::string content = Content().text();
  BOOST_TEST(is_read(framed(content)));
  for (std::size_t length = 0; length < content.size(); ++length)
    BOOST_TEST(!is_read(framed(content.substr(0, length))), length);
}

// There is no checksum, so a flip may go unseen: nothing worse may come of it.
BOOST_AUTO_TEST_CASE(every_flipped_byte_is_survived) {
  const std::string whole = test::read_file(original("quant_nf4_g64.zst"));
  const std::string content = Content().text();
  unsigned read = 0;
  for (const int bit : {0, 3, 7}) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      read += is_read(damaged) ? 1u : 0u;
    }
    for (std::size_t i = 0; i < content.size(); ++i) {
      std::string damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      read += is_read(framed(damaged)) ? 1u : 0u;
    }
  }
  BOOST_TEST(read < 3 * (whole.size() + content.size()));
}

BOOST_AUTO_TEST_CASE(hostile_contents_are_refused) {
  const auto refuse = [](const std::function<void(Content&)>& change, ErrorCode code,
                         const char* says) {
    Content content;
    change(content);
    BOOST_TEST_CONTEXT(says)
    BOOST_CHECK_EXCEPTION(content.decoded(), Error, test::says(code, says));
  };
  const std::uint64_t huge = 1ull << 62;
  refuse([=](Content& c) { c.data = u64(huge); }, ErrorCode::out_of_bounds, "data");
  refuse([=](Content& c) { c.scales = u64(huge); }, ErrorCode::out_of_bounds, "scales");
  refuse([](Content& c) { c.scales = u64(UINT64_MAX); }, ErrorCode::out_of_bounds, "scales");
  refuse([=](Content& c) { c.zero_points = "\1" + u64(huge); }, ErrorCode::out_of_bounds,
         "zero_points");
  refuse([](Content& c) { c.zero_points = "\2"; }, ErrorCode::bad_value, "zero_points");
  refuse([](Content& c) { c.dtype = u32(9); }, ErrorCode::bad_value, "original_dtype");
  refuse([](Content& c) { c.method = u32(4); }, ErrorCode::bad_value, "method");
  refuse([](Content& c) { c.method = u32(1); }, ErrorCode::inconsistent, "data");
  refuse([](Content& c) { c.group_size = "\3"; }, ErrorCode::bad_value, "group_size");
  refuse([=](Content& c) { c.shape = u64(huge); }, ErrorCode::out_of_bounds, "shape");
  refuse([](Content& c) { c.shape = u64(9) + std::string(72, '\1'); },
         ErrorCode::unsupported_feature, "dimensions");
  refuse([](Content& c) { c.shape = u64(1) + u64(4); }, ErrorCode::inconsistent, "data");
  refuse([=](Content& c) { c.shape = u64(2) + u64(huge) + u64(huge); }, ErrorCode::inconsistent,
         "data");
  refuse([](Content& c) { c.scales = u64(0); }, ErrorCode::inconsistent, "scales");
  refuse([](Content& c) { c.scales = u64(2) + u64(0); }, ErrorCode::inconsistent, "scales");
  refuse([](Content& c) { c.zero_points = "\1" + u64(2) + "ab"; }, ErrorCode::inconsistent,
         "zero_points");
  refuse([](Content& c) { c.more = "x"; }, ErrorCode::inconsistent, "its end");
  const auto narrow = [](Content& c, std::uint32_t method) {
    c.data = u64(2) + "ab";
    c.method = u32(method);
  };
  refuse([=](Content& c) { narrow(c, 2); }, ErrorCode::inconsistent, "zero_points");
  refuse([=](Content& c) { narrow(c, 1); }, ErrorCode::inconsistent, "group_size");
  refuse(
      [=](Content& c) {
        narrow(c, 1);
        c.group_size = "\1" + u64(0);
      },
      ErrorCode::inconsistent, "group_size");
  refuse(
      [=](Content& c) {
        narrow(c, 1);
        c.group_size = "\1" + u64(2);
      },
      ErrorCode::inconsistent, "one a group");
  BOOST_TEST(!is_read("no frame at all"));
  BOOST_TEST(!is_read(""));
}

BOOST_AUTO_TEST_CASE(a_bomb_is_refused_before_memory_is_asked_for) {
  Content bomb;
  bomb.data = u64(4 << 20) + std::string(4 << 20, '\0');
  bomb.shape = u64(1) + u64(4 << 20);
  const std::string frame = framed(bomb.text());
  BOOST_TEST(frame.size() < 1000u);
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  BOOST_CHECK_EXCEPTION(decode_mithril_quantized(bytes_of(frame), limits), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
}

BOOST_AUTO_TEST_CASE(numbers_count_as_what_the_codes_are) {
  const MithrilQuantized tensor = Content().decoded();
  const std::uint64_t bytes = tensor.dequantized().bytes().size();
  BOOST_TEST(tensor.dequantized({.max_allocation_bytes = bytes}).bytes().size() == bytes);
  BOOST_CHECK_EXCEPTION(static_cast<void>(tensor.dequantized({.max_allocation_bytes = bytes - 1})),
                        FormatError,
                        says(ErrorCode::limit_exceeded, "content", "max_allocation_bytes"));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_together_is_not_written) {
  MithrilQuantized tensor = Content().decoded();
  BOOST_CHECK_THROW(encode_mithril_quantized(tensor, 0), UsageError);
  tensor.shape = {4};
  BOOST_CHECK_THROW(encode_mithril_quantized(tensor), UsageError);
  BOOST_CHECK_THROW(static_cast<void>(tensor.dequantized()), UsageError);
  tensor = Content().decoded();
  tensor.original_dtype = DType::u16;
  BOOST_CHECK_THROW(encode_mithril_quantized(tensor), UsageError);
  tensor = Content().decoded();
  tensor.scales.clear();
  BOOST_CHECK_THROW(encode_mithril_quantized(tensor), UsageError);
}

BOOST_AUTO_TEST_SUITE_END()
