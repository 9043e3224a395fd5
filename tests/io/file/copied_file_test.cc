#include "io/file/copied_file.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::test;
using io::CopiedFile;
using io::FileBytes;
using io::kCopiedPiece;

BOOST_AUTO_TEST_SUITE(copied_file)

namespace {

// Ten pieces and a bit, the last one short.
struct TenPieces {
  TenPieces() : contents(text_of(random_bytes(10 * kCopiedPiece + 100))), path(folder / "f") {
    write_file(path, contents);
  }
  bool shows(const FileBytes& file, std::uint64_t offset, std::uint64_t length) const {
    return text_of(file.touched(offset, length)) == contents.substr(offset, length);
  }
  TemporaryFolder folder;
  std::string contents;
  std::filesystem::path path;
};

}  // namespace

BOOST_AUTO_TEST_CASE(shows_the_bytes_that_were_touched_and_reads_no_others) {
  const TenPieces written;
  const auto file = FileBytes::open(written.path, Access::copied);
  BOOST_TEST((file->access() == Access::copied));
  BOOST_TEST(file->bytes().size() == written.contents.size());
  BOOST_TEST(file->resident_bytes() == 0u);
  BOOST_TEST(written.shows(*file, 5 * kCopiedPiece - 1, 2));  // two pieces
  BOOST_TEST(file->resident_bytes() == 2 * kCopiedPiece);
  BOOST_TEST(written.shows(*file, written.contents.size() - 1, 1));  // the short one
  BOOST_TEST(file->resident_bytes() == 2 * kCopiedPiece + 100);
  BOOST_TEST(written.shows(*file, 0, 0));
  BOOST_TEST(file->resident_bytes() == 2 * kCopiedPiece + 100);
  BOOST_TEST(written.shows(*file, 0, written.contents.size()));
  BOOST_TEST(file->resident_bytes() == written.contents.size());
}

BOOST_AUTO_TEST_CASE(an_empty_file_is_an_empty_span) {
  const TemporaryFolder folder;
  write_file(folder / "f", "");
  BOOST_TEST(CopiedFile::open(folder / "f")->bytes().empty());
  BOOST_CHECK_THROW(CopiedFile::open(folder.path()), UsageError);
  BOOST_CHECK_THROW(CopiedFile::open(folder / "none"), IoError);
}

BOOST_AUTO_TEST_CASE(nothing_of_the_file_is_mapped) {
  const TenPieces written;
  const auto file = CopiedFile::open(written.path);
  file->touch(0, written.contents.size());
  std::ifstream maps("/proc/self/maps");
  BOOST_TEST_REQUIRE(maps.good());
  for (std::string line; std::getline(maps, line);)
    BOOST_TEST(line.find(written.folder.path().string()) == std::string::npos, line);
}

BOOST_AUTO_TEST_CASE(a_file_that_was_cut_is_an_error_with_path_and_offset) {
  const TenPieces written;
  const auto file = CopiedFile::open(written.path);
  BOOST_TEST(written.shows(*file, 9 * kCopiedPiece, 10));
  std::filesystem::resize_file(written.path, 3 * kCopiedPiece + 7);
  BOOST_TEST(written.shows(*file, 2 * kCopiedPiece, kCopiedPiece));
  const std::string end = std::to_string(3 * kCopiedPiece + 7);
  for (int round = 0; round < 2; ++round) {  // a piece that failed is not taken for a read one
    BOOST_CHECK_EXCEPTION(file->touch(3 * kCopiedPiece, 1), FormatError,
                          says(ErrorCode::truncated, written.path.string(), end));
    BOOST_CHECK_EXCEPTION(file->touch(0, written.contents.size()), FormatError,
                          has_code(ErrorCode::truncated));
  }
  BOOST_TEST(written.shows(*file, 9 * kCopiedPiece, kCopiedPiece));  // read before
}

BOOST_AUTO_TEST_CASE(a_disk_that_fails_is_an_error_with_errno_and_offset) {
  const TenPieces written;
  const Outcome outcome =
      run_with_faults({{SYS_pread64, EIO, ArgumentCondition::at_least(3, 4 * kCopiedPiece)}}, [&] {
        const auto file = CopiedFile::open(written.path);
        if (!written.shows(*file, 0, 4 * kCopiedPiece)) throw std::runtime_error("other bytes");
        file->touch(4 * kCopiedPiece, 1);
      });
  BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
  BOOST_TEST(outcome.errno_value == EIO);
  BOOST_TEST(outcome.message.find(written.path.string()) == 0u, outcome.message);
  BOOST_TEST(outcome.message.find(std::to_string(4 * kCopiedPiece)) != std::string::npos,
             outcome.message);
}

