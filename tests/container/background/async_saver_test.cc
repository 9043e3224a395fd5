// Background saves: what a snapshot keeps, what a second save does, errors, cancellation, memory.
#include "thalia/async_save.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "boost_test.h"
#include "container/background/async_sample.h"
#include "container/background/gate.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;
using namespace std::chrono_literals;
using boost::test_tools::per_element;
using Names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(async_saver)

namespace {

void scribble(Sample& sample) {
  for (SampleRegion& region : sample.regions) {
    for (SampleTensor& tensor : region.tensors) {
      for (std::byte& byte : tensor.payload) byte ^= std::byte{0xff};
    }
  }
}

// A saver whose background thread is held in the middle of a save to "held", of another sample.
struct Held {
  explicit Held(AsyncSaveOptions options)
      : path(folder / "held"), old(large_sample(8)), sample(large_sample(9)), saver(options) {
    save(path, old);
    handle.emplace(saver.save_async(declared(path, sample, with_progress(gate.progress()))));
    gate.wait_until_reached();
  }
  ~Held() { gate.open(); }

  // Opens the gate a moment later, while the caller is held up by the saver.
  std::jthread open_later() {
    return std::jthread([this] {
      std::this_thread::sleep_for(30ms);
      gate.open();
    });
  }

  TemporaryFolder folder;
  std::filesystem::path path;
  Sample old;
  Sample sample;
  Gate gate;
  AsyncSaver saver;
  std::optional<SaveHandle<>> handle;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_snapshot_keeps_the_bytes_of_the_call) {
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    Sample sample = large_sample();
    const std::string expected = saved(sample, options);
    // It waits for another, so that nothing of it is read before the change.
    Held held({.when_busy = WhenBusy::queue});
    const SaveHandle<> handle = held.saver.save_async(declared(held.folder / "f", sample, options));
    scribble(sample);
    held.gate.open();
    const SaveResult result = handle.wait();
    BOOST_TEST(bool(read_file(held.folder / "f") == expected));
    BOOST_TEST(result.file_bytes == expected.size());
    BOOST_TEST(handle.done());
    BOOST_TEST(!handle.error());
  }
}

BOOST_AUTO_TEST_CASE(borrowed_payloads_are_read_when_they_are_written) {
  Sample sample = large_sample();
  const std::string before = saved(sample);
  Held held({.when_busy = WhenBusy::queue});
  const std::uint64_t one_snapshot = held.saver.snapshot_bytes();
  const SaveHandle<> handle =
      held.saver.save_async(declared(held.folder / "f", sample), Snapshot::borrowed);
  sample.regions[0].tensors.back().payload[3 << 20] ^= std::byte{1};
  held.gate.open();
  handle.wait();
  BOOST_TEST(bool(read_file(held.folder / "f") == saved(sample)));
  BOOST_TEST(bool(read_file(held.folder / "f") != before));
  BOOST_TEST(held.saver.snapshot_bytes() == one_snapshot);
}

BOOST_AUTO_TEST_CASE(borrowed_payloads_may_come_later) {
  const TemporaryFolder folder;
  Sample sample = large_sample(3);
  scribble(sample);
  AsyncSaver saver;
  const SaveHandle<> handle = saver.save_async(declared(folder / "f", sample), Snapshot::borrowed,
                                               [&] { scribble(sample); });
  handle.wait();
  save(folder / "expected", large_sample(3));
  BOOST_TEST(bool(read_file(folder / "f") == read_file(folder / "expected")));
  const SaveHandle<> failed =
      saver.save_async(declared(folder / "g", sample), Snapshot::borrowed,
                       [] { throw std::runtime_error("the device is gone"); });
  BOOST_CHECK_THROW(failed.wait(), std::runtime_error);
  BOOST_TEST(list_folder(folder.path()) == (Names{"expected", "f"}), per_element());
}

