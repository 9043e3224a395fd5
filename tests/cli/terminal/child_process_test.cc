#include "cli/terminal/child_process.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(child_process)

BOOST_AUTO_TEST_CASE(what_it_reads_and_prints_may_be_more_than_a_pipe_holds) {
  std::string input;
  for (int i = 0; i < 300'000; ++i) input += static_cast<char>(i * 7);
  const ChildResult result = run_child({"cat"}, input, {});
  BOOST_TEST(result.status == 0);
  BOOST_TEST((result.out == input));
  BOOST_TEST(result.errors == "");
}

BOOST_AUTO_TEST_CASE(words_are_arguments_and_no_commands) {
  const ChildResult result = run_child({"printf", "%s|", "a b", "$(id)", "'", ""}, {}, {});
  BOOST_TEST(result.out == "a b|$(id)|'||");
}

BOOST_AUTO_TEST_CASE(tells_how_it_ended_and_what_it_complained_of) {
  const ChildResult failed = run_child({"sh", "-c", "echo no >&2; exit 7"}, {}, {});
  BOOST_TEST(failed.status == 7);
  BOOST_TEST(failed.errors == "no\n");
  BOOST_TEST(run_child({"sh", "-c", "kill -9 $$"}, {}, {}).status == 128 + SIGKILL);
}

BOOST_AUTO_TEST_CASE(input_that_it_does_not_want_is_no_error) {
  ::signal(SIGPIPE, SIG_IGN);  // as main() does
  BOOST_TEST(run_child({"true"}, std::string(1 << 20, 'x'), {}).status == 0);
}

BOOST_AUTO_TEST_CASE(a_program_that_is_nowhere_is_named) {
  BOOST_CHECK_EXCEPTION(run_child({"no-such-program"}, {}, {}), IoError, [](const IoError& error) {
    return error.errno_value() == ENOENT && error.context().path == "no-such-program";
  });
}

BOOST_AUTO_TEST_CASE(it_gets_signals_that_this_process_holds_back_or_ignores) {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t terminate;
  sigset_t before;
  ::sigemptyset(&terminate);
  ::sigaddset(&terminate, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &terminate, &before);
  BOOST_TEST(run_child({"sh", "-c", "kill -TERM $$"}, {}, {}).status == 128 + SIGTERM);
  BOOST_TEST(run_child({"sh", "-c", "kill -PIPE $$"}, {}, {}).status == 128 + SIGPIPE);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BOOST_AUTO_TEST_CASE(a_stop_ends_it) {
  std::stop_source stop;
  const std::jthread stopping([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  BOOST_CHECK_THROW(run_child({"sleep", "600"}, {}, stop.get_token()), CancelledError);
}

BOOST_AUTO_TEST_CASE(one_that_shares_the_output_is_fed_piece_by_piece) {
  ChildProcess child({"sh", "-c", "read a; read b; test \"$a$b\" = onetwo"}, {.input = true});
  BOOST_TEST(child.output() == -1);
  for (const std::string piece : {"one\n", "two\n"})
    BOOST_TEST(::write(child.input(), piece.data(), piece.size()) ==
               static_cast<ssize_t>(piece.size()));
  child.close_input();
  BOOST_TEST(child.wait() == 0);
  BOOST_TEST(child.wait() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
