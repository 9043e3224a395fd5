// The flow of a stream: memory and back-pressure, cancelling, progress, errors of callbacks.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "boost_test.h"
#include "container/stream/check.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(stream_flow)

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// `count` tensors of 1 MiB.
struct EvenFile {
  explicit EvenFile(std::size_t count, Codec codec = Codec::none) : path(folder / "f") {
    const auto data = random_bytes(count * kMiB);
    Writer writer(path,
                  {.compression = {.codec = codec}, .output = {.durability = Durability::none}});
    const RegionId region = writer.add_region({.name = "r"});
    for (std::size_t i = 0; i < count; ++i)
      writer.add_tensor(region, {.name = std::to_string(i), .dtype = DType::u8, .shape = {kMiB}},
                        ByteSpan(data).subspan(i * kMiB, kMiB));
    writer.commit();
  }
  TemporaryFolder folder;
  std::filesystem::path path;
};

// Tensors of so many bytes, which compress to less.
struct OnePlaceFile {
  static constexpr std::size_t kTensors = 8;
  OnePlaceFile(std::uint64_t bytes, Codec codec) : path(folder / "f") {
    for (std::uint64_t i = 0; i < kTensors; ++i) {
      data.push_back(random_bytes(bytes, i));
      for (std::size_t at = 0; at < bytes; ++at)
        if (at % 4 != 0) data.back()[at] = std::byte{0};
    }
    Writer writer(path,
                  {.compression = {.codec = codec}, .output = {.durability = Durability::none}});
    const RegionId region = writer.add_region({.name = "r"});
    for (std::size_t i = 0; i < kTensors; ++i)
      writer.add_tensor(region, {.name = std::to_string(i), .dtype = DType::u8, .shape = {bytes}},
                        data[i]);
    writer.commit();
  }
  TemporaryFolder folder;
  std::filesystem::path path;
  std::vector<std::vector<std::byte>> data;
};

// Memory for one tensor at a time. Who waits for it for good gets an error, so that a stream that
// never returns fails and does not hang.
class OnePlace {
 public:
  explicit OnePlace(std::uint64_t bytes) : memory_(bytes) {}
  std::function<MutableByteSpan(const TensorView&, std::uint64_t)> give() {
    return [this](const TensorView&, std::uint64_t) {
      std::unique_lock lock(mutex_);
      if (!freed_.wait_for(lock, std::chrono::minutes(1), [&] { return free_; }))
        throw std::runtime_error("the tensor before was never handed out");
      free_ = false;
      return MutableByteSpan(memory_);
    };
  }
  void free() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    freed_.notify_one();
  }

 private:
  std::vector<std::byte> memory_;
  std::mutex mutex_;
  std::condition_variable freed_;
  bool free_ = true;
};

// Waits until `value` has stayed the same for a while; a stream that does not stop fails by what it
// then says.
template <typename Value>
auto steady(Value value) {
  auto last = value();
  for (int same = 0; same < 10;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const auto now = value();
    same = now == last ? same + 1 : 0;
    last = now;
  }
  return last;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stream_that_nobody_takes_from_stops_at_its_memory) {
  const EvenFile file(32);
  for (const IoMode io : {IoMode::buffered, IoMode::direct}) {
    const Reader reader = Reader::open(file.path);
    std::atomic<std::uint64_t> read{0};
    StreamReader stream(
        reader, {.io = io,
                 .work = {.memory_bytes = 16 * kMiB,
                          .progress = [&](std::uint64_t done, std::uint64_t) { read = done; }}});
    const std::uint64_t ahead = steady([&] { return read.load(); });
    BOOST_TEST(ahead >= 4 * kMiB);
    BOOST_TEST(ahead <= 17 * kMiB);
    // What is handed out counts until it is dropped.
    std::vector<StreamedTensor> held;
    for (int i = 0; i < 4; ++i) held.push_back(*stream.next());
    const std::uint64_t holding = steady([&] { return read.load(); });
    BOOST_TEST(holding <= 17 * kMiB + 4 * kMiB);
    held.clear();
    const std::uint64_t released = steady([&] { return read.load(); });
    BOOST_TEST(released >= holding + 3 * kMiB);
  }
}

BOOST_AUTO_TEST_CASE(a_caller_who_keeps_everything_gets_everything) {
  const EvenFile file(32);
  for (const StreamOrder order :
       {StreamOrder::as_asked, StreamOrder::file, StreamOrder::as_completed}) {
    const Reader reader = Reader::open(file.path);
    StreamReader stream(reader, {.order = order, .work = {.memory_bytes = 4 * kMiB}});
    std::vector<StreamedTensor> kept;
    while (auto item = stream.next()) kept.push_back(*std::move(item));
    BOOST_TEST(kept.size() == 32u);
  }
}

