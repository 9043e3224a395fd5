// Reads any bytes as the config.json of a decoder of Hugging Face. What is accepted keeps its
// bounds, and the tensors of a small model have their places or are refused.

#include <string_view>
#include <vector>

#include "formats/hugging_face/tensor_places.h"
#include "fuzz/fuzz_target.h"
#include "support/decoder_tensors.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace hugging_face_target {

namespace hugging_face = formats::hugging_face;

constexpr ReadLimits kLimits{.max_json_depth = 64};

std::vector<formats::SinkTensor> tensors() {
  std::vector<formats::SinkTensor> out;
  test::add_decoder_embeddings(out, DType::f32);
  test::add_decoder_norm(out, DType::f32);
  test::add_decoder_block(out, 0, DType::f32);
  return out;
}

void run(const std::uint8_t* data, std::size_t size) {
  hugging_face::DecoderConfig config;
  try {
    config = hugging_face::read_config({reinterpret_cast<const char*>(data), size}, kLimits);
  } catch (const FormatError&) {
    return;
  }
  for (const std::uint64_t extent : {config.blocks, config.heads, config.kv_heads, config.head_dim,
                                     config.hidden, config.inner, config.query(), config.kv()})
    FUZZ_REQUIRE(extent != 0 && extent <= hugging_face::kMaxExtent);
  try {
    const hugging_face::TensorPlaces places = hugging_face::place_tensors(tensors(), config);
    FUZZ_REQUIRE(places.blocks.size() == config.blocks && config.blocks == 1);
    FUZZ_REQUIRE(places.vocabulary == 7 && config.hidden == 6 && config.inner == 5);
  } catch (const UnsupportedError&) {
    // The config is that of another model.
  }
}

}  // namespace hugging_face_target
}  // namespace

FUZZ_TARGET(hugging_face)
