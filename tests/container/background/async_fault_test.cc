// Background saves that fail, and processes that end in the middle of one.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>

#include "boost_test.h"
#include "container/background/async_sample.h"
#include "container/background/gate.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sanitizers.h"
#include "thalia/async_save.h"
#include "thalia/error.h"
#include "thalia/verify.h"

// A forked child lacks the parent's threads: what they alone hold is no leak of it.
static bool is_child_of_threads = false;
extern "C" int __lsan_is_turned_off() {
  return is_child_of_threads;
}

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(async_fault)

namespace {

struct Replaced {
  Replaced() : path(folder / "f.thalia") {
    save(path, large_sample(1));
    old = read_file(path);
  }
  void check_untouched() const {
    BOOST_TEST(bool(read_file(path) == old));
    BOOST_TEST(list_folder(folder.path()) == Names{"f.thalia"}, per_element());
  }
  TemporaryFolder folder;
  std::filesystem::path path;
  std::string old;
};

// Its column index is out of bounds, which commit() finds.
const std::vector<std::uint32_t> kRowPointers = {0, 1};
const std::vector<std::uint32_t> kColumns = {7};
const std::vector<float> kValues = {1};
Writer with_wrong_index(const std::filesystem::path& path) {
  Writer writer(path, steady_options());
  const RegionId region = writer.add_region({.name = "r"});
  writer.add_csr<std::uint32_t>(region, {.name = "wrong", .shape = {1, 2}},
                                {kRowPointers, kColumns, as_byte_span(kValues)});
  return writer;
}

// Runs `work` in a forked child, which ends in a way of its own; @return its status.
int run_in_child(const std::function<void()>& work) {
  std::cout.flush();  // or the child's exit prints it once more
  const pid_t child = ::fork();
  BOOST_TEST_REQUIRE(child >= 0);
  if (child == 0) {
    try {
      work();
    } catch (...) {
    }
    ::_exit(99);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_failing_call_in_the_background_is_reported_by_wait) {
  const std::vector<std::pair<std::vector<long>, int>> faults = {
      {{SYS_pwritev, SYS_pwrite64}, ENOSPC}, {{SYS_fsync}, EIO}, {{SYS_linkat}, EDQUOT}};
  for (const auto& [calls, errno_value] : faults) {
    const Replaced file;
    std::vector<Fault> denied;
    for (const long call : calls) denied.push_back({call, errno_value});
    const Outcome outcome = run_with_faults(denied, [&] {
      SaveOptions options = steady_options();
      options.output.durability = Durability::full;
      const Sample sample = large_sample(2);
      AsyncSaver saver;
      saver.save_async(declared(file.path, sample, options)).wait();
    });
    BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
    BOOST_TEST(outcome.errno_value == errno_value);
    BOOST_TEST(outcome.message.find(file.path.string()) == 0u, outcome.message);
    file.check_untouched();
  }
}

BOOST_AUTO_TEST_CASE(an_error_whose_handle_was_dropped_is_reported_by_wait_all) {
  const Replaced file;
  const Outcome outcome = run_with_faults({{SYS_pwritev, ENOSPC}, {SYS_pwrite64, ENOSPC}}, [&] {
    const Sample sample = large_sample(2);
    AsyncSaver saver;
    saver.save_async(declared(file.path, sample));
    saver.wait_all();
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
  BOOST_TEST(outcome.errno_value == ENOSPC);
  file.check_untouched();
}

BOOST_AUTO_TEST_CASE(memory_that_is_not_to_be_had_leaves_the_writer_to_the_caller) {
  if (kSanitized) {
    BOOST_TEST_MESSAGE("sanitizers map large memory themselves: skipped");
    return;
  }
  const Replaced file;
  Sample sample = large_sample(2);
  for (const char* name : {"second", "third"})  // together more than a thread's stack
    sample.regions[0].tensors.push_back(dense_tensor(name, DType::u8, {5 << 20}));
  const Outcome outcome =
      run_with_faults({{SYS_mmap, ENOMEM, ArgumentCondition::at_least(1, 10 << 20)}}, [&] {
        AsyncSaver saver;
        Writer writer = declared(file.path, sample);
        try {
          saver.save_async(std::move(writer));
        } catch (const IoError&) {
          saver.save_async(std::move(writer), Snapshot::borrowed).wait();
          throw;
        }
      });
  BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
  BOOST_TEST(outcome.errno_value == ENOMEM);
  BOOST_TEST(bool(read_file(file.path) != file.old));
  BOOST_TEST(verify(file.path).ok());
}

BOOST_AUTO_TEST_CASE(wait_all_reports_each_unseen_error_once) {
  const TemporaryFolder folder;
  AsyncSaver saver({.when_busy = WhenBusy::queue, .max_unfinished = 4});
  saver.save_async(with_wrong_index(folder / "first"));
  const SaveHandle<> seen = saver.save_async(with_wrong_index(folder / "seen"));
  saver.save_async(with_wrong_index(folder / "second"));
  BOOST_CHECK_EXCEPTION(seen.wait(), UsageError, says(ErrorCode::bad_argument, "seen", "wrong"));
  BOOST_CHECK_EXCEPTION(saver.wait_all(), UsageError, says(ErrorCode::bad_argument, "first"));
  BOOST_CHECK_EXCEPTION(saver.wait_all(), UsageError, says(ErrorCode::bad_argument, "second"));
  saver.wait_all();
  BOOST_TEST(list_folder(folder.path()).empty());
}

BOOST_AUTO_TEST_CASE(waiting_for_all_ends_when_the_time_is_over) {
  const TemporaryFolder folder;
  Gate gate;
  const Sample sample = large_sample();
  AsyncSaver saver({.when_busy = WhenBusy::queue, .max_unfinished = 2});
  saver.save_async(declared(folder / "held", sample, with_progress(gate.progress())));
  saver.save_async(with_wrong_index(folder / "wrong"));
  BOOST_TEST(!saver.wait_all_for(std::chrono::milliseconds(1)));
  gate.open();
  BOOST_CHECK_EXCEPTION(saver.wait_all(), UsageError, says(ErrorCode::bad_argument, "wrong"));
  BOOST_TEST(saver.wait_all_for(std::chrono::nanoseconds(0)));
}

BOOST_AUTO_TEST_CASE(on_done_hears_of_every_end_and_its_own_error_is_not_lost) {
  const TemporaryFolder folder;
  const Sample sample = small_sample();
  std::vector<bool> failed;
  AsyncSaver saver({.on_done = [&](const SaveHandle<>& handle) {
    BOOST_TEST(handle.done());
    failed.push_back(handle.error() != nullptr);
    if (failed.size() == 3) throw std::runtime_error("on_done's own");
  }});
  saver.save_async(declared(folder / "a", sample));
  saver.save_async(with_wrong_index(folder / "b"));
  saver.save_async(declared(folder / "c", sample));
  BOOST_CHECK_THROW(saver.wait_all(), std::runtime_error);
  BOOST_TEST(failed == (std::vector<bool>{false, true, false}), per_element());
  saver.wait_all();
}

BOOST_AUTO_TEST_CASE(a_process_that_ends_in_the_middle_leaves_the_old_file) {
  const std::vector<std::function<void()>> ends = {[] { ::_exit(0); }, [] { std::exit(0); },
                                                   [] { ::kill(::getpid(), SIGKILL); }};
  for (const auto& end : ends) {
    const Replaced file;
    const int status = run_in_child([&] {
      const Sample sample = large_sample(2);
      Gate gate;
      AsyncSaver saver;
      const SaveHandle<> handle =
          saver.save_async(declared(file.path, sample, with_progress(gate.progress())));
      gate.wait_until_reached();
      end();
    });
    BOOST_TEST(((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)));
    file.check_untouched();
  }
}

BOOST_AUTO_TEST_CASE(an_exit_in_the_middle_cancels_and_leaves_the_old_file) {
  const Replaced file;
  const int status = run_in_child([&] {
    const Sample sample = large_sample(2);
    std::atomic<bool> begun{false};
    AsyncSaver saver({.when_busy = WhenBusy::queue});
    // Five extents and more: half a second and more, of which the exit needs a moment.
    saver.save_async(declared(file.path, sample, with_progress([&](std::uint64_t, std::uint64_t) {
                                begun = true;
                                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                              })));
    saver.save_async(declared(file.path, sample));
    while (!begun) std::this_thread::yield();
    std::exit(7);
  });
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 7), "status " << status);
  file.check_untouched();
}

BOOST_AUTO_TEST_CASE(a_forked_child_may_exit_beside_its_parents_saves) {
  const Replaced file;
  const Sample sample = large_sample(2);
  Gate gate;
  AsyncSaver saver;
  const SaveHandle<> handle =
      saver.save_async(declared(file.path, sample, with_progress(gate.progress())));
  gate.wait_until_reached();
  const int status = run_in_child([] {
    is_child_of_threads = true;
    std::exit(7);
  });
  const int status_of_destructor = run_in_child([&] {
    is_child_of_threads = true;
    saver.~AsyncSaver();
    std::exit(7);
  });
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 7), "status " << status);
  BOOST_TEST(status_of_destructor == status);
  gate.open();
  handle.wait();
  BOOST_TEST(bool(read_file(file.path) != file.old));
}

