#include "io/direct/direct_reader.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "boost_test.h"
#include "io/direct/direct_file.h"
#include "io/file/posix_file.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::io;
using namespace thalia::test;
using Location = DirectReader::Location;

BOOST_AUTO_TEST_SUITE(direct_reader)

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kExtent = 4 * kPage;

enum class Means { ring, threads, page_cache };
constexpr Means kAllMeans[] = {Means::ring, Means::threads, Means::page_cache};

// A file that is read in each way that this place has; null reader if it has it not.
struct ReadableFile {
  explicit ReadableFile(std::size_t size) : data(random_bytes(size)) {
    write_file(folder / "f", text_of(data));
    fd = open_for_reading(folder / "f");
    direct = open_direct(fd.get(), DirectAccess::read);
  }
  std::unique_ptr<DirectReader> reader(Means means, unsigned depth = 3) const {
    const int direct_fd = means == Means::page_cache ? -1 : direct.get();
    if (means != Means::page_cache && !direct) return nullptr;
    return DirectReader::create({fd.get(), direct_fd, folder / "f"},
                                means == Means::ring ? ReadMethod::ring : ReadMethod::threads,
                                depth, kExtent);
  }
  bool holds(std::uint64_t offset, ByteSpan bytes) const {
    const ByteSpan wanted = ByteSpan(data).subspan(offset, bytes.size());
    return std::equal(bytes.begin(), bytes.end(), wanted.begin());
  }
  TemporaryFolder folder;
  std::vector<std::byte> data;
  UniqueFd fd;
  UniqueFd direct;
};

// Extents one after the other, as many in flight as may be; the last one as long as is left.
void check_all(const ReadableFile& file, DirectReader& reader, Location source) {
  std::uint64_t asked = 0;
  std::uint64_t seen = 0;
  while (seen < file.data.size()) {
    while (!reader.full() && asked < file.data.size()) {
      const std::size_t length = std::min<std::size_t>(kExtent, file.data.size() - asked);
      reader.start(asked, length, source);
      asked += length;
    }
    const MutableByteSpan bytes = reader.oldest();
    BOOST_TEST(file.holds(seen, bytes));
    seen += bytes.size();
    reader.release();
  }
  BOOST_TEST(reader.empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(extents_come_whole_and_in_order_to_the_last_byte) {
  for (const std::size_t size : {std::size_t{1}, kExtent, 10 * kExtent, 10 * kExtent + 77}) {
    const ReadableFile file(size);
    for (const Means means : kAllMeans) {
      for (const unsigned depth : {1u, 2u, 7u}) {
        for (const Location source : {Location::disk, Location::page_cache}) {
          if (const auto reader = file.reader(means, depth)) check_all(file, *reader, source);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(extents_are_read_straight_into_the_callers_memory) {
  const ReadableFile file(8 * kExtent);
  for (const Means means : kAllMeans) {
    const auto reader = file.reader(means);
    if (!reader) continue;
    // Where the address is no good for a direct read, the ordinary way serves it.
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {
      const AlignedBuffer memory(3 * kExtent);
      for (std::size_t i = 0; i < 2; ++i)
        reader->start_into((5 + i) * kExtent, memory.bytes().subspan(i * kExtent + shift, kExtent),
                           Location::disk);
      for (std::size_t i = 0; i < 2; ++i) {
        BOOST_TEST(reader->oldest().data() == memory.bytes().data() + i * kExtent + shift);
        reader->release();
      }
      BOOST_TEST(file.holds(5 * kExtent, memory.bytes().subspan(shift, 2 * kExtent)));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_ends_first_is_truncated) {
  for (const Means means : kAllMeans) {
    const ReadableFile file(4 * kExtent);
    const auto reader = file.reader(means);
    if (!reader) continue;
    std::filesystem::resize_file(file.folder / "f", kExtent + 100);
    reader->start(kExtent, kExtent, Location::disk);
    BOOST_CHECK_EXCEPTION(reader->oldest(), FormatError,
                          says(ErrorCode::truncated, (file.folder / "f").c_str()));
  }
}

BOOST_AUTO_TEST_CASE(reads_in_flight_end_before_the_reader_does) {
  const ReadableFile file(8 * kExtent);
  for (const Means means : kAllMeans) {
    const AlignedBuffer memory(3 * kExtent);
    {
      const auto reader = file.reader(means);
      if (!reader) continue;
      for (std::size_t i = 0; i < 3; ++i)
        reader->start_into(i * kExtent, memory.bytes().subspan(i * kExtent, kExtent),
                           Location::disk);
    }
    const std::vector<std::byte> at_end(memory.bytes().begin(), memory.bytes().end());
    BOOST_TEST(std::equal(at_end.begin(), at_end.end(), memory.bytes().begin()));
  }
}

BOOST_AUTO_TEST_CASE(a_failed_read_is_an_io_error_with_path_and_offset) {
  const ReadableFile file(4 * kExtent);
  // The kernel refuses to read through a descriptor for writing.
  const UniqueFd write_only = open_direct(file.fd.get(), DirectAccess::write);
  if (!write_only) return;
  for (const ReadMethod way : {ReadMethod::ring, ReadMethod::threads}) {
    const auto reader =
        DirectReader::create({file.fd.get(), write_only.get(), file.folder / "f"}, way, 2, kExtent);
    if (!reader) continue;
    reader->start(kExtent, kExtent, Location::disk);
    BOOST_CHECK_EXCEPTION(reader->oldest(), IoError, [&](const IoError& error) {
      return error.errno_value() == EBADF && error.context().offset == kExtent &&
             error.context().path == (file.folder / "f").string();
    });
  }
}

BOOST_AUTO_TEST_CASE(an_error_of_the_disk_reaches_the_caller) {
  const ReadableFile file(4 * kExtent);
  for (const Means means : {Means::threads, Means::page_cache}) {
    const Outcome outcome =
        run_with_faults({{SYS_pread64, EIO, ArgumentCondition::equals(3, 2 * kExtent)}}, [&] {
          const auto reader = file.reader(means);
          if (!reader) throw IoError("none here", EIO);
          for (std::size_t i = 0; i < 3; ++i) reader->start(i * kExtent, kExtent, Location::disk);
          for (std::size_t i = 0; i < 3; ++i) {
            reader->oldest();
            reader->release();
          }
        });
    BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
    BOOST_TEST(outcome.errno_value == EIO);
  }
}

BOOST_AUTO_TEST_CASE(without_io_uring_there_is_no_ring_and_threads_do) {
  const ReadableFile file(10 * kExtent + 5);
  if (!file.direct) return;
  const Outcome outcome = run_with_faults({{SYS_io_uring_setup, EPERM}}, [&] {
    if (file.reader(Means::ring)) throw std::runtime_error("a ring");
    const auto reader = file.reader(Means::threads);
    reader->start(kExtent, kExtent, Location::disk);
    if (!file.holds(kExtent, reader->oldest())) throw std::runtime_error("other bytes");
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
}

BOOST_AUTO_TEST_SUITE_END()
