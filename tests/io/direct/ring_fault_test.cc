// Whatever a ring says of an operation but that the disk refused it, the bytes reach the file, or
// the memory, all the same.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "boost_test.h"
#include "io/direct/direct_file.h"
#include "io/direct/direct_reader.h"
#include "io/direct/direct_writer.h"
#include "io/file/posix_file.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/ring_fault.h"
#include "support/sanitizers.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::io;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(ring_fault)

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kExtent = 4 * kPage;
constexpr std::size_t kExtents = 12;
constexpr unsigned kDepth = 4;

struct Case {
  const char* name;
  RingFaults faults;
};
// None of them is a verdict on the file.
const Case kCases[] = {
    {"cancelled", {.operation_error = ECANCELED}},
    {"one of three cancelled", {.operation_error = ECANCELED, .every = 3}},
    {"interrupted", {.operation_error = EINTR}},
    {"to be tried again", {.operation_error = EAGAIN}},
    {"no memory", {.operation_error = ENOMEM}},
    {"restarted", {.operation_error = 512}},  // ERESTARTSYS, which is the kernel's own
    {"short", {.longest_transfer = kPage}},
    {"one of two short", {.longest_transfer = kPage, .every = 2}},
    {"not taken", {.longest_submission = 0}},
    {"taken in part", {.longest_submission = 1}},
    {"submission denied", {.submission_error = EPERM}},
    {"submission without memory", {.submission_error = ENOMEM}},
    {"submission tried again", {.submission_error = EAGAIN}},
    {"waiting denied", {.wait_error = EPERM}},
    {"waiting refused for now", {.wait_error = EAGAIN}},
};

