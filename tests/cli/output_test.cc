#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

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

BOOST_AUTO_TEST_SUITE_END()
