#include "io/memory/anonymous_memory.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::io;

BOOST_AUTO_TEST_SUITE(anonymous_memory)

BOOST_AUTO_TEST_CASE(is_aligned_zero_and_in_whole_pages) {
  const AnonymousMemory memory((3 << 20) + 1);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(memory.bytes().data()) % (2 << 20) == 0u);
  BOOST_TEST(memory.size() > 3u << 20);
  BOOST_TEST(memory.size() % 4096 == 0u);
  BOOST_TEST(bool(memory.bytes().front() == std::byte{}));
  memory.bytes().back() = std::byte{1};
  BOOST_TEST(AnonymousMemory(0).bytes().empty());
}

BOOST_AUTO_TEST_CASE(populate_keeps_what_is_there) {
  const AnonymousMemory memory(1 << 20);
  memory.bytes()[5000] = std::byte{7};
  memory.populate(4097, (1 << 20) - 4097);
  BOOST_TEST(bool(memory.bytes()[5000] == std::byte{7}));
  unsigned char resident = 0;
  BOOST_TEST(::mincore(memory.bytes().data() + (1 << 20) - 4096, 4096, &resident) == 0);
  BOOST_TEST((resident & 1) == 1);
}

BOOST_AUTO_TEST_CASE(moves_leave_nothing_behind) {
  AnonymousMemory first(4096);
  std::byte* const bytes = first.bytes().data();
  AnonymousMemory second(std::move(first));
  BOOST_TEST(first.size() == 0u);
  BOOST_TEST(second.bytes().data() == bytes);
  first = std::move(second);
  BOOST_TEST(second.bytes().empty());
  BOOST_TEST(first.bytes().data() == bytes);
  first = {};
  BOOST_TEST(first.size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_forked_child_has_none_of_it) {
  const AnonymousMemory memory(4096);
  memory.bytes()[0] = std::byte{1};
  const pid_t child = ::fork();
  BOOST_TEST_REQUIRE(child >= 0);
  if (child == 0) {
    unsigned char resident = 0;
    ::_exit(::mincore(memory.bytes().data(), 4096, &resident) == -1 && errno == ENOMEM ? 0 : 1);
  }
  int status = 0;
  BOOST_TEST(::waitpid(child, &status, 0) == child);
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

BOOST_AUTO_TEST_CASE(what_is_not_to_be_had_is_an_error) {
  BOOST_CHECK_EXCEPTION(AnonymousMemory(std::uint64_t{1} << 60), IoError,
                        [](const IoError& error) { return error.errno_value() == ENOMEM; });
  BOOST_CHECK_THROW(AnonymousMemory(UINT64_MAX), IoError);
}

BOOST_AUTO_TEST_CASE(the_machine_has_memory) {
  BOOST_TEST(machine_memory() > 64u << 20);
}

BOOST_AUTO_TEST_SUITE_END()
