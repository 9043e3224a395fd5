#include "io/file/mapped_file.h"

#include <unistd.h>

#include <cstdint>
#include <string>

#include "boost_test.h"
#include "io/file/posix_file.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using io::Advice;
using io::MappedFile;
using test::text_of;

BOOST_AUTO_TEST_SUITE(mapped_file)

namespace {

const std::uint64_t kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

void touch(ByteSpan bytes) {
  const volatile std::byte* const data = bytes.data();  // or the loads would be left out
  for (std::size_t i = 0; i < bytes.size(); i += 512) static_cast<void>(data[i]);
}

}  // namespace

BOOST_AUTO_TEST_CASE(shows_the_files_bytes) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "f", "contents");
  const auto file = MappedFile::open(folder / "f");
  BOOST_TEST(text_of(file->bytes()) == "contents");
  BOOST_TEST(file->path() == folder / "f");
}

BOOST_AUTO_TEST_CASE(an_empty_file_is_an_empty_span) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "f", "");
  const auto file = MappedFile::open(folder / "f");
  BOOST_TEST(file->bytes().empty());
  BOOST_TEST(file->resident_bytes() == 0u);
  file->advise(0, 100, Advice::will_need);
}

BOOST_AUTO_TEST_CASE(outlives_the_files_name) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "f", "contents");
  const auto file = MappedFile::open(folder / "f");
  test::write_file(folder / "g", "CONTENTS");
  std::filesystem::rename(folder / "g", folder / "f");
  BOOST_TEST(text_of(file->bytes()) == "contents");
  std::byte read[8];
  io::pread_all(file->fd(), 0, read, file->path());
  BOOST_TEST(text_of(read) == "contents");
}

BOOST_AUTO_TEST_CASE(what_is_written_to_a_writable_mapping_is_seen_in_it_alone) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "f", std::string(2 * kPage, 'x'));
  const auto file = io::FileBytes::open(folder / "f", Access::writable);
  BOOST_TEST((file->access() == Access::writable));
  const auto shared = MappedFile::open(folder / "f");
  const_cast<std::byte&>(file->bytes()[kPage]) = std::byte{'y'};
  BOOST_TEST((shared->bytes()[kPage] == std::byte{'x'}));
  BOOST_TEST(test::read_file(folder / "f") == std::string(2 * kPage, 'x'));
  // Nothing takes the only copy away.
  file->advise(0, 2 * kPage, Advice::dont_need);
  BOOST_TEST((file->bytes()[kPage] == std::byte{'y'}));
  BOOST_TEST((file->bytes()[0] == std::byte{'x'}));
}

BOOST_AUTO_TEST_CASE(what_is_no_regular_file_is_refused) {
  const test::TemporaryFolder folder;
  BOOST_CHECK_THROW(MappedFile::open(folder.path()), UsageError);
  BOOST_CHECK_THROW(MappedFile::open(folder / "none"), IoError);
}

BOOST_AUTO_TEST_CASE(resident_bytes_grow_with_the_pages_touched) {
  const test::TemporaryFolder folder;
  constexpr std::uint64_t kSize = 16 << 20;
  test::write_file(folder / "f", std::string(kSize, 'x'));
  const auto file = MappedFile::open(folder / "f");
  BOOST_TEST(file->resident_bytes() == 0u);
  // Advice for a part splits the mapping into two entries of smaps, which must be added up.
  file->advise(0, kSize / 2, Advice::random);
  touch(file->bytes().first(1));
  const std::uint64_t one = file->resident_bytes();
  BOOST_TEST(one >= kPage);
  BOOST_TEST(one < kSize / 2);
  touch(file->bytes());
  BOOST_TEST(file->resident_bytes() == kSize);
}

BOOST_AUTO_TEST_CASE(dont_need_drops_only_pages_wholly_inside_the_extent) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "f", std::string(3 * kPage + 10, 'x'));
  const auto file = MappedFile::open(folder / "f");
  const auto dropped = [&](std::uint64_t offset, std::uint64_t length) {
    touch(file->bytes());
    const std::uint64_t before = file->resident_bytes();
    file->advise(offset, length, Advice::dont_need);
    return before - file->resident_bytes();
  };
  BOOST_TEST(dropped(1, 2 * kPage) == kPage);
  BOOST_TEST(dropped(1, kPage) == 0u);
  BOOST_TEST(dropped(kPage, 2 * kPage) == 2 * kPage);
  BOOST_TEST(dropped(3 * kPage, 10) == kPage);  // nobody else has a share in the last page
  BOOST_TEST(dropped(3 * kPage, UINT64_MAX) == kPage);
  BOOST_TEST(dropped(UINT64_MAX, UINT64_MAX) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