BOOST_AUTO_TEST_CASE(a_tensor_larger_than_all_memory_still_comes) {
  const TemporaryFolder folder;
  const auto data = random_bytes(9 * kMiB);
  {
    Writer writer(folder / "f", {.output = {.durability = Durability::none}});
    const RegionId region = writer.add_region({.name = "r"});
    for (const char* name : {"a", "b", "c"})
      writer.add_tensor(region, {.name = name, .dtype = DType::u8, .shape = {data.size()}}, data);
    writer.commit();
  }
  const Reader reader = Reader::open(folder / "f");
  std::vector<TensorView> backwards = all_tensors(reader);
  std::reverse(backwards.begin(), backwards.end());
  StreamReader stream(reader, backwards, {.work = {.memory_bytes = 4 * kMiB}});
  check_stream(stream, backwards);
}

BOOST_AUTO_TEST_CASE(a_destination_may_wait_for_memory_to_become_free) {
  const EvenFile file(24);
  const Reader reader = Reader::open(file.path);
  // Three places that go round.
  std::vector<std::byte> memory(3 * kMiB);
  std::mutex mutex;
  std::condition_variable freed;
  std::vector<std::byte*> free = {&memory[0], &memory[kMiB], &memory[2 * kMiB]};
  StreamReader stream(reader, {.destination = [&](const TensorView&, std::uint64_t bytes) {
                        std::unique_lock lock(mutex);
                        freed.wait(lock, [&] { return !free.empty(); });
                        std::byte* const place = free.back();
                        free.pop_back();
                        return MutableByteSpan(place, bytes);
                      }});
  const Reader other = Reader::open(file.path);
  std::size_t count = 0;
  for (const StreamedTensor& item : stream) {
    const ByteSpan expected = other.region("r").at(item.tensor.name()).bytes();
    BOOST_TEST(same_bytes(item.bytes, expected));
    const std::lock_guard lock(mutex);
    free.push_back(item.bytes.data());
    freed.notify_one();
    ++count;
  }
  BOOST_TEST(count == 24u);
}

