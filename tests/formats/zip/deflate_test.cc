#include "formats/zip/deflate.h"

#include <span>
#include <string>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::formats;
using test::bytes_of;
using test::says;
using test::text_of;

BOOST_AUTO_TEST_SUITE(deflate_streams)

BOOST_AUTO_TEST_CASE(streams_that_are_not_what_was_said_are_refused) {
  std::string coded;
  DeflateStream deflate;
  const PieceSink sink = [&](ByteSpan piece) { coded += text_of(piece); };
  deflate.write(bytes_of(std::string(100, 'x')), sink);
  deflate.finish(sink);
  const auto decode = [](const std::string& stream, std::size_t size) {
    std::string out(size, '\0');
    InflateStream inflate(bytes_of(stream));
    // Byte by byte: a stream may be asked for in any pieces.
    for (char& c : out) inflate.read(std::as_writable_bytes(std::span(&c, 1)));
    inflate.finish();
    return out;
  };
  BOOST_TEST(decode(coded, 100) == std::string(100, 'x'));
  BOOST_CHECK_EXCEPTION(decode(coded, 101), CompressionError,
                        says(ErrorCode::bad_compression, "ends before"));
  BOOST_CHECK_EXCEPTION(decode(coded, 99), CompressionError,
                        says(ErrorCode::bad_compression, "longer"));
  BOOST_CHECK_EXCEPTION(decode(coded, 0), CompressionError,
                        says(ErrorCode::bad_compression, "longer"));
  BOOST_CHECK_EXCEPTION(decode(coded + "x", 100), CompressionError,
                        says(ErrorCode::bad_compression, "follow the end"));
  for (std::size_t length = 0; length < coded.size(); ++length)
    BOOST_CHECK_THROW(decode(coded.substr(0, length), 100), CompressionError);
  BOOST_CHECK_THROW(decode("\xff\xff", 1), CompressionError);
}

BOOST_AUTO_TEST_SUITE_END()
