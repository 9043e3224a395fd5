// What opening costs: allocations and pages, which do not grow with the number of tensors. A
// program of its own, since it counts every operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "boost_test.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/reader.h"

namespace {

std::atomic<std::size_t> allocations = 0;
std::atomic<std::size_t> allocated_bytes = 0;

void* counted(std::size_t size) noexcept {
  ++allocations;
  allocated_bytes += size;
  return std::malloc(size == 0 ? 1 : size);
}

void* counted_or_throw(std::size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return counted_or_throw(size);
}
void* operator new[](std::size_t size) {
  return counted_or_throw(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

using namespace thalia;
using namespace thalia::test;

namespace {

struct Cost {
  std::size_t allocations;
  std::size_t bytes;
};

template <typename Action>
Cost cost_of(Action action) {
  const std::size_t before = allocations;
  const std::size_t bytes_before = allocated_bytes;
  action();
  return {allocations - before, allocated_bytes - bytes_before};
}

// Regions of a hundred tensors of one float each.
void save_tensors(const std::filesystem::path& path, unsigned count) {
  SaveOptions options = steady_options();
  options.block_log2 = 20;
  const float value[] = {1};
  Writer writer(path, options);
  RegionId region{};
  for (unsigned i = 0; i < count; ++i) {
    if (i % 100 == 0) region = writer.add_region({.name = "region." + std::to_string(i / 100)});
    writer.add_tensor(region, {.name = "tensor." + std::to_string(i), .shape = {1}},
                      as_byte_span(value));
  }
  writer.commit();
}

Cost cost_of_opening(const std::filesystem::path& path, Access access, Verification verification) {
  return cost_of([&] {
    Reader::open(
        path, {.input = {.access = access}, .verification = verification, .work = {.threads = 1}});
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(open_cost)

BOOST_AUTO_TEST_CASE(opening_allocates_the_same_for_10_and_100000_tensors) {
  const TemporaryFolder folder;
  // Paths of one length, so that their copies are of one length too.
  save_tensors(folder / "few", 10);
  save_tensors(folder / "all", 100'000);
  for (const Access access : {Access::mapped, Access::copied}) {
    for (const Verification verification : {Verification::off, Verification::on_first_touch}) {
      const Cost few = cost_of_opening(folder / "few", access, verification);
      const Cost all = cost_of_opening(folder / "all", access, verification);
      BOOST_TEST(few.allocations == all.allocations);
      BOOST_TEST(few.bytes == all.bytes);
      BOOST_TEST(few.allocations < 20u);
      BOOST_TEST(few.bytes < 8192u);
    }
  }
}

BOOST_AUTO_TEST_CASE(finding_a_tensor_allocates_the_same_for_10_and_100000_tensors) {
  const TemporaryFolder folder;
  save_tensors(folder / "few", 10);
  save_tensors(folder / "all", 100'000);
  const auto cost = [&](const char* name) {
    const Reader reader = Reader::open(folder / name, {.work = {.threads = 1}});
    return cost_of([&] { reader.region("region.0").at("tensor.7").as<float>(); });
  };
  const Cost few = cost("few");
  const Cost all = cost("all");
  BOOST_TEST(few.allocations == all.allocations);
  BOOST_TEST(few.bytes == all.bytes);
}

BOOST_AUTO_TEST_CASE(opening_a_copy_reads_a_few_pieces) {
  const TemporaryFolder folder;
  save_tensors(folder / "all", 100'000);
  const Reader reader = Reader::open(
      folder / "all", {.input = {.access = Access::copied}, .verification = Verification::off});
  BOOST_TEST(reader.resident_bytes() <= 4u * (64 << 10));  // header, directory, tail
  reader.region("region.500").at("tensor.50007").as<float>();
  BOOST_TEST(reader.resident_bytes() <= 48u * (64 << 10));
}

BOOST_AUTO_TEST_CASE(opening_touches_a_few_pages) {
  const TemporaryFolder folder;
  save_tensors(folder / "all", 100'000);
  const std::uint64_t size = std::filesystem::file_size(folder / "all");
  BOOST_TEST(size > (20u << 20));
  const Reader reader = Reader::open(folder / "all", {.verification = Verification::off});
  // The kernel maps up to 16 pages around each that is touched, header, directory and tail.
  BOOST_TEST(reader.resident_bytes() <= 4u * (64 << 10));
  reader.region("region.500").at("tensor.50007").as<float>();
  // A few steps of binary search on each of four tables.
  BOOST_TEST(reader.resident_bytes() <= 48u * (64 << 10));
}

BOOST_AUTO_TEST_SUITE_END()