BOOST_AUTO_TEST_CASE(streamed_payloads_go_along) {
  const TemporaryFolder folder;
  const SampleTensor streamed = dense_tensor("streamed", DType::u8, {300'000}, Role::weights, 4);
  const SampleTensor borrowed = dense_tensor("borrowed", DType::u8, {200'000}, Role::weights, 5);
  const SampleTensor later = dense_tensor("later", DType::u8, {200'000}, Role::weights, 5);
  for (const Codec codec : {Codec::none, Codec::lz4}) {
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    const auto filled = [&](const char* name, ByteSpan payload) {
      Writer writer(folder / name, options);
      const RegionId region = writer.add_region({.name = "r"});
      // Compressed, the first is on its way while the second is streamed.
      writer.add_tensor(region, borrowed.spec, payload);
      const TensorId second = writer.add_tensor(region, streamed.spec);
      writer.add_tensor(region, later.spec, payload);
      writer.write(second, streamed.payload);
      return writer;
    };
    filled("expected", borrowed.payload).commit();
    AsyncSaver saver;
    std::vector<std::byte> payload = borrowed.payload;
    const SaveHandle<> handle = saver.save_async(filled("f", payload));
    payload.assign(payload.size(), std::byte{});
    handle.wait();
    BOOST_TEST(bool(read_file(folder / "f") == read_file(folder / "expected")));
  }
}

BOOST_AUTO_TEST_CASE(wait_takes_the_snapshot_when_the_other_is_done) {
  Held held({.when_busy = WhenBusy::wait});
  const Sample sample = large_sample(2);
  const std::jthread opener = held.open_later();
  const SaveHandle<> second = held.saver.save_async(declared(held.folder / "f", sample));
  BOOST_TEST(held.handle->done());
  second.wait();
  BOOST_TEST(bool(read_file(held.path) == saved(held.sample)));
  BOOST_TEST(bool(read_file(held.folder / "f") == saved(sample)));
}

BOOST_AUTO_TEST_CASE(queued_saves_are_written_one_after_the_other) {
  Held held({.when_busy = WhenBusy::queue, .max_unfinished = 3});
  const Sample second = large_sample(2);
  const Sample third = large_sample(3);
  const SaveHandle<> handle = held.saver.save_async(declared(held.path, second));
  const SaveHandle<> last = held.saver.save_async(declared(held.path, third));
  BOOST_TEST(!held.handle->done());
  BOOST_TEST(handle.progress().total == 0u);
  BOOST_TEST(!handle.wait_for(0ns));
  held.gate.open();
  handle.wait();
  BOOST_TEST(held.handle->done());
  last.wait();
  BOOST_TEST(bool(read_file(held.path) == saved(third)));
}

BOOST_AUTO_TEST_CASE(a_full_queue_waits_for_the_oldest) {
  Held held({.when_busy = WhenBusy::queue, .max_unfinished = 2});
  const Sample sample = large_sample(2);
  const SaveHandle<> second = held.saver.save_async(declared(held.folder / "f", sample));
  BOOST_TEST(!held.handle->done());
  const std::jthread opener = held.open_later();
  const SaveHandle<> third = held.saver.save_async(declared(held.folder / "g", sample));
  BOOST_TEST(held.handle->done());
  third.wait();
}

BOOST_AUTO_TEST_CASE(a_save_waits_while_others_have_the_memory) {
  Held held({.when_busy = WhenBusy::queue, .max_unfinished = 3, .max_snapshot_bytes = 8 << 20});
  const Sample sample = large_sample(2);
  const std::jthread opener = held.open_later();
  const SaveHandle<> second = held.saver.save_async(declared(held.folder / "f", sample));
  BOOST_TEST(held.handle->done());
  BOOST_TEST(held.saver.snapshot_bytes() <= 8u << 20);
  second.wait();
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_wait_for_another_save) {
  Held held({.when_busy = WhenBusy::wait, .max_snapshot_bytes = 8 << 20});
  const Sample sample = large_sample(2);
  std::stop_source stop;
  SaveOptions options = steady_options();
  options.work.cancel = stop.get_token();
  Writer writer = declared(held.folder / "f", sample, options);
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(30ms);
    stop.request_stop();
  });
  BOOST_CHECK_EXCEPTION(held.saver.save_async(std::move(writer)), CancelledError,
                        has_code(ErrorCode::cancelled));
  BOOST_CHECK_EXCEPTION(held.saver.reserve(6 << 20, 1, stop.get_token()), CancelledError,
                        has_code(ErrorCode::cancelled));
  BOOST_TEST(!held.handle->done());
  held.gate.open();
  held.handle->wait();
  BOOST_TEST(list_folder(held.folder.path()) == (Names{"held"}), per_element());
  // The place that was waited for is free.
  held.saver.save_async(declared(held.folder / "f", sample)).wait();
  BOOST_TEST(bool(read_file(held.folder / "f") == saved(sample)));
}

BOOST_AUTO_TEST_CASE(replace_cancels_the_unfinished_ones) {
  Held held({.when_busy = WhenBusy::replace});
  const Sample sample = large_sample(2);
  const SaveHandle<> second = held.saver.save_async(declared(held.folder / "f", sample));
  const SaveHandle<> third = held.saver.save_async(declared(held.folder / "f", sample));
  // The second only waited, and ends at once; the first at its next extent.
  BOOST_TEST(second.done());
  BOOST_CHECK_EXCEPTION(second.wait(), CancelledError,
                        says(ErrorCode::cancelled, (held.folder / "f").string()));
  held.gate.open();
  BOOST_CHECK_EXCEPTION(held.handle->wait(), CancelledError,
                        says(ErrorCode::cancelled, held.path.string()));
  third.wait();
  BOOST_TEST(bool(read_file(held.path) == saved(held.old)));
  BOOST_TEST(bool(read_file(held.folder / "f") == saved(sample)));
  BOOST_TEST(list_folder(held.folder.path()) == (Names{"f", "held"}), per_element());
  held.saver.wait_all();  // a cancelled save is no error
}

BOOST_AUTO_TEST_CASE(cancel_leaves_the_old_file_and_nothing_else) {
  Held held({.when_busy = WhenBusy::queue});
  const Sample sample = large_sample(2);
  const SaveHandle<> waiting = held.saver.save_async(declared(held.folder / "f", sample));
  waiting.cancel();
  BOOST_TEST(waiting.done());
  BOOST_TEST(!held.handle->done());
  held.handle->cancel();
  held.gate.open();
  BOOST_CHECK_THROW(held.handle->wait(), CancelledError);
  BOOST_CHECK_THROW(held.handle->wait(), CancelledError);
  BOOST_TEST(bool(held.handle->error()));
  BOOST_TEST(bool(read_file(held.path) == saved(held.old)));
  BOOST_TEST(list_folder(held.folder.path()) == Names{"held"}, per_element());
}

BOOST_AUTO_TEST_CASE(the_stop_token_of_the_options_cancels_too) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  std::stop_source source;
  SaveOptions options = with_progress([&](std::uint64_t, std::uint64_t) { source.request_stop(); });
  options.work.cancel = source.get_token();
  AsyncSaver saver;
  BOOST_CHECK_THROW(saver.save_async(declared(folder / "f", sample, options)).wait(),
                    CancelledError);
  BOOST_TEST(list_folder(folder.path()).empty());
  // And one that was stopped before it began.
  BOOST_CHECK_THROW(saver.save_async(declared(folder / "f", sample, options)).wait(),
                    CancelledError);
}

BOOST_AUTO_TEST_CASE(a_cancel_that_comes_too_late_changes_nothing) {
  const TemporaryFolder folder;
  const Sample sample = small_sample();
  std::optional<SaveHandle<>> handle;
  {
    AsyncSaver saver;
    handle.emplace(saver.save_async(declared(folder / "f", sample)));
    handle->wait();
    handle->cancel();
  }
  handle->cancel();  // the saver is gone
  BOOST_TEST(handle->wait().tensors > 0u);
  BOOST_TEST(!handle->error());
  BOOST_TEST(verify(folder / "f").ok());
}

BOOST_AUTO_TEST_CASE(progress_reaches_its_total_and_the_callers_function) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  std::uint64_t last = 0;
  AsyncSaver saver;
  const SaveHandle<> handle = saver.save_async(
      declared(folder / "f", sample, with_progress([&](std::uint64_t done, std::uint64_t total) {
                 BOOST_TEST(done > last);
                 BOOST_TEST(done <= total);
                 last = done;
               })));
  handle.wait();
  BOOST_TEST(last > 5u << 20);
  BOOST_TEST(handle.progress().done == last);
  BOOST_TEST(handle.progress().total == last);
}

BOOST_AUTO_TEST_CASE(saves_in_a_row_use_the_same_memory) {
  const TemporaryFolder folder;
  Sample sample = large_sample();
  AsyncSaver saver;
  BOOST_TEST(saver.snapshot_bytes() == 0u);
  std::uint64_t held = 0;
  for (int i = 0; i < 10; ++i) {
    sample.training_steps = static_cast<std::uint64_t>(i);
    saver.save_async(declared(folder / "f", sample));
    if (i == 0) held = saver.snapshot_bytes();
    BOOST_TEST(saver.snapshot_bytes() == held);
  }
  saver.wait_all();
  BOOST_TEST(held >= 5u << 20);
  BOOST_TEST(bool(read_file(folder / "f") == saved(sample)));
}

BOOST_AUTO_TEST_CASE(a_snapshot_past_the_bound_is_refused_and_takes_nothing_over) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  AsyncSaver saver({.max_snapshot_bytes = 1 << 20});
  Writer writer = declared(folder / "f", sample);
  BOOST_CHECK_EXCEPTION(saver.save_async(std::move(writer)), UsageError,
                        says(ErrorCode::bad_argument, "max_snapshot_bytes", "1048576", "raise"));
  saver.save_async(std::move(writer), Snapshot::borrowed).wait();
  BOOST_TEST(bool(read_file(folder / "f") == saved(sample)));
}

BOOST_AUTO_TEST_CASE(an_empty_writer_and_one_of_small_tensors_are_saved) {
  const TemporaryFolder folder;
  const Sample empty;
  const Sample varied = varied_sample();
  AsyncSaver saver;
  saver.save_async(declared(folder / "empty", empty)).wait();
  saver.save_async(declared(folder / "varied", varied)).wait();
  BOOST_TEST(bool(read_file(folder / "empty") == saved(empty)));
  BOOST_TEST(bool(read_file(folder / "varied") == saved(varied)));
}

BOOST_AUTO_TEST_CASE(writers_that_cannot_be_saved_are_refused_at_the_call) {
  const TemporaryFolder folder;
  const Sample sample = small_sample();
  AsyncSaver saver;
  Writer writer = declared(folder / "f", sample);
  writer.commit();
  BOOST_CHECK_EXCEPTION(saver.save_async(std::move(writer)), UsageError,
                        has_code(ErrorCode::wrong_state));
  Writer moved = declared(folder / "g", sample);
  saver.save_async(std::move(moved));
  BOOST_CHECK_EXCEPTION(saver.save_async(std::move(moved)), UsageError,
                        has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(moved.commit(), UsageError, says(ErrorCode::wrong_state, "moved from"));
}

BOOST_AUTO_TEST_CASE(an_incomplete_writer_is_left_to_the_caller) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes(100'000, std::byte{3});
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    AsyncSaver saver;
    Writer writer(folder / "f", options);
    const RegionId region = writer.add_region({.name = "r"});
    const TensorId tensor =
        writer.add_tensor(region, {.name = "t", .dtype = DType::u8, .shape = {bytes.size()}});
    const ConnectionId connection = writer.add_connection("r", "r");
    BOOST_CHECK_EXCEPTION(saver.save_async(std::move(writer)), UsageError,
                          says(ErrorCode::wrong_state, (folder / "f").string(), "weights"));
    writer.add_connection_weights(connection, {.dtype = DType::u8, .shape = {3}},
                                  ByteSpan(bytes).first(3));
    // Not a byte of it so far.
    BOOST_CHECK_EXCEPTION(saver.save_async(std::move(writer)), UsageError,
                          says(ErrorCode::size_mismatch, (folder / "f").string(), "'t'"));
    writer.write(tensor, ByteSpan(bytes).first(99'999));
    BOOST_CHECK_EXCEPTION(saver.save_async(std::move(writer)), UsageError,
                          says(ErrorCode::size_mismatch, (folder / "f").string(), "'t'"));
    writer.write(tensor, ByteSpan(bytes).first(1));
    saver.save_async(std::move(writer)).wait();
    BOOST_TEST(verify(folder / "f").ok());
  }
}

BOOST_AUTO_TEST_CASE(options_out_of_bounds_are_refused) {
  BOOST_CHECK_EXCEPTION(AsyncSaver({.max_unfinished = 0}), UsageError,
                        says(ErrorCode::bad_argument, "max_unfinished"));
  BOOST_CHECK_EXCEPTION(AsyncSaver({.niceness = 20}), UsageError,
                        says(ErrorCode::bad_argument, "niceness"));
}

BOOST_AUTO_TEST_CASE(a_save_that_would_wait_is_skipped_and_leaves_its_writer) {
  Held held({.when_busy = WhenBusy::skip});
  Writer writer = declared(held.folder / "other", held.sample);
  const SaveHandle<> skipped = held.saver.save_async(std::move(writer));
  BOOST_TEST(skipped.done());
  BOOST_TEST(skipped.skipped());
  BOOST_TEST(!held.handle->skipped());
  BOOST_CHECK_EXCEPTION(skipped.wait(), CancelledError, says(ErrorCode::cancelled, "skipped"));
  held.gate.open();
  held.handle->wait();
  const SaveHandle<> second = held.saver.save_async(std::move(writer));
  BOOST_TEST(!second.skipped());
  second.wait();
  held.saver.wait_all();  // what was skipped is no error
  BOOST_TEST(bool(read_file(held.folder / "other") == saved(held.sample)));
}

BOOST_AUTO_TEST_CASE(the_destructor_keeps_every_promise) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  {
    AsyncSaver saver({.when_busy = WhenBusy::queue, .max_unfinished = 4});
    for (const char* name : {"a", "b", "c", "d"})
      saver.save_async(declared(folder / name, sample));  // whose handle is dropped
  }
  for (const char* name : {"a", "b", "c", "d"})
    BOOST_TEST(bool(read_file(folder / name) == saved(sample)));
}

BOOST_AUTO_TEST_CASE(threads_may_share_a_saver) {
  for (const WhenBusy when_busy : {WhenBusy::wait, WhenBusy::queue, WhenBusy::replace}) {
    const TemporaryFolder folder;
    const Sample sample = varied_sample();
    const std::string expected = saved(sample);
    std::atomic<int> cancelled{0};
    {
      AsyncSaver saver({.when_busy = when_busy, .max_unfinished = 3});
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          for (int i = 0; i < 5; ++i) {
            const std::string name = std::to_string(t) + "-" + std::to_string(i);
            const SaveHandle<> handle = saver.save_async(declared(folder / name, sample));
            if (i % 2 == 0) saver.wait_all();
            if (!handle.wait_for(24h * 365 * 200)) std::abort();
            if (handle.error()) ++cancelled;
          }
        });
      }
    }
    const Names names = list_folder(folder.path());
    BOOST_TEST(names.size() + static_cast<std::size_t>(cancelled) == 20u);
    if (when_busy != WhenBusy::replace) BOOST_TEST(cancelled == 0);
    for (const std::string& name : names) BOOST_TEST(bool(read_file(folder / name) == expected));
  }
}

BOOST_AUTO_TEST_SUITE_END()
