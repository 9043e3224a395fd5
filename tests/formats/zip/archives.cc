#include "formats/zip/archives.h"

#include "boost_test.h"
#include "formats/zip/directory.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/files.h"

namespace thalia::test {

std::string archive_of(const ArchiveMembers& members, const formats::ZipStyle& style,
                       const formats::ZipNewMember& options) {
  const TemporaryFolder folder;
  OutputFile out(folder / "a.zip", {.durability = Durability::none});
  formats::ZipWriter zip(out, style);
  for (const auto& [name, text] : members) zip.add(name, bytes_of(text), options);
  const std::uint64_t bytes = zip.finish();
  out.commit();
  std::string archive = read_file(folder / "a.zip");
  BOOST_TEST(archive.size() == bytes);
  return archive;
}

ArchiveMembers archive_contents(const std::string& archive) {
  const std::string exact(archive);
  const formats::ZipDirectory zip = formats::ZipDirectory::parse(bytes_of(exact));
  ArchiveMembers members;
  for (const formats::ZipMember& member : zip.members()) {
    members.emplace_back(member.name, text_of(zip.read(member)));
    std::string visited;
    zip.visit(member, [&](ByteSpan piece) { visited += text_of(piece); });
    BOOST_TEST((visited == members.back().second));
    BOOST_TEST(text_of(zip.read_start(member, 5)) == visited.substr(0, 5));
    BOOST_TEST(zip.find(member.name) == &member);
  }
  BOOST_TEST(zip.find("no such member") == nullptr);
  return members;
}

bool archive_is_refused(const std::string& archive) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const formats::ZipDirectory zip = formats::ZipDirectory::parse(bytes_of(archive), limits);
    for (const formats::ZipMember& member : zip.members())
      static_cast<void>(zip.read(member, limits));
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

}  // namespace thalia::test