BOOST_AUTO_TEST_CASE(an_exit_at_any_moment_is_clean_and_leaves_the_old_file_or_the_new) {
  const Sample sample = large_sample(2);
  const Replaced file;
  for (int i = 0; i < 20; ++i) {
    const int status = run_in_child([&] {
      AsyncSaver saver;
      saver.save_async(declared(file.path, sample));
      std::this_thread::sleep_for(std::chrono::microseconds(i * i * 20));
      std::exit(7);
    });
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 7), "status " << status);
    BOOST_TEST(verify(file.path).ok());
    for (const std::string& name : list_folder(file.folder.path())) {
      if (name == "f.thalia") continue;
      // Between linkat and rename the new file has a name of its own.
      BOOST_TEST(name.ends_with(".thalia-tmp"), name);
      std::filesystem::remove(file.folder / name);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_saver_that_is_destroyed_at_exit_keeps_its_promises) {
  const Replaced file;
  const Sample sample = large_sample(2);
  const int status = run_in_child([&] {
    static AsyncSaver saver;
    saver.save_async(declared(file.path, sample));
    std::exit(7);
  });
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  BOOST_TEST(bool(read_file(file.path) != file.old));
  BOOST_TEST(verify(file.path).ok());
}

BOOST_AUTO_TEST_SUITE_END()
