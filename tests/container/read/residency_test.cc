// What of a file is in memory: brought in before it is touched, given back after, shared by
// readers.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "boost_test.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/error.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(residency)

namespace {

constexpr std::uint64_t kLarge = 9'000'000;
constexpr std::uint64_t kAround = 1 << 20;  // what the kernel may map around a page that is touched

struct TwoRegions {
  TwoRegions()
      : sample{.regions = {{{.name = "one"}, {dense_tensor("a", DType::u8, {kLarge})}},
                           {{.name = "two"},
                            {dense_tensor("b", DType::u8, {kLarge}, Role::weights, 2),
                             dense_tensor("c", DType::u8, {kLarge}, Role::weights, 3)}}},
               .connections = {}},
        path(folder / "f.thalia") {
    save(path, sample);
  }
  TemporaryFolder folder;
  Sample sample;
  std::filesystem::path path;
};

Reader open_unverified(const std::filesystem::path& path, Access access = Access::mapped) {
  return Reader::open(
      path,
      {.input = {.access = access}, .verification = Verification::off, .work = {.threads = 3}});
}

std::uint64_t touch(ByteSpan bytes) {
  const volatile std::byte* const data = bytes.data();  // or the loads could be left out
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 512)
    sum += static_cast<std::uint64_t>(std::byte{data[i]});
  return sum;
}

// Bytes of the file's mappings in this process that the field of smaps says.
std::uint64_t smaps_bytes(const std::filesystem::path& path, const char* field) {
  std::ifstream smaps("/proc/self/smaps");
  std::uint64_t kib = 0;
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uint64_t first = 0, last = 0, value = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &first, &last) == 2) {
      ours = line.find(path.string()) != std::string::npos;
    } else if (ours && line.find(field) == 0 &&
               std::sscanf(line.c_str() + line.find(':') + 1, "%" SCNu64, &value) == 1) {
      kib += value;
    }
  }
  return kib * 1024;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_populated_is_resident_and_what_is_released_is_not) {
  const TwoRegions file;
  const Reader reader = open_unverified(file.path);
  const RegionView two = reader.region("two");
  const std::uint64_t before = reader.resident_bytes();
  two.populate();
  const std::uint64_t populated = reader.resident_bytes();
  if (populated < before + kLarge) {
    BOOST_TEST_MESSAGE("a kernel without MADV_POPULATE_READ: skipped");
    return;
  }
  BOOST_TEST(populated >= two.length());
  BOOST_TEST(populated <= before + two.length() + 2 * kAround);

  const TensorView b = two.at("b");
  const ByteSpan view = b.bytes();
  const std::uint64_t sum = touch(view);
  b.release();
  BOOST_TEST(reader.resident_bytes() <= populated - kLarge + 2 * 4096);
  BOOST_TEST(touch(view) == sum);  // the view stays valid, and faults its pages in again
  BOOST_TEST(reader.resident_bytes() >= populated - 2 * 4096);
  two.release();
  BOOST_TEST(reader.resident_bytes() <= before + 2 * kAround);
  b.populate();
  BOOST_TEST(reader.resident_bytes() >= before + kLarge - 2 * kAround);
  BOOST_TEST(touch(view) == sum);
}

BOOST_AUTO_TEST_CASE(a_copied_file_is_populated_and_keeps_what_it_has) {
  const TwoRegions file;
  const Reader reader = open_unverified(file.path, Access::copied);
  const TensorView a = reader.tensor("a");
  a.prefetch();
  a.populate();
  const std::uint64_t populated = reader.resident_bytes();
  BOOST_TEST(populated >= kLarge);
  a.release();
  BOOST_TEST(reader.resident_bytes() == populated);
  BOOST_TEST(touch(a.bytes()) == touch(file.sample.regions[0].tensors[0].payload));
}

BOOST_AUTO_TEST_CASE(populating_a_mapped_file_that_was_cut_is_an_error_and_no_signal) {
  const TwoRegions file;
  const Reader reader = open_unverified(file.path);
  const RegionView one = reader.region("one");
  const RegionView two = reader.region("two");
  const std::uint64_t offset = two.at("b").stored_offset();
  std::filesystem::resize_file(file.path, offset + kLarge / 2);
  one.populate();
  try {
    two.populate();
    BOOST_TEST_MESSAGE("a kernel without MADV_POPULATE_READ: skipped");
  } catch (const IoError& error) {
    BOOST_TEST(error.errno_value() == EFAULT);
    BOOST_TEST(error.context().path == file.path.string());
    BOOST_TEST_REQUIRE(error.context().offset.has_value());
    BOOST_TEST(*error.context().offset > offset);
  }
}

// Two processes: the pages of the second are the first's.
BOOST_AUTO_TEST_CASE(readers_of_one_file_share_one_copy) {
  const TwoRegions file;
  const Reader reader = open_unverified(file.path);
  touch(reader.tensor("b").bytes());
  const Outcome outcome = run_with_faults({}, [&] {
    const Reader other = open_unverified(file.path);
    touch(other.tensor("b").bytes());
    const std::uint64_t resident = smaps_bytes(file.path, "Rss:");
    const std::uint64_t proportional = smaps_bytes(file.path, "Pss:");
    if (resident < kLarge) throw std::runtime_error("not resident");
    if (smaps_bytes(file.path, "Private_Dirty:") != 0) throw std::runtime_error("a copy");
    // Each page counts for a share of every mapping of it: half of the bytes here.
    if (proportional > resident * 2 / 3)
      throw std::runtime_error("Pss " + std::to_string(proportional) + " of Rss " +
                               std::to_string(resident));
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
}

BOOST_AUTO_TEST_SUITE_END()