BOOST_AUTO_TEST_CASE(bytes_once_read_do_not_change_with_the_file) {
  const TenPieces written;
  const auto file = CopiedFile::open(written.path);
  file->touch(kCopiedPiece, 1);
  write_file(written.path, std::string(written.contents.size(), 'x'));
  BOOST_TEST(written.shows(*file, kCopiedPiece, kCopiedPiece));
  file->touch(0, written.contents.size());
  BOOST_TEST(written.shows(*file, kCopiedPiece, kCopiedPiece));
  BOOST_TEST(text_of(file->touched(0, 1)) == "x");
  file->advise(0, written.contents.size(), io::Advice::dont_need);
  BOOST_TEST(written.shows(*file, kCopiedPiece, kCopiedPiece));
}

BOOST_AUTO_TEST_CASE(a_replaced_file_is_read_on) {
  const TenPieces written;
  const auto file = CopiedFile::open(written.path);
  write_file(written.folder / "g", std::string(written.contents.size(), 'x'));
  std::filesystem::rename(written.folder / "g", written.path);
  BOOST_TEST(written.shows(*file, 0, written.contents.size()));
}

BOOST_AUTO_TEST_CASE(a_file_larger_than_memory_opens) {
  const TemporaryFolder folder;
  constexpr std::uint64_t kSize = 64ull << 30;
  write_file(folder / "f", "start");
  std::filesystem::resize_file(folder / "f", kSize);  // sparse
  const auto file = CopiedFile::open(folder / "f");
  BOOST_TEST(text_of(file->touched(0, 5)) == "start");
  BOOST_TEST(text_of(file->touched(kSize - 1, 1)) == std::string(1, '\0'));
  BOOST_TEST(file->resident_bytes() == 2 * kCopiedPiece);
}

namespace {

// Two MiB and a half, and a byte.
struct FortyPieces {
  FortyPieces() : contents(text_of(random_bytes(40 * kCopiedPiece + 1))), path(folder / "f") {
    write_file(path, contents);
  }
  // How many reads of four threads saw other bytes than the file's.
  unsigned wrong_reads(const FileBytes& file) const {
    std::atomic<unsigned> wrong = 0;
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 400; ++i) {
          const std::uint64_t at = (i * 7919 + t % 2 * 3) * 1013 % (contents.size() - 100'000);
          const std::uint64_t length = 1 + i * 251 % 100'000;
          wrong += text_of(file.touched(at, length)) != contents.substr(at, length);
        }
      });
    }
    threads.clear();
    return wrong;
  }
  // What a process does whose address space does not hold the file.
  Outcome without_room(const std::function<void()>& work) const {
    return run_with_faults({{SYS_mmap, ENOMEM, ArgumentCondition::equals(1, contents.size())}},
                           work);
  }
  TemporaryFolder folder;
  std::string contents;
  std::filesystem::path path;
};

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

BOOST_AUTO_TEST_CASE(threads_that_touch_the_same_pieces_see_them_whole) {
  const FortyPieces written;
  const auto file = CopiedFile::open(written.path);
  BOOST_TEST(written.wrong_reads(*file) == 0u);
  file->touch(0, written.contents.size());
  BOOST_TEST(file->resident_bytes() == written.contents.size());  // each piece was read once
}

BOOST_AUTO_TEST_CASE(without_address_space_for_the_file_what_is_touched_gets_some) {
  const FortyPieces written;
  for (const Access access : {Access::copied, Access::mapped}) {
    const Outcome outcome = written.without_room([&] {
      const auto other = FileBytes::open(written.path, access);
      for (int round = 0; round < 2; ++round) {
        const auto file = FileBytes::open(written.path, access);
        require(file->access() == Access::copied, "not copied");
        const auto end = file->touched(written.contents.size() - 1, 1);
        require(file->resident_bytes() == 1, "more than was touched");
        require(end.data() == file->bytes().data() + file->bytes().size() - 1, "not in its place");
        require(written.wrong_reads(*file) == 0, "other bytes");
        require(written.wrong_reads(*other) == 0, "other bytes of the other file");
        file->touch(0, written.contents.size());
        require(file->resident_bytes() == written.contents.size(), "bytes read twice");
      }
    });
    BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
  }
}

BOOST_AUTO_TEST_CASE(what_finds_no_address_space_is_an_error) {
  const FortyPieces written;
  const auto whole = ArgumentCondition::equals(1, written.contents.size());
  const Outcome part =
      run_with_faults({{SYS_mmap, ENOMEM, whole},
                       {SYS_mmap, ENOMEM, ArgumentCondition::equals(1, 16 * kCopiedPiece)}},
                      [&] {
                        const auto file = FileBytes::open(written.path, Access::mapped);
                        file->touch(written.contents.size() - 1, 1);  // of less than a MiB
                        file->touch(0, 1);
                      });
  BOOST_TEST(part.kind == Outcome::Kind::io_error, part.message);
  BOOST_TEST(part.errno_value == ENOMEM);
  BOOST_TEST(part.message.find(written.path.string()) == 0u, part.message);
  const Outcome writable =
      written.without_room([&] { FileBytes::open(written.path, Access::writable); });
  BOOST_TEST(writable.kind == Outcome::Kind::io_error, writable.message);
}

BOOST_AUTO_TEST_SUITE_END()
