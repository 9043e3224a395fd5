// Headers that are torn, damaged or gone, and the commit records that take their place.
#include "thalia/recover.h"

#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "boost_test.h"
#include "container/append/check.h"
#include "container/plan/header_builder.h"
#include "container/write/same_as_sample.h"
#include "format/header.h"
#include "support/bytes.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(recovery)

namespace {

constexpr std::size_t kHeader = sizeof(format::Header);

// A file before and after an append.
struct States {
  explicit States(ChecksumType checksum = ChecksumType::block_tree) : path(folder / "f.thalia") {
    SaveOptions options = steady_options();
    options.checksum = checksum;
    save(path, small_sample(), options);
    before = read_file(path);
    append_change(path, steady_append());
    after = read_file(path);
  }
  // The file as `bytes` once it is recovered.
  RecoverResult recovered(const std::string& bytes) const {
    write_file(path, bytes);
    return recover(path, {.work = {.threads = 1}});
  }
  TemporaryFolder folder;
  std::filesystem::path path;
  std::string before;
  std::string after;
};

std::string without_header(std::string bytes) {
  std::memset(bytes.data(), 0xEE, kHeader);
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_header_that_holds_is_left_alone) {
  const States states;
  for (const std::string& bytes : {states.before, states.after, states.after + "debris",
                                   states.before + states.after.substr(states.before.size())}) {
    const RecoverResult result = states.recovered(bytes);
    BOOST_TEST(!result.restored);
    BOOST_TEST(result.fault.empty());
    BOOST_TEST(bool(read_file(states.path) == bytes));
    const Reader reader = Reader::open(states.path);
    BOOST_TEST(result.generation == reader.header().generation);
    BOOST_TEST(result.file_bytes == reader.file_bytes());
    BOOST_TEST(result.debris_bytes == bytes.size() - reader.file_bytes());
    BOOST_TEST(bool(result.closing_checksum == reader.closing_checksum()));
  }
}

BOOST_AUTO_TEST_CASE(a_header_torn_at_any_byte_gives_the_old_state_or_the_new) {
  for (const ChecksumType type :
       {ChecksumType::block_tree, ChecksumType::sha256, ChecksumType::crc32, ChecksumType::none}) {
    const States states(type);
    unsigned restored = 0;
    // As far as the disk's order goes, any byte; the other order and the other types now and then.
    for (std::size_t at = 0; at <= kHeader; at += type == ChecksumType::block_tree ? 1 : 9) {
      for (const bool new_first : {true, false}) {
        if (!new_first && at % 5 != 0) continue;
        std::string bytes = states.after;
        const std::string& begin = new_first ? states.after : states.before;
        const std::string& end = new_first ? states.before : states.after;
        bytes.replace(0, kHeader, begin.substr(0, at) + end.substr(at, kHeader - at));
        const RecoverResult result = states.recovered(bytes);
        restored += result.restored;
        const std::string found = read_file(states.path);
        BOOST_TEST(bool(found.substr(kHeader) == states.after.substr(kHeader)));
        BOOST_TEST((found.substr(0, kHeader) == states.before.substr(0, kHeader) ||
                    found.substr(0, kHeader) == states.after.substr(0, kHeader)));
        if (result.restored) BOOST_TEST(bool(found == states.after));
        BOOST_TEST(verify(states.path, {.work = {.threads = 1}}).ok());
      }
    }
    BOOST_TEST(restored > 15u);
  }
}

BOOST_AUTO_TEST_CASE(the_result_says_what_was_taken) {
  const States states;
  const RecoverResult result =
      states.recovered(without_header(states.after) + std::string(77, 'x'));
  BOOST_TEST(result.restored);
  BOOST_TEST(result.fault.find("magic") != std::string::npos, result.fault);
  BOOST_TEST(result.records == 2u);
  BOOST_TEST(result.damaged_blocks == 0u);
  BOOST_TEST(result.generation == 2u);
  BOOST_TEST(result.debris_bytes == 77u);
  format::Header header;
  std::memcpy(&header, states.after.data(), sizeof header);
  BOOST_TEST(result.record_offset == header.integrity_offset - kHeader);
  BOOST_TEST(bool(read_file(states.path) == states.after + std::string(77, 'x')));
  check_same(Reader::open(states.path), changed_sample());
}

// The header is gone, and the file is cut anywhere: the newest state that is whole, or none.
BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_gives_the_newest_state_that_is_whole) {
  const States states;
  const std::string lost = without_header(states.after);
  for (std::size_t length = 0; length <= states.after.size();
       length += length + 3 > states.after.size() ? 1 : 191) {
    BOOST_TEST_CONTEXT("length " << length) {
      const std::string bytes = lost.substr(0, length);
      if (length < states.before.size()) {
        BOOST_CHECK_THROW(states.recovered(bytes), IntegrityError);
        BOOST_TEST(bool(read_file(states.path) == bytes));
        continue;
      }
      const RecoverResult result = states.recovered(bytes);
      const bool whole = length == states.after.size();
      BOOST_TEST(result.generation == (whole ? 2u : 1u));
      check_same(Reader::open(states.path), whole ? changed_sample() : small_sample());
      BOOST_TEST(verify(states.path).ok());
    }
  }
}

// The header of the new state holds, and its bytes are not all there.
BOOST_AUTO_TEST_CASE(a_cut_file_goes_back_to_the_state_that_it_holds) {
  const States states;
  const RecoverResult result = states.recovered(states.after.substr(0, states.after.size() - 1));
  BOOST_TEST(result.restored);
  BOOST_TEST(result.fault.find("file_length") != std::string::npos, result.fault);
  BOOST_TEST(result.generation == 1u);
  check_same(Reader::open(states.path), small_sample());
}

