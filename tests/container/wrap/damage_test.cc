// Every truncation and every flipped byte of a wrapped file: a reader refuses it or hands out the
// same bytes, and verify reports it.
#include <optional>

#include "boost_test.h"
#include "container/read/damage_check.h"
#include "container/wrap/check.h"
#include "integrity/xxh64.h"
#include "support/sample.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(wrapped_damage)

namespace {

// What a file says to anybody who asks for everything; nullopt where something is refused.
std::optional<std::string> all_bytes(const std::filesystem::path& path) {
  try {
    const Reader reader = Reader::open(path, {.work = {.threads = 1}});
    reader.verify_all();
    std::string out(reader.metadata_json());
    for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
      const RegionView region = reader.region(r);
      out += region.name();
      for (std::uint32_t t = 0; t < region.tensor_count(); ++t)
        out += text_of(region.tensor(t).bytes());
    }
    return out;
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
  return std::nullopt;
}

// Whether verify is content with what a reader handed out, or not; it never throws, and says why.
// Each sixteenth place is verified in four ways, the others in one.
bool verifies(const std::filesystem::path& path, bool readable, std::size_t place) {
  std::string first;
  for (const Access access : {Access::mapped, Access::copied}) {
    for (const bool quick : {false, true}) {
      if (place % 16 != 0 && (access != Access::mapped || quick)) continue;
      const VerifyReport report =
          verify(path, {.input = {.access = access}, .quick = quick, .work = {.threads = 1}});
      for (const Finding& finding : report.findings)
        BOOST_TEST((!finding.section.empty() && !finding.message.empty()));
      if (quick) continue;
      if (!readable) BOOST_TEST(!report.ok());
      const std::string said = describe(report);
      if (access == Access::copied) BOOST_TEST(said == first);
      first = said;
    }
  }
  return first.empty();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_truncation_and_every_flip_is_refused_or_changes_nothing) {
  const std::string plain = saved(small_sample());
  for (const Codec codec : kWrappers) {
    const std::string with_table = wrapped(plain, codec);
    const std::string frames = without_table(with_table);
    for (const std::string& file : {with_table, frames}) {
      const File f(file);
      const auto expected = all_bytes(f.path);
      BOOST_REQUIRE(expected.has_value());
      // Shorter than the frames, a file with a table is what one without a table is.
      const std::size_t shortest = file.size() == frames.size() ? 0 : frames.size();
      for (std::size_t length = shortest; length < file.size(); ++length) {
        write_file(f.path, file.substr(0, length));
        const auto found = all_bytes(f.path);
        // Without a table the end of the last frame is the end of the file.
        const bool whole = length >= frames.size();
        BOOST_TEST((found.has_value() ? whole && *found == *expected : true), length);
        BOOST_TEST((!verifies(f.path, found.has_value(), length) || whole), length);
      }
      std::size_t refused = 0;
      std::size_t reported = 0;
      for (std::size_t at = 0; at < file.size(); ++at) {
        std::string flipped = file;
        flipped[at] = static_cast<char>(flipped[at] ^ 0x41);
        write_file(f.path, flipped);
        const auto found = all_bytes(f.path);
        if (!found) ++refused;
        BOOST_TEST((!found || *found == *expected), at);
        if (!verifies(f.path, found.has_value(), at)) ++reported;
      }
      // What lz4 copies from one place it can copy from another; and a table that is no longer one
      // is not needed.
      BOOST_TEST(refused > file.size() * 9 / 10);
      BOOST_TEST(reported >= refused);
    }
  }
}

BOOST_AUTO_TEST_CASE(verify_holds_frames_against_the_checksums_of_the_table) {
  const std::string plain = saved(varied_sample());
  for (const Codec codec : kWrappers) {
    TableEditor table(wrapped(plain, codec));
    for (std::size_t at = 0; at < plain.size(); at += 4096) {
      const std::string frame = plain.substr(at, 4096);
      table.checksums.push_back(
          static_cast<std::uint32_t>(integrity::xxh64(std::as_bytes(std::span(frame)))));
    }
    BOOST_TEST_REQUIRE(table.checksums.size() == table.entries.size());
    BOOST_TEST_REQUIRE(table.entries.size() > 1u);
    BOOST_TEST(verify(File(table.file()).path).findings.empty());

    table.checksums[1] ^= 1;
    const File wrong(table.file());
    const VerifyReport report = verify(wrong.path);
    BOOST_TEST(report.findings.size() == 1u);
    BOOST_TEST(report.findings.at(0).section == "wrapper");
    BOOST_TEST(report.findings.at(0).field == "checksum");
    BOOST_TEST((report.findings.at(0).code == ErrorCode::checksum_mismatch));
    BOOST_TEST(report.findings.at(0).offset == table.entries[0].stored_length);
    BOOST_TEST(verify(wrong.path, {.quick = true}).findings.empty());
    BOOST_TEST(all_bytes(wrong.path).has_value());  // a reader passes over them
  }
}

BOOST_AUTO_TEST_SUITE_END()
