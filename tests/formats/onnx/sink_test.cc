// Models through a .thalia file's metadata: what comes back, and what becomes of other metadata.
#include <algorithm>
#include <filesystem>
#include <string>

#include "boost_test.h"
#include "formats/onnx/file.h"
#include "formats/onnx/models.h"
#include "formats/onnx/opened.h"
#include "formats/onnx/sink.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/onnx.h"

using namespace thalia;
using formats::SinkInput;
using formats::SinkOptions;
using test::random_tensor;
using test::read_file;
using test::sparse_tensor;

BOOST_AUTO_TEST_SUITE(onnx_sink)

namespace {

// What a conversion writes of a source.
std::vector<std::string> carried(const std::filesystem::path& from, const std::filesystem::path& to,
                                 const std::string* metadata = nullptr) {
  const auto source = formats::open_onnx_file(from, {});
  SinkInput input{.metadata = metadata == nullptr ? source->facts().metadata : *metadata,
                  .training_steps = source->facts().training_steps};
  for (const auto& tensor : source->facts().tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  std::vector<std::string> losses;
  SinkOptions options;
  options.save.output.durability = Durability::none;
  options.announce = [&](const std::vector<std::string>& said) { losses = said; };
  formats::write_onnx(to, input, options, [&](std::size_t i, const formats::PieceSink& sink) {
    // In pieces of odd sizes: nothing may depend on where they end.
    const Tensor tensor = source->read(i);
    for (ByteSpan rest = tensor.bytes(); !rest.empty();) {
      const std::size_t part = std::min<std::size_t>(rest.size(), 7);
      sink(rest.first(part));
      rest = rest.subspan(part);
    }
  });
  return losses;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_model_of_weights_comes_back_byte_for_byte) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "again");
  const std::vector<std::pair<std::string, Tensor>> tensors{
      {"a", random_tensor(DType::f16, {3, 200})},
      {"sparse", sparse_tensor()},
      {"b", random_tensor(DType::i4, {7, 1, 2})}};
  OnnxModel model;
  model.domain = "org.example";
  model.model_version = -3;
  model.doc_string = "two\nlines";
  model.graph_doc_string = "graph";
  model.opset_imports.push_back({.domain = "ai.onnx.ml", .version = 3});
  const OnnxMetadata metadata{{"z", "1"}, {"a", "{\"json\":true}"}, {"thalia.training_steps", "7"}};
  for (const bool external : {false, true}) {
    save_onnx(folder / "w.onnx", tensors, metadata, {.model = model, .external_data = external});
    BOOST_TEST(*formats::open_onnx_file(folder / "w.onnx", {})->facts().training_steps == 7u);
    const auto losses = carried(folder / "w.onnx", folder / "again/w.onnx");
    BOOST_TEST(losses.empty());
    BOOST_TEST(read_file(folder / "again/w.onnx") == read_file(folder / "w.onnx"));
    if (external)
      BOOST_TEST(read_file(folder / "again/w.onnx.data") == read_file(folder / "w.onnx.data"));
  }
}

BOOST_AUTO_TEST_CASE(conversions_keep_sparse_tensors) {
  const test::TemporaryFolder folder;
  const formats::onnx::OnnxFile before =
      formats::onnx::OnnxFile::open(test::onnx_vector("sparse.onnx"));
  for (const char* const between : {"b.onnx", "b.thalia", "b.pt"}) {
    convert(test::onnx_vector("sparse.onnx"), folder / between);
    convert(folder / between, folder / "c.onnx");
    const formats::onnx::OnnxFile after = formats::onnx::OnnxFile::open(folder / "c.onnx");
    BOOST_REQUIRE(after.tensors().size() == before.tensors().size());
    for (const formats::onnx::OnnxTensor& tensor : before.tensors())
      BOOST_TEST((after.read(tensor.name) == before.read(tensor.name)), between);
  }
}

// Not every program that runs models takes sparse ones.
BOOST_AUTO_TEST_CASE(a_conversion_makes_them_dense_where_it_is_asked) {
  const test::TemporaryFolder folder;
  convert(test::onnx_vector("sparse.onnx"), folder / "c.onnx", {.dense = true});
  const formats::onnx::OnnxFile dense = formats::onnx::OnnxFile::open(folder / "c.onnx");
  for (const formats::onnx::OnnxTensor& tensor : dense.tensors())
    BOOST_TEST((tensor.layout.encoding == Encoding::dense));
}

BOOST_AUTO_TEST_CASE(of_a_model_that_computes_its_tensors_and_facts_come_back) {
  const test::TemporaryFolder folder;
  const auto losses = carried(test::onnx_vector("computing.onnx"), folder / "c.onnx");
  BOOST_TEST(losses.empty());
  const formats::onnx::OnnxFile before =
      formats::onnx::OnnxFile::open(test::onnx_vector("computing.onnx"));
  const formats::onnx::OnnxFile after = formats::onnx::OnnxFile::open(folder / "c.onnx");
  BOOST_TEST((after.model() == before.model()));
  BOOST_TEST((after.metadata() == before.metadata()));
  BOOST_REQUIRE(after.tensors().size() == before.tensors().size());
  for (const formats::onnx::OnnxTensor& tensor : before.tensors())
    BOOST_TEST((after.read(tensor.name) == before.read(tensor.name)));
  BOOST_TEST(after.graph().outputs_are_tensors);
}