BOOST_AUTO_TEST_CASE(a_state_with_damage_gives_way_to_one_that_is_whole) {
  const States states;
  format::Header old;
  std::memcpy(&old, states.before.data(), sizeof old);
  std::string bytes = without_header(states.after);
  bytes[states.before.size() + 5000] ^= 1;  // in a block of the new state only
  RecoverResult result = states.recovered(bytes);
  BOOST_TEST(result.generation == 1u);
  BOOST_TEST(result.damaged_blocks == 0u);
  check_same(Reader::open(states.path), small_sample());

  // Damage that both have: the newer one, and it is said.
  bytes = without_header(states.after);
  bytes[300] ^= 1;
  result = states.recovered(bytes);
  BOOST_TEST(result.generation == 2u);
  BOOST_TEST(result.damaged_blocks == 1u);
}

BOOST_AUTO_TEST_CASE(a_record_whose_checksum_does_not_hold_is_passed_over) {
  for (const ChecksumType type :
       {ChecksumType::block_tree, ChecksumType::sha256, ChecksumType::crc32}) {
    const States states(type);
    std::string bytes = without_header(states.after);
    bytes.back() ^= 1;
    bytes[bytes.size() - 32] ^= 1;
    BOOST_TEST(states.recovered(bytes).generation == 1u);
    check_same(Reader::open(states.path), small_sample());
  }
}

BOOST_AUTO_TEST_CASE(garbage_is_refused_and_left_as_it_is) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "f";
  for (const std::size_t length : {0u, 1u, 255u, 256u, 512u, 100'000u}) {
    const std::string bytes = text_of(random_bytes(length));
    write_file(path, bytes);
    BOOST_CHECK_EXCEPTION(recover(path), IntegrityError,
                          says(ErrorCode::checksum_mismatch, path.string(), "0 commit records"));
    BOOST_TEST(bool(read_file(path) == bytes));
  }
}

// Records that hold, with generations as high as can be, before nothing.
BOOST_AUTO_TEST_CASE(forged_records_are_tried_and_passed_over) {
  const States states;
  std::string bytes = without_header(states.after);
  const std::size_t begin = (bytes.size() + 63) / 64 * 64;
  bytes.resize(begin + 200 * 1024, '\0');
  for (std::size_t at = begin + 4096; at + 1024 < bytes.size(); at += 4096) {
    format::Header forged;
    std::memcpy(&forged, states.after.data(), sizeof forged);
    forged.generation = std::uint64_t{1} << 60;
    forged.integrity_offset = at + kHeader;
    forged.region_index_offset = at - forged.region_index_length / 64 * 64 - 64;
    forged.directory_offset = forged.region_index_offset - 1024;
    forged.directory_length = 200u;
    forged.checksum_type = ChecksumType::none;
    forged.integrity_length = 0u;
    forged.integrity_block_log2 = 0;
    forged.leaf_algorithm = {};
    forged.file_length = at + kHeader + 32;
    container::set_header_crc(forged);
    std::memcpy(bytes.data() + at, &forged, sizeof forged);
  }
  const RecoverResult result = states.recovered(bytes);
  BOOST_TEST(result.generation == 2u);
}

BOOST_AUTO_TEST_CASE(other_versions_are_not_touched) {
  const States states;
  EditableFile file(states.after);
  file.header().incompatible_features = 1u;
  file.commit_record() = file.header();
  file.reseal();
  write_file(states.path, file.bytes());
  BOOST_CHECK_THROW(recover(states.path), UnsupportedError);
  BOOST_TEST(bool(read_file(states.path) == file.bytes()));
}

BOOST_AUTO_TEST_CASE(a_reader_may_use_the_commit_record_and_writes_nothing) {
  const States states;
  const std::string bytes = without_header(states.after);
  write_file(states.path, bytes);
  BOOST_CHECK_THROW(Reader::open(states.path), FormatError);
  for (const Verification mode :
       {Verification::off, Verification::on_first_touch, Verification::at_open}) {
    const Reader reader =
        Reader::open(states.path, {.verification = mode, .use_commit_record = true});
    check_same(reader, changed_sample());
  }
  BOOST_TEST(bool(read_file(states.path) == bytes));
  write_file(states.path, bytes.substr(0, 600));
  BOOST_CHECK_THROW(Reader::open(states.path, {.use_commit_record = true}), FormatError);
}

BOOST_AUTO_TEST_CASE(waits_for_nobody_unless_asked) {
  const States states;
  const Appender appender(states.path, steady_append());
  BOOST_CHECK_EXCEPTION(recover(states.path), IoError,
                        [](const IoError& error) { return error.errno_value() == EWOULDBLOCK; });
}

BOOST_AUTO_TEST_CASE(of_a_file_that_is_whole_only_the_ends_are_read) {
  const States states;
  constexpr std::uint64_t kFar = 8 << 20;
  std::filesystem::resize_file(states.path, 2 * kFar);
  const Fault far{SYS_pread64, EIO, ArgumentCondition{3, ArgumentCondition::Kind::at_least, kFar}};
  const Outcome outcome =
      run_with_faults({far}, [&] { recover(states.path, {.input = {.access = Access::copied}}); });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
}

BOOST_AUTO_TEST_CASE(a_failing_call_is_reported_and_can_be_tried_again) {
  const States states;
  for (const long call : {SYS_pwrite64, SYS_fsync}) {
    write_file(states.path, without_header(states.after));
    const Outcome outcome = run_with_faults({{call, EIO}}, [&] { recover(states.path); });
    BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
    BOOST_TEST(outcome.errno_value == EIO);
    recover(states.path);
    check_same(Reader::open(states.path), changed_sample());
  }
}

BOOST_AUTO_TEST_SUITE_END()
