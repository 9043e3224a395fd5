// Zip archives, ours and those of Python's zipfile and torch.save in tests/data/formats/zip.
// Python reads ours in tests/formats/npz.
#include <string>
#include <utility>
#include <vector>

#include "boost_test.h"
#include "formats/zip/archives.h"
#include "formats/zip/directory.h"
#include "formats/zip/writer.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::formats;
using test::archive_contents;
using test::archive_is_refused;
using test::archive_of;
using test::ArchiveMembers;
using test::bytes_of;
using test::says;
using test::text_of;
using test::with_number;

BOOST_AUTO_TEST_SUITE(zip_archives)

namespace {

std::string sample_file(const char* name) {
  return test::read_file(std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/zip" /
                         name);
}

const ArchiveMembers kTwo{{"one.npy", "the first"}, {"two/\xc3\xbc", std::string(3000, 'b')}};

}  // namespace

BOOST_AUTO_TEST_CASE(archives_of_each_style_are_read_back) {
  for (const ZipStyle& style : {kPythonZip, kOldPythonZip, kPyTorchZip}) {
    BOOST_TEST((archive_contents(archive_of(kTwo, style)) == kTwo));
    BOOST_TEST((archive_contents(archive_of(kTwo, style, {.force_zip64 = true})) == kTwo));
    const std::string small = archive_of(kTwo, style, {.deflated = true});
    BOOST_TEST((archive_contents(small) == kTwo));
    BOOST_TEST(small.size() < 500u);
    BOOST_TEST((archive_contents(archive_of({}, style)) == ArchiveMembers{}));
    BOOST_TEST(
        (archive_contents(archive_of({{"empty", ""}}, style)) == ArchiveMembers{{"empty", ""}}));
    BOOST_TEST((archive_of(kTwo, style) == archive_of(kTwo, style)));
  }
}

