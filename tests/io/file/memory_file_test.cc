#include "io/file/memory_file.h"

#include <cstring>

#include "boost_test.h"
#include "io/file/posix_file.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(memory_file)

BOOST_AUTO_TEST_CASE(what_is_written_at_an_address_is_read_through_the_descriptor) {
  const io::UniqueFd fd = io::create_memory_file();
  const io::MemoryMapping mapping(fd.get(), 100'000);
  BOOST_TEST(io::file_size(fd.get(), "memory") == 100'000u);
  BOOST_TEST(mapping.bytes().size() == 100'000u);
  std::memcpy(mapping.bytes().data() + 50'000, "thalia", 6);
  std::byte read[6];
  io::pread_all(fd.get(), 50'000, read, "memory");
  BOOST_TEST(test::text_of(read) == "thalia");
  io::pread_all(fd.get(), 0, read, "memory");
  BOOST_TEST(test::text_of(read) == std::string(6, '\0'));
}

BOOST_AUTO_TEST_CASE(what_is_written_through_the_descriptor_stays_in_the_mapping) {
  const io::UniqueFd fd = io::create_memory_file();
  io::pwrite_all(fd.get(), 0, test::bytes_of("thalia"), "memory");
  const io::MemoryMapping mapping(fd.get(), 6);
  BOOST_TEST(test::text_of(mapping.bytes()) == "thalia");
}

BOOST_AUTO_TEST_CASE(nothing_is_mapped_for_nothing_and_too_much_is_an_error) {
  const io::UniqueFd fd = io::create_memory_file();
  BOOST_TEST(io::MemoryMapping(fd.get(), 0).bytes().empty());
  BOOST_CHECK_THROW(io::MemoryMapping(fd.get(), ~std::uint64_t{0}), IoError);
  BOOST_CHECK_THROW(io::MemoryMapping(fd.get(), std::uint64_t{1} << 62), IoError);
}

BOOST_AUTO_TEST_SUITE_END()
