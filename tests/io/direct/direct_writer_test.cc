#include "io/direct/direct_writer.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <bit>
#include <csignal>
#include <cstring>

#include "boost_test.h"
#include "io/direct/direct_file.h"
#include "io/file/posix_file.h"
#include "support/bytes.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/io_uring.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::io;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(direct_writer)

namespace {

// A new file with both descriptors and a writer on it; null where direct I/O is not to be had here.
struct DirectFile {
  explicit DirectFile(const std::filesystem::path& path, unsigned depth = 4,
                      std::size_t buffer_bytes = 64 << 10)
      : fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
        direct(open_direct(fd.get(), DirectAccess::write)) {
    if (direct) writer = DirectWriter::create(direct.get(), fd.get(), path, depth, buffer_bytes);
    if (!writer) BOOST_TEST_MESSAGE("no direct I/O here: skipped");
  }
  UniqueFd fd;
  UniqueFd direct;
  std::unique_ptr<DirectWriter> writer;
};

}  // namespace

BOOST_AUTO_TEST_CASE(there_is_a_ring_where_the_kernel_gives_one) {
  switch (io_uring_here()) {
    case IoUring::usable:
      BOOST_TEST(Uring::create(4).has_value());
      break;
    case IoUring::denied:
      BOOST_TEST(!Uring::create(4).has_value());
      break;
    case IoUring::missing:
      BOOST_TEST_MESSAGE("no io_uring here, and nobody was asked to deny it: skipped");
  }
}

BOOST_AUTO_TEST_CASE(more_extents_than_buffers_all_reach_the_file) {
  const TemporaryFolder folder;
  DirectFile file(folder / "f");
  if (!file.writer) return;
  const std::vector<std::byte> data = random_bytes(50 * 4096);
  for (std::size_t at = 0; at < data.size(); at += 4096) {
    const MutableByteSpan buffer = file.writer->acquire();
    std::memcpy(buffer.data() + 8192, data.data() + at, 4096);
    file.writer->submit(at, buffer.subspan(8192, 4096));
  }
  file.writer->drain();
  BOOST_TEST((read_file(folder / "f") == text_of(data)));
}

BOOST_AUTO_TEST_CASE(borrowed_memory_is_written_in_place) {
  const TemporaryFolder folder;
  DirectFile file(folder / "f");
  if (!file.writer) return;
  const AlignedBuffer memory(16 * 4096);
  const std::vector<std::byte> data = random_bytes(16 * 4096);
  std::memcpy(memory.bytes().data(), data.data(), data.size());
  for (std::size_t at = 0; at < data.size(); at += 2 * 4096) {
    file.writer->submit_borrowed(at, memory.bytes().subspan(at, 2 * 4096));
  }
  file.writer->drain();
  BOOST_TEST((read_file(folder / "f") == text_of(data)));
}

BOOST_AUTO_TEST_CASE(writes_in_flight_end_before_the_writer_does) {
  const TemporaryFolder folder;
  {
    DirectFile file(folder / "f", 8);
    if (!file.writer) return;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const MutableByteSpan buffer = file.writer->acquire();
      std::memset(buffer.data(), 'x', buffer.size());
      file.writer->submit(i * (64 << 10), buffer);
    }
  }
  BOOST_TEST((read_file(folder / "f") == std::string(8 * (64 << 10), 'x')));
}

BOOST_AUTO_TEST_CASE(a_write_that_fails_in_the_ring_is_an_io_error) {
  const TemporaryFolder folder;
  if (!DirectFile(folder / "probe").writer) return;
  const Outcome outcome = run_with_faults({}, [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64 << 10, 64 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    DirectFile file(folder / "f");
    for (std::uint64_t i = 0; i < 3; ++i) {
      const MutableByteSpan buffer = file.writer->acquire();
      std::memset(buffer.data(), 'x', buffer.size());
      file.writer->submit(i * (64 << 10), buffer);
    }
    file.writer->drain();
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
  BOOST_TEST(outcome.errno_value == EFBIG);
}

// The same limit in the middle of an extent: what the ring wrote short is finished, or fails, the
// ordinary way.
BOOST_AUTO_TEST_CASE(a_short_write_is_not_taken_for_a_whole_one) {
  const TemporaryFolder folder;
  if (!DirectFile(folder / "probe").writer) return;
  const Outcome outcome = run_with_faults({}, [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{40 << 10, 40 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    DirectFile file(folder / "f");
    const MutableByteSpan buffer = file.writer->acquire();
    std::memset(buffer.data(), 'x', buffer.size());
    file.writer->submit(0, buffer);
    file.writer->drain();
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
  BOOST_TEST(outcome.errno_value == EFBIG);
  BOOST_TEST((read_file(folder / "f") == std::string(40 << 10, 'x')));
}

BOOST_AUTO_TEST_CASE(the_last_write_and_the_sync_are_one_chain) {
  const TemporaryFolder folder;
  DirectFile file(folder / "f");
  if (!file.writer) return;
  const AlignedBuffer memory(8 * 4096);
  const std::vector<std::byte> data = random_bytes(8 * 4096);
  std::memcpy(memory.bytes().data(), data.data(), data.size());
  file.writer->submit_borrowed(4096, memory.bytes().subspan(4096));
  BOOST_TEST(file.writer->write_and_sync(0, memory.bytes().first(4096), true) >= 0);
  BOOST_TEST((read_file(folder / "f") == text_of(data)));
}

// The kernel cancels the sync after a short write: both are done the ordinary way then.
BOOST_AUTO_TEST_CASE(a_chain_whose_write_fails_reports_the_write) {
  const TemporaryFolder folder;
  if (!DirectFile(folder / "probe").writer) return;
  for (const rlim_t room : {rlim_t{0}, rlim_t{4096}}) {
    const Outcome outcome = run_with_faults({}, [&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{room, room};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      DirectFile file(folder / "f");
      const AlignedBuffer memory(8192);
      std::memset(memory.bytes().data(), 'x', 8192);
      file.writer->write_and_sync(0, memory.bytes(), false);
    });
    BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
    BOOST_TEST(outcome.errno_value == EFBIG);
    BOOST_TEST((read_file(folder / "f") == std::string(room, 'x')));
  }
}

BOOST_AUTO_TEST_CASE(memory_alignment_is_a_power_of_two_up_to_a_page) {
  const TemporaryFolder folder;
  const DirectFile file(folder / "f");
  if (!file.direct) return;
  const std::size_t alignment = direct_memory_alignment(file.direct.get());
  BOOST_TEST(std::has_single_bit(alignment));
  BOOST_TEST(alignment <= kDirectAlignment);
}

BOOST_AUTO_TEST_SUITE_END()