BOOST_AUTO_TEST_CASE(data_begins_at_the_alignment) {
  const ArchiveMembers members{{"a", "1"}, {"some", ""}, {"longer names", "12345"}, {"b", "z"}};
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u, 32768u}) {
    const std::string archive = archive_of(members, kPyTorchZip, {.alignment = alignment});
    BOOST_TEST((archive_contents(archive) == members));
    const ZipDirectory zip = ZipDirectory::parse(bytes_of(archive));
    for (const ZipMember& member : zip.members()) {
      BOOST_TEST(member.offset % alignment == 0u);
      BOOST_TEST(text_of(member.local_extra).substr(0, 2) == "FB");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_stored_member_is_a_view_of_the_file) {
  const std::string archive = archive_of(kTwo, kPythonZip);
  const ZipDirectory zip = ZipDirectory::parse(bytes_of(archive));
  const ByteSpan first = zip.stored(zip.members()[0]);
  BOOST_TEST(first.data() == bytes_of(archive).data() + zip.members()[0].offset);
  BOOST_TEST(text_of(first) == "the first");
  const std::string small = archive_of(kTwo, kPythonZip, {.deflated = true});
  const ZipDirectory deflated = ZipDirectory::parse(bytes_of(small));
  BOOST_CHECK_THROW(static_cast<void>(deflated.stored(deflated.members()[1])), UsageError);
}

BOOST_AUTO_TEST_CASE(archives_of_others_are_read_and_written_byte_for_byte) {
  const auto same_again = [](const char* file, const ZipStyle& style, const ZipNewMember& options) {
    const std::string archive = sample_file(file);
    const ArchiveMembers members = archive_contents(archive);
    BOOST_TEST(members.size() >= 3u);
    BOOST_TEST((archive_of(members, style, options) == archive), file);
  };
  same_again("python_stored.zip", kPythonZip, {});
  same_again("python_forced.zip", kPythonZip, {.force_zip64 = true});
  same_again("python_old_forced.zip", kOldPythonZip, {.force_zip64 = true});
  same_again("python_deflated.zip", kPythonZip, {.deflated = true});
  same_again("torch.zip", kPyTorchZip, {.alignment = 64});
}

BOOST_AUTO_TEST_CASE(a_comment_may_stand_at_the_end) {
  const std::string archive = archive_of(kTwo, kPythonZip);
  for (const std::size_t length : {std::size_t{1}, std::size_t{1000}, std::size_t{65'535}}) {
    const std::string comment(length, 'c');
    const std::string with_comment = with_number(archive, archive.size() - 2, length, 2) + comment;
    BOOST_TEST((archive_contents(with_comment) == kTwo));
    BOOST_TEST(ZipDirectory::parse(bytes_of(with_comment)).comment() == comment);
    BOOST_TEST(archive_is_refused(with_comment + "x"));
  }
  // A record of the end in the comment whose own comment does not end with the file is not one.
  const std::string comment = "PK\5\6" + std::string(30, '\0');
  BOOST_TEST((archive_contents(with_number(archive, archive.size() - 2, comment.size(), 2) +
                               comment) == kTwo));
}

BOOST_AUTO_TEST_CASE(members_of_any_number_are_counted_in_64_bits_where_needed) {
  ArchiveMembers many;
  for (unsigned i = 0; i < 65'536; ++i) many.emplace_back(std::to_string(i), "");
  const std::string archive = archive_of(many, kPythonZip);
  const ZipDirectory zip = ZipDirectory::parse(bytes_of(archive));
  BOOST_TEST(zip.members().size() == 65'536u);
  BOOST_TEST(zip.has_zip64_end());
  many.pop_back();
  const std::string fewer = archive_of(many, kPythonZip);
  BOOST_TEST(ZipDirectory::parse(bytes_of(fewer)).members().size() == 65'535u);
  BOOST_TEST(!ZipDirectory::parse(bytes_of(fewer)).has_zip64_end());
}

// As if numbers from 10 on needed it: no file of 4 GiB.
BOOST_AUTO_TEST_CASE(numbers_go_into_zip64_fields_where_they_are_too_wide) {
  for (ZipStyle style : {kPythonZip, kOldPythonZip, kPyTorchZip}) {
    style.least_wide = 10;
    for (const bool deflated : {false, true}) {
      const std::string archive = archive_of(kTwo, style, {.alignment = 64, .deflated = deflated});
      BOOST_TEST((archive_contents(archive) == kTwo));
      BOOST_TEST(ZipDirectory::parse(bytes_of(archive)).has_zip64_end());
    }
  }
}

BOOST_AUTO_TEST_CASE(no_truncated_archive_is_read) {
  for (const ZipStyle& style : {kPythonZip, kPyTorchZip}) {
    const std::string archive = archive_of({{"a", "12345"}, {"b", "67890"}}, style);
    for (std::size_t length = 0; length < archive.size(); ++length)
      BOOST_TEST(archive_is_refused(archive.substr(0, length)), length);
    for (std::size_t length = 1; length < archive.size(); ++length)
      BOOST_TEST(archive_is_refused(archive.substr(length)), length);
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_byte_is_found_unless_nothing_depends_on_it) {
  for (const bool deflated : {false, true}) {
    const ArchiveMembers members{{"a", "12345"}, {"b", "67890"}};
    const std::string archive = archive_of(members, kPythonZip, {.deflated = deflated});
    for (std::size_t i = 0; i < archive.size(); ++i) {
      for (const int bit : {0, 3, 7}) {
        std::string damaged = archive;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        // Versions, dates and attributes change nothing of what is read.
        if (!archive_is_refused(damaged)) BOOST_TEST((archive_contents(damaged) == members), i);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_checksum_is_told_with_both_sums) {
  std::string archive = archive_of({{"a", "12345"}}, kPythonZip);
  const ZipMember member = ZipDirectory::parse(bytes_of(archive)).members()[0];
  archive[member.offset] = 'x';
  const ZipDirectory zip = ZipDirectory::parse(bytes_of(archive));
  BOOST_TEST(text_of(zip.stored(zip.members()[0])) == "x2345");  // not compared here
  BOOST_CHECK_EXCEPTION(zip.check_crc(zip.members()[0]), IntegrityError,
                        says(ErrorCode::checksum_mismatch, "crc32", "cbf53a1c"));
  BOOST_CHECK_THROW(static_cast<void>(zip.read(zip.members()[0])), IntegrityError);
}

BOOST_AUTO_TEST_CASE(callers_mistakes_are_told) {
  const test::TemporaryFolder folder;
  OutputFile out(folder / "a.zip", {.durability = Durability::none});
  ZipWriter zip(out, kPythonZip);
  BOOST_CHECK_THROW(zip.begin("", 0), UsageError);
  BOOST_CHECK_THROW(zip.begin("a", 0, {.alignment = 32'769}), UsageError);
  BOOST_CHECK_THROW(zip.begin("\xff", 0), UsageError);
  BOOST_CHECK_THROW(zip.begin(std::string(65'536, 'a'), 0), UsageError);
  zip.begin("a", 5);
  BOOST_CHECK_THROW(zip.write(bytes_of("123456")), UsageError);
  zip.write(bytes_of("1234"));
  BOOST_CHECK_THROW(zip.end(), UsageError);
  zip.write(bytes_of("5"));
  zip.end();
  BOOST_CHECK_EXCEPTION(zip.begin("a", 5), UsageError, test::has_code(ErrorCode::duplicate));
}

BOOST_AUTO_TEST_SUITE_END()
