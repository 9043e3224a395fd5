// Files of version 0.1, cut at every length and with every byte of header and index changed, sealed
// anew where the checksum would hide it: an error of the library or a document, and nothing else.
#include <string>

#include "boost_test.h"
#include "formats/v01/files.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/v01.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(v01_damage)

namespace {

enum class Outcome { read, refused };

// An error other than these blames the caller, or ends the test.
Outcome outcome(const std::string& file) {
  try {
    decode_v01(bytes_of(file), nullptr, {.max_allocation_bytes = 1 << 20});
    return Outcome::read;
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
  return Outcome::refused;
}

void flip_each(const std::string& file, std::size_t begin, std::size_t end, bool sealed) {
  for (std::size_t at = begin; at < end; ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      if (sealed) finalize_v01(damaged);
      const Outcome found = outcome(damaged);
      if (!sealed) BOOST_TEST((found == Outcome::refused), "byte " << at << ", bit " << bit);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  for (const Codec wrapper : {Codec::none, Codec::zstd, Codec::lz4}) {
    const std::string file =
        v01_text(encode_v01(v01_sample(), {.compression = {.codec = wrapper}}));
    BOOST_TEST((outcome(file) == Outcome::read));
    for (std::size_t length = 0; length < file.size(); ++length)
      BOOST_TEST((outcome(file.substr(0, length)) == Outcome::refused), "length " << length);
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_of_a_body_with_its_checksum_is_refused) {
  const std::string file = v01_text(encode_v01(v01_sample()));
  for (std::size_t length = 32; length < file.size(); ++length) {
    std::string cut = file.substr(0, length);
    finalize_v01(cut);
    BOOST_TEST((outcome(cut) == Outcome::refused), "length " << length);
  }
}

BOOST_AUTO_TEST_CASE(every_flip_breaks_the_checksum) {
  const std::string file = v01_text(encode_v01(v01_sample()));
  flip_each(file, 0, file.size(), /*sealed=*/false);
}

BOOST_AUTO_TEST_CASE(flips_with_the_right_checksum_are_read_or_refused) {
  // Also of JSON and tensors, every byte.
  const std::string file = v01_text(encode_v01(v01_sample()));
  flip_each(file, 0, file.size() - 32, /*sealed=*/true);
}

BOOST_AUTO_TEST_CASE(flips_of_frames_are_read_or_refused) {
  for (const Codec wrapper : {Codec::zstd, Codec::lz4}) {
    const std::string file =
        v01_text(encode_v01(v01_sample(), {.compression = {.codec = wrapper}}));
    flip_each(file, 0, file.size(), /*sealed=*/false);
  }
}

BOOST_AUTO_TEST_SUITE_END()
