// Appends that are killed at each of their system calls, or that fail at them: what is left opens
// as the old state or the new one.
#include <fcntl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "boost_test.h"
#include "container/append/check.h"
#include "container/write/same_as_sample.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/killed_at.h"
#include "support/sample.h"
#include "thalia/error.h"
#include "thalia/recover.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(append_crash)

namespace {

enum class State { old_one, new_one };

// Whole, and one of the two. Debris is no error.
State check_old_or_new(const std::filesystem::path& path) {
  const VerifyReport report = verify(path);
  for (const Finding& finding : report.findings)
    BOOST_TEST((finding.severity == Severity::warning && finding.section == "file"),
               finding.section << " at " << finding.offset << ": " << finding.message);
  const Reader reader = Reader::open(path);
  const bool is_new = reader.header().generation == 2;
  check_same(reader, is_new ? changed_sample() : small_sample());
  return is_new ? State::new_one : State::old_one;
}

struct File {
  File() : path(folder / "f.thalia") {
    save(path, small_sample());
    old = read_file(path);
  }
  TemporaryFolder folder;
  std::filesystem::path path;
  std::string old;
};

AppendOptions durable(Durability durability) {
  AppendOptions options = steady_append();
  options.change.output.durability = durability;
  return options;
}

AppendOptions compressing() {
  AppendOptions options = durable(Durability::full);
  options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = 4096;
  return options;
}

struct Step {
  const char* name;
  std::vector<Fault> faults;
  Durability durability = Durability::full;
};

const std::vector<Step> kSteps = {
    {"pwritev", {{SYS_pwritev}, {SYS_pwritev2}}},
    {"pwrite", {{SYS_pwrite64}}},
    {"ftruncate", {{SYS_ftruncate}}},
    {"fsync", {{SYS_fsync}}},
    {"fdatasync", {{SYS_fdatasync}}, Durability::data},
};

std::vector<Fault> with_errno(std::vector<Fault> faults, int errno_value) {
  for (Fault& fault : faults) fault.errno_value = errno_value;
  return faults;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_kill_at_any_system_call_leaves_the_old_state_or_the_new) {
  for (const AppendOptions& options : {durable(Durability::full), compressing()}) {
    bool seen_new = false;
    for (unsigned call = 0;; ++call) {
      BOOST_TEST_CONTEXT("call " << call) {
        const File file;
        const End end = run_killed_at(call, [&] { append_change(file.path, options); });
        BOOST_TEST_REQUIRE(bool(end != End::failed));
        const State state = check_old_or_new(file.path);
        if (end == End::returned) BOOST_TEST(bool(state == State::new_one));
        seen_new |= state == State::new_one;
        if (state == State::old_one)
          BOOST_TEST(bool(read_file(file.path).substr(0, file.old.size()) == file.old));
        BOOST_TEST(!recover(file.path).restored);
        // What was left behind is in nobody's way.
        if (state == State::old_one) append_change(file.path, steady_append());
        check_state(file.path, changed_sample(), 2);
        if (end == End::returned) {
          BOOST_TEST(call > 20u);  // or nothing was counted
          break;
        }
      }
    }
    BOOST_TEST(seen_new);
  }
}

// From blocks of 4 KiB to those of 16 KiB: every leaf is a new one.
BOOST_AUTO_TEST_CASE(a_kill_while_the_blocks_grow_leaves_the_old_state_or_the_new) {
  SaveOptions options = steady_options();
  options.block_log2.reset();
  const Sample small = small_sample();
  Sample large = small;
  large.regions.push_back({{.name = "large"}, {dense_tensor("w", DType::u8, {1 << 20})}});
  for (unsigned call = 0;; ++call) {
    BOOST_TEST_CONTEXT("call " << call) {
      const SavedFile file(small, options);
      const End end = run_killed_at(call, [&] {
        Appender appender(file.path, durable(Durability::full));
        declare_tensors(appender, appender.add_region(large.regions.back().spec),
                        large.regions.back());
        appender.commit();
      });
      BOOST_TEST_REQUIRE(bool(end != End::failed));
      const Reader reader = Reader::open(file.path);
      const bool is_new = reader.header().generation == 2;
      BOOST_TEST(int(reader.header().block_log2) == (is_new ? 14 : 12));
      reader.verify_all();
      check_same(reader, is_new ? large : small);
      BOOST_TEST(!recover(file.path).restored);
      if (end != End::returned) continue;
      BOOST_TEST(is_new);
      BOOST_TEST(call > 20u);  // or nothing was counted
      break;
    }
  }
}

BOOST_AUTO_TEST_CASE(a_failing_call_is_reported_and_leaves_the_old_file) {
  for (const Step& step : kSteps) {
    for (const int errno_value : {EIO, ENOSPC, EDQUOT}) {
      BOOST_TEST_CONTEXT(step.name << ", errno " << errno_value) {
        const File file;
        const Outcome outcome = run_with_faults(with_errno(step.faults, errno_value), [&] {
          append_change(file.path, durable(step.durability));
        });
        BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
        BOOST_TEST(outcome.errno_value == errno_value);
        BOOST_TEST(outcome.message.find(file.path.string()) == 0u, outcome.message);
        BOOST_TEST(outcome.message.find(step.name) != std::string::npos, outcome.message);
        // Where the file cannot be cut, the debris stays.
        const std::string found = read_file(file.path);
        BOOST_TEST(bool(found.substr(0, file.old.size()) == file.old));
        if (std::strcmp(step.name, "ftruncate") != 0) BOOST_TEST(found.size() == file.old.size());
        BOOST_TEST(bool(check_old_or_new(file.path) == State::old_one));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_disk_that_fills_up_at_any_byte_leaves_the_old_file) {
  const File sizes;
  append_change(sizes.path, steady_append());
  const std::uint64_t end = std::filesystem::file_size(sizes.path);
  for (std::uint64_t from = sizes.old.size(); from < end; from += 500) {
    BOOST_TEST_CONTEXT("from " << from) {
      const File file;
      const ArgumentCondition beyond{3, ArgumentCondition::Kind::at_least, from};
      const Outcome outcome =
          run_with_faults({{SYS_pwrite64, ENOSPC, beyond}, {SYS_pwritev, ENOSPC, beyond}},
                          [&] { append_change(file.path, compressing()); });
      if (outcome.kind == Outcome::Kind::returned) {  // one call wrote past `from`
        check_state(file.path, changed_sample(), 2);
        continue;
      }
      BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
      BOOST_TEST(outcome.errno_value == ENOSPC);
      BOOST_TEST(bool(read_file(file.path) == file.old));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_kill_at_each_kind_of_call_leaves_the_old_state_or_the_new) {
  for (const Step& step : kSteps) {
    BOOST_TEST_CONTEXT(step.name) {
      const File file;
      const Outcome outcome =
          run_with_faults(step.faults, [&] { append_change(file.path, durable(step.durability)); });
      BOOST_TEST(outcome.kind == Outcome::Kind::killed, outcome.message);
      BOOST_TEST(bool(check_old_or_new(file.path) == State::old_one));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_may_not_be_written_or_locked_is_reported) {
  const File file;
  for (const auto& [fault, name] :
       {std::pair<Fault, const char*>{{SYS_openat, EROFS, ArgumentCondition::has_bits(2, O_RDWR)},
                                      "open"},
        std::pair<Fault, const char*>{{SYS_flock, ENOLCK}, "flock"}}) {
    const Outcome outcome =
        run_with_faults({fault}, [&] { append_change(file.path, steady_append()); });
    BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
    BOOST_TEST(outcome.errno_value == fault.errno_value);
    BOOST_TEST(outcome.message.find(name) != std::string::npos, outcome.message);
    BOOST_TEST(bool(read_file(file.path) == file.old));
  }
}

BOOST_AUTO_TEST_SUITE_END()
