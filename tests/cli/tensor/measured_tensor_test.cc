#include "cli/tensor/measured_tensor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "boost_test.h"
#include "thalia/error.h"
#include "thalia/state/tensor_value.h"

using namespace thalia;
using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(measured_tensors)

namespace {

Tensor ramp(std::uint64_t elements, float from) {
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<float>(i % 1000);
  return Tensor::copy_of({elements}, values);
}

void check_same(const TensorStatistics& found, const TensorStatistics& expected) {
  BOOST_TEST(found.elements == expected.elements);
  BOOST_TEST(found.zeros == expected.zeros);
  BOOST_TEST(found.min == expected.min);
  BOOST_TEST(found.max == expected.max);
  BOOST_TEST(found.mean == expected.mean);
  BOOST_TEST(found.deviation == expected.deviation);
}

}  // namespace

// More small ones than wait at a time, with large and sparse ones between them.
BOOST_AUTO_TEST_CASE(come_in_their_order_whatever_their_size) {
  std::vector<Tensor> tensors;
  for (std::uint64_t i = 0; i < 2300; ++i)
    tensors.push_back(ramp(i % 900 == 450 ? (5 << 20) / 4 + i : i % 13, static_cast<float>(i)));
  tensors.insert(tensors.begin() + 700,
                 Tensor::copy_of({2, 3}, std::vector<float>{0, 1, 0, 0, 2, 0}).to_csr());
  for (const unsigned threads : {1u, 3u}) {
    Measuring measuring(Work{.threads = threads});
    for (std::size_t i = 0; i < tensors.size(); ++i)
      measuring.add(inspect::OpenedTensor("", std::to_string(i), elements_of(tensors[i])));
    const std::vector<MeasuredTensor> measured = measuring.finish();
    BOOST_TEST_REQUIRE(measured.size() == tensors.size());
    for (std::size_t i = 0; i < measured.size(); ++i) {
      BOOST_TEST_REQUIRE(measured[i].name == std::to_string(i));
      // A large one is added up in pieces: of whole numbers there is nothing to round but the mean.
      const TensorStatistics expected = statistics_of(tensors[i]);
      if (tensors[i].bytes().size() < 1 << 20) {
        check_same(measured[i].statistics, expected);
      } else {
        BOOST_TEST(measured[i].statistics.elements == expected.elements);
        BOOST_TEST(measured[i].statistics.max == expected.max);
        BOOST_TEST(measured[i].statistics.mean == expected.mean,
                   boost::test_tools::tolerance(1e-12));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(of_several_that_cannot_be_read_the_first_is_named) {
  Measuring measuring(Work{.threads = 2});
  for (int i = 0; i < 40; ++i) {
    inspect::OpenedTensor source("", std::to_string(i), elements_of(ramp(8, 0)));
    if (i % 10 == 7) {
      source.read = [i](std::span<const SliceRange>, MutableByteSpan) {
        throw std::runtime_error(std::to_string(i));
      };
    }
    measuring.add(source);
  }
  BOOST_CHECK_EXCEPTION(measuring.finish(), std::runtime_error,
                        [](const std::runtime_error& e) { return std::string(e.what()) == "7"; });
}

BOOST_AUTO_TEST_CASE(a_stop_ends_them) {
  std::stop_source stop;
  stop.request_stop();
  Measuring measuring(Work{.cancel = stop.get_token()});
  measuring.add(inspect::OpenedTensor("", "w", elements_of(ramp(8, 0))));
  BOOST_CHECK_THROW(measuring.finish(), CancelledError);
}

BOOST_AUTO_TEST_SUITE_END()
