// Zip archives, ours and those of Python's zipfile and torch.save in tests/data/interop/zip, and
// what hostile ones may claim. Python reads ours in tests/interop/npz.
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "boost_test.h"
#include "format/little_endian.h"
#include "interop/shared/deflate.h"
#include "interop/shared/zip_directory.h"
#include "interop/shared/zip_records.h"
#include "interop/shared/zip_writer.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::interop;
using test::bytes_of;
using test::says;
using test::text_of;

BOOST_AUTO_TEST_SUITE(zip_archives)

namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

std::string sample_file(const char* name) {
  return test::read_file(std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/interop/zip" /
                         name);
}

std::string archive_of(const Members& members, const ZipStyle& style,
                       const ZipNewMember& options = {}) {
  const test::TemporaryFolder folder;
  OutputFile out(folder / "a.zip", {.durability = Durability::none});
  ZipWriter zip(out, style);
  for (const auto& [name, text] : members) zip.add(name, bytes_of(text), options);
  const std::uint64_t bytes = zip.finish();
  out.commit();
  std::string archive = test::read_file(folder / "a.zip");
  BOOST_TEST(archive.size() == bytes);
  return archive;
}

// Everything of an archive, or an exception.
Members contents(const std::string& archive, const ReadLimits& limits = {}) {
  const std::string exact(archive);
  const ZipDirectory zip = ZipDirectory::parse(bytes_of(exact), limits);
  Members members;
  for (const ZipMember& member : zip.members()) {
    members.emplace_back(member.name, text_of(zip.read(member, limits)));
    std::string visited;
    zip.visit(member, [&](ByteSpan piece) { visited += text_of(piece); });
    BOOST_TEST((visited == members.back().second));
    BOOST_TEST(text_of(zip.read_start(member, 5)) == visited.substr(0, 5));
    BOOST_TEST(zip.find(member.name) == &member);
  }
  BOOST_TEST(zip.find("no such member") == nullptr);
  return members;
}

bool is_refused(const std::string& archive) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const ZipDirectory zip = ZipDirectory::parse(bytes_of(archive), limits);
    for (const ZipMember& member : zip.members()) static_cast<void>(zip.read(member, limits));
    return false;
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  } catch (const IntegrityError&) {
  }
  return true;
}

std::string with_number(std::string archive, std::size_t offset, std::uint64_t value,
                        std::size_t width) {
  for (std::size_t i = 0; i < width; ++i)
    archive[offset + i] = i < 8 ? static_cast<char>(value >> (8 * i) & 0xff) : '\0';
  return archive;
}

std::string number(std::uint64_t value, std::size_t width) {
  return with_number(std::string(width, '\0'), 0, value, width);
}

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
  BOOST_CHECK_EXCEPTION(contents(archive), Error, says(code, what));
}

const Members kTwo{{"one.npy", "the first"}, {"two/\xc3\xbc", std::string(3000, 'b')}};

}  // namespace

BOOST_AUTO_TEST_CASE(archives_of_each_style_are_read_back) {
  for (const ZipStyle& style : {kPythonZip, kOldPythonZip, kPyTorchZip}) {
    BOOST_TEST((contents(archive_of(kTwo, style)) == kTwo));
    BOOST_TEST((contents(archive_of(kTwo, style, {.force_zip64 = true})) == kTwo));
    const std::string small = archive_of(kTwo, style, {.deflated = true});
    BOOST_TEST((contents(small) == kTwo));
    BOOST_TEST(small.size() < 500u);
    BOOST_TEST((contents(archive_of({}, style)) == Members{}));
    BOOST_TEST((contents(archive_of({{"empty", ""}}, style)) == Members{{"empty", ""}}));
    BOOST_TEST((archive_of(kTwo, style) == archive_of(kTwo, style)));
  }
}

BOOST_AUTO_TEST_CASE(data_begins_at_the_alignment) {
  const Members members{{"a", "1"}, {"some", ""}, {"longer names", "12345"}, {"b", "z"}};
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u, 32768u}) {
    const std::string archive = archive_of(members, kPyTorchZip, {.alignment = alignment});
    BOOST_TEST((contents(archive) == members));
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
    const Members members = contents(archive);
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
    BOOST_TEST((contents(with_comment) == kTwo));
    BOOST_TEST(ZipDirectory::parse(bytes_of(with_comment)).comment() == comment);
    BOOST_TEST(is_refused(with_comment + "x"));
  }
  // A record of the end in the comment whose own comment does not end with the file is none.
  const std::string comment = "PK\5\6" + std::string(30, '\0');
  BOOST_TEST(
      (contents(with_number(archive, archive.size() - 2, comment.size(), 2) + comment) == kTwo));
}

