// Decoders of Hugging Face, whose payloads are made up by name and come in odd pieces.
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/float/conversion.h"
#include "formats/hugging_face/write_decoder.h"
#include "support/decoder_tensors.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/loom.h"

using namespace thalia;
using formats::SinkInput;

BOOST_AUTO_TEST_SUITE(hugging_face_decoder)

namespace {

// 2 blocks of support/decoder_tensors.h.
std::string config_with(const std::string& from = {}, const std::string& to = {}) {
  std::string text =
      R"({"model_type": "llama", "hidden_size": 6, "num_attention_heads": 4, "head_dim": 2,)"
      R"( "num_key_value_heads": 2, "intermediate_size": 5, "num_hidden_layers": 2,)"
      R"( "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 500000.0,)"
      R"( "tie_word_embeddings": true, "rope_scaling": null})";
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

SinkInput model(DType dtype = DType::f32) {
  SinkInput input;
  test::add_decoder_norm(input.tensors, dtype);
  for (const int block : {1, 0}) test::add_decoder_block(input.tensors, block, dtype);
  test::add_decoder_embeddings(input.tensors, dtype);
  input.model_config = config_with();
  return input;
}

// Tensor i has the numbers i + k/8, which all of the types hold.
std::vector<float> numbers_of(const SinkInput& input, std::size_t i) {
  std::vector<float> numbers(input.tensors[i].layout.shape.element_count().value());
  for (std::size_t k = 0; k < numbers.size(); ++k)
    numbers[k] = static_cast<float>(i) + static_cast<float>(k % 8) / 8;
  return numbers;
}

std::vector<float> numbers_of(const SinkInput& input, const std::string& name) {
  for (std::size_t i = 0; i < input.tensors.size(); ++i)
    if (input.tensors[i].name == name) return numbers_of(input, i);
  BOOST_FAIL("no " << name);
  return {};
}

void append(std::vector<float>& to, const std::vector<float>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

struct Written {
  test::TemporaryFolder folder{};
  std::vector<std::string> losses{};

  LoomNetwork network(const SinkInput& input, std::size_t piece = 3) {
    formats::SinkOptions options;
    options.announce = [&](const std::vector<std::string>& told) { losses = told; };
    formats::write_entity_of_model(
        folder / "m.entity", input, options, [&](std::size_t i, const formats::PieceSink& sink) {
          const std::vector<float> numbers = numbers_of(input, i);
          const DType dtype = input.tensors[i].layout.dtype;
          std::vector<std::byte> bytes(numbers.size() * (dtype == DType::f32 ? 4 : 2));
          codec::convert_elements(DType::f32, dtype, std::as_bytes(std::span(numbers)), bytes);
          for (std::size_t at = 0; at < bytes.size(); at += piece)
            sink(ByteSpan(bytes).subspan(at, std::min(piece, bytes.size() - at)));
        });
    return EntityFile::open(folder / "m.entity").network();
  }
};

std::vector<float> floats(const StoredBytes& bytes) {
  std::vector<float> out(bytes.bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.bytes.data(), bytes.bytes.size());
  return out;
}

void remove(SinkInput& input, const std::string& name) {
  const auto gone = std::erase_if(input.tensors, [&](const auto& one) { return one.name == name; });
  BOOST_REQUIRE(gone == 1u);
}

void add(SinkInput& input, const std::string& name, Shape shape) {
  input.tensors.push_back({.name = name, .layout = {.shape = shape}});
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_block_is_a_norm_attention_a_norm_and_swiglu) {
  const SinkInput input = model();
  const LoomNetwork network = Written().network(input);
  BOOST_TEST(network.layers_per_cell == 8);
  BOOST_REQUIRE(network.layers.size() == 8u);
  const LoomTransformer& transformer = network.transformer.value();
  BOOST_TEST(transformer.architecture == "llama_style_decoder");
  BOOST_TEST(transformer.hidden_size == 6);
  BOOST_TEST(transformer.vocab_size == 7);
  BOOST_TEST(transformer.lm_head_tied);
  BOOST_TEST(transformer.weight_dtype == "float32");
  BOOST_TEST(transformer.dims->kv_dim == 4);
  BOOST_TEST(transformer.dims->query_dim == 8);
  BOOST_TEST(transformer.dims->rms_norm_eps == 1e-05);
  BOOST_TEST(transformer.dims->activation == "Silu");
  BOOST_TEST(floats(transformer.embeddings) == numbers_of(input, "model.embed_tokens.weight"));
  BOOST_TEST(floats(transformer.final_norm) == numbers_of(input, "model.norm.weight"));
  for (std::size_t block = 0; block < 2; ++block) {
    const std::string at = "model.layers." + std::to_string(block) + ".";
    const LoomLayer* const layers = &network.layers[block * 4];
    BOOST_TEST((layers[0].type == LoomLayerType::rms_norm));
    BOOST_TEST(loom_master(layers[0]) == numbers_of(input, at + "input_layernorm.weight"));
    BOOST_TEST(loom_master(layers[2]) == numbers_of(input, at + "post_attention_layernorm.weight"));
    std::vector<float> attention;
    for (const char* const name : {"q", "k", "v", "o"})
      append(attention, numbers_of(input, at + "self_attn." + name + "_proj.weight"));
    attention.resize(attention.size() + 8 + 4 + 4 + 6);
    BOOST_TEST((layers[1].type == LoomLayerType::multi_head_attention));
    BOOST_TEST(layers[1].rope_freq_base == 500000.0);
    BOOST_TEST(loom_master(layers[1]) == attention);
    std::vector<float> gated;
    for (const char* const name : {"gate", "up", "down"})
      append(gated, numbers_of(input, at + "mlp." + name + "_proj.weight"));
    gated.resize(gated.size() + 5 + 5 + 6);
    BOOST_TEST((layers[3].type == LoomLayerType::swiglu));
    BOOST_TEST((layers[3].activation == LoomActivation::silu));
    BOOST_TEST(loom_master(layers[3]) == gated);
    BOOST_TEST(loom_weight_count(layers[1]).value() == attention.size());
    BOOST_TEST(loom_weight_count(layers[3]).value() == gated.size());
  }
}

// As the original's converter writes it.
BOOST_AUTO_TEST_CASE(the_header_is_the_originals) {
  Written written;
  written.network(model());
  const std::string text = test::read_file(written.folder / "m.entity");
  const std::string begin =
      R"({"format_version":1,"network":{"id":"network","depth":1,"rows":1,"cols":1,)"
      R"("layers_per_cell":8,"layers":[{"z":0,"y":0,"x":0,"l":0,"type":"RMSNorm",)"
      R"("activation":"ReLU","dtype":"float32","input_height":6,"output_height":6,)"
      R"("softmax_type":"Standard"},{"z":0,"y":0,"x":0,"l":1,"type":"MultiHeadAttention",)"
      R"("activation":"ReLU","dtype":"float32","num_heads":4,"num_kv_heads":2,"head_dim":2,)"
      R"("query_dim":8,"d_model":6,"rope_freq_base":500000,"softmax_type":"Standard"},)";
  BOOST_TEST(text.substr(20, begin.size()) == begin);
  const std::string blobs =
      R"("blobs":[{"path":"transformer.embeddings","offset":0,"length":168,"dtype":"float32",)"
      R"("native":false},{"path":"transformer.final_norm","offset":168,"length":24,)"
      R"("dtype":"float32","native":false},{"path":"layers.0","offset":192,"length":24,)"
      R"("dtype":"float32","scale":1,"native":true},)";
  BOOST_TEST(text.find(blobs) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(halves_become_floats_with_the_same_numbers) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    SinkInput input = model(dtype);
    input.tensors[1].layout.dtype = DType::f16;
    const LoomNetwork network = Written().network(input);
    BOOST_TEST(network.transformer->weight_dtype == "float32");
    for (const LoomLayer& layer : network.layers) {
      BOOST_TEST((layer.dtype == LoomDType::float32));
      BOOST_TEST((layer.weights->dtype == LoomDType::float32));
    }
    BOOST_TEST(loom_master(network.layers[0]) ==
               numbers_of(input, "model.layers.0.input_layernorm.weight"));
    BOOST_TEST(floats(network.transformer->embeddings) ==
               numbers_of(input, "model.embed_tokens.weight"));
    const std::vector<float> gated = loom_master(network.layers[3]);
    const std::vector<float> gate = numbers_of(input, "model.layers.0.mlp.gate_proj.weight");
    BOOST_TEST(std::vector<float>(gated.begin(), gated.begin() + 30) == gate);
    BOOST_TEST(loom_master(network.layers[5]).front() == 1.0f);
  }
}

// What the original's converter made of them: tests/data/formats/loom/README.md.
BOOST_AUTO_TEST_CASE(files_are_those_of_the_original) {
  const std::filesystem::path models =
      std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/loom/hugging_face";
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    const test::TemporaryFolder folder;
    // Beside the model's own files: a folder with another kind in it would not be one model.
    for (const auto& file : std::filesystem::directory_iterator(entry.path()))
      if (file.path().extension() != ".entity")
        std::filesystem::copy_file(file.path(), folder / file.path().filename().string());
    convert(folder.path(), folder / "made.entity");
    BOOST_TEST_CONTEXT(entry.path())
    BOOST_TEST((test::read_file(folder / "made.entity") ==
                test::read_file(entry.path() / "model.entity")));
    ++count;
  }
  BOOST_TEST(count == 2u);
}

BOOST_AUTO_TEST_CASE(biases_heads_and_norms_of_heads_have_their_places) {
  SinkInput input = model();
  const auto added = [&](const std::string& name, std::initializer_list<std::uint64_t> shape) {
    add(input, name, Shape(shape));
  };
  added("model.layers.0.self_attn.k_proj.bias", {4});
  added("model.layers.0.self_attn.q_norm.weight", {2});
  added("model.layers.0.self_attn.k_norm.weight", {2});
  added("model.layers.1.mlp.down_proj.bias", {6});
  added("lm_head.weight", {7, 6});
  added("model.layers.0.self_attn.rotary_emb.inv_freq", {1});
  Written written;
  const LoomNetwork network = written.network(input);
  const std::vector<float> attention = loom_master(network.layers[1]);
  const std::vector<float> bias = numbers_of(input, "model.layers.0.self_attn.k_proj.bias");
  const std::size_t at = 48 + 24 + 24 + 48;
  BOOST_TEST(attention[at + 7] == 0.0f);
  BOOST_TEST(std::vector<float>(&attention[at + 8], &attention[at + 12]) == bias);
  BOOST_TEST(attention[at + 12] == 0.0f);
  BOOST_REQUIRE(network.layers[1].components.size() == 2u);
  BOOST_TEST(network.layers[1].components[0].suffix == "q_norm");
  BOOST_TEST(floats(network.layers[1].components[1].bytes) ==
             numbers_of(input, "model.layers.0.self_attn.k_norm.weight"));
  const std::vector<float> gated = loom_master(network.layers[7]);
  BOOST_TEST(std::vector<float>(gated.end() - 6, gated.end()) ==
             numbers_of(input, "model.layers.1.mlp.down_proj.bias"));
  BOOST_TEST(!network.transformer->lm_head_tied);
  BOOST_TEST(floats(network.transformer->lm_head) == numbers_of(input, "lm_head.weight"));
  BOOST_REQUIRE(written.losses.size() == 1u);
  BOOST_TEST(written.losses[0].find("inv_freq") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_has_no_place_is_named) {
  const auto refused = [](const SinkInput& input, const auto&... parts) {
    BOOST_CHECK_EXCEPTION(Written().network(input), UnsupportedError,
                          test::says(ErrorCode::unsupported_feature, parts...));
  };
  SinkInput lacks = model();
  remove(lacks, "model.layers.1.mlp.up_proj.weight");
  remove(lacks, "model.embed_tokens.weight");
  refused(lacks, "missing", "model.layers.1.mlp.up_proj.weight", "model.embed_tokens.weight");
  SinkInput headless = model();
  headless.model_config = config_with("true", "false");
  refused(headless, "lm_head.weight");
  SinkInput more = model();
  more.model_config = config_with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  refused(more, "model.layers.2.input_layernorm.weight");
  more.model_config = config_with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 2147483647");
  refused(more, "missing");
  more.model_config = config_with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
  refused(more, "no place", "model.layers.1.");
  for (const char* const name :
       {"model.layers.0.pre_feedforward_layernorm.weight", "model.layers.00.input_layernorm.weight",
        "model.layers.0.mlp.experts.0.w1.weight", "model.layers.99999999999999999999.x", "score",
        "model.layers.", "model.layers.0", ""}) {
    SinkInput foreign = model();
    add(foreign, name, Shape({1}));
    refused(foreign, "no place");
  }
  SinkInput two = model();
  add(two, "vision.layers.0.input_layernorm.weight", Shape({6}));
  refused(two, "one stack of blocks");
  SinkInput other = model();
  other.tensors[1].layout.shape = Shape({6, 8});
  refused(other, "another shape", "model.layers.1.self_attn.q_proj.weight");
  SinkInput empty = model();
  empty.tensors.clear();
  refused(empty, "missing");
  SinkInput integers = model();
  integers.tensors[0].layout.dtype = DType::i32;
  BOOST_CHECK_THROW(Written().network(integers), UnsupportedDtypeError);
  SinkInput unconfigured = model();
  unconfigured.model_config.reset();
  refused(unconfigured, "config.json");
}

BOOST_AUTO_TEST_CASE(a_config_that_says_something_else_is_refused) {
  const struct {
    const char *from, *to, *said;
  } edits[] = {{"\"hidden_size\": 6, ", "", "hidden_size"},
               {"\"hidden_size\": 6", "\"hidden_size\": 0", "hidden_size"},
               {"\"hidden_size\": 6", "\"hidden_size\": -6", "hidden_size"},
               {"\"hidden_size\": 6", "\"hidden_size\": \"6\"", "hidden_size"},
               {"\"hidden_size\": 6", "\"hidden_size\": 6.5", "hidden_size"},
               {"\"head_dim\": 2", "\"head_dim\": 2147483647", "head_dim"},
               {" \"head_dim\": 2,", "", "num_attention_heads"},
               {"silu", "gelu", "hidden_act"},
               {"\"silu\"", "[]", "hidden_act"},
               {"1e-05", "\"x\"", "rms_norm_eps"},
               {"true", "1", "tie_word_embeddings"},
               {"500000.0", "{}", "rope_theta"}};
  for (const auto& [from, to, said] : edits) {
    SinkInput input = model();
    input.model_config = config_with(from, to);
    BOOST_CHECK_EXCEPTION(Written().network(input), FormatError,
                          test::says(ErrorCode::bad_value, "config.json", said));
  }
  for (const char* const text : {"", "[]", "{", "{\"hidden_size\": 6}x", "null", "\xff"}) {
    SinkInput input = model();
    input.model_config = text;
    BOOST_CHECK_THROW(Written().network(input), FormatError);
  }
  SinkInput deep = model();
  deep.model_config = "{\"a\":" + std::string(100000, '[');
  BOOST_CHECK_THROW(Written().network(deep), FormatError);
}

BOOST_AUTO_TEST_CASE(what_a_network_cannot_say_is_a_loss) {
  SinkInput input = model();
  input.model_config = config_with("\"rope_scaling\": null",
                                   R"("rope_scaling": {"factor": 8}, "rope_parameters": {}})");
  input.model_config->pop_back();
  Written written;
  written.network(input);
  BOOST_REQUIRE(written.losses.size() == 1u);
  BOOST_TEST(written.losses[0].find("rope_scaling") != std::string::npos);
  // Where newer configs have it.
  input.model_config =
      config_with("\"rope_theta\": 500000.0", R"("rope_parameters": {"rope_theta": 7.5})");
  BOOST_TEST(Written().network(input).layers[1].rope_freq_base == 7.5);
}

BOOST_AUTO_TEST_SUITE_END()
