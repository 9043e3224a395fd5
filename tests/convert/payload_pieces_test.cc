#include "convert/payload_pieces.h"

#include <algorithm>
#include <vector>

#include "boost_test.h"
#include "checkpoint/checkpoints.h"
#include "convert/precision_samples.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(payload_pieces)

// More than the 8 MiB of a thread: rows of 1 MiB and some, which end inside chunks.
BOOST_AUTO_TEST_CASE(large_compressed_tensors_pass_in_pieces) {
  const TemporaryFolder folder;
  const std::vector<float> numbers = weights(23 * 300'000);
  const ByteSpan bytes = as_byte_span(numbers);
  {
    Writer writer(folder / "a.thalia", fixed_identity({.compression = {.codec = Codec::lz4}}));
    const RegionId region = writer.add_region({.name = "r"});
    writer.add_tensor(region, {.name = "w", .dtype = DType::f32, .shape = {23, 3, 100'000}}, bytes);
    writer.add_tensor(region, {.name = "spikes", .dtype = DType::f32, .shape = {numbers.size()}},
                      bytes);
    writer.commit();
  }
  const auto halves = as_type(DType::f32, DType::f16, bytes);
  for (const unsigned threads : {1u, 3u}) {
    // Enough for the pieces and not for a whole tensor.
    ConvertOptions options = with_precision("weights=keep,r.*.w=fp16");
    options.chain.read.work.threads = threads;
    options.chain.read.input.limits.max_allocation_bytes = threads * (8u << 20);
    convert(folder / "a.thalia", folder / "b.thalia", options);
    convert(folder / "a.thalia", folder / "b.safetensors", options);
    BOOST_TEST(verify(folder / "b.thalia").ok());
    const Reader reader = Reader::open(folder / "b.thalia");
    BOOST_TEST((payload(reader.tensor("w")) == halves));
    BOOST_TEST((payload(reader.tensor("spikes")) == joined({bytes})));
    const SafetensorsFile file = SafetensorsFile::open(folder / "b.safetensors");
    for (const NamedArray& tensor : file.tensors()) {
      const ByteSpan expected = tensor.name == "w" ? ByteSpan(halves) : bytes;
      BOOST_TEST(same_bytes(tensor.bytes, expected));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
