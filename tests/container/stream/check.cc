#include "container/stream/check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "boost_test.h"
#include "io/system/unique_fd.h"
#include "support/bytes.h"

namespace thalia::test {

Sample stream_sample() {
  Sample sample = varied_sample();
  SampleRegion large{.spec = {.name = "large"}, .tensors = {}};
  std::uint64_t seed = 1;
  for (const std::uint64_t size : {3u << 20, 1u, 70'001u, 1u << 20, 65'536u, 300u, 2'500'000u})
    large.tensors.push_back(
        dense_tensor("t" + std::to_string(seed), DType::u8, {size}, Role::weights, seed)),
        ++seed;
  // What compresses well: many chunks in one extent.
  for (std::size_t i = 0; i < large.tensors[0].payload.size(); ++i)
    if (i % 8 != 0) large.tensors[0].payload[i] = std::byte{0};
  SampleRegion small{.spec = {.name = "small"}, .tensors = {}};
  for (std::uint64_t i = 0; i < 200; ++i)
    small.tensors.push_back(
        dense_tensor("s" + std::to_string(i), DType::u8, {i * 37 % 5000}, Role::other, i));
  sample.regions.push_back(std::move(large));
  sample.regions.push_back(std::move(small));
  return sample;
}

void save_stream_sample(const std::filesystem::path& path, const SaveOptions& options) {
  static const Sample sample = stream_sample();
  save(path, sample, options);
}

std::vector<TensorView> all_tensors(const Reader& reader) {
  std::vector<TensorView> tensors;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) tensors.push_back(region.tensor(i));
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    tensors.push_back(connection.weights);
    if (connection.delays) tensors.push_back(*connection.delays);
  }
  std::sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return a.stored_offset() < b.stored_offset();
  });
  return tensors;
}

StreamResult check_stream(StreamReader& stream, const std::vector<TensorView>& asked,
                          bool in_order) {
  std::vector<bool> seen(asked.size());
  std::size_t count = 0;
  while (const auto item = stream.next()) {
    BOOST_TEST_REQUIRE(item->index < asked.size());
    if (in_order) BOOST_TEST(item->index == count);
    const TensorView& tensor = asked[item->index];
    BOOST_TEST_CONTEXT(Reader::region_name(tensor) << "/" << tensor.name()) {
      BOOST_TEST(!seen[item->index]);
      seen[item->index] = true;
      BOOST_TEST((item->tensor.stored_offset() == tensor.stored_offset()));
      std::vector<std::byte> expected(tensor.logical_bytes());
      tensor.read(expected);
      BOOST_TEST(same_bytes(item->bytes, expected));
    }
    ++count;
  }
  BOOST_TEST(count == asked.size());
  BOOST_TEST(!stream.next());
  BOOST_TEST(stream.result().tensors == count);
  return stream.result();
}

void drop_pages(const std::filesystem::path& path) {
  const io::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  BOOST_TEST_REQUIRE(bool(fd));
  BOOST_TEST(::fsync(fd.get()) == 0);
  BOOST_TEST(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
}

}  // namespace thalia::test
