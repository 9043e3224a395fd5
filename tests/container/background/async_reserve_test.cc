// Memory for snapshots that is made ready in the background, before the first save.
#include <unistd.h>

#include <fstream>

#include "boost_test.h"
#include "container/background/async_sample.h"
#include "container/background/gate.h"
#include "container/background/snapshot_arenas.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/async_save.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Names = std::vector<std::string>;

namespace {

// The bytes of this process that are in memory.
std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t pages = 0;
  in >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(async_reserve)

BOOST_AUTO_TEST_CASE(reserved_memory_is_what_the_saves_use) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  AsyncSaver saver({.when_busy = WhenBusy::queue, .max_snapshot_bytes = 16 << 20});
  BOOST_CHECK_EXCEPTION(saver.reserve(6 << 20, 3), UsageError,
                        says(ErrorCode::bad_argument, "max_snapshot_bytes"));
  BOOST_TEST(saver.snapshot_bytes() == 0u);
  saver.reserve(6 << 20, 2);
  const std::uint64_t held = saver.snapshot_bytes();
  BOOST_TEST(held >= 12u << 20);
  saver.save_async(declared(folder / "f", sample));
  saver.save_async(declared(folder / "g", sample));
  saver.wait_all();
  BOOST_TEST(saver.snapshot_bytes() == held);
}

// A kept arena that is larger than asked for counts with its whole length.
BOOST_AUTO_TEST_CASE(reservations_that_follow_each_other_stay_within_the_limit) {
  const std::uint64_t limit = 16 << 20;
  for (const std::uint64_t first : {9u << 20, 14u << 20}) {
    AsyncSaver saver({.max_snapshot_bytes = limit});
    saver.reserve(first);
    BOOST_TEST(saver.snapshot_bytes() >= first);
    saver.reserve(6 << 20, 2);
    BOOST_TEST(saver.snapshot_bytes() >= 12u << 20);
    BOOST_TEST(saver.snapshot_bytes() <= limit);
  }
}

// However small the snapshots are, each has whole pages.
BOOST_AUTO_TEST_CASE(small_arenas_count_as_the_memory_that_they_take) {
  container::SnapshotArenas arenas(4 * container::SnapshotArenas::kUnit);
  container::SharedArena used = arenas.acquire(1);
  BOOST_TEST(arenas.fits(1000, 3));
  BOOST_TEST(!arenas.fits(1000, 4));
  BOOST_TEST(!arenas.fits(UINT64_MAX));
  arenas.reserve(1000, 1000, 3);
  BOOST_TEST(arenas.held() <= arenas.bound());
  arenas.release(std::move(used));
  BOOST_TEST(arenas.held() <= arenas.bound());
}

BOOST_AUTO_TEST_CASE(what_is_reserved_is_in_memory_before_the_first_save) {
  // So much that what else happens in the process meanwhile does not count.
  Sample sample = large_sample();
  sample.regions[0].tensors.push_back(dense_tensor("big", DType::u8, {64 << 20}));
  const TemporaryFolder folder;
  save(folder / "expected", sample);
  const std::string expected = read_file(folder / "expected");
  const std::int64_t bytes = 64 << 20;
  const std::int64_t slack = 16 << 20;
  for (const bool told_bytes : {false, true}) {
    const std::int64_t before = resident_bytes();
    AsyncSaver saver;
    if (told_bytes) {
      saver.reserve(80 << 20);
    } else {
      saver.reserve(declared(folder / "never", sample));
    }
    saver.wait_until_reserved();
    BOOST_TEST(resident_bytes() - before >= bytes);
    const std::uint64_t held = saver.snapshot_bytes();
    const std::int64_t reserved = resident_bytes();
    // The snapshot is taken, and nothing of the file is written yet.
    Gate gate;
    const SaveHandle<> handle =
        saver.save_async(declared(folder / "f", sample, with_progress(gate.progress())));
    gate.wait_until_reached();
    BOOST_TEST(resident_bytes() - reserved < slack);
    BOOST_TEST(saver.snapshot_bytes() == held);
    gate.open();
    handle.wait();
    BOOST_TEST(bool(read_file(folder / "f") == expected));
  }
  BOOST_TEST(list_folder(folder.path()) == (Names{"expected", "f"}), per_element());
}

BOOST_AUTO_TEST_CASE(a_saver_that_is_told_of_the_first_state_reserves_for_it) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  save(folder / "expected", sample);
  Writer first = declared(folder / "f", sample);
  AsyncSaver saver(first);
  const std::uint64_t held = saver.snapshot_bytes();
  BOOST_TEST(held >= 5u << 20);
  saver.save_async(std::move(first)).wait();  // whether the pages are there by now or not
  BOOST_TEST(saver.snapshot_bytes() == held);
  BOOST_TEST(bool(read_file(folder / "f") == read_file(folder / "expected")));
  BOOST_CHECK_EXCEPTION(AsyncSaver{first}, UsageError, has_code(ErrorCode::wrong_state));
  const Writer second = declared(folder / "g", sample);
  BOOST_CHECK_EXCEPTION(AsyncSaver(second, {.max_snapshot_bytes = 1 << 20}), UsageError,
                        says(ErrorCode::bad_argument, "max_snapshot_bytes"));
}

BOOST_AUTO_TEST_CASE(saves_and_reservations_do_not_wait_for_each_other) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  save(folder / "expected", sample);
  const std::string expected = read_file(folder / "expected");
  AsyncSaver saver({.when_busy = WhenBusy::queue, .max_unfinished = 3});
  for (int i = 0; i < 20; ++i) {
    saver.reserve((6 << 20) + i * 100'000, 1 + i % 2);
    const std::string name = std::to_string(i);
    saver.save_async(declared(folder / name, sample));
  }
  saver.wait_until_reserved();
  saver.wait_all();
  for (int i = 0; i < 20; ++i) BOOST_TEST(bool(read_file(folder / std::to_string(i)) == expected));
}

BOOST_AUTO_TEST_SUITE_END()