BOOST_AUTO_TEST_CASE(metadata_of_others_become_properties) {
  const test::TemporaryFolder folder;
  const auto properties = [&](const std::string& metadata, std::vector<std::string> expected = {}) {
    const auto losses = carried(test::onnx_vector("sparse.onnx"), folder / "m.onnx", &metadata);
    BOOST_TEST(losses == expected, boost::test_tools::per_element());
    return formats::onnx::OnnxFile::open(folder / "m.onnx").metadata();
  };
  BOOST_TEST(properties("{}").empty());
  BOOST_TEST(
      (properties(R"({"name":"x","note":"y\n"})") == OnnxMetadata{{"name", "x"}, {"note", "y\n"}}));
  const std::string as_json =
      "that the metadata 'epoch', 'config' are more than text: properties hold them as JSON";
  BOOST_TEST((properties(R"({"epoch": 3, "config": {"a": [1, null]}})", {as_json}) ==
              OnnxMetadata{{"epoch", "3"}, {"config", R"({"a":[1,null]})"}}));
  BOOST_TEST((properties(R"({"a":"1","a":"2"})", {"the metadata 'a', whose keys are taken"}) ==
              OnnxMetadata{{"a", "1"}}));
  // Beside source metadata.
  BOOST_TEST((properties(R"({"format":"onnx","onnx":{"ir_version":8,"metadata_props":{"a":"b"}},)"
                         R"("note":"mine","a":"c"})",
                         {"the metadata 'a', whose keys are taken"}) ==
              OnnxMetadata{{"a", "b"}, {"note", "mine"}}));
  // What was edited is no source metadata any more.
  for (const char* const edited :
       {R"({})", R"({"ir_version":"8"})", R"({"ir_version":8,"ir_version":8})",
        R"({"ir_version":8,"metadata_props":{"a":1}})", R"({"ir_version":8,"else":1})",
        R"({"ir_version":8,"opset_imports":[1]})", R"({"ir_version":8,"opset_imports":{}})",
        R"({"ir_version":8,"external_data":1})", R"({"ir_version":1e3})", R"({"ir_version":-1})",
        R"({"ir_version":8,"metadata_props":{"a":"1","a":"2"}})", R"([8])", R"("8")"}) {
    const std::string metadata = std::string(R"({"format":"onnx","onnx":)") + edited + "}";
    const auto losses = carried(test::onnx_vector("sparse.onnx"), folder / "m.onnx", &metadata);
    BOOST_TEST(losses.size() == (edited[0] == '"' ? 0u : 1u), edited);
    const OnnxMetadata found = formats::onnx::OnnxFile::open(folder / "m.onnx").metadata();
    BOOST_REQUIRE(found.size() == 2u);
    BOOST_TEST(found[0].second == "onnx");
    BOOST_TEST(found[1].first == "onnx");
  }
  // Versions that no ONNX has are corrected.
  const std::string odd = R"({"format":"onnx","onnx":{"ir_version":99,"opset_imports":)"
                          R"([{"domain":"","version":-1},{"domain":"x","version":3}]}})";
  carried(test::onnx_vector("sparse.onnx"), folder / "m.onnx", &odd);
  BOOST_TEST(formats::onnx::OnnxFile::open(folder / "m.onnx").model().ir_version == 14);
  BOOST_TEST(
      (formats::onnx::OnnxFile::open(folder / "m.onnx").model().opset_imports ==
       std::vector<OnnxOpset>{{.domain = "x", .version = 3}, {.domain = {}, .version = 15}}));
}

BOOST_AUTO_TEST_CASE(csr_becomes_coo_and_is_announced) {
  const test::TemporaryFolder folder;
  const std::vector<float> values{1, 2, 3};
  const std::vector<std::uint32_t> rows{0, 1, 1, 3}, columns{2, 0, 3};
  const Tensor csr = Tensor::csr<std::uint32_t>(
      DType::f32, {3, 4},
      {.row_pointers = rows, .column_indices = columns, .values = as_byte_span(values)});
  SinkInput input{.tensors = {{.name = "w", .layout = csr.layout()}}};
  std::vector<std::string> losses;
  SinkOptions options;
  options.announce = [&](const std::vector<std::string>& said) { losses = said; };
  const auto write = [&](ByteSpan bytes) {
    formats::write_onnx(folder / "w.onnx", input, options,
                        [&](std::size_t, const formats::PieceSink& sink) { sink(bytes); });
  };
  write(csr.bytes());
  BOOST_REQUIRE(losses.size() == 1u);
  BOOST_TEST(losses[0] == "the encoding csr, in place of which coo is written: 'w'");
  BOOST_TEST((formats::onnx::OnnxFile::open(folder / "w.onnx").read("w") == csr.to_coo()));
  // Indices that break the rules are found before the model is in place.
  const std::string good = read_file(folder / "w.onnx");
  for (const std::size_t at : {4u, 12u, 16u, 20u, 24u}) {
    std::vector<std::byte> bad(csr.bytes().begin(), csr.bytes().end());
    bad[at] = std::byte{9};
    BOOST_CHECK_THROW(write(bad), FormatError);
    BOOST_TEST(read_file(folder / "w.onnx") == good);
  }
}

BOOST_AUTO_TEST_SUITE_END()
