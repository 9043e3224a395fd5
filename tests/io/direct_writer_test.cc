#include "io/direct_writer.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "boost_test.h"
#include "io/posix_file.h"
#include "support/bytes.h"
#include "support/fault.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::io;
using namespace thalia::test;

namespace {

// A new file with both descriptors and a writer on it; null where direct I/O is not to be had here.
struct DirectFile {
  explicit DirectFile(const std::filesystem::path& path, unsigned depth = 4,
                      std::size_t buffer_bytes = 64 << 10)
      : fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
        direct(open_direct(fd.get())) {
    if (direct) writer = DirectWriter::create(direct.get(), fd.get(), path, depth, buffer_bytes);
    if (!writer) BOOST_TEST_MESSAGE("no direct I/O here: skipped");
  }
  UniqueFd fd;
  UniqueFd direct;
  std::unique_ptr<DirectWriter> writer;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(direct_writer)

BOOST_AUTO_TEST_CASE(more_extents_than_buffers_all_reach_the_file) {
  const TemporaryFolder folder;
  DirectFile file(folder / "f");
  if (!file.writer) return;
  const std::vector<std::byte> data = random_bytes(50 * 4096);
  for (std::size_t at = 0; at < data.size(); at += 4096) {
    const MutableByteSpan buffer = file.writer->acquire();
    std::memcpy(buffer.data(), data.data() + at, 4096);
    file.writer->submit(at, 4096);
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
      std::memset(file.writer->acquire().data(), 'x', 64 << 10);
      file.writer->submit(i * (64 << 10), 64 << 10);
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
      std::memset(file.writer->acquire().data(), 'x', 64 << 10);
      file.writer->submit(i * (64 << 10), 64 << 10);
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
    std::memset(file.writer->acquire().data(), 'x', 64 << 10);
    file.writer->submit(0, 64 << 10);
    file.writer->drain();
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
  BOOST_TEST(outcome.errno_value == EFBIG);
  BOOST_TEST((read_file(folder / "f") == std::string(40 << 10, 'x')));
}

BOOST_AUTO_TEST_SUITE_END()
