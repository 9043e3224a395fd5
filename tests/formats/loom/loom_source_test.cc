// Files of loom as tensors, and back.
#include "formats/loom/opened.h"

#include "boost_test.h"
#include "formats/loom/networks.h"
#include "formats/loom/through.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/loom.h"

using namespace thalia;
using formats::SinkInput;
using test::dense_json;
using test::text_of;
using test::through;

BOOST_AUTO_TEST_SUITE(loom_source)

namespace {

struct LoomFiles {
  test::TemporaryFolder folder;

  std::shared_ptr<const formats::OpenedFile> entity(const std::string& text,
                                                    const OpenOptions& options = {}) {
    test::write_file(folder / "a.entity", text);
    return formats::open_entity_file(folder / "a.entity", options);
  }
  std::shared_ptr<const formats::OpenedFile> json(const std::string& text,
                                                  const OpenOptions& options = {}) {
    test::write_file(folder / "a.json", text);
    return formats::open_loom_json_file(folder / "a.json", options);
  }
};

OpenOptions dequantizing() {
  OpenOptions options;
  options.dequantize = true;
  return options;
}

std::string as_entity(const LoomNetwork& network) {
  return text_of(entity_bytes(network));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

// An .entity file may have any number of weights, and a JSON checkpoint has those of its layers.
BOOST_FIXTURE_TEST_CASE(a_checkpoint_that_nobody_could_open_is_not_written, LoomFiles) {
  const struct {
    std::size_t weights;
    const char* said;
  } cases[] = {{30, "more weights than the layer has"}, {10, "fewer weights than the layer has"}};
  for (const auto& [weights, said] : cases) {
    const std::string length = std::to_string(weights * sizeof(double));
    const std::string text = test::entity_with_header(
        R"({"format_version":1,"network":{"id":"n","depth":1,"rows":1,"cols":1,"layers_per_cell":1,)"
        R"("layers":[{"z":0,"y":0,"x":0,"l":0,"type":"Dense","activation":"Linear","dtype":"float64",)"
        R"("input_height":5,"output_height":3}]},"blobs":[{"path":"layers.0","offset":0,"length":)" +
            length + R"(,"dtype":"float64","scale":1,"native":true}]})",
        std::string(weights * sizeof(double), '\0'));
    const auto refused = test::says(ErrorCode::inconsistent, "layers.0", said);
    BOOST_CHECK_EXCEPTION(loom_json(test::open_entity(text).network()), FormatError, refused);
    if (weights < 15) continue;  // which no source of tensors takes either
    test::write_file(folder / "a.entity", text);
    convert(folder / "a.entity", folder / "a.thalia");
    for (const char* const from : {"a.entity", "a.thalia"}) {
      BOOST_CHECK_EXCEPTION(
          convert(folder / from, folder / "out.json", {.to = FileFormat::loom_json}), FormatError,
          refused);
      BOOST_TEST(!std::filesystem::exists(folder / "out.json"));
    }
  }
}

// A file that was made of a checkpoint, with a tensor of another size in its place.
BOOST_FIXTURE_TEST_CASE(other_weights_than_a_checkpoint_had_are_held_against_its_layer, LoomFiles) {
  const std::string text = loom_json(test::nested_network());
  const auto source = json(text);
  SinkInput input{.tensors = {}, .metadata = source->facts().metadata};
  for (const auto& tensor : source->facts().tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  auto& first = input.tensors.front();
  BOOST_TEST_REQUIRE((first.layout.encoding == Encoding::dense));
  first.layout = {.dtype = DType::f64, .shape = {1}};
  BOOST_CHECK_EXCEPTION(formats::write_loom_json(folder / "o.json", input, {},
                                                 [](std::size_t, const formats::PieceSink&) {}),
                        FormatError,
                        test::says(ErrorCode::inconsistent, first.name, "fewer weights"));
  BOOST_TEST(!std::filesystem::exists(folder / "o.json"));
}

BOOST_FIXTURE_TEST_CASE(blobs_are_tensors_by_their_paths, LoomFiles) {
  const std::string text = as_entity(test::nested_network());
  const auto source = entity(text);
  const auto& tensors = source->facts().tensors;
  const struct {
    const char* name;
    DType dtype;
    std::uint64_t elements;
    const char* type;
  } kExpected[] = {{"layers.0.parallel_branches.0", DType::u8, 8, "int4"},
                   {"layers.0.parallel_branches.1.sequential_layers.0", DType::u8, 3, "ternary"},
                   {"layers.0.parallel_branches.1.sequential_layers.1", DType::f32, 4, ""},
                   {"layers.1.meta_observed_layer", DType::u8, 2, "binary"},
                   {"layers.3", DType::f64, 4, ""}};
  BOOST_REQUIRE(tensors.size() == std::size(kExpected));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    BOOST_TEST(tensors[i].name == kExpected[i].name);
    BOOST_TEST((tensors[i].layout.dtype == kExpected[i].dtype));
    BOOST_TEST((tensors[i].layout.shape == Shape({kExpected[i].elements})));
    BOOST_TEST(tensors[i].type == kExpected[i].type);
    const Tensor tensor = source->read(i);
    BOOST_TEST(text_of(tensor.bytes()) ==
               text.substr(tensors[i].offset.value(), tensors[i].stored_bytes.value()));
    source->check(i);
  }
  BOOST_TEST((source->read(0).bytes().data() == source->read(0).bytes().data()));
  BOOST_TEST(source->facts().version == "1");
  BOOST_TEST(source->facts().file_bytes == text.size());
  BOOST_TEST(source->facts().losses.empty());
  BOOST_TEST(source->facts().metadata.starts_with(
      R"({"format":"entity","entity":{"network":{"id":"network","depth":2,)"));
  // A tensor outlives its source.
  const Tensor kept = entity(text)->read(4);
  BOOST_TEST(text_of(kept.bytes()) == text.substr(text.size() - 32));
}

BOOST_FIXTURE_TEST_CASE(files_come_back_byte_for_byte, LoomFiles) {
  for (const LoomNetwork& network : {test::nested_network(), test::transformer_network()}) {
    const std::string text = as_entity(network);
    BOOST_TEST(through(*entity(text), formats::write_entity) == text);
  }
  const std::string text = loom_json(test::nested_network());
  BOOST_TEST(through(*json(text), formats::write_loom_json) == text);
  // Not even a blob's place is changed where somebody wrote the embeddings first.
  LoomNetwork converted = test::transformer_network();
  converted.layers[1].components.clear(), converted.layers[3].components.clear();
  const std::string last = as_entity(converted);
  const auto source = entity(last);
  const std::string first = through(*source, formats::write_entity, [](SinkInput& input) {
    const std::string layers = R"({"path":"layers.0",)", other = R"({"path":"transformer.e)";
    std::string& metadata = input.metadata;
    const std::size_t a = metadata.find(layers), b = metadata.find(other);
    const std::string moved = metadata.substr(b, metadata.find('}', b) + 2 - b);
    metadata.erase(b, moved.size());
    metadata.insert(a, moved);
  });
  BOOST_TEST(first != last);
  BOOST_TEST(through(*entity(first), formats::write_entity) == first);
  BOOST_TEST(as_entity(EntityFile::open(folder / "a.entity").network()) == last);
}

// The header says int8 of an RMSNorm, and its blob float32: the original's own loader forgets that.
BOOST_FIXTURE_TEST_CASE(the_type_in_the_header_is_kept, LoomFiles) {
  LoomNetwork network = test::nested_network();
  const std::string text = as_entity(network);
  BOOST_TEST(as_entity(EntityFile::from_bytes({.bytes = test::bytes_of(text), .owner = nullptr})
                           .network()) != text);
  BOOST_TEST(through(*entity(text), formats::write_entity) == text);
}

BOOST_FIXTURE_TEST_CASE(each_kind_is_written_as_the_other_as_the_original_would, LoomFiles) {
  const LoomNetwork network = test::nested_network();
  const std::string json_text = loom_json(network);
  BOOST_TEST(through(*json(json_text), formats::write_entity) ==
             as_entity(parse_loom_json(json_text)));
  const std::string entity_text = as_entity(network);
  const LoomNetwork loaded =
      EntityFile::from_bytes({.bytes = test::bytes_of(entity_text), .owner = nullptr}).network();
  BOOST_TEST(through(*entity(entity_text), formats::write_loom_json) == loom_json(loaded));
}

BOOST_FIXTURE_TEST_CASE(what_json_cannot_hold_is_told_or_refused, LoomFiles) {
  LoomNetwork network = test::transformer_network();
  const auto source = entity(as_entity(network));
  BOOST_CHECK_EXCEPTION(through(*source, formats::write_loom_json), UnsupportedError,
                        test::says(ErrorCode::unsupported_feature, "layers.1.q4_0.200"));
  network.layers[1].components.clear(), network.layers[3].components.clear();
  std::vector<std::string> losses;
  through(*entity(as_entity(network)), formats::write_loom_json, {}, &losses);
  BOOST_REQUIRE(losses.size() == 2);
  BOOST_TEST(losses[0].find("transformer") != std::string::npos);
  BOOST_TEST(losses[1].find("transformer.embeddings") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(weights_are_restored_on_request, LoomFiles) {
  const LoomNetwork network = test::nested_network();
  const std::string text = loom_json(network);
  const auto source = json(text, dequantizing());
  for (std::size_t i = 0; i < source->facts().tensors.size(); ++i) {
    const auto& tensor = source->facts().tensors[i];
    const LoomLayer* const layer = find_loom_layer(network, tensor.name);
    const auto count = loom_weight_count(*layer).value();
    BOOST_TEST((tensor.layout.dtype == DType::f32 && tensor.layout.shape == Shape({count})));
    BOOST_TEST(tensor.type.empty());
    const Tensor read = source->read(i);
    BOOST_TEST(test::same_bytes(
        read.bytes(),
        as_byte_span(loom_master(parse_loom_json(text).layers.empty()
                                     ? *layer
                                     : *find_loom_layer(parse_loom_json(text), tensor.name)))));
  }
  // Written again, the layers are float32.
  const LoomNetwork restored = parse_loom_json(through(*source, formats::write_loom_json));
  const LoomLayer& dense = *find_loom_layer(restored, "layers.0.parallel_branches.0");
  BOOST_TEST((dense.dtype == LoomDType::float32 && dense.weights->dtype == LoomDType::float32));
}

BOOST_FIXTURE_TEST_CASE(components_are_restored_on_request, LoomFiles) {
  LoomNetwork network = test::transformer_network();
  std::vector<std::int8_t> values(3 * 5, 1);
  const auto bitnet = encode_loom_bitnet({.rows = 3, .cols = 5, .scale = 0.5f}, values);
  network.layers[3].components = {{.suffix = "bitnet_ternary.10000",
                                   .dtype = "BITNET_TERNARY",
                                   .native = true,
                                   .bytes = {.bytes = bitnet, .owner = nullptr}}};
  const std::string text = as_entity(network);
  const auto source = entity(text, dequantizing());
  const auto& tensors = source->facts().tensors;
  BOOST_TEST((tensors[1].layout.shape == Shape({64})));
  BOOST_TEST((tensors[2].layout.shape == Shape({32})));
  BOOST_TEST(source->read(1).as<float>()[63] != 0);
  const std::size_t last = 7;
  BOOST_TEST(tensors[last].name == "layers.3.bitnet_ternary.10000");
  BOOST_TEST((tensors[last].layout.shape == Shape({3, 5})));
  BOOST_TEST(source->read(last).as<float>()[14] == 0.5f);
  for (std::size_t i = 0; i < tensors.size(); ++i) source->check(i);
  BOOST_CHECK_THROW(through(*source, formats::write_entity), UnsupportedDtypeError);
  const auto raw = entity(text);
  BOOST_TEST((raw->facts().tensors[last].type == "BITNET_TERNARY"));
  BOOST_TEST(through(*raw, formats::write_entity) == text);
}

// As where a conversion was asked for another precision.
BOOST_FIXTURE_TEST_CASE(another_float_type_becomes_the_layers, LoomFiles) {
  const std::string text = dense_json();
  const auto source = json(text, dequantizing());
  BOOST_TEST(
      through(*source, formats::write_entity).find(R"("dtype":"float32","input_height":5)") !=
      std::string::npos);
  const auto plain = json(text);
  BOOST_CHECK_THROW(through(*plain, formats::write_loom_json,
                            [](SinkInput& input) { input.tensors[0].layout.dtype = DType::i4; }),
                    UnsupportedDtypeError);
}

BOOST_FIXTURE_TEST_CASE(what_is_lost_is_told, LoomFiles) {
  const std::string good = as_entity(test::nested_network());
  BOOST_TEST(entity(good + "more")->facts().losses.size() == 1u);
  const auto source = json(dense_json("\"native\"", "\"colour\":3,\"native\""));
  BOOST_TEST(source->facts().losses.at(0).find("colour") != std::string::npos);
  std::vector<std::string> losses;
  const Tensor more = Tensor::zeros(DType::f32, {2});
  through(
      *source, formats::write_loom_json,
      [](SinkInput& input) {
        input.metadata.insert(1, "\"mine\":[1],");
        input.training_steps = 3;
        input.tensors.push_back({.name = "layers.7", .layout = {.shape = {2}}});
      },
      &losses);
  BOOST_REQUIRE(losses.size() == 3);
  BOOST_TEST(losses[0].find("layers.7") != std::string::npos);
  BOOST_TEST(losses[1].find("mine") != std::string::npos);
  BOOST_TEST(losses[2].find("training steps") != std::string::npos);
}

// Nothing in metadata is trusted: a user may have edited them, or another format written them.
BOOST_FIXTURE_TEST_CASE(tensors_without_a_network_are_refused, LoomFiles) {
  const auto source = json(dense_json());
  const std::string good = source->facts().metadata;
  const auto with = [&](const std::string& metadata) {
    return [metadata](SinkInput& input) { input.metadata = metadata; };
  };
  const auto refused = [&](const std::string& metadata) {
    for (const formats::WriteTensors write : {formats::write_entity, formats::write_loom_json}) {
      BOOST_CHECK_EXCEPTION(through(*source, write, with(metadata)), UnsupportedError,
                            test::has_code(ErrorCode::unsupported_feature));
    }
  };
  for (const char* const other :
       {"{}", "", R"({"format":"safetensors","safetensors":{}})", R"({"format":"loom-json"})",
        R"({"format":"entity","entity":7})", R"({"format":"entity","entity":{}})",
        R"({"format":"entity","entity":{"network":{"depth":-1}}})",
        R"({"format":"entity","entity":{"network":{"layers":[{}]}}})"})
    refused(other);
  refused(replaced(good, "\"depth\":1", "\"depth\":1.5"));
  refused(replaced(good, "\"path\":\"layers.0\"", "\"path\":\"layers.1\""));
  BOOST_CHECK_THROW(through(*source, formats::write_entity, with("[]")), FormatError);
  // The member says what it is; a "format" that says something else is untrusted.
  std::vector<std::string> losses;
  BOOST_TEST(through(*source, formats::write_loom_json,
                     with(replaced(good, "\"loom-json\":", "\"entity\":")), &losses) != "");
  BOOST_REQUIRE(!losses.empty());
  BOOST_TEST(losses[0] == "metadata: 'format'");
  // A network whose weights no longer fit is refused before there is an output.
  BOOST_CHECK_THROW(through(*source, formats::write_entity,
                            with(replaced(good, "\"input_height\":5", "\"input_height\":6"))),
                    FormatError);
  BOOST_CHECK_THROW(
      through(*source, formats::write_loom_json, [](SinkInput& input) { input.tensors.clear(); }),
      UnsupportedError);
}

BOOST_FIXTURE_TEST_CASE(what_check_refuses_is_not_read, LoomFiles) {
  const std::string text = as_entity(test::nested_network());
  const auto few = entity(replaced(text, "\"input_height\":5", "\"input_height\":9"));
  BOOST_CHECK_EXCEPTION(few->check(0), FormatError,
                        test::says(ErrorCode::inconsistent, "a.entity", "parallel_branches.0"));
  BOOST_CHECK_THROW(few->read(0), FormatError);
  BOOST_CHECK_EXCEPTION(json(dense_json("\"input_height\":5", "\"input_height\":9")), FormatError,
                        test::says(ErrorCode::inconsistent, "a.json", "layers.0"));
  // A layer without weights is refused, too.
  const auto none = json(dense_json("\"weights\"", "\"wehghts\""));
  BOOST_CHECK_THROW(none->check(0), FormatError);
  BOOST_CHECK_EXCEPTION(none->read(0), FormatError,
                        test::says(ErrorCode::inconsistent, "a.json", "layers.0"));
  // Nor written again, though there is no byte to read for it.
  BOOST_CHECK_EXCEPTION(
      convert(folder / "a.json", folder / "o.json", {.to = FileFormat::loom_json}), FormatError,
      test::says(ErrorCode::inconsistent, "layers.0", "fewer weights"));
  BOOST_TEST(!std::filesystem::exists(folder / "o.json"));
}

BOOST_FIXTURE_TEST_CASE(blobs_that_overlap_are_tensors_as_far_as_memory_goes, LoomFiles) {
  const std::string text = test::entity_with_header(
      test::blob_header(R"({"path":"layers.0","length":4000},)"
                        R"({"path":"transformer.embeddings","length":4000})"),
      std::string(4000, '\0'));
  OpenOptions options;
  options.chain.read.input.limits.max_allocation_bytes = 8000;
  BOOST_TEST(entity(text, options)->facts().tensors.size() == 2u);
  options.chain.read.input.limits.max_allocation_bytes = 7999;
  BOOST_CHECK_EXCEPTION(entity(text, options), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_allocation_bytes", "blobs"));
}

BOOST_FIXTURE_TEST_CASE(other_objects_in_json_are_no_networks, LoomFiles) {
  BOOST_CHECK_EXCEPTION(json(R"({"name":"package","version":"1.0"})"), FormatError,
                        test::says(ErrorCode::bad_value, "no network of loom", "'name'"));
  BOOST_TEST(json(R"({"id":"network","depth":0,"layers":[]})")->facts().tensors.empty());
  BOOST_TEST(json(R"({"depth":1,"more":1})")->facts().losses.size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(an_id_of_its_own_is_lost_and_said_to_be, LoomFiles) {
  const auto source = json(replaced(dense_json(), "network", "mine"));
  BOOST_TEST(source->facts().losses ==
                 std::vector<std::string>{"keys that mean nothing to the format: 'id'"},
             boost::test_tools::per_element());
  BOOST_TEST(json(dense_json())->facts().losses.empty());
}

BOOST_AUTO_TEST_SUITE_END()
