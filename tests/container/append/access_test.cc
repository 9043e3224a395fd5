// Appends that are refused, that meet each other, or that meet readers.
#include <cerrno>
#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "boost_test.h"
#include "container/append/check.h"
#include "format/header.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/killed_at.h"
#include "support/sample.h"
#include "thalia/append.h"
#include "thalia/error.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(append_access)

BOOST_AUTO_TEST_CASE(names_are_checked_against_the_file) {
  const SavedFile file(small_sample());
  Appender appender(file.path, steady_append());
  BOOST_CHECK_EXCEPTION(appender.add_region({.name = "a"}), UsageError,
                        has_code(ErrorCode::duplicate));
  BOOST_CHECK_EXCEPTION(appender.replace_region({.name = "x"}), UsageError,
                        has_code(ErrorCode::not_found));
  BOOST_CHECK_EXCEPTION(appender.remove_region("x"), UsageError, has_code(ErrorCode::not_found));
  BOOST_CHECK_EXCEPTION(appender.replace_region({.name = "a", .config_json = "["}), UsageError,
                        has_code(ErrorCode::bad_argument));
  BOOST_CHECK_EXCEPTION(appender.add_connection("a", "x"), UsageError,
                        has_code(ErrorCode::not_found));
  BOOST_CHECK_EXCEPTION(appender.add_connection("a", "b"), UsageError,
                        has_code(ErrorCode::duplicate));
  appender.replace_region({.name = "a"});
  BOOST_CHECK_EXCEPTION(appender.replace_region({.name = "a"}), UsageError,
                        has_code(ErrorCode::not_found));
  appender.add_connection("b", "a");
  BOOST_CHECK_EXCEPTION(appender.remove_region("b"), UsageError, has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(appender.commit(), UsageError, has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(appender.commit(), UsageError, has_code(ErrorCode::wrong_state));
}

BOOST_AUTO_TEST_CASE(a_file_is_appended_to_by_one_at_a_time) {
  const SavedFile file(small_sample());
  {
    Appender first(file.path, steady_append());
    BOOST_CHECK_EXCEPTION(Appender(file.path, steady_append()), IoError, [&](const IoError& error) {
      return error.errno_value() == EWOULDBLOCK &&
             std::string(error.what()).find(file.path.string()) == 0;
    });
    first.commit();
    append_change(file.path, steady_append());  // the first let go of it
  }
  check_state(file.path, changed_sample(), 3);
}

BOOST_AUTO_TEST_CASE(an_appender_that_waits_appends_to_what_the_other_left) {
  const SavedFile file(small_sample());
  std::optional<Appender> first(std::in_place, file.path, steady_append());
  auto second = std::async(std::launch::async, [&] {
    AppendOptions waiting = steady_append();
    waiting.change.wait = true;
    Appender appender(file.path, waiting);
    appender.set_training_steps(22);
    appender.commit();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  first->set_training_steps(11);
  first->commit();
  second.get();
  Sample sample = small_sample();
  sample.training_steps = 22;
  check_state(file.path, sample, 3);
}

BOOST_AUTO_TEST_CASE(a_file_that_was_replaced_meanwhile_is_not_lost) {
  const SavedFile file(small_sample());
  Appender appender(file.path, steady_append());
  save(file.path, varied_sample());
  BOOST_CHECK_EXCEPTION(appender.commit(), UsageError, has_code(ErrorCode::wrong_state));
  check_state(file.path, varied_sample(), 1);
}

BOOST_AUTO_TEST_CASE(a_stop_leaves_the_old_state) {
  const SavedFile file(small_sample());
  const std::string before = read_file(file.path);
  std::stop_source stop;
  stop.request_stop();
  AppendOptions options = steady_append();
  options.change.work.cancel = stop.get_token();
  BOOST_CHECK_THROW(append_change(file.path, options), CancelledError);
  BOOST_TEST(bool(read_file(file.path) == before));
}

BOOST_AUTO_TEST_CASE(refuses_what_it_could_not_keep) {
  const auto refused = [](auto edit) {
    const SavedFile file(small_sample());
    EditableFile bytes(read_file(file.path));
    edit(bytes.header());
    bytes.commit_record() = bytes.header();
    bytes.reseal();
    write_file(file.path, bytes.bytes());
    Reader::open(file.path);
    BOOST_CHECK_THROW(Appender(file.path, steady_append()), UnsupportedError);
  };
  refused([](format::Header& header) { header.minor_version = std::uint16_t{1}; });
  refused([](format::Header& header) { header.compatible_features = 4u; });
  refused([](format::Header& header) { header.flags = std::uint16_t{format::kFlagDelta}; });
  refused([](format::Header& header) { header.base_checksum.bytes[7] = 1; });
}

// Between the reader's looks at the length and the header is an append, time and again.
BOOST_AUTO_TEST_CASE(a_reader_finds_a_state_however_often_the_file_grows_while_it_opens) {
  const SavedFile file(small_sample());
  unsigned appends = 0;
  const auto append_meanwhile = [&](unsigned) {
    if (appends == 60) return true;
    Appender appender(file.path, steady_append());
    appender.set_training_steps(1000 + ++appends);
    appender.commit();
    return true;
  };
  const End end = run_stopped(append_meanwhile, [&] {
    const Reader reader = Reader::open(file.path);
    if (reader.header().training_steps != 1000 + reader.header().generation - 1)
      throw std::runtime_error("a state that never was");
    reader.tensor("a/d").bytes();
  });
  BOOST_TEST(bool(end == End::returned));
  BOOST_TEST(appends == 60u);
}

// A reader that opens at the moment of the header's change sees the old state or the new.
BOOST_AUTO_TEST_CASE(readers_that_open_meanwhile_see_one_state_or_the_other) {
  const SavedFile file(small_sample());
  auto appending = std::async(std::launch::async, [&] {
    for (std::uint64_t i = 1; i <= 150; ++i) {
      Appender appender(file.path, steady_append());
      appender.set_training_steps(1000 + i);
      appender.commit();
    }
  });
  std::uint64_t last = 0;
  // Ready also where it threw.
  while (appending.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    const Reader reader = Reader::open(file.path);
    const std::uint64_t generation = reader.header().generation;
    BOOST_TEST(generation >= last);
    BOOST_TEST(reader.header().training_steps == (generation == 1 ? 7 : 1000 + generation - 1));
    reader.tensor("a/d").bytes();
    last = generation;
  }
  appending.get();
}

BOOST_AUTO_TEST_SUITE_END()
