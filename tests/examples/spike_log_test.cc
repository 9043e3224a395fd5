#include "spiking/spike_log.h"

#include <stdexcept>

#include "boost_test.h"
#include "support/files.h"

using namespace spiking;

BOOST_AUTO_TEST_SUITE(spike_log)

namespace {

std::uint64_t hash_of(std::uint32_t region, std::vector<Spike> spikes) {
  SpikeHash hash;
  hash.add_region(region, spikes);
  return hash.value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(hash_depends_on_region_neuron_efficacy_and_order) {
  const std::uint64_t one = hash_of(0, {{1, 0.5f}, {2, 0.5f}});
  BOOST_TEST(hash_of(0, {{1, 0.5f}, {2, 0.5f}}) == one);
  BOOST_TEST(hash_of(1, {{1, 0.5f}, {2, 0.5f}}) != one);
  BOOST_TEST(hash_of(0, {{1, 0.5f}, {3, 0.5f}}) != one);
  BOOST_TEST(hash_of(0, {{2, 0.5f}, {1, 0.5f}}) != one);
  BOOST_TEST(hash_of(0, {{1, 0.5f}, {2, 0.50000006f}}) != one);
}

BOOST_AUTO_TEST_CASE(first_difference_is_found_in_the_middle_and_at_the_end) {
  const SpikeLog log{{1, 2, 3}, {2, 3, 4}};
  BOOST_TEST(!first_difference(log, log).has_value());
  BOOST_TEST(first_difference(log, {{1, 2, 3}, {2, 3, 5}}).value() == 1u);
  BOOST_TEST(first_difference(log, {{1, 2, 3}}).value() == 1u);
  BOOST_TEST(first_difference({}, log).value() == 0u);
}

BOOST_AUTO_TEST_CASE(a_log_comes_back_as_it_was_written) {
  const SpikeLog log{{1, 0, 0xffffffffffffffff}, {2, 123456789012, 10}};
  const thalia::test::TemporaryFolder folder;
  write_log(folder / "log", log);
  BOOST_TEST((read_log(folder / "log") == log));
  write_log(folder / "log", {});
  BOOST_TEST(read_log(folder / "log").empty());
}

BOOST_AUTO_TEST_CASE(what_is_no_log_is_refused) {
  const thalia::test::TemporaryFolder folder;
  BOOST_CHECK_THROW(read_log(folder / "none"), std::runtime_error);
  thalia::test::write_file(folder / "log", "1 2 3\n4 five 6\n");
  BOOST_CHECK_THROW(read_log(folder / "log"), std::runtime_error);
  BOOST_CHECK_THROW(write_log(folder / "none/log", {}), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
