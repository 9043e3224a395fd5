// JSON checkpoints and architectures: what the files of the original do not show.
#include <limits>

#include "boost_test.h"
#include "formats/loom/networks.h"
#include "formats/loom/vectors.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/loom.h"

using namespace thalia;
using test::dense_json;

BOOST_AUTO_TEST_SUITE(loom_json_text)

namespace {

std::string saved(const std::string& text) {
  return loom_json(parse_loom_json(text));
}
LoomLayer first_layer(const std::string& text) {
  return parse_loom_json(text).layers.at(0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_is_indented_and_escaped_as_go_does) {
  const std::string text = loom_json(test::nested_network());
  BOOST_TEST(text.find("\"combine_mode\": \"a\\u003cb\\u003e\\u0026\\\"\\\\\\n\\u2028\u00e4\"") !=
             std::string::npos);
  BOOST_TEST(text.find(R"(
      "meta_rules": [
        {
          "Condition": 2,
          "Threshold": 1e-7,
          "Command": 0.1,
          "Param": 0,
          "Cooldown": -3,
          "SelfOnly": false
        },
        {
          "Condition": 0,
          "Threshold": 1e+21,
          "Command": 0,
          "Param": 1e-7,
          "Cooldown": 0,
          "SelfOnly": true
        }
      ],
      "meta_observed_layer": {
        "z": 0,)") != std::string::npos);
  BOOST_TEST(text.ends_with("\n    }\n  ]\n}"));
  BOOST_TEST(loom_json(LoomNetwork{}) ==
             "{\n  \"id\": \"network\",\n  \"depth\": 0,\n  \"rows\": 0,\n  \"cols\": 0,\n"
             "  \"layers_per_cell\": 0,\n  \"layers\": []\n}");
}

BOOST_AUTO_TEST_CASE(numbers_are_the_shortest_of_their_width) {
  const auto written = [](const char* number) {
    const std::string text = saved(dense_json("0.5", number));
    const std::size_t at = text.find("\"scale\": ");
    if (at == std::string::npos) return std::string();
    return text.substr(at + 9, text.find('\n', at) - at - 9);
  };
  const std::pair<const char*, const char*> kNumbers[] = {
      {"0.1", "0.1"},
      {"1.0", "1"},
      {"101", "101"},
      {"1e-5", "0.00001"},
      {"1e-6", "0.000001"},
      {"9e-7", "9e-7"},
      {"1.25e-10", "1.25e-10"},
      {"1e20", "100000000000000000000"},
      {"1e21", "1e+21"},
      {"3.4e38", "3.4e+38"},
      {"-2.5", "-2.5"},
      {"0.10000000149011612", "0.1"},
      {"16777216", "16777216"},
      {"1e-45", "1e-45"},
      {"-0.0", ""},
      {"1e-400", ""},
      {"0.0000000000000000000000000000000000000000000000000001", ""}};
  for (const auto& [number, expected] : kNumbers) BOOST_TEST(written(number) == expected, number);
  BOOST_CHECK_EXCEPTION(saved(dense_json("0.5", "1e39")), FormatError,
                        test::says(ErrorCode::bad_value, "scale", "1e39"));
  BOOST_CHECK_THROW(saved(dense_json("0.5", "1e999999999999999999999")), FormatError);

  LoomNetwork network = parse_loom_json(dense_json());
  network.layers[0].temperature = std::numeric_limits<double>::quiet_NaN();
  BOOST_CHECK_THROW(loom_json(network), UsageError);
  network.layers[0].temperature = 0.1 + 0.2;
  BOOST_TEST(loom_json(network).find("\"temperature\": 0.30000000000000004,") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(keys_and_values_are_read_as_go_does) {
  const std::string plain = saved(dense_json());
  BOOST_TEST(saved(dense_json("\"dtype\"", "\"DType\"")) == plain);
  BOOST_TEST(saved(dense_json("\"z\":0", "\"z\":5,\"Z\":0,\"z\":null")) == plain);
  BOOST_TEST(saved(dense_json("\"id\":\"network\"", "\"id\":\"x\",\"other\":[{\"a\":[]}]")) ==
             plain);
  BOOST_TEST(saved(dense_json("AFvTEoEAADylf/cLvBuT", "AFvTEo\\nEAADylf/\\r\\ncLvBuT")) == plain);
  BOOST_TEST(saved(dense_json("\"Standard\"", "\"standard\"")) == plain);
  BOOST_TEST(saved(dense_json("\"ReLU\"", "\"relu\"")) == plain);
  BOOST_TEST((first_layer(dense_json("\"ReLU\"", "\"6\"")).activation == LoomActivation::relu2));
  BOOST_TEST((first_layer(dense_json("\"ReLU\"", "\"leaky_relu\"")).activation ==
              LoomActivation::leaky_relu));
  BOOST_TEST(
      (first_layer(dense_json("\"Standard\"", "\"Entmax\"")).softmax_type == LoomSoftmax::entmax));
  BOOST_TEST((parse_loom_layer_type("Attention") == LoomLayerType::multi_head_attention));
  BOOST_TEST((parse_loom_layer_type("meta") == LoomLayerType::metacognition));
  BOOST_TEST((parse_loom_layer_type("conv") == LoomLayerType::dense));
}

// What the original's own reader said of these files, or where it fell over.
BOOST_AUTO_TEST_CASE(files_that_the_original_refuses_or_crashes_on_are_refused) {
  const struct {
    const char* from;
    const char* to;
    ErrorCode code;
    const char* says;
  } kCases[] = {
      {"\"depth\":1", "\"depth\":1.0", ErrorCode::bad_value, "depth"},
      {"\"depth\":1", "\"depth\":\"1\"", ErrorCode::bad_value, "depth"},
      {"\"depth\":1", "\"depth\":-1", ErrorCode::bad_value, "depth"},
      {"\"depth\":1", "\"depth\":9223372036854775807", ErrorCode::limit_exceeded, "layers"},
      {"\"depth\":1,\"rows\":1", "\"depth\":4294967296,\"rows\":4294967296",
       ErrorCode::limit_exceeded, "layers"},
      {"\"depth\":1", "\"depth\":9223372036854775808", ErrorCode::bad_value, "depth"},
      {"\"depth\":1", "\"depth\":0", ErrorCode::out_of_bounds, "z"},
      {"\"x\":0", "\"x\":1", ErrorCode::out_of_bounds, "x"},
      {"\"y\":0", "\"y\":-1", ErrorCode::out_of_bounds, "y"},
      {"AFvTEoEAADylf/cLvBuT", "AFvTEoEAADylf/cLvBu", ErrorCode::bad_value, "weights"},
      {"AFvTEoEAADylf/cLvBuT", "AFvTEoEAADylf/cLvB=T", ErrorCode::bad_value, "weights"},
      {"AFvTEoEAADylf/cLvBuT", "!!!!", ErrorCode::bad_value, "weights"},
      {"AFvTEoEAADylf/cLvBuT", "AFvTEoEAADylf/cLvBs=", ErrorCode::inconsistent, "14"},
      {"\"int8\"", "\"float32\"", ErrorCode::bad_value, "multiple of 4"},
      {"\"int8\"", "\"float16\"", ErrorCode::inconsistent, "fewer"},
      {"\"input_height\":5", "\"input_height\":-5", ErrorCode::bad_value, "Dense"},
      {"\"input_height\":5", "\"input_height\":4611686018427387904", ErrorCode::bad_value, "Dense"},
      {"\"input_height\":5", "\"input_height\":6", ErrorCode::inconsistent, "18"},
      {"\"Dense\"", "\"Softmax\"", ErrorCode::inconsistent, "Softmax"},
      {"\"native\":true", "\"native\":1", ErrorCode::bad_value, "native"},
      {"\"native\":true", "\"native\":false", ErrorCode::bad_value, "multiple of 4"},
      {"\"type\":\"Dense\"", "\"type\":7", ErrorCode::bad_value, "type"},
      {"\"layers\":[", "\"layers\":[7,", ErrorCode::bad_value, "layers"},
      {"\"scale\":0.5}", "\"scale\":0.5},{}", ErrorCode::inconsistent, "one place"},
      {"\"scale\":0.5}]}", "\"scale\":0.5}]}x", ErrorCode::bad_json, "checkpoint"},
      {"\"scale\":0.5", "\"scale\":NaN", ErrorCode::bad_json, "checkpoint"},
  };
  for (const auto& one : kCases) {
    BOOST_TEST_CONTEXT(one.to)
    BOOST_CHECK_EXCEPTION(saved(dense_json(one.from, one.to)), FormatError,
                          test::says(one.code, one.says));
  }
  // 16 weights of 15: only types whose elements the original counts by are refused.
  BOOST_TEST(saved(dense_json("AFvTEoEAADylf/cLvBuT", "AFvTEoEAADylf/cLvBuTAA=="))
                 .find("AFvTEoEAADylf/cLvBuTAA==") != std::string::npos);
  const std::string long_f16 = dense_json("\"int8\",\"input_height\":5,\"output_height\":3",
                                          "\"float16\",\"input_height\":3,\"output_height\":2");
  BOOST_CHECK_EXCEPTION(saved(long_f16), FormatError, test::says(ErrorCode::inconsistent, "more"));
}

BOOST_AUTO_TEST_CASE(layers_nest_as_deep_as_reading_them_may_recurse) {
  const auto nested = [](unsigned levels) {
    std::string inner = "{}";
    for (unsigned i = 0; i < levels; ++i) inner = "{\"parallel_branches\":[" + inner + "]}";
    return dense_json("{\"z\"", inner + ",{\"z\"");
  };
  const std::string grid = "\"layers_per_cell\":1";
  ReadLimits deep;
  deep.max_json_depth = 1024;
  const auto refused = test::has_code(ErrorCode::limit_exceeded);
  BOOST_CHECK_EXCEPTION(parse_loom_json(nested(101), deep), FormatError, refused);
  BOOST_CHECK_EXCEPTION(parse_loom_json(nested(300), deep), FormatError, refused);
  BOOST_CHECK_EXCEPTION(parse_loom_json(nested(200)), FormatError, refused);
  // Deep enough, they are read; the second layer of the list then has the place of the first.
  BOOST_CHECK_EXCEPTION(parse_loom_json(nested(100), deep), FormatError,
                        test::has_code(ErrorCode::inconsistent));
}

BOOST_AUTO_TEST_CASE(memory_for_layers_is_counted_before_it_is_taken) {
  std::string many = "{\"depth\":1,\"rows\":1,\"cols\":1,\"layers_per_cell\":1,\"layers\":[{}";
  for (int i = 0; i < 10000; ++i) many += ",{}";
  many += "]}";
  ReadLimits tight;
  tight.max_allocation_bytes = 1 << 20;
  BOOST_CHECK_EXCEPTION(parse_loom_json(many, tight), FormatError,
                        test::says(ErrorCode::limit_exceeded, "layers"));
  tight.max_json_bytes = 100;
  BOOST_CHECK_EXCEPTION(parse_loom_json(many, tight), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_json_bytes"));
}

BOOST_AUTO_TEST_CASE(memory_for_paths_is_counted_before_it_is_taken) {
  // 2,000 layers of a few bytes, 90 levels down: paths of 4 MB in all.
  std::string layer = R"("parallel_branches":[{"native":true})";
  for (int i = 1; i < 2000; ++i) layer += R"(,{"native":true})";
  layer += "]";
  for (int i = 0; i < 90; ++i) layer = R"("sequential_layers":[{)" + layer + "}]";
  const std::string text =
      R"({"depth":1,"rows":1,"cols":1,"layers_per_cell":1,"layers":[{)" + layer + "}]}";
  BOOST_TEST(parse_loom_json(text).layers.size() == 1u);
  BOOST_CHECK_EXCEPTION(parse_loom_json(text, {.max_allocation_bytes = 16 << 20}), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
}

BOOST_AUTO_TEST_CASE(cells_that_a_file_lacks_are_those_of_an_untouched_grid) {
  const LoomNetwork network = parse_loom_json(
      dense_json("\"rows\":1", "\"rows\":2").replace(dense_json().find("\"y\":0"), 5, "\"y\":1"));
  BOOST_REQUIRE(network.layers.size() == 2);
  const LoomLayer& made = network.layers[0];
  BOOST_TEST((made.type == LoomLayerType::dense && made.activation == LoomActivation::relu &&
              made.dtype == LoomDType::float32 && !made.weights && made.seq_length == 0));
  BOOST_TEST(network.layers[1].weights.has_value());
  const std::string once = loom_json(network);
  BOOST_TEST(once != saved(once));  // a seq_length of 1 comes when the cell is in the file
  BOOST_TEST(saved(once) == saved(saved(once)));
}

BOOST_AUTO_TEST_CASE(layers_within_layers_come_back) {
  const LoomNetwork network = test::nested_network();
  const std::string text = loom_json(network);
  const LoomNetwork again = parse_loom_json(text);
  BOOST_TEST(loom_json(again) == text);
  for (const char* const path :
       {"layers.0.parallel_branches.0", "layers.0.parallel_branches.1.sequential_layers.1",
        "layers.1.meta_observed_layer", "layers.3"}) {
    const LoomLayer* const before = find_loom_layer(network, path);
    const LoomLayer* const after = find_loom_layer(again, path);
    BOOST_REQUIRE(after != nullptr);
    BOOST_TEST(before->weights->scale == after->weights->scale);
    BOOST_TEST(test::same_bytes(before->weights->native.bytes, after->weights->native.bytes));
  }
  for (const char* const path : {"layers.4", "layers.00", "layers", "layers.0.parallel_branches.2",
                                 "layers.0.meta_observed_layer", "layers.3.biases", "", "layers.x"})
    BOOST_TEST(find_loom_layer(again, path) == nullptr, path);
  // Coordinates of layers within layers are not read.
  const std::string moved = saved(std::string(text).replace(
      text.find("\"z\": 0", text.find("parallel_branches")), 6, "\"z\": 7"));
  BOOST_TEST(moved == text);
}

BOOST_AUTO_TEST_CASE(another_element_type_is_quantised_when_it_is_saved) {
  LoomNetwork network = parse_loom_json(dense_json());
  network.layers[0].dtype = LoomDType::float32;
  const LoomLayer f32 = first_layer(loom_json(network));
  BOOST_TEST((f32.weights->dtype == LoomDType::float32));
  BOOST_TEST(loom_master(f32) == loom_master(parse_loom_json(dense_json()).layers[0]));
  BOOST_CHECK_THROW(set_loom_master(network.layers[0], std::vector<float>(14)), UsageError);
  network.layers.clear();
  BOOST_CHECK_THROW(loom_json(network), UsageError);
}

BOOST_AUTO_TEST_CASE(architectures_fill_in_what_convolutions_leave_out) {
  const LoomNetwork network = build_loom_network(
      R"({"depth":1,"rows":1,"cols":1,"layers_per_cell":2,"layers":[)"
      R"({"type":"cnn3","input_height":4,"output_height":3,"filters":2,"input_channels":3,)"
      R"("softmax_type":9,"head_dim":7,"mask":[true],"is_remote_link":true},)"
      R"({"l":1,"type":"cnn2","input_height":4,"input_width":2,"output_height":5,"softmax_type":77}]})");
  const LoomLayer& cnn3 = network.layers.at(0);
  BOOST_TEST((cnn3.input_width == 4 && cnn3.input_depth == 4 && cnn3.output_depth == 3));
  BOOST_TEST((cnn3.softmax_type == LoomSoftmax::entmax && cnn3.head_dim == 0));
  BOOST_TEST((loom_weight_count(cnn3) == 6u));  // a kernel of 0 counts as 1
  const LoomLayer& cnn2 = network.layers.at(1);
  BOOST_TEST((cnn2.input_width == 2 && cnn2.output_width == 5 && cnn2.input_depth == 0));
  BOOST_TEST((cnn2.softmax_type == LoomSoftmax::standard));
  BOOST_CHECK_EXCEPTION(
      build_loom_network(R"({"depth":1,"rows":1,"cols":1,"layers_per_cell":1,"layers":[{"z":1}]})"),
      FormatError, test::has_code(ErrorCode::out_of_bounds));
}

BOOST_AUTO_TEST_CASE(files_are_saved_and_loaded) {
  const test::TemporaryFolder folder;
  const LoomNetwork network = test::nested_network();
  const std::uint64_t bytes = save_loom_json(folder / "a.json", network);
  const std::string text = test::read_file(folder / "a.json");
  BOOST_TEST(text.size() == bytes);
  BOOST_TEST(text == loom_json(network));
  BOOST_TEST(loom_json(load_loom_json(folder / "a.json")) == text);
  test::write_file(folder / "b.json", dense_json("\"x\":0", "\"x\":1"));
  BOOST_CHECK_EXCEPTION(load_loom_json(folder / "b.json"), FormatError,
                        test::says(ErrorCode::out_of_bounds, "b.json"));
  BOOST_CHECK_THROW(save_loom_json(folder / "c.json", test::transformer_network()),
                    UnsupportedError);
  BOOST_TEST(!std::filesystem::exists(folder / "c.json"));
}

BOOST_AUTO_TEST_CASE(no_truncated_text_is_read) {
  const std::string text = loom_json(test::nested_network());
  for (std::size_t length = 0; length < text.size(); length += length < 200 ? 1 : 7)
    BOOST_CHECK_THROW(parse_loom_json(text.substr(0, length)), FormatError);
}

BOOST_AUTO_TEST_SUITE_END()
