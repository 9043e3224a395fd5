// Where a snapshot's payloads lie, and which memory the next one gets.
#include <map>

#include "boost_test.h"
#include "container/background/snapshot_arenas.h"
#include "container/background/snapshot_plan.h"
#include "support/bytes.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;
using container::FilePlan;
using container::SharedArena;
using container::SnapshotArenas;
using container::SnapshotPlan;

BOOST_AUTO_TEST_SUITE(snapshot)

namespace {

void add(FilePlan& file_plan, const std::string& name, std::vector<ByteSpan> pieces) {
  std::uint64_t bytes = 0;
  for (const ByteSpan piece : pieces) bytes += piece.size();
  file_plan.add_tensor(0, {.name = name, .dtype = DType::u8, .shape = {bytes}}, std::move(pieces),
                       false);
}

}  // namespace

BOOST_AUTO_TEST_CASE(payloads_lie_whole_and_aligned_as_in_the_file) {
  const std::vector<std::byte> bytes = random_bytes(20 << 20);
  const ByteSpan all = bytes;
  FilePlan file_plan;
  file_plan.add_region({.name = "r"});
  add(file_plan, "odd", {all.subspan(1, 3)});
  add(file_plan, "none", {});
  add(file_plan, "large", {all.subspan(5, 9 << 20)});
  add(file_plan, "pieces", {all.subspan(7, 10), all.subspan(100, 1), all.subspan(4097, 70'001)});
  add(file_plan, "page", {all.subspan(3, 64 << 10)});
  file_plan.add_tensor(0, {.name = "streamed", .dtype = DType::u8, .shape = {100}}, {}, true);
  std::vector<std::vector<std::byte>> expected;
  for (const container::TensorPlan& tensor : file_plan.tensors) {
    auto& copy = expected.emplace_back();
    for (const ByteSpan piece : tensor.pieces) copy.insert(copy.end(), piece.begin(), piece.end());
  }

  const SnapshotPlan plan(file_plan);
  const io::AnonymousMemory memory(plan.bytes());
  plan.copy(memory.bytes(), 3);
  plan.adopt(file_plan, memory.bytes());
  for (std::size_t i = 0; i < file_plan.tensors.size(); ++i) {
    const auto& pieces = file_plan.tensors[i].pieces;
    BOOST_TEST_CONTEXT(file_plan.tensors[i].spec.name) {
      BOOST_TEST_REQUIRE(pieces.size() == (expected[i].empty() ? 0u : 1u));
      if (pieces.empty()) continue;
      const ByteSpan payload = pieces.front();
      BOOST_TEST(same_bytes(payload, expected[i]));
      BOOST_TEST(payload.data() >= memory.bytes().data());
      BOOST_TEST(payload.data() + payload.size() <= memory.bytes().data() + plan.bytes());
      const std::size_t alignment = payload.size() >= 64 << 10 ? 4096 : 64;
      BOOST_TEST(reinterpret_cast<std::uintptr_t>(payload.data()) % alignment == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(memory_that_fits_is_used_again) {
  SnapshotArenas arenas(100 << 20);
  SharedArena small = arenas.acquire(1 << 20);
  SharedArena large = arenas.acquire(8 << 20);
  const std::byte* const small_bytes = small->memory.bytes().data();
  const std::byte* const large_bytes = large->memory.bytes().data();
  arenas.release(std::move(large));
  arenas.release(std::move(small));
  small = arenas.acquire(1 << 20);
  large = arenas.acquire(7 << 20);
  BOOST_TEST(small->memory.bytes().data() == small_bytes);
  BOOST_TEST(large->memory.bytes().data() == large_bytes);
  BOOST_TEST(arenas.held() == 9u << 20);
}

BOOST_AUTO_TEST_CASE(memory_that_was_outgrown_makes_room) {
  SnapshotArenas arenas(10 << 20);
  arenas.release(arenas.acquire(4 << 20));
  SharedArena large = arenas.acquire(9 << 20);
  BOOST_TEST(arenas.held() == 9u << 20);
  BOOST_TEST(!arenas.fits(2 << 20));
  BOOST_TEST(arenas.fits(1 << 20));
  SharedArena small = arenas.acquire(1 << 20);
  BOOST_TEST(arenas.held() == 10u << 20);
  arenas.release(std::move(large));
  arenas.release(std::move(small));
  BOOST_TEST(arenas.fits(10 << 20));
  large = arenas.acquire(10 << 20);
  BOOST_TEST(arenas.held() == 10u << 20);
}

BOOST_AUTO_TEST_CASE(reserved_pages_are_told_once_each_and_no_others) {
  SnapshotArenas arenas(100 << 20);
  BOOST_TEST(!arenas.next_untouched(1 << 20).has_value());
  arenas.reserve(8 << 20, 5 << 20, 2);
  BOOST_TEST(arenas.held() == 16u << 20);
  std::map<const container::SnapshotArena*, std::uint64_t> told;
  while (const auto pages = arenas.next_untouched(2 << 20)) {
    BOOST_TEST(pages->offset == told[pages->arena.get()]);
    told[pages->arena.get()] += pages->length;
  }
  BOOST_TEST(!arenas.has_untouched());
  BOOST_TEST(told.size() == 2u);
  for (const auto& [arena, bytes] : told) BOOST_TEST(bytes == 5u << 20);
  // In an arena that was copied to and is reserved for more, what is new is told.
  SharedArena used = arenas.acquire(6 << 20);
  arenas.release(std::move(used));
  arenas.reserve(8 << 20, 7 << 20, 2);
  std::map<std::uint64_t, std::uint64_t> new_pages;
  while (const auto pages = arenas.next_untouched(64 << 20))
    new_pages[pages->offset] = pages->length;
  BOOST_TEST(new_pages.size() == 2u);
  BOOST_TEST(new_pages[5 << 20] == 2u << 20);
  BOOST_TEST(new_pages[6 << 20] == 1u << 20);
}

BOOST_AUTO_TEST_CASE(a_save_takes_reserved_memory_as_far_as_it_is) {
  SnapshotArenas arenas(100 << 20);
  arenas.reserve(8 << 20, 8 << 20, 1);
  const auto pages = arenas.next_untouched(2 << 20);
  const SharedArena taken = arenas.acquire(8 << 20);
  BOOST_TEST(taken == pages->arena);
  BOOST_TEST(!arenas.has_untouched());  // the rest is touched by the copy
  arenas.release(taken);
  BOOST_TEST(!arenas.has_untouched());
}

BOOST_AUTO_TEST_SUITE_END()
