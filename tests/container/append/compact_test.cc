// Files before and after compact().
#include "thalia/append.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <map>

#include "boost_test.h"
#include "container/append/check.h"
#include "container/write/same_as_sample.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/error.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(compaction)

namespace {

ChangeOptions steady_compact() {
  return {.output = {.durability = Durability::none}, .work = {.threads = 1}};
}

std::map<std::string, std::string> content_hashes(const std::filesystem::path& path) {
  const Reader reader = Reader::open(path);
  std::map<std::string, std::string> hashes;
  const auto add = [&](std::string region, const TensorView& tensor) {
    const Digest128 hash = tensor.content_hash();
    hashes[std::move(region) + "/" + std::string(tensor.name())] =
        text_of(as_byte_span(hash.bytes)) + std::to_string(tensor.chunk_count());
  };
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t)
      add(std::string(region.name()), region.tensor(t));
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    add("", reader.connection(i).weights);
    if (reader.connection(i).delays) add("", *reader.connection(i).delays);
  }
  return hashes;
}

}  // namespace

// Byte for byte but for what is its own: as if the state had been saved anew.
BOOST_AUTO_TEST_CASE(a_compacted_file_is_what_a_save_would_have_written) {
  for (const ChecksumType type :
       {ChecksumType::none, ChecksumType::sha256, ChecksumType::crc32, ChecksumType::block_tree}) {
    const TemporaryFolder folder;
    SaveOptions options = steady_options();
    options.block_log2.reset();
    options.checksum = type;
    save(folder / "f", small_sample(), options);
    append_change(folder / "f", steady_append());
    const auto before = content_hashes(folder / "f");
    const std::uint64_t dead = Reader::open(folder / "f").dead_bytes();
    BOOST_TEST(dead > 0u);
    const std::uint64_t input_bytes = std::filesystem::file_size(folder / "f");
    const CompactResult result = compact(folder / "f", steady_compact());
    check_state(folder / "f", changed_sample(), 1);
    BOOST_TEST(bool(content_hashes(folder / "f") == before));
    BOOST_TEST(Reader::open(folder / "f").dead_bytes() == 0u);
    BOOST_TEST(result.input_bytes == input_bytes);
    BOOST_TEST(result.output_bytes == std::filesystem::file_size(folder / "f"));
    BOOST_TEST(result.output_bytes < input_bytes - dead + 4096);

    const Reader reader = Reader::open(folder / "f");
    options.timestamp = steady_append().timestamp;
    options.file_uuid = reader.header().file_uuid;
    BOOST_TEST(bool(*options.file_uuid != *steady_options().file_uuid));
    save(folder / "anew", changed_sample(), options);
    BOOST_TEST(bool(read_file(folder / "anew") == read_file(folder / "f")));
  }
}

BOOST_AUTO_TEST_CASE(chunks_stay_as_they_are_stored) {
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    const TemporaryFolder folder;
    SaveOptions options = steady_options();
    options.block_log2.reset();
    options.compression.codec = codec;
    options.compression.chunk_bytes = 4096;
    save(folder / "f", varied_sample(), options);
    const auto before = content_hashes(folder / "f");
    const std::string bytes = read_file(folder / "f");
    compact(folder / "f", folder / "g", steady_compact());
    BOOST_TEST(bool(read_file(folder / "f") == bytes));
    check_state(folder / "g", varied_sample(), 1);
    BOOST_TEST(bool(content_hashes(folder / "g") == before));
    BOOST_TEST(std::filesystem::file_size(folder / "g") == bytes.size());
    BOOST_TEST(bool(Reader::open(folder / "g").header().flags ==
                    Reader::open(folder / "f").header().flags));
  }
}

BOOST_AUTO_TEST_CASE(its_memory_has_the_bounds_of_a_save) {
  const TemporaryFolder folder;
  save(folder / "f", small_sample());
  const std::string bytes = read_file(folder / "f");
  ChangeOptions options = steady_compact();
  options.work.memory_bytes = 1;
  BOOST_CHECK_EXCEPTION(compact(folder / "f", options), UsageError,
                        says(ErrorCode::bad_argument, "memory_bytes"));
  BOOST_TEST(bool(read_file(folder / "f") == bytes));
}

BOOST_AUTO_TEST_CASE(damage_is_refused_and_nothing_replaced) {
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    for (const ChecksumType type : {ChecksumType::block_tree, ChecksumType::none}) {
      const TemporaryFolder folder;
      SaveOptions options = steady_options();
      options.compression.codec = codec;
      options.checksum = type;
      options.compression.chunk_bytes = 4096;
      save(folder / "f", varied_sample(), options);
      std::string bytes = read_file(folder / "f");
      bytes[Reader::open(folder / "f").tensor("ramp").stored_offset() + 20] ^= 1;
      write_file(folder / "f", bytes);
      BOOST_CHECK_THROW(compact(folder / "f", steady_compact()), IntegrityError);
      BOOST_TEST(bool(read_file(folder / "f") == bytes));
      BOOST_TEST(list_folder(folder.path()).size() == 1u);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_open_reader_keeps_the_old_file) {
  const TemporaryFolder folder;
  save(folder / "f", small_sample());
  append_change(folder / "f", steady_append());
  const Reader old = Reader::open(folder / "f");
  compact(folder / "f", steady_compact());
  check_same(old, changed_sample());
  old.verify_all();
}

BOOST_AUTO_TEST_CASE(a_file_that_is_appended_to_is_not_compacted) {
  const TemporaryFolder folder;
  save(folder / "f", small_sample());
  const Appender appender(folder / "f", steady_append());
  BOOST_CHECK_EXCEPTION(compact(folder / "f", steady_compact()), IoError,
                        [](const IoError& error) { return error.errno_value() == EWOULDBLOCK; });
  compact(folder / "f", folder / "g", steady_compact());  // which only reads it
  check_state(folder / "g", small_sample(), 1);
}

BOOST_AUTO_TEST_CASE(a_kill_or_a_failing_call_leaves_the_old_file) {
  for (const long call : {SYS_pwritev, SYS_fsync, SYS_linkat, SYS_renameat}) {
    for (const int errno_value : {0, EIO, ENOSPC}) {
      const TemporaryFolder folder;
      save(folder / "f", small_sample());
      append_change(folder / "f", steady_append());
      const std::string before = read_file(folder / "f");
      const Outcome outcome = run_with_faults(
          {{call, errno_value}}, [&] { compact(folder / "f", {.work = {.threads = 1}}); });
      BOOST_TEST(outcome.kind ==
                 (errno_value == 0 ? Outcome::Kind::killed : Outcome::Kind::io_error));
      BOOST_TEST(bool(read_file(folder / "f") == before));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
