// What hostile zip archives may claim.
#include <string>

#include "boost_test.h"
#include "formats/zip/archives.h"
#include "formats/zip/directory.h"
#include "formats/zip/records.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::formats;
using test::archive_contents;
using test::archive_is_refused;
using test::archive_of;
using test::ArchiveMembers;
using test::bytes_of;
using test::number;
using test::says;
using test::with_number;

BOOST_AUTO_TEST_SUITE(hostile_zip_archives)

namespace {

// An archive put together by hand: what a member says of itself, twice.
struct Entry {
  std::string name = "a";
  std::string data{};
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t raw = 0;
  std::string extra{};
  std::uint32_t offset = 0;
  std::uint32_t stored = 0;
};
std::string local_part(const Entry& e) {
  return "PK\3\4" + number(20, 2) + number(e.flags, 2) + number(e.method, 2) + number(0, 8) +
         number(e.stored, 4) + number(e.raw, 4) + number(e.name.size(), 2) +
         number(e.extra.size(), 2) + e.name + e.extra + e.data;
}
std::string central_part(const Entry& e) {
  return "PK\1\2" + number(20, 2) + number(20, 2) + number(e.flags, 2) + number(e.method, 2) +
         number(0, 8) + number(e.stored, 4) + number(e.raw, 4) + number(e.name.size(), 2) +
         number(e.extra.size(), 2) + number(0, 10) + number(e.offset, 4) + e.name + e.extra;
}
std::string end_part(std::uint64_t count, std::size_t bytes, std::size_t offset) {
  return "PK\5\6" + number(0, 4) + number(count, 2) + number(count, 2) + number(bytes, 4) +
         number(offset, 4) + number(0, 2);
}
std::string put_together(const std::string& locals, const std::string& centrals,
                         std::uint64_t count) {
  return locals + centrals + end_part(count, centrals.size(), locals.size());
}
std::string one_member(const Entry& entry) {
  return put_together(local_part(entry), central_part(entry), 1);
}

void refuses(const std::string& archive, ErrorCode code, const char* what) {
  BOOST_TEST_CONTEXT(what)
  BOOST_CHECK_EXCEPTION(archive_contents(archive), Error, says(code, what));
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_not_read_is_refused_by_name) {
  refuses(one_member({.flags = zip::kEncrypted}), ErrorCode::unsupported_feature, "encrypted");
  refuses(one_member({.flags = zip::kStrongEncryption}), ErrorCode::unsupported_feature,
          "encrypted");
  refuses(one_member({.flags = zip::kPatched}), ErrorCode::unsupported_feature, "patch");
  refuses(one_member({.method = 12}), ErrorCode::unsupported_feature, "12 (bzip2)");
  refuses(one_member({.method = 14}), ErrorCode::unsupported_feature, "14 (lzma)");
  refuses(one_member({.name = "\x81"}), ErrorCode::unsupported_feature, "neither ASCII nor UTF-8");
  refuses(one_member({.name = "\x81", .flags = zip::kUtf8}), ErrorCode::bad_name, "UTF-8");
  refuses(one_member({.name = ""}), ErrorCode::bad_name, "without a name");
  refuses(one_member({.name = std::string("a\0b", 3)}), ErrorCode::bad_name, "zero byte");
  const std::string archive = archive_of({{"a", "1"}}, kPythonZip);
  const std::size_t end = archive.size() - 22;
  refuses(with_number(archive, end + 4, 1, 2), ErrorCode::unsupported_feature, "several disks");
  refuses(with_number(archive, end + 8, 2, 2), ErrorCode::unsupported_feature, "several disks");
  refuses("", ErrorCode::truncated, "empty");
  refuses("a text that is long enough to be one", ErrorCode::truncated, "no zip archive");
}

BOOST_AUTO_TEST_CASE(directories_that_contradict_the_file_are_refused) {
  const Entry a{.data = "12345", .raw = 5, .stored = 5};
  const std::string local = local_part(a), central = central_part(a);
  const auto changed = [&](const Entry& entry) {
    return put_together(local, central_part(entry), 1);
  };
  Entry e = a;
  e.name = "b";
  refuses(changed(e), ErrorCode::inconsistent, "name");
  (e = a).raw = 4;
  refuses(changed(e), ErrorCode::inconsistent, "two sizes");
  e.stored = 4;
  refuses(changed(e), ErrorCode::inconsistent, "raw_bytes");
  (e = a).flags = zip::kDescriptor;
  refuses(changed(e), ErrorCode::inconsistent, "flags");
  (e = a).method = zip::kDeflated;
  refuses(changed(e), ErrorCode::inconsistent, "method");
  (e = a).offset = 1;
  refuses(changed(e), ErrorCode::bad_magic, "signature");
  (e = a).offset = 0xfffffffe;
  refuses(changed(e), ErrorCode::out_of_bounds, "header_offset");
  (e = a).offset = static_cast<std::uint32_t>(local.size());
  refuses(changed(e), ErrorCode::out_of_bounds, "header_offset");
  Entry longer = a;
  longer.raw = longer.stored = 6;
  refuses(one_member(longer), ErrorCode::out_of_bounds, "stored_bytes");
  // Both say that they have twice the name.
  refuses(put_together(local, central + central, 2), ErrorCode::bad_name, "one name");
  refuses(put_together(local, central, 2), ErrorCode::out_of_bounds, "members");
  refuses(put_together(local, central + central, 1), ErrorCode::inconsistent, "directory_bytes");
  refuses(put_together(local, central + "x", 1), ErrorCode::inconsistent, "directory_bytes");
  refuses("x" + put_together(local, central, 1), ErrorCode::inconsistent, "directory_offset");
  refuses(put_together(local, central.substr(1), 1), ErrorCode::bad_magic, "signature");
  refuses(put_together(local, central.substr(2), 1), ErrorCode::out_of_bounds, "members");
}

BOOST_AUTO_TEST_CASE(members_that_share_bytes_are_refused) {
  // The second header is the content of the first member.
  Entry inner{.name = "b", .data = "12345", .raw = 5, .stored = 5};
  Entry outer{.name = "a", .data = local_part(inner)};
  outer.raw = outer.stored = static_cast<std::uint32_t>(outer.data.size());
  inner.offset = 31;
  refuses(put_together(local_part(outer), central_part(outer) + central_part(inner), 2),
          ErrorCode::out_of_bounds, "share bytes");
  refuses(put_together(local_part(outer), central_part(inner) + central_part(outer), 2),
          ErrorCode::out_of_bounds, "share bytes");
  // A thousand names for one header: what zip bombs with one kernel do, names apart.
  std::string centrals;
  Entry kernel{.data = "12345", .flags = zip::kDescriptor, .raw = 5, .stored = 5};
  const std::string local = local_part(kernel);
  for (int i = 0; i < 1000; ++i) centrals += central_part(kernel);
  BOOST_TEST(archive_is_refused(put_together(local, centrals, 1000)));
  // The data runs into the directory.
  Entry greedy{.raw = 10, .stored = 10};
  refuses(one_member(greedy), ErrorCode::out_of_bounds, "stored_bytes");
}

BOOST_AUTO_TEST_CASE(bombs_are_refused_before_memory_is_asked_for) {
  const Entry bomb{.data = "12345", .method = 8, .raw = 0xfffffff0, .stored = 5};
  refuses(one_member(bomb), ErrorCode::bad_compression, "more content than");
  // 10 MB of zeros in 10 KB, as many as it says: the limit counts.
  const std::string archive =
      archive_of({{"a", std::string(10'000'000, '\0')}}, kPythonZip, {.deflated = true});
  BOOST_TEST(archive.size() < 12'000u);
  const ZipDirectory zip = ZipDirectory::parse(bytes_of(archive));
  ReadLimits limits;
  limits.max_allocation_bytes = 1'000'000;
  BOOST_CHECK_EXCEPTION(static_cast<void>(zip.read(zip.members()[0], limits)), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
  // A directory of many members is memory, too.
  limits.max_allocation_bytes = 100;
  BOOST_CHECK_EXCEPTION(ZipDirectory::parse(bytes_of(archive), limits), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
}

BOOST_AUTO_TEST_CASE(zip64_records_that_lie_are_refused) {
  ZipStyle style = kPythonZip;
  style.always_zip64_end = true;
  const std::string archive = archive_of({{"a", "1"}}, style);
  BOOST_TEST((archive_contents(archive) == ArchiveMembers{{"a", "1"}}));
  const std::size_t end = archive.size() - 22, locator = end - 20, record = locator - 56;
  refuses(with_number(archive, locator + 8, ~0ull, 8), ErrorCode::out_of_bounds, "record_offset");
  refuses(with_number(archive, locator + 8, 0, 8), ErrorCode::bad_magic, "zip64 end record");
  refuses(with_number(archive, locator + 4, 1, 4), ErrorCode::unsupported_feature, "disks");
  refuses(with_number(archive, locator + 16, 2, 4), ErrorCode::unsupported_feature, "disks");
  refuses(with_number(archive, record + 4, 45, 8), ErrorCode::inconsistent, "record_bytes");
  refuses(with_number(archive, record + 4, ~0ull, 8), ErrorCode::inconsistent, "record_bytes");
  refuses(with_number(archive, record + 24, 7, 8), ErrorCode::unsupported_feature, "disks");
  refuses(with_number(with_number(archive, record + 24, 7, 8), record + 32, 7, 8),
          ErrorCode::inconsistent, "members");
  for (const std::size_t field : {40, 48})
    refuses(with_number(archive, record + field, ~0ull, 8), ErrorCode::inconsistent, "zip64");
  // With all left to the zip64 record.
  std::string open = with_number(with_number(archive, end + 8, 0xffffffff, 4), end + 12, ~0ull, 8);
  BOOST_TEST((archive_contents(open) == ArchiveMembers{{"a", "1"}}));
  const std::string counts = with_number(open, record + 24, ~0ull, 8);
  refuses(with_number(counts, record + 32, ~0ull, 8), ErrorCode::out_of_bounds, "members");
  refuses(with_number(open, record + 40, ~0ull, 8), ErrorCode::inconsistent, "directory_offset");
  refuses(with_number(open, record + 48, ~0ull - 3, 8), ErrorCode::inconsistent,
          "directory_offset");

  // The field of a member.
  const auto wide = [](const std::string& numbers) {
    Entry entry{.data = "12345", .raw = 0xffffffff, .stored = 0xffffffff};
    entry.extra = number(1, 2) + number(numbers.size(), 2) + numbers;
    return one_member(entry);
  };
  BOOST_TEST(ZipDirectory::parse(bytes_of(wide(number(5, 8) + number(5, 8)))).members().size() ==
             1u);
  refuses(wide(number(5, 8)), ErrorCode::out_of_bounds, "stored_bytes");
  refuses(wide(""), ErrorCode::out_of_bounds, "raw_bytes");
  refuses(wide(number(~0ull, 8) + number(~0ull, 8)), ErrorCode::out_of_bounds, "stored_bytes");
  Entry twice{.data = "12345", .raw = 0xffffffff, .stored = 0xffffffff};
  twice.extra = number(1, 2) + number(8, 2) + number(5, 8);
  twice.extra += twice.extra;
  refuses(one_member(twice), ErrorCode::inconsistent, "two zip64 parts");
  twice.extra = number(1, 2) + number(9, 2) + number(5, 8);
  refuses(one_member(twice), ErrorCode::out_of_bounds, "extra field");
}

BOOST_AUTO_TEST_SUITE_END()