// One place for all of them, one after the other, although they share units, blocks and chunks.
BOOST_AUTO_TEST_CASE(tensors_of_one_unit_may_share_a_place) {
  for (const Codec codec : {Codec::none, Codec::lz4})
    for (const std::uint64_t bytes : {1000u, 300'000u, 1'500'000u}) {
      const OnePlaceFile file(bytes, codec);
      for (const Verification verification :
           {Verification::on_first_touch, Verification::by_tensor})
        for (const IoMode io : {IoMode::buffered, IoMode::direct})
          for (const StreamOrder order : {StreamOrder::file, StreamOrder::as_completed}) {
            const Reader reader = Reader::open(file.path, {.verification = verification});
            OnePlace place(bytes);
            StreamReader stream(reader, {.io = io, .order = order, .destination = place.give()});
            for (std::size_t i = 0; i < OnePlaceFile::kTensors; ++i) {
              const auto item = stream.next();
              BOOST_TEST_REQUIRE(item.has_value());
              BOOST_TEST(item->index == i);
              BOOST_TEST(same_bytes(item->bytes, file.data[i]));
              place.free();
            }
            BOOST_TEST(!stream.next());
          }
    }
}

// The caller's memory for one half of the tensors, the stream's for the others: more than it has.
BOOST_AUTO_TEST_CASE(a_place_may_be_shared_beside_tensors_in_the_streams_memory) {
  const OnePlaceFile file(3 * kMiB - 1000, Codec::none);
  const Reader reader = Reader::open(file.path);
  OnePlace place(3 * kMiB - 1000);
  StreamReader stream(
      reader, {.destination =
                   [&, give = place.give()](const TensorView& tensor, std::uint64_t bytes) {
                     return tensor.name().back() % 2 == 0 ? give(tensor, bytes) : MutableByteSpan();
                   },
               .work = {.memory_bytes = 4 * kMiB}});
  for (std::size_t i = 0; i < OnePlaceFile::kTensors; ++i) {
    const auto item = stream.next();
    BOOST_TEST_REQUIRE(item.has_value());
    BOOST_TEST(same_bytes(item->bytes, file.data[i]));
    if (!item->memory) place.free();
  }
  BOOST_TEST(!stream.next());
}

BOOST_AUTO_TEST_CASE(progress_grows_to_the_end) {
  const EvenFile file(9);
  const Reader reader = Reader::open(file.path);
  std::uint64_t last = 0, total = 0;
  StreamReader stream(reader, {.work = {.progress = [&](std::uint64_t done, std::uint64_t of) {
                                 if (done <= last) throw std::runtime_error("no progress");
                                 last = done;
                                 total = of;
                               }}});
  while (stream.next()) {
  }
  BOOST_TEST(last == total);
  BOOST_TEST(last == stream.result().bytes_read);
  BOOST_TEST(last >= 9 * kMiB);
}

BOOST_AUTO_TEST_CASE(a_cancelled_stream_ends_whoever_waits) {
  const EvenFile file(32);
  const Reader reader = Reader::open(file.path);
  const auto is_cancelled = has_code(ErrorCode::cancelled);
  {
    std::stop_source before;
    before.request_stop();
    StreamReader stream(reader, StreamOptions{.work = {.cancel = before.get_token()}});
    BOOST_CHECK_EXCEPTION(stream.next(), CancelledError, is_cancelled);
  }
  {
    std::stop_source between;
    StreamReader stream(reader,
                        {.work = {.memory_bytes = 4 * kMiB, .cancel = between.get_token()}});
    BOOST_TEST(bool(stream.next()));
    between.request_stop();
    BOOST_CHECK_EXCEPTION(stream.next(), CancelledError, is_cancelled);
    BOOST_CHECK_EXCEPTION(stream.next(), CancelledError, is_cancelled);
  }
  {
    // From a callback of the stream itself, while next() waits.
    std::stop_source within;
    StreamReader stream(reader, {.work = {.progress =
                                              [&](std::uint64_t done, std::uint64_t) {
                                                if (done > 3 * kMiB) within.request_stop();
                                              },
                                          .cancel = within.get_token()}});
    BOOST_CHECK_EXCEPTION(while (stream.next()){}, CancelledError, is_cancelled);
  }
  {
    std::stop_source after;
    StreamReader stream(reader, StreamOptions{.work = {.cancel = after.get_token()}});
    while (stream.next()) {
    }
    after.request_stop();
    BOOST_TEST(!stream.next());
  }
}

BOOST_AUTO_TEST_CASE(memory_is_written_to_no_more_once_an_error_is_out) {
  const EvenFile file(32);
  const Reader reader = Reader::open(file.path);
  std::vector<std::byte> memory(32 * kMiB);
  std::stop_source cancel;
  StreamReader stream(
      reader, {.io = IoMode::direct,
               .destination =
                   [&, at = std::size_t{0}](const TensorView&, std::uint64_t bytes) mutable {
                     const auto place = MutableByteSpan(memory).subspan(at, kMiB);
                     at += bytes;
                     return place;
                   },
               .work = {.cancel = cancel.get_token()}});
  stream.next();
  cancel.request_stop();
  BOOST_CHECK_THROW(stream.next(), CancelledError);
  const std::vector<std::byte> at_end = memory;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  BOOST_TEST((memory == at_end));
}

BOOST_AUTO_TEST_CASE(a_stream_may_be_dropped_at_any_time) {
  const EvenFile file(32, Codec::lz4);
  const Reader reader = Reader::open(file.path);
  for (int taken = 0; taken < 20; taken += 3) {
    std::optional<StreamedTensor> last;
    {
      StreamReader stream(reader, StreamOptions{.work = {.memory_bytes = 8 * kMiB}});
      for (int i = 0; i < taken; ++i) last = stream.next();
    }
    if (last) BOOST_TEST(last->bytes.size() == kMiB);
  }
}

BOOST_AUTO_TEST_CASE(what_a_callback_throws_reaches_the_caller) {
  const EvenFile file(8);
  const Reader reader = Reader::open(file.path);
  struct Mine {};
  const auto throws = [](auto&&...) -> MutableByteSpan { throw Mine(); };
  StreamReader destination(reader, StreamOptions{.destination = throws});
  BOOST_CHECK_THROW(destination.next(), Mine);
  StreamReader progress(reader, StreamOptions{.work = {.progress = throws}});
  BOOST_CHECK_THROW(while (progress.next()){}, Mine);
  StreamReader each(reader);
  BOOST_CHECK_THROW(each.for_each([](const StreamedTensor&) { throw Mine(); }), Mine);
  BOOST_CHECK_EXCEPTION(each.next(), UsageError, has_code(ErrorCode::wrong_state));
}

BOOST_AUTO_TEST_CASE(a_destination_of_another_size_is_refused) {
  const EvenFile file(2);
  const Reader reader = Reader::open(file.path);
  std::vector<std::byte> memory(2 * kMiB);
  StreamReader stream(reader, {.destination = [&](const TensorView&, std::uint64_t) {
                        return MutableByteSpan(memory);
                      }});
  BOOST_CHECK_EXCEPTION(stream.next(), UsageError,
                        says(ErrorCode::size_mismatch, "destination", "'0'", "'r'"));
}

BOOST_AUTO_TEST_CASE(a_limit_on_allocations_holds_for_the_streams_own_memory) {
  const EvenFile file(2);
  ReadLimits limits;
  limits.max_allocation_bytes = kMiB - 1;
  const Reader reader = Reader::open(file.path, {.input = {.limits = limits}});
  StreamReader stream(reader);
  BOOST_CHECK_EXCEPTION(stream.next(), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
}

BOOST_AUTO_TEST_SUITE_END()
