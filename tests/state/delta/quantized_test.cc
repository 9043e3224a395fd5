// Quantized checkpoints below a delta, and as what one is taken of: their elements count.
#include <random>

#include "boost_test.h"
#include "state/delta/sample.h"
#include "state/quantize/quantization_sample.h"
#include "support/files.h"
#include "thalia/state/delta.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_quantized)

namespace {

namespace fs = std::filesystem;

const DeltaOptions kQuiet{.save = {.output = {.durability = Durability::none}}};

// Weights that are more than a piece of what is restored at a time, and a tensor that stays as it
// is.
struct Files {
  Files() {
    std::mt19937_64 random(5);
    weights = normal_tensor({300, 301}, random);
    bias = normal_tensor({70}, random);
    write_layer(plain, {{"w", weights}, {"bias", bias, Role::other}});
    quantize_file(plain, quantized, {}, {.save = quiet_save()});
    restored = Tensor::from(layer_tensor(quantized, "w"));
  }
  TemporaryFolder folder;
  fs::path plain = folder / "plain.thalia";
  fs::path quantized = folder / "quantized.thalia";
  fs::path delta = folder / "d.delta.thalia";
  Tensor weights, bias, restored;
};

void check_weights(const fs::path& path, const Tensor& expected) {
  const ChainReader chain = ChainReader::open(path);
  const TensorView view = chain.reader().region("layer").at("w");
  BOOST_TEST((chain.describe(view).layout == expected.layout()));
  BOOST_TEST((chain.read(view) == expected));
  std::vector<std::byte> part(4001);
  chain.read_part(view, 262137, part);  // around the end of the first piece
  BOOST_TEST(std::equal(part.begin(), part.end(), expected.bytes().begin() + 262137));
  BOOST_TEST(verify_chain(path).ok());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_quantized_checkpoint_can_be_a_base) {
  const Files files;
  BOOST_TEST_REQUIRE((layer_tensor(files.quantized, "w").encoding() == Encoding::quantized));
  const ChainReader base = ChainReader::open(files.quantized);
  // What it was before: a little further from the codes.
  DeltaResult result =
      write_delta(state_source(ChainReader::open(files.plain)), base, files.delta, kQuiet);
  BOOST_TEST(result.differences == 1u);
  BOOST_TEST(result.same == 1u);
  check_weights(files.delta, files.weights);
  // A few elements, of what the codes give.
  Tensor few = files.restored;
  few.mutable_as<float>()[12345] = 7;
  write_layer(files.plain, {{"w", few}, {"bias", files.bias, Role::other}});
  result = write_delta(state_source(ChainReader::open(files.plain)), base, files.delta, kQuiet);
  BOOST_TEST(result.listed_elements == 1u);
  check_weights(files.delta, few);
  // One that grew.
  std::mt19937_64 random(6);
  const Tensor grown = normal_tensor({310, 301}, random);
  write_layer(files.plain, {{"w", grown}, {"bias", files.bias, Role::other}});
  write_delta(state_source(ChainReader::open(files.plain)), base, files.delta, kQuiet);
  check_weights(files.delta, grown);
}

BOOST_AUTO_TEST_CASE(a_quantized_checkpoint_can_be_what_a_delta_is_taken_of) {
  const Files files;
  const StateSource now = state_source(ChainReader::open(files.quantized));
  write_delta(now, ChainReader::open(files.plain), files.delta, kQuiet);
  check_weights(files.delta, files.restored);
  // None of its own elements is stored; chunks do not matter.
  SaveOptions chunked = quiet_save();
  chunked.compression.codec = Codec::zstd;
  chunked.compression.chunk_bytes = 4096;
  quantize_file(files.plain, files.folder / "chunked.thalia", {}, {.save = chunked});
  const DeltaResult same =
      write_delta(now, ChainReader::open(files.folder / "chunked.thalia"), files.delta, kQuiet);
  BOOST_TEST(same.same == 2u);
  check_weights(files.delta, files.restored);
  resolve(files.delta, files.folder / "full.thalia", {}, quiet_save());
  check_weights(files.folder / "full.thalia", files.restored);
}

BOOST_AUTO_TEST_SUITE_END()
