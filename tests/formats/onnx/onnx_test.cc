// Models that the package onnx wrote, in tests/data/formats/onnx; their elements are bytes that
// make_vectors.py there made. onnx_reference_test.py compares more of them tensor for tensor.
#include "thalia/formats/onnx.h"

#include <string>

#include "boost_test.h"
#include "formats/onnx/file.h"
#include "formats/onnx/models.h"
#include "formats/onnx/opened.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using test::bytes_of;
using test::onnx_vector;
using test::text_of;

BOOST_AUTO_TEST_SUITE(onnx)

namespace {

std::string payload(DType dtype) {
  const std::size_t bits = 15 * dtype_bits(dtype);
  std::string bytes((bits + 7) / 8, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(dtype == DType::boolean ? (7 * i + 129) % 2 : 7 * i + 129);
  if (bits % 8 != 0) bytes.back() = static_cast<char>(bytes.back() & ((1 << bits % 8) - 1));
  return bytes;
}

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> numbers(tensor.values().size() / sizeof(float));
  std::memcpy(numbers.data(), tensor.values().data(), tensor.values().size());
  return numbers;
}

template <typename T>
std::vector<T> indices(const Tensor& tensor) {
  const auto all = std::get<CooArrays<T>>(tensor.coo()).indices;
  return {all.begin(), all.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_type_is_read_from_raw_data_and_from_its_typed_field) {
  for (const char* const name : {"raw.onnx", "typed.onnx"}) {
    const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(onnx_vector(name));
    BOOST_TEST(file.tensors().size() == 27u);
    std::set<DType> seen;
    for (const formats::onnx::OnnxTensor& described : file.tensors()) {
      BOOST_TEST_CONTEXT(name << " " << described.name) {
        const Tensor tensor = file.read(described.name);
        seen.insert(tensor.dtype());
        BOOST_TEST((tensor.layout() == described.layout));
        BOOST_TEST((tensor.shape() == Shape({3, 5})));
        BOOST_TEST(text_of(tensor.bytes()) == payload(tensor.dtype()));
      }
    }
    // All but ternary and binary.
    BOOST_TEST(seen.size() == 27u);
    BOOST_TEST(!seen.contains(DType::ternary));
  }
}

BOOST_AUTO_TEST_CASE(elements_that_lie_raw_are_viewed_in_the_mapping) {
  const std::string bytes = test::read_file(onnx_vector("raw.onnx"));
  const formats::onnx::OnnxFile file =
      formats::onnx::OnnxFile::from_bytes({.bytes = bytes_of(bytes), .owner = nullptr}, "raw");
  for (const formats::onnx::OnnxTensor& described : file.tensors()) {
    const Tensor tensor = file.read(described.name);
    BOOST_TEST(static_cast<const void*>(tensor.bytes().data()) ==
               static_cast<const void*>(bytes.data() + *described.offset));
  }
  // Packed floats are the same bytes, packed integers are not.
  const std::string typed = test::read_file(onnx_vector("typed.onnx"));
  const formats::onnx::OnnxFile numbers =
      formats::onnx::OnnxFile::from_bytes({.bytes = bytes_of(typed), .owner = nullptr}, "t");
  for (const formats::onnx::OnnxTensor& described : numbers.tensors()) {
    const DType dtype = described.layout.dtype;
    BOOST_TEST(described.offset.has_value() == (dtype == DType::f32 || dtype == DType::f64 ||
                                                dtype == DType::c64 || dtype == DType::c128));
  }
}

BOOST_AUTO_TEST_CASE(external_data_are_read_from_the_file_beside_the_model) {
  const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(onnx_vector("external.onnx"));
  const Tensor large = file.read("large");
  BOOST_TEST(file.tensors()[0].location == "external.data");
  BOOST_TEST((large.shape() == Shape({20, 30})));
  BOOST_TEST(floats(large)[599] == 599.0f);
  BOOST_TEST(file.tensors()[1].location.empty());
  BOOST_TEST(text_of(file.read("int8").bytes()) == payload(DType::i8));
  BOOST_TEST(file.file_bytes() == test::read_file(onnx_vector("external.onnx")).size() + 2400);
  const std::string bytes = test::read_file(onnx_vector("external.onnx"));
  BOOST_CHECK_THROW(test::onnx_from(bytes).read("large"), UnsupportedError);
}

BOOST_AUTO_TEST_CASE(sparse_tensors_are_coordinate_lists) {
  const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(onnx_vector("sparse.onnx"));
  const Tensor linear = file.read("linear");
  BOOST_TEST((linear.encoding() == Encoding::coo && linear.shape() == Shape({4, 5})));
  BOOST_TEST(linear.nnz() == 3u);
  BOOST_TEST((indices<std::uint32_t>(linear) == std::vector<std::uint32_t>{0, 2, 3, 1, 0, 4}));
  BOOST_TEST((floats(linear) == std::vector<float>{-2.0f, -0.5f, 1.0f}));
  const Tensor coordinates = file.read("coordinates");
  BOOST_TEST((coordinates.shape() == Shape({2, 3, 4})));
  BOOST_TEST((indices<std::uint32_t>(coordinates) ==
              std::vector<std::uint32_t>{0, 0, 1, 0, 2, 2, 1, 0, 3}));
}

BOOST_AUTO_TEST_CASE(what_a_model_says_of_itself_is_read) {
  const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(onnx_vector("computing.onnx"));
  const OnnxModel& model = file.model();
  BOOST_TEST(model.ir_version == 8);
  BOOST_TEST(model.producer_name == "make");
  BOOST_TEST(model.producer_version == "1.0");
  BOOST_TEST(model.domain == "org.example");
  BOOST_TEST(model.model_version == 7);
  BOOST_TEST(model.doc_string == "a model");
  BOOST_TEST(model.graph_name == "computing");
  BOOST_TEST(model.graph_doc_string == "a graph");
  BOOST_TEST((model.opset_imports == std::vector<OnnxOpset>{{.domain = {}, .version = 15}}));
  BOOST_TEST((file.metadata() == OnnxMetadata{{"author", "someone"}, {"config", "{\"a\": 1}"}}));
  BOOST_TEST(file.graph().nodes == 3u);
  BOOST_TEST(file.graph().inputs == 1u);
  BOOST_TEST(file.graph().outputs == 1u);
  BOOST_TEST(!file.graph().outputs_are_tensors);
  BOOST_TEST(file.graph().unread_tensors == 1u);
}

BOOST_AUTO_TEST_CASE(constants_and_tensors_of_subgraphs_come_behind_the_initialisers) {
  const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(onnx_vector("computing.onnx"));
  std::vector<std::string> names;
  for (const formats::onnx::OnnxTensor& tensor : file.tensors()) names.push_back(tensor.name);
  const std::vector<std::string> expected{
      "weight",
      "scale",
      "choose/else_branch/c",
      "choose/else_branch/w",
      "choose/then_branch/c",
      "choose/then_branch/w",
  };
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  BOOST_TEST(file.tensors()[0].initialiser);
  BOOST_TEST(!file.tensors()[1].initialiser);
  BOOST_TEST(floats(file.read("scale"))[0] == 3.0f);
  BOOST_TEST(floats(file.read("choose/then_branch/c"))[0] == 10.0f);
  BOOST_TEST(floats(file.read("choose/else_branch/w"))[0] == 21.0f);
  const formats::onnx::OnnxFile alone =
      formats::onnx::OnnxFile::open(onnx_vector("computing.onnx"), {.constants = false});
  BOOST_TEST(alone.tensors().size() == 1u);
  BOOST_TEST(alone.graph().nodes == 3u);
}

BOOST_AUTO_TEST_CASE(tensors_of_nodes_with_equal_names_are_numbered) {
  using test::Proto;
  const auto constant = [](std::string_view output) {
    const Proto value = test::onnx_tensor("", 3, {1}).text(9, "x");
    return Proto()
        .text(2, output)
        .text(4, "Constant")
        .message(5, Proto().text(1, "value").message(5, value));
  };
  const formats::onnx::OnnxFile file =
      test::onnx_from(test::onnx_model(Proto()
                                           .message(1, constant("a"))
                                           .message(1, constant("a"))
                                           .message(1, constant("a#2"))
                                           .message(1, constant("a"))
                                           .message(1, constant(""))));
  std::vector<std::string> names;
  for (const formats::onnx::OnnxTensor& tensor : file.tensors()) names.push_back(tensor.name);
  const std::vector<std::string> expected{"a", "a#2", "a#2#2", "a#3", "Constant/value"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_source_tells_what_a_conversion_loses) {
  const auto source = formats::open_onnx_file(onnx_vector("computing.onnx"), {});
  const formats::OpenedFacts& facts = source->facts();
  BOOST_TEST(facts.version == "IR 8");
  BOOST_TEST(facts.tensors.size() == 6u);
  const std::vector<std::string> losses{
      "the graph of 3 nodes, 1 input and 1 output",
      "1 tensor in nodes of types that are not read, such as strings"};
  BOOST_TEST(facts.losses == losses, boost::test_tools::per_element());
  BOOST_TEST(
      facts.metadata.substr(0, facts.metadata.find(R"(,"order")")) + "}}" ==
      R"({"format":"onnx","onnx":{"ir_version":8,"producer_name":"make","producer_version":"1.0",)"
      R"("domain":"org.example","model_version":7,"doc_string":"a model","graph_name":"computing",)"
      R"("graph_doc_string":"a graph","opset_imports":[{"domain":"","version":15}],)"
      R"("metadata_props":{"author":"someone","config":"{\"a\": 1}"}}})");
  BOOST_TEST(formats::open_onnx_file(onnx_vector("raw.onnx"), {})->facts().losses.empty());
  BOOST_TEST(source->read(0).bytes().size() == 8u);
}

BOOST_AUTO_TEST_CASE(a_name_that_is_not_there_is_met_with_the_nearest_one) {
  BOOST_CHECK_EXCEPTION(formats::onnx::OnnxFile::open(onnx_vector("computing.onnx")).read("wieght"),
                        UsageError, test::says(ErrorCode::not_found, "computing.onnx", "'weight'"));
}

BOOST_AUTO_TEST_CASE(files_read_into_memory_are_the_same) {
  for (const char* const name : {"raw.onnx", "external.onnx"}) {
    const formats::onnx::OnnxFile mapped = formats::onnx::OnnxFile::open(onnx_vector(name));
    const formats::onnx::OnnxFile copied =
        formats::onnx::OnnxFile::open(onnx_vector(name), {.input = {.access = Access::copied}});
    for (std::size_t i = 0; i < mapped.tensors().size(); ++i)
      BOOST_TEST((mapped.read(i) == copied.read(i)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