BOOST_AUTO_TEST_CASE(members_of_any_number_are_counted_in_64_bits_where_needed) {
  Members many;
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
      BOOST_TEST((contents(archive) == kTwo));
      BOOST_TEST(ZipDirectory::parse(bytes_of(archive)).has_zip64_end());
    }
  }
}

BOOST_AUTO_TEST_CASE(no_truncated_archive_is_read) {
  for (const ZipStyle& style : {kPythonZip, kPyTorchZip}) {
    const std::string archive = archive_of({{"a", "12345"}, {"b", "67890"}}, style);
    for (std::size_t length = 0; length < archive.size(); ++length)
      BOOST_TEST(is_refused(archive.substr(0, length)), length);
    for (std::size_t length = 1; length < archive.size(); ++length)
      BOOST_TEST(is_refused(archive.substr(length)), length);
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_byte_is_found_unless_nothing_depends_on_it) {
  for (const bool deflated : {false, true}) {
    const Members members{{"a", "12345"}, {"b", "67890"}};
    const std::string archive = archive_of(members, kPythonZip, {.deflated = deflated});
    for (std::size_t i = 0; i < archive.size(); ++i) {
      for (const int bit : {0, 3, 7}) {
        std::string damaged = archive;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        // Versions, dates and attributes change nothing of what is read.
        if (!is_refused(damaged)) BOOST_TEST((contents(damaged) == members), i);
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

BOOST_AUTO_TEST_CASE(what_is_not_read_is_refused_by_name) {
  refuses(one_member({.flags = zip::kEncrypted}), ErrorCode::unsupported_feature, "encrypted");
  refuses(one_member({.flags = zip::kStrongEncryption}), ErrorCode::unsupported_feature,
          "encrypted");
  refuses(one_member({.flags = zip::kPatched}), ErrorCode::unsupported_feature, "patch");
  refuses(one_member({.method = 12}), ErrorCode::unsupported_feature, "12 (bzip2)");
  refuses(one_member({.method = 14}), ErrorCode::unsupported_feature, "14 (lzma)");
  refuses(one_member({.name = "\x81"}), ErrorCode::unsupported_feature, "neither ASCII nor UTF-8");
  refuses(one_member({.name = "\x81", .flags = zip::kUtf8}), ErrorCode::bad_name, "UTF-8");
  refuses(one_member({.name = "/etc/a"}), ErrorCode::bad_name, "absolute");
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
  (e = a).flags = zip::kUtf8;
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
  BOOST_TEST(is_refused(put_together(local, centrals, 1000)));
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

BOOST_AUTO_TEST_CASE(streams_that_are_not_what_the_archive_says_are_refused) {
  std::string coded;
  DeflateStream deflate;
  const PieceSink sink = [&](ByteSpan piece) { coded += text_of(piece); };
  deflate.write(bytes_of(std::string(100, 'x')), sink);
  deflate.finish(sink);
  const auto decode = [](const std::string& stream, std::size_t size) {
    std::string out(size, '\0');
    InflateStream inflate(bytes_of(stream));
    // Byte by byte: a stream may be asked for in any pieces.
    for (char& c : out) inflate.read(std::as_writable_bytes(std::span(&c, 1)));
    inflate.finish();
    return out;
  };
  BOOST_TEST(decode(coded, 100) == std::string(100, 'x'));
  BOOST_CHECK_EXCEPTION(decode(coded, 101), CompressionError,
                        says(ErrorCode::bad_compression, "ends before"));
  BOOST_CHECK_EXCEPTION(decode(coded, 99), CompressionError,
                        says(ErrorCode::bad_compression, "longer"));
  BOOST_CHECK_EXCEPTION(decode(coded, 0), CompressionError,
                        says(ErrorCode::bad_compression, "longer"));
  BOOST_CHECK_EXCEPTION(decode(coded + "x", 100), CompressionError,
                        says(ErrorCode::bad_compression, "behind the end"));
  for (std::size_t length = 0; length < coded.size(); ++length)
    BOOST_CHECK_THROW(decode(coded.substr(0, length), 100), CompressionError);
  BOOST_CHECK_THROW(decode("\xff\xff", 1), CompressionError);
}

BOOST_AUTO_TEST_CASE(zip64_records_that_lie_are_refused) {
  ZipStyle style = kPythonZip;
  style.always_zip64_end = true;
  const std::string archive = archive_of({{"a", "1"}}, style);
  BOOST_TEST((contents(archive) == Members{{"a", "1"}}));
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
  BOOST_TEST((contents(open) == Members{{"a", "1"}}));
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

BOOST_AUTO_TEST_CASE(callers_mistakes_are_told) {
  const test::TemporaryFolder folder;
  OutputFile out(folder / "a.zip", {.durability = Durability::none});
  ZipWriter zip(out, kPythonZip);
  BOOST_CHECK_THROW(zip.begin("", 0), UsageError);
  BOOST_CHECK_THROW(zip.begin("/a", 0), UsageError);
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
