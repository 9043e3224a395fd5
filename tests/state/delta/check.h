// What a chain makes of its files, against the state that was saved.
#pragma once

#include "boost_test.h"
#include "state/delta/sample.h"
#include "support/bytes.h"
#include "thalia/stream.h"

namespace thalia::test {

/// A stream hands out every tensor once, as read() gives it.
inline void check_streamed(const ChainReader& chain, const StreamOptions& options = {}) {
  std::size_t expected = 0, count = 0;
  for (std::uint32_t r = 0; r < chain.reader().region_count(); ++r)
    expected += chain.reader().region(r).tensor_count();
  for (std::uint32_t c = 0; c < chain.reader().connection_count(); ++c)
    expected += chain.reader().connection(c).delays ? 2 : 1;
  StreamReader stream = chain.stream(options);
  while (const auto item = stream.next()) {
    BOOST_TEST_CONTEXT(item->tensor.name()) {
      const Tensor tensor = chain.read(item->tensor);
      if (options.order != StreamOrder::as_completed) BOOST_TEST(item->index == count);
      BOOST_TEST((item->layout == tensor.layout()));
      BOOST_TEST(same_bytes(item->bytes, tensor.bytes()));
    }
    ++count;
  }
  BOOST_TEST(count == expected);
  BOOST_TEST(stream.result().tensors == count);
}

/// Every tensor is there, equal to its last byte, and nothing else is.
inline void check_chain(const ChainReader& chain, const SampleState& state) {
  const Reader& reader = chain.reader();
  BOOST_TEST(reader.metadata_json() == state.metadata);
  BOOST_TEST(reader.header().training_steps == state.steps);
  BOOST_REQUIRE(reader.region_count() == state.regions.size());
  for (const auto& [name, tensors] : state.regions) {
    const RegionView region = reader.region(name);
    BOOST_TEST(region.config_json() == "{\"of\":\"" + name + "\"}");
    BOOST_REQUIRE(region.tensor_count() == tensors.size());
    for (const auto& [tensor_name, sample] : tensors) {
      BOOST_TEST_CONTEXT(name + "/" + tensor_name) {
        const TensorView view = region.at(tensor_name);
        BOOST_TEST((view.role() == sample.role));
        BOOST_TEST((chain.describe(view).layout == sample.tensor.layout()));
        BOOST_TEST((chain.read(view) == sample.tensor));
      }
    }
  }
  BOOST_REQUIRE(reader.connection_count() == state.connections.size());
  for (const auto& [pair, tensor] : state.connections) {
    const auto found = reader.find_connection(pair.first, pair.second);
    BOOST_REQUIRE(found.has_value());
    BOOST_TEST((chain.read(found->weights) == tensor));
  }
  check_streamed(chain);
}

}  // namespace thalia::test
