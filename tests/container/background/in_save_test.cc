// What may be asked of a saver by those whose save it runs, and in a forked child.
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

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

using namespace thalia;
using namespace thalia::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(in_save)

namespace {

const auto kRefused = says(ErrorCode::wrong_state, "would wait for itself");

// Every call that may wait for the saver's thread.
template <typename Check>
void for_each_call(AsyncSaver& saver, const SaveHandle<>& handle, const std::filesystem::path& path,
                   const Check& check) {
  const Sample sample = large_sample(3);
  Writer writer = declared(path, sample);
  check([&] { saver.save_async(std::move(writer)); });
  check([&] { saver.reserve(1 << 20); });
  check([&] { saver.reserve(writer); });
  check([&] { saver.wait_until_reserved(); });
  check([&] { saver.wait_all(); });
  check([&] { saver.wait_all_for(1h); });
  check([&] { saver.check_caller(); });
  check([&] { handle.wait(); });
  check([&] { handle.wait_for(1h); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(callbacks_cannot_wait_for_the_save_that_they_belong_to) {
  for (const WhenBusy when_busy :
       {WhenBusy::wait, WhenBusy::queue, WhenBusy::replace, WhenBusy::skip}) {
    const TemporaryFolder folder;
    const Sample sample = large_sample();
    Gate begun;
    std::optional<SaveHandle<>> handle;
    AsyncSaver* own = nullptr;  // also while it is being destroyed, when the optional is empty
    std::optional<AsyncSaver> saver;
    int refused = 0;
    const auto call_all = [&] {
      for_each_call(*own, *handle, folder / "other", [&](const auto& call) {
        BOOST_CHECK_EXCEPTION(call(), UsageError, kRefused);
        ++refused;
      });
    };
    saver.emplace(
        AsyncSaveOptions{.when_busy = when_busy, .on_done = [&](const SaveHandle<>& done) {
                           BOOST_TEST(done.done());
                           done.wait();  // it has ended: nobody waits
                           BOOST_CHECK_EXCEPTION(own->wait_all(), UsageError, kRefused);
                         }});
    own = &*saver;
    bool waited = false;
    const auto progress = [&](std::uint64_t, std::uint64_t) {
      if (std::exchange(waited, true)) return;
      begun.progress()(0, 0);
      call_all();
    };
    handle.emplace(saver->save_async(declared(folder / "f", sample, with_progress(progress)),
                                     Snapshot::borrowed, [&] {
                                       begun.progress()(0, 0);
                                       call_all();
                                     }));
    begun.open();
    handle->wait();
    saver->wait_all();
    BOOST_TEST(refused == 2 * 9);
    BOOST_TEST(verify(folder / "f").ok());
    saver->save_async(declared(folder / "f", sample)).wait();
  }
}

BOOST_AUTO_TEST_CASE(a_callback_may_use_another_saver) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  AsyncSaver other;
  AsyncSaver saver;
  const auto ready = [&] { other.save_async(declared(folder / "other", sample)).wait(); };
  saver.save_async(declared(folder / "f", sample), Snapshot::borrowed, ready).wait();
  BOOST_TEST(verify(folder / "f").ok());
  BOOST_TEST(verify(folder / "other").ok());
}

BOOST_AUTO_TEST_CASE(a_saver_may_be_destroyed_in_its_own_callback) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  for (const bool in_progress : {false, true}) {
    Gate begun;
    auto saver = std::make_unique<AsyncSaver>(AsyncSaveOptions{.when_busy = WhenBusy::queue});
    const auto destroy = [&](std::uint64_t, std::uint64_t) {
      begun.progress()(0, 0);
      saver.reset();
    };
    const SaveHandle<> first =
        in_progress ? saver->save_async(declared(folder / "f", sample, with_progress(destroy)))
                    : saver->save_async(declared(folder / "f", sample), Snapshot::borrowed,
                                        [&] { destroy(0, 0); });
    const SaveHandle<> second = saver->save_async(declared(folder / "g", sample));
    begun.open();
    first.wait();
    second.wait();
    BOOST_TEST(!saver);
    BOOST_TEST(verify(folder / "f").ok());
    BOOST_TEST(verify(folder / "g").ok());
  }
}

BOOST_AUTO_TEST_CASE(a_forked_child_is_refused_what_needs_the_savers_thread) {
  if (kThreadSanitized) return;  // which knows no threads that a forked child starts
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  for (const bool pending : {false, true}) {
    Gate gate;
    AsyncSaver saver;
    const SaveHandle<> handle =
        saver.save_async(declared(folder / "f", sample, with_progress(gate.progress())));
    gate.wait_until_reached();
    if (!pending) {
      gate.open();
      handle.wait();
    }
    const Outcome outcome = run_with_faults({}, [&] {
      ::alarm(20);
      const auto refused = says(ErrorCode::wrong_state, "belongs to process", "forked");
      const auto check = [&](const auto& call) {
        bool is_refused = false;
        try {
          call();
        } catch (const UsageError& error) {
          is_refused = refused(error);
        }
        if (!is_refused) throw std::runtime_error("a call was not refused");
      };
      int calls = 0;
      for_each_call(saver, handle, folder / "child", [&](const auto& call) {
        // What has ended may be looked at.
        if (++calls < 8 || pending) check(call);
      });
      if (saver.snapshot_bytes() != 0) throw std::runtime_error("memory that a child has not");
      if (pending) {
        check([&] { handle.done(); });
        check([&] { handle.cancel(); });
      } else {
        handle.cancel();
        if (!handle.done() || handle.wait().tensors == 0) throw std::runtime_error("no result");
      }
      AsyncSaver own;
      own.save_async(declared(folder / "own", sample)).wait();
      saver.~AsyncSaver();
    });
    BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
    gate.open();
    handle.wait();
    BOOST_TEST(verify(folder / "f").ok());
    BOOST_TEST(verify(folder / "own").ok());
    BOOST_TEST(list_folder(folder.path()).size() == 2u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
