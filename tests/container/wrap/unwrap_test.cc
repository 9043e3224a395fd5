// One frame in memory: its content exactly, what follows it, and no byte for a frame that lies.
#include "container/wrap/unwrap.h"

#include <algorithm>
#include <string>

#include "boost_test.h"
#include "codec/chunk/codec.h"
#include "container/wrap/seek_table.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using container::unwrap_front_frame;
using test::bytes_of;
using test::has_code;
using test::says;
using test::text_of;

BOOST_AUTO_TEST_SUITE(unwrap)

namespace {

const Codec kCodecs[] = {Codec::zstd, Codec::lz4};

std::string contents() {
  std::string text;
  for (int i = 0; i < 60000; ++i) text += std::to_string(i) + '\n';
  return text;
}

std::string frame_of(Codec codec, const std::string& text) {
  std::vector<std::byte> out;
  codec::encode_chunk(codec, 0, {}, bytes_of(text), out);
  return text_of(out);
}

// Frames of an independent writer, with and without content size, of tests/data/codec.
std::string sample(const std::string& name) {
  return test::read_file(std::filesystem::path(THALIA_CODEC_DATA) / name);
}
std::string counting_text() {
  std::string text;
  for (int i = 1; i <= 2000; ++i) text += std::to_string(i) + '\n';
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_frame_gives_its_content_and_what_follows_it) {
  const std::string text = contents();
  for (const Codec codec : kCodecs) {
    const std::string frame = frame_of(codec, text);
    for (const std::string& trailing : {std::string(), std::string(32, 'x'), frame}) {
      const std::string file = frame + trailing;
      const auto found = unwrap_front_frame(bytes_of(file), {});
      BOOST_TEST((found.codec == codec));
      BOOST_TEST((text_of(found.bytes) == text));
      BOOST_TEST((text_of(found.frame) == frame));
      BOOST_TEST(text_of(found.trailing) == trailing);
    }
  }
}

BOOST_AUTO_TEST_CASE(frames_of_other_programs_with_and_without_a_content_size_are_decoded) {
  for (const char* const name :
       {"counting.zst", "no_content_size.zst", "counting.lz4", "no_content_size.lz4"}) {
    const std::string file = sample(name) + "tail";
    const auto found = unwrap_front_frame(bytes_of(file), {});
    BOOST_TEST((text_of(found.bytes) == counting_text()), name);
    BOOST_TEST(text_of(found.trailing) == "tail");
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  for (const char* const name :
       {"counting.zst", "no_content_size.zst", "counting.lz4", "no_content_size.lz4"}) {
    const std::string file = sample(name);
    for (std::size_t length = 0; length < file.size(); ++length)
      BOOST_CHECK_THROW(unwrap_front_frame(bytes_of(file).first(length), {}), FormatError);
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_byte_never_gives_wrong_bytes_under_a_content_checksum) {
  for (const char* const name : {"counting.zst", "counting.lz4", "no_content_size.lz4"}) {
    for (std::string file = sample(name); auto& byte : file) {
      byte = static_cast<char>(byte ^ 0x10);
      try {
        const auto found = unwrap_front_frame(bytes_of(file), {});
        // The frame's own flag of its checksum is no part of what it covers.
        BOOST_TEST((text_of(found.bytes) == counting_text()));
      } catch (const FormatError&) {
      }
      byte = static_cast<char>(byte ^ 0x10);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_limit_bounds_what_is_decoded_whether_the_frame_tells_its_size_or_not) {
  const std::string text = counting_text();
  for (const char* const name :
       {"counting.zst", "no_content_size.zst", "counting.lz4", "no_content_size.lz4"}) {
    const std::string file = sample(name);
    ReadLimits limits;
    limits.max_allocation_bytes = text.size();
    BOOST_TEST(unwrap_front_frame(bytes_of(file), limits).bytes.size() == text.size());
    limits.max_allocation_bytes = text.size() - 1;
    BOOST_CHECK_EXCEPTION(unwrap_front_frame(bytes_of(file), limits), FormatError,
                          says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
  }
}

BOOST_AUTO_TEST_CASE(a_content_size_that_no_frame_of_this_length_has_is_refused) {
  // 2 GiB, within the limit, of some 20 bytes: single segment, content size of 4 bytes.
  const std::string zstd("\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x80\x01\x00\x00", 12);
  BOOST_CHECK_EXCEPTION(unwrap_front_frame(bytes_of(zstd), {}), FormatError,
                        says(ErrorCode::bad_value, "content_size", "2147483648"));
  const std::string lz4("\x04\x22\x4d\x18\x68\x40\x00\x00\x00\x80\x00\x00\x00\x00\x00", 15);
  BOOST_CHECK_EXCEPTION(unwrap_front_frame(bytes_of(lz4), {}), FormatError,
                        says(ErrorCode::bad_value, "content_size", "2147483648"));
}

BOOST_AUTO_TEST_CASE(what_begins_with_no_frame_is_refused) {
  for (const std::string& file :
       {std::string(), std::string("THAL"), std::string("\x28\xb5\x2f", 3),
        std::string("\x50\x2a\x4d\x18\x04\x00\x00\x00skip", 12),  // skippable
        std::string("\x27\xb5\x2f\xfd\x00\x00\x00\x00", 8)}) {    // zstd 0.7
    BOOST_TEST(!container::find_wrapper(bytes_of(file)).has_value());
    BOOST_CHECK_EXCEPTION(unwrap_front_frame(bytes_of(file), {}), FormatError,
                          has_code(ErrorCode::bad_magic));
  }
}

BOOST_AUTO_TEST_SUITE_END()
