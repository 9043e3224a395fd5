// A save and a stream whose ring cancels, as kernels do under signals, end as they would have.
#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <string>

#include "boost_test.h"
#include "container/stream/check.h"
#include "io/direct/direct_file.h"
#include "io/direct/uring.h"
#include "io/file/posix_file.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/ring_fault.h"
#include "support/sample.h"
#include "support/sanitizers.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(ring_fault)

namespace {

bool has_rings(const TemporaryFolder& folder) {
  write_file(folder / "probe", "");
  const io::UniqueFd fd = io::open_for_update(folder / "probe");
  if (io::open_direct(fd.get(), io::DirectAccess::write) && io::Uring::create(1)) return true;
  BOOST_TEST_MESSAGE("no io_uring or no direct I/O here: skipped");
  return false;
}

Sample large_sample() {
  Sample sample = varied_sample();
  sample.regions[0].tensors.push_back(dense_tensor("large", DType::u8, {9'000'000}));
  return sample;
}

SaveOptions direct_options() {
  SaveOptions options = steady_options();
  options.io = IoMode::direct;
  options.output.durability = Durability::full;
  return options;
}

std::uint64_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) return std::stoull(line.substr(7)) * 1024;
  throw std::runtime_error("no VmData");
}

const RingFaults kFaults[] = {
    {.operation_error = ECANCELED}, {.operation_error = ECANCELED, .every = 3},
    {.operation_error = EINTR},     {.longest_transfer = 4096},
    {.longest_submission = 1},      {.submission_error = EPERM},
    {.wait_error = EPERM}};

}  // namespace

BOOST_AUTO_TEST_CASE(a_save_whose_ring_cancels_is_the_save_that_it_would_have_been) {
  const TemporaryFolder folder;
  if (!has_rings(folder)) return;
  save(folder / "expected", large_sample(), direct_options());
  const std::string expected = read_file(folder / "expected");
  for (const RingFaults& faults : kFaults) {
    const FaultyRings faulty(faults);
    const SaveResult result = save(folder / "f", large_sample(), direct_options());
    BOOST_TEST((result.io == IoMode::direct));
    BOOST_TEST((read_file(folder / "f") == expected));
  }
}

BOOST_AUTO_TEST_CASE(a_stream_whose_ring_cancels_hands_out_the_same_bytes) {
  const TemporaryFolder folder;
  if (!has_rings(folder)) return;
  save_stream_sample(folder / "f", direct_options());
  for (const RingFaults& faults : kFaults) {
    const Reader reader = Reader::open(folder / "f");
    const FaultyRings faulty(faults);
    StreamReader stream(reader, {.io = IoMode::direct});
    check_stream(stream, all_tensors(reader));
  }
}

// The memory for the queue is used up while the save runs.
BOOST_AUTO_TEST_CASE(a_save_without_memory_for_its_last_write_ends_through_the_page_cache) {
  const TemporaryFolder folder;
  if (!has_rings(folder) || kSanitized) return;
  const Outcome outcome = run_with_faults({}, [&] {
    SaveOptions options = direct_options();
    options.work.threads = 1;
    options.queue_depth = 64;  // of more memory than an allocator keeps for later
    options.work.memory_bytes = 256 << 20;
    options.work.progress = [](std::uint64_t done, std::uint64_t total) {
      if (done != total) return;
      // The queue that is there is given back before the last write asks for one like it: of its 64
      // MiB only half may come back, and what else is freed meanwhile, as a thread's stack, is
      // less.
      const std::uint64_t most = data_bytes() - (32 << 20);
      const rlimit limit{most, most};
      if (::setrlimit(RLIMIT_DATA, &limit) != 0) throw std::runtime_error("no limit");
    };
    const SaveResult result = save(folder / "f", large_sample(), options);
    if (result.io != IoMode::buffered || result.io_fallback.find("last") == std::string::npos)
      throw std::runtime_error("not the fallback: " + result.io_fallback);
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
  BOOST_TEST(verify(folder / "f").ok());
}

BOOST_AUTO_TEST_SUITE_END()