bool has_rings(const TemporaryFolder& folder) {
  const UniqueFd fd(::open((folder / "probe").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const UniqueFd direct = open_direct(fd.get(), DirectAccess::write);
  if (direct && Uring::create(1)) return true;
  BOOST_TEST_MESSAGE("no io_uring or no direct I/O here: skipped");
  return false;
}

struct WritableFile {
  explicit WritableFile(const std::filesystem::path& path)
      : fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
        direct(open_direct(fd.get(), DirectAccess::write)),
        writer(DirectWriter::create(direct.get(), fd.get(), path, kDepth, kExtent)) {}
  UniqueFd fd;
  UniqueFd direct;
  std::unique_ptr<DirectWriter> writer;
};

// Through buffers and from borrowed memory; the first extent last, with the sync after it.
void write_all(DirectWriter& writer, MutableByteSpan data) {
  for (std::size_t i = 1; i < kExtents; ++i) {
    const ByteSpan extent = data.subspan(i * kExtent, kExtent);
    if (i % 2 == 0) {
      writer.submit_borrowed(i * kExtent, extent);
      continue;
    }
    const MutableByteSpan buffer = writer.acquire();
    std::memcpy(buffer.data(), extent.data(), kExtent);
    writer.submit(i * kExtent, buffer);
  }
  BOOST_TEST(writer.write_and_sync(0, data.first(kExtent), true) >= 0);
}

const AlignedBuffer& data_to_write() {
  static const AlignedBuffer memory = [] {
    AlignedBuffer aligned(kExtents * kExtent);
    const std::vector<std::byte> bytes = random_bytes(kExtents * kExtent);
    std::memcpy(aligned.bytes().data(), bytes.data(), bytes.size());
    return aligned;
  }();
  return memory;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_write_that_the_ring_does_not_do_is_done_all_the_same) {
  const TemporaryFolder folder;
  if (!has_rings(folder)) return;
  const MutableByteSpan data = data_to_write().bytes();
  for (const Case& one : kCases) {
    BOOST_TEST_CONTEXT(one.name) {
      WritableFile file(folder / "f");
      const FaultyRings faulty(one.faults);
      write_all(*file.writer, data);
      BOOST_TEST((read_file(folder / "f") == text_of(data)));
      const bool strikes = one.faults.operation_error != 0 || one.faults.longest_transfer == kPage;
      BOOST_TEST((faulty.struck() > 0) == strikes);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_read_that_the_ring_does_not_do_is_done_all_the_same) {
  const TemporaryFolder folder;
  if (!has_rings(folder)) return;
  const MutableByteSpan data = data_to_write().bytes();
  write_file(folder / "f", text_of(data));
  const UniqueFd fd = open_for_reading(folder / "f");
  const UniqueFd direct = open_direct(fd.get(), DirectAccess::read);
  for (const Case& one : kCases) {
    BOOST_TEST_CONTEXT(one.name) {
      const auto reader = DirectReader::create({fd.get(), direct.get(), folder / "f"},
                                               ReadMethod::ring, kDepth, kExtent);
      const FaultyRings faulty(one.faults);
      std::size_t asked = 0;
      const AlignedBuffer own(kExtents * kExtent);
      for (std::size_t i = 0; i < kExtents; ++i) {
        for (; !reader->full() && asked < kExtents; ++asked) {
          if (asked % 2 == 0) {
            reader->start(asked * kExtent, kExtent, DirectReader::Location::disk);
          } else {
            reader->start_into(asked * kExtent, own.bytes().subspan(asked * kExtent, kExtent),
                               DirectReader::Location::disk);
          }
        }
        const MutableByteSpan got = reader->oldest();
        BOOST_TEST(std::memcmp(got.data(), data.data() + i * kExtent, kExtent) == 0);
        reader->release();
      }
    }
  }
}

// The kernel cancels the sync after a write that is not whole. No sync at all would save as well,
// but not for long: this counts them.
BOOST_AUTO_TEST_CASE(a_chain_that_ends_early_is_synced_the_ordinary_way) {
  const TemporaryFolder folder;
  if (!has_rings(folder)) return;
  for (const Case& one : kCases) {
    if (one.faults.every != 1 || one.faults.wait_error != 0) continue;
    BOOST_TEST_CONTEXT(one.name) {
      const Outcome outcome = run_with_faults({{SYS_fsync, ENOSPC}}, [&] {
        WritableFile file(folder / "f");
        const FaultyRings faulty(one.faults);
        file.writer->write_and_sync(0, data_to_write().bytes(), true);
      });
      BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
      BOOST_TEST(outcome.message.find("fsync") != std::string::npos, outcome.message);
      BOOST_TEST(outcome.errno_value == ENOSPC);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_verdict_on_the_file_is_an_error_and_not_tried_again) {
  const TemporaryFolder folder;
  if (!has_rings(folder)) return;
  write_file(folder / "r", text_of(data_to_write().bytes()));
  for (const int errno_value : {EIO, ENOSPC, EDQUOT, EFBIG}) {
    WritableFile file(folder / "f");
    const FaultyRings faulty({.operation_error = errno_value});
    const auto is_it = [&](const IoError& error) { return error.errno_value() == errno_value; };
    file.writer->submit_borrowed(kExtent, data_to_write().bytes().first(kExtent));
    BOOST_CHECK_EXCEPTION(file.writer->drain(), IoError, is_it);
    BOOST_CHECK_EXCEPTION(
        file.writer->write_and_sync(0, data_to_write().bytes().first(kExtent), false), IoError,
        is_it);
    BOOST_TEST(read_file(folder / "f").empty());

    const UniqueFd fd = open_for_reading(folder / "r");
    const UniqueFd direct = open_direct(fd.get(), DirectAccess::read);
    const auto reader = DirectReader::create({fd.get(), direct.get(), folder / "r"},
                                             ReadMethod::ring, kDepth, kExtent);
    reader->start(0, kExtent, DirectReader::Location::disk);
    BOOST_CHECK_EXCEPTION(reader->oldest(), IoError, is_it);
  }
}

// As where a program denies itself system calls while a save runs: the kernel ends what it took.
BOOST_AUTO_TEST_CASE(operations_in_flight_are_waited_for_where_the_call_is_denied) {
  const TemporaryFolder folder;
  if (!has_rings(folder)) return;
  const MutableByteSpan data = data_to_write().bytes();
  const Outcome outcome = run_with_faults({}, [&] {
    WritableFile file(folder / "f");
    file.writer->submit_borrowed(kExtent, data.subspan(kExtent, kExtent));
    if (!install_faults({{SYS_io_uring_enter, EPERM}})) throw std::runtime_error("no filter");
    write_all(*file.writer, data);
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
  BOOST_TEST((read_file(folder / "f") == text_of(data)));
}

BOOST_AUTO_TEST_CASE(without_memory_for_buffers_there_is_no_writer) {
  const TemporaryFolder folder;
  if (!has_rings(folder) || kSanitized) return;
  const Outcome outcome = run_with_faults({}, [&] {
    const UniqueFd fd = open_for_update(folder / "probe");
    const rlimit limit{256 << 20, 256 << 20};
    if (::setrlimit(RLIMIT_DATA, &limit) != 0) throw std::runtime_error("no limit");
    if (DirectWriter::create(fd.get(), fd.get(), folder / "probe", 4, 256 << 20))
      throw std::runtime_error("a writer");
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
}

BOOST_AUTO_TEST_SUITE_END()
