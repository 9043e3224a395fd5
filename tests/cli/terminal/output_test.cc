#include "cli/terminal/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <string_view>

#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(output)

BOOST_AUTO_TEST_CASE(output_to_a_full_disk_is_an_error_that_names_it) {
  const int full = ::open("/dev/full", O_WRONLY);
  BOOST_TEST_REQUIRE(full >= 0);
  Output out(full);
  out.write("text");
  BOOST_CHECK_EXCEPTION(out.flush(), IoError, [](const IoError& error) {
    return error.errno_value() == ENOSPC && error.context().path == "standard output";
  });
  ::close(full);
}

BOOST_AUTO_TEST_CASE(output_to_a_reader_that_left_is_dropped) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  BOOST_TEST_REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  Output out(ends[1]);
  out.write("text");
  out.flush();
  BOOST_TEST(out.closed());
  out.write(std::string(1 << 20, 'x'));
  out.flush();
  ::close(ends[1]);
}

BOOST_AUTO_TEST_CASE(text_and_json_move_no_cursor_and_bytes_stay_as_they_are) {
  int ends[2];
  BOOST_TEST_REQUIRE(::pipe(ends) == 0);
  Output out(ends[1]);
  // C1, separators and what reorders a line; a name that has none of these.
  const std::string unsafe =
      "\x7f \xc2\x80 \xc2\x9f \xd8\x9c \xe2\x80\x8e \xe2\x80\xa8 \xe2\x80\xae "
      "\xe2\x81\xa6 \xe2\x81\xa9 \xef\xbb\xbf";
  const std::string safe =
      "\xc2\xa0 \xd8\x9b caf\xc3\xa9 \xe2\x80\x93 \xef\xbb\xbe \xf0\x9f\x98\x80 \n";
  out.write(unsafe + safe);
  out.write(as_byte_span(unsafe));
  out.flush();
  char text[400];
  const auto length = ::read(ends[0], text, sizeof text);
  BOOST_TEST(std::string(text, static_cast<std::size_t>(length)) ==
             "\\u007f \\u0080 \\u009f \\u061c \\u200e \\u2028 \\u202e \\u2066 \\u2069 \\ufeff" +
                 safe + unsafe);
  ::close(ends[0]);
  ::close(ends[1]);
}

BOOST_AUTO_TEST_CASE(text_has_no_control_characters_but_what_it_is_laid_out_with) {
  std::string shown;
  Output out([&](std::string_view text) { shown += text; });
  out.write("a\x1b[31m\x07\x9b\xff\tb\n");
  out.write(std::string_view("\0", 1));
  out.write(Style::added, "c\x1b");
  out.flush();
  BOOST_TEST(shown == "a\\x1b[31m\\x07\\x9b\\xff\tb\n\\x00c\\x1b");
}

BOOST_AUTO_TEST_SUITE_END()
