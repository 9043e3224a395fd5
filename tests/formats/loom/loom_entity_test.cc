// .entity files: what the files of the original do not show.
#include <cstring>

#include "boost_test.h"
#include "format/little_endian.h"
#include "formats/loom/networks.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/loom.h"

using namespace thalia;
using test::text_of;

BOOST_AUTO_TEST_SUITE(loom_entity)

namespace {

std::string header_of(const std::string& text) {
  format::le64 length;
  std::memcpy(&length, text.data() + 12, 8);
  return text.substr(20, length);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_network_of_all_kinds_of_layers_comes_back) {
  const LoomNetwork network = test::nested_network();
  const std::string text = test::entity_text(network);
  const EntityFile file = test::open_entity(text);
  const std::vector<std::string> kPaths = {"layers.0.parallel_branches.0",
                                           "layers.0.parallel_branches.1.sequential_layers.0",
                                           "layers.0.parallel_branches.1.sequential_layers.1",
                                           "layers.1.meta_observed_layer", "layers.3"};
  BOOST_REQUIRE(file.blobs().size() == kPaths.size());
  for (std::size_t i = 0; i < kPaths.size(); ++i) BOOST_TEST(file.blobs()[i].path == kPaths[i]);
  // An RMSNorm keeps what it was before it was quantised, and its scale.
  BOOST_TEST(file.blobs()[2].dtype == "float32");
  BOOST_TEST(file.blobs()[2].scale == find_loom_layer(network, kPaths[2])->weights->scale);
  BOOST_TEST(header_of(text).find("seq_length") == std::string::npos);
  const std::string again = test::entity_text(file.network());
  BOOST_TEST(again != text);  // the layer is float32 from then on
  BOOST_TEST(test::entity_text(test::open_entity(again).network()) == again);
  BOOST_TEST(loom_json(test::open_entity(again).network()) == loom_json(file.network()));
}

BOOST_AUTO_TEST_CASE(one_layer_is_loaded_with_all_that_is_in_it) {
  const EntityFile file = test::open_entity(test::entity_text(test::nested_network()));
  const LoomNetwork one = file.network({{0}});
  BOOST_TEST(one.layers.size() == 4u);
  BOOST_TEST(find_loom_layer(one, "layers.0.parallel_branches.1.sequential_layers.0")
                 ->weights.has_value());
  BOOST_TEST(!find_loom_layer(one, "layers.3")->weights);
  BOOST_TEST(!find_loom_layer(one, "layers.1.meta_observed_layer")->weights);
  BOOST_TEST((find_loom_layer(one, "layers.3")->dtype == LoomDType::float64));
  for (const std::vector<std::uint64_t>& none :
       {std::vector<std::uint64_t>{}, {2}, {17}, {UINT64_MAX}}) {
    for (const LoomLayer& layer : file.network(none).layers) BOOST_TEST(!layer.weights);
  }
  const LoomWeights weights = file.layer_weights(3);
  BOOST_TEST((weights.dtype == LoomDType::float64 && weights.native.bytes.size() == 32));
  BOOST_CHECK_EXCEPTION(file.layer_weights(0), UsageError,
                        test::says(ErrorCode::not_found, "layers.0"));
  BOOST_CHECK_THROW(file.blob_bytes(5), UsageError);
  BOOST_CHECK_THROW(file.transformer(), UsageError);
}

// Bytes of other blobs are not even read: here they are cut off.
BOOST_AUTO_TEST_CASE(an_open_file_reads_what_is_asked_for) {
  const test::TemporaryFolder folder;
  const std::string text = "before" + test::entity_text(test::nested_network()) + "behind";
  test::write_file(folder / "a", text);
  const std::string path = (folder / "a").string();
  BOOST_CHECK_THROW(EntityFile::open(path), FormatError);
  const EntitySection section{.offset = 6, .length = text.size() - 12};
  for (const Access access : {Access::mapped, Access::copied}) {
    const EntityFile file = EntityFile::open(path, {.input = {.access = access}}, section);
    const EntityBlob& blob = file.blobs()[4];
    BOOST_TEST(text_of(file.blob_bytes(4).bytes) == text.substr(blob.offset, blob.length));
    BOOST_TEST(blob.offset + blob.length == text.size() - 6);
    BOOST_TEST(file.file_bytes() == text.size() - 12);
  }
  const EntityFile mapped = EntityFile::open(path, {}, section);
  const StoredBytes a = mapped.blob_bytes(4), b = mapped.network().layers[3].weights->native;
  BOOST_TEST((a.bytes.data() == b.bytes.data()));
  BOOST_CHECK_THROW(EntityFile::open(path, {}, {.offset = text.size() + 1}), UsageError);
  BOOST_CHECK_THROW(EntityFile::open(path, {}, {.offset = 6, .length = text.size() - 5}),
                    UsageError);
  BOOST_CHECK_THROW(EntityFile::open(path, {}, {.offset = 6, .length = UINT64_MAX}), UsageError);
  BOOST_CHECK_EXCEPTION(
      EntityFile::open(path, {}, {.offset = 6, .length = section.length.value() - 1}), FormatError,
      test::has_code(ErrorCode::out_of_bounds));
}

BOOST_AUTO_TEST_CASE(a_transformer_keeps_its_components) {
  const LoomNetwork network = test::transformer_network();
  const std::string text = test::entity_text(network);
  const EntityFile file = test::open_entity(text);
  const std::vector<std::string> kPaths = {"layers.0",
                                           "layers.1.q4_0.200",
                                           "layers.1.q4_0.201",
                                           "layers.1.q4_0.202",
                                           "layers.1.q4_0.203",
                                           "layers.1.q_norm",
                                           "layers.2",
                                           "layers.3.q4_0.100",
                                           "layers.3.q4_0.101",
                                           "layers.3.q4_0.102",
                                           "layers.3.biases",
                                           "transformer.embeddings",
                                           "transformer.final_norm"};
  BOOST_REQUIRE(file.blobs().size() == kPaths.size());
  for (std::size_t i = 0; i < kPaths.size(); ++i) BOOST_TEST(file.blobs()[i].path == kPaths[i]);
  BOOST_TEST(header_of(text).find(
                 R"("transformer":{"architecture":"llama_style_decoder","hidden_size":8,)"
                 R"("vocab_size":5,"lm_head_tied":true,"has_final_norm":true,)"
                 R"("weight_dtype":"int4","dims":{"num_layers":1,"num_heads":2,"num_kv_heads":1,)"
                 R"("head_dim":4,"intermediate_size":16,"rms_norm_eps":0.00001,)"
                 R"("rope_freq_base":10000}},"blobs":[{"path":"layers.0","offset":0,"length":32,)"
                 R"("dtype":"float32","scale":1,"native":true},{"path":"layers.1.q4_0.200",)"
                 R"("offset":32,"length":2064,"dtype":"Q4_0","native":true})") !=
             std::string::npos);
  BOOST_TEST(test::entity_text(file.network()) == text);
  const LoomLayer attention = file.network().layers[1];
  BOOST_TEST((attention.dtype == LoomDType::int4 && attention.components.size() == 5 &&
              !attention.weights));
  BOOST_TEST(decode_loom_q4_0(attention.components[1].bytes.bytes, 32).size() == 32u);
  const LoomTransformer transformer = file.transformer();
  BOOST_TEST(transformer.embeddings.bytes.size() == 160u);
  BOOST_TEST(transformer.lm_head.bytes.empty());
}

BOOST_AUTO_TEST_CASE(a_transformer_is_checked_and_its_type_inferred) {
  LoomNetwork network = test::transformer_network();
  network.transformer->weight_dtype.clear();
  BOOST_TEST(test::open_entity(test::entity_text(network)).transformer().weight_dtype == "int4");
  const std::string silent = test::entity_text(network);
  BOOST_TEST(test::entity_text(test::open_entity(silent).network()) == silent);
  network.layers[1].components.clear(), network.layers[3].components.clear();
  BOOST_TEST(test::open_entity(test::entity_text(network)).transformer().weight_dtype == "float32");
  network.layers[3].dtype = LoomDType::int8;
  set_loom_master(network.layers[3],
                  std::vector<float>(loom_weight_count(network.layers[3]).value(), 1.0f));
  BOOST_TEST(test::open_entity(test::entity_text(network)).transformer().weight_dtype == "int8");
  const auto missing = test::has_code(ErrorCode::inconsistent);
  network.transformer->lm_head_tied = false;
  BOOST_CHECK_EXCEPTION(test::open_entity(test::entity_text(network)).transformer(), FormatError,
                        missing);
  network.transformer->lm_head_tied = true;
  network.transformer->final_norm = {};
  BOOST_CHECK_EXCEPTION(test::open_entity(test::entity_text(network)).transformer(), FormatError,
                        missing);
  network.transformer->has_final_norm = false;
  static_cast<void>(test::open_entity(test::entity_text(network)).transformer());
  network.transformer->embeddings = {};
  const EntityFile bare = test::open_entity(test::entity_text(network));
  BOOST_CHECK_EXCEPTION(bare.transformer(), FormatError, missing);
  static_cast<void>(bare.network());  // which needs none of them
}

// What the original takes, too.
BOOST_AUTO_TEST_CASE(flags_order_gaps_and_what_follows_do_not_matter) {
  const std::string good = test::entity_with_header(
      test::blob_header(
          R"({"path":"layers.0","offset":0,"length":4,"dtype":"int8","scale":2,"native":true})",
          R"("type":"Dense","input_height":4,"output_height":1)"),
      "\1\2\3\4");
  const LoomNetwork network = test::open_entity(good).network();
  BOOST_TEST(loom_master(network.layers[0]) == std::vector<float>({2, 4, 6, 8}));
  std::string flagged = good;
  flagged[10] = '\7', flagged[11] = '\7';
  BOOST_TEST(test::entity_text(test::open_entity(flagged).network()) == test::entity_text(network));
  BOOST_TEST(test::entity_text(test::open_entity(good + "more").network()) ==
             test::entity_text(network));
  const std::string apart = test::entity_with_header(
      R"({"network":{"depth":1,"rows":1,"cols":1,"layers_per_cell":2,"layers":[{"input_height":2,"output_height":1},)"
      R"({"l":1,"input_height":2,"output_height":1}]},"blobs":[)"
      R"({"path":"layers.1","offset":5,"length":2,"dtype":"I8","native":true},)"
      R"({"path":"layers.0","offset":1,"length":2,"dtype":"int8","scale":1,"native":true}]})",
      "x\1\2xx\3\4x");
  const LoomNetwork two = test::open_entity(apart).network();
  BOOST_TEST(loom_master(two.layers[0]) == std::vector<float>({1, 2}));
  BOOST_TEST(loom_master(two.layers[1]) == std::vector<float>({3, 4}));
  BOOST_TEST(two.layers[1].weights->scale == 0);
  // f32 that are not native are quantised.
  const std::string f32 = test::entity_with_header(
      test::blob_header(
          R"({"path":"layers.0","offset":0,"length":8,"dtype":"int8","scale":1,"native":false})",
          R"("input_height":2,"output_height":1)"),
      std::string("\0\0\x80\x3f\0\0\0\xbf", 8));
  const LoomNetwork morphed = test::open_entity(f32).network();
  BOOST_TEST((morphed.layers[0].dtype == LoomDType::int8));
  BOOST_TEST(morphed.layers[0].weights->scale == 1.0f / 127);
  BOOST_TEST(test::hex(morphed.layers[0].weights->native.bytes) == "7fc0");
}

BOOST_AUTO_TEST_CASE(files_are_saved_whole_or_not_at_all) {
  const test::TemporaryFolder folder;
  LoomNetwork network = test::transformer_network();
  std::uint64_t last = 0;
  LoomSaveOptions options;
  options.work.progress = [&](std::uint64_t done, std::uint64_t total) {
    BOOST_TEST(done <= total);
    last = total - done;
  };
  const std::uint64_t bytes = save_entity(folder / "a.entity", network, options);
  BOOST_TEST(test::read_file(folder / "a.entity") == test::entity_text(network));
  BOOST_TEST((bytes == test::entity_text(network).size() && last == 0));
  options.output.replace = false;
  BOOST_CHECK_THROW(save_entity(folder / "a.entity", network, options), UsageError);
  network.layers[1].rope_freq_base = 1.0 / 0.0;
  BOOST_CHECK_THROW(save_entity(folder / "b.entity", network), UsageError);
  BOOST_TEST((test::list_folder(folder.path()) == std::vector<std::string>{"a.entity"}));
}

BOOST_AUTO_TEST_SUITE_END()
