// Writing .pt files: those of PyTorch come back byte for byte, and metadata of others never does
// harm. What torch.load makes of the files is in reference_test.py.
#include "formats/pt/sink.h"

#include <algorithm>
#include <string>

#include "boost_test.h"
#include "formats/pickle/machine.h"
#include "formats/pickle/pickler.h"
#include "formats/pt/archives.h"
#include "formats/pt/opened.h"
#include "formats/pt/opened_tree.h"
#include "formats/pt/plan.h"
#include "support/errors.h"
#include "thalia/formats/convert.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(pt_sink)

namespace {

using formats::OpenedFile;
using formats::PieceSink;
using formats::SinkInput;
using formats::SinkOptions;
using formats::pt::open_pt_file;
using formats::pt::write_pt;

const OpenOptions kShared{.shared_memory = true};

SinkInput input_of(const OpenedFile& source) {
  SinkInput input{.metadata = source.facts().metadata};
  for (const AnyTensor& tensor : source.facts().tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  return input;
}

std::vector<std::string> write(const std::filesystem::path& path, const OpenedFile& source,
                               const SinkInput& input) {
  std::vector<std::string> said;
  SinkOptions options;
  options.save.output.durability = Durability::none;
  options.announce = [&](const std::vector<std::string>& losses) { said = losses; };
  const std::uint64_t bytes =
      write_pt(path, input, options, [&](std::size_t i, const PieceSink& sink) {
        const Tensor tensor = source.read(i);
        for (ByteSpan rest = tensor.bytes(); !rest.empty();) {
          const std::size_t taken = std::min<std::size_t>(rest.size(), 7);
          sink(rest.first(taken));
          rest = rest.subspan(taken);
        }
      });
  BOOST_TEST(bytes == std::filesystem::file_size(path));
  return said;
}

// Writes tensors of f32 [2] under these names, each of the bytes "abcdefgh".
std::vector<std::string> write_named(const std::filesystem::path& path,
                                     const std::vector<std::string>& names,
                                     const std::string& metadata) {
  SinkInput input{.metadata = metadata};
  for (const std::string& name : names)
    input.tensors.push_back({.name = name, .layout = {.dtype = DType::f32, .shape = Shape({2})}});
  std::vector<std::string> said;
  SinkOptions options;
  options.save.output.durability = Durability::none;
  options.announce = [&](const std::vector<std::string>& losses) { said = losses; };
  write_pt(path, input, options,
           [&](std::size_t, const PieceSink& sink) { sink(bytes_of("abcdefgh")); });
  return said;
}

std::string with_tree(const std::string& tree) {
  return R"({"thalia_checkpoint":{"version":1,"tree":)" + tree + "}}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_torch_come_back_byte_for_byte) {
  const TemporaryFolder folder;
  for (const char* const name : {"train.pt", "dtypes.pt", "shared.pt", "quantized.pt", "bare.pt"}) {
    const auto source = open_pt_file(pt_path(name), kShared);
    BOOST_TEST(write(folder / name, *source, input_of(*source)).empty());
    BOOST_TEST(read_file(folder / name) == read_file(pt_path(name)), name);
  }
}

BOOST_AUTO_TEST_CASE(what_was_written_comes_back_byte_for_byte) {
  const TemporaryFolder folder;
  for (const char* const name : {"views.pt", "sparse.pt", "leaves.pt", "numpy.pt", "protocol5.pt",
                                 "script.pt", "big_endian.pt", "deflated.pt"}) {
    BOOST_TEST_CONTEXT(name) {
      const auto first = open_pt_file(pt_path(name), kShared);
      write(folder / "1.pt", *first, input_of(*first));
      const auto second = open_pt_file(folder / "1.pt", kShared);
      BOOST_TEST(write(folder / "2.pt", *second, input_of(*second)).empty());
      BOOST_TEST((read_file(folder / "1.pt") == read_file(folder / "2.pt")));
      for (std::size_t i = 0; i < first->facts().tensors.size(); ++i)
        BOOST_TEST((first->read(i).bytes().size() == second->read(i).bytes().size()));
    }
  }
}

BOOST_AUTO_TEST_CASE(tensors_that_share_memory_are_stored_once) {
  const auto source = open_pt_file(pt_path("shared.pt"), kShared);
  std::vector<std::string> names;
  for (const AnyTensor& tensor : source->facts().tensors) names.push_back(tensor.name);
  BOOST_TEST(names == (std::vector<std::string>{"embed", "a", "grad", "frozen"}),
             boost::test_tools::per_element());
  const auto views = open_pt_file(pt_path("views.pt"), kShared);
  BOOST_TEST((views->facts().tensors[0].layout.shape == Shape({24})));
  BOOST_TEST(views->facts().losses[1] ==
             "the strides of 3 tensors, as elements are kept row by row");
}

// As formats without views have them, out of the object, and out of a tree of it.
BOOST_AUTO_TEST_CASE(each_tensor_is_read_by_itself) {
  for (const char* const name :
       {"shared.pt", "views.pt", "train.pt", "sparse.pt", "quantized.pt"}) {
    BOOST_TEST_CONTEXT(name) {
      const PtTensors file = pt_open(pt_path(name));
      const auto apart = open_pt_file(pt_path(name), {});
      const auto from_tree =
          formats::pt::tree_tensors(open_pt_file(pt_path(name), kShared), ReadLimits{});
      BOOST_TEST_REQUIRE(apart->facts().tensors.size() == file.tensors().size());
      for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        const AnyTensor& tensor = file.tensors()[i];
        for (const OpenedFile* const source :
             {apart.get(), from_tree ? from_tree->source.get() : apart.get()}) {
          BOOST_TEST(source->facts().tensors[i].name == tensor.name);
          BOOST_TEST((source->facts().tensors[i].layout.shape == tensor.layout.shape));
          BOOST_TEST((source->facts().tensors[i].layout.dtype == tensor.layout.dtype));
          BOOST_TEST(text_of(source->read(i).bytes()) == text_of(file.read(tensor.name).bytes()));
          source->check(i);
        }
      }
      BOOST_TEST(apart->facts().metadata.find("\"view\"") == std::string::npos);
      if (!from_tree) continue;
      BOOST_TEST(to_json(parse_json(from_tree->source->facts().metadata).at("thalia_checkpoint")) ==
                 to_json(parse_json(apart->facts().metadata).at("thalia_checkpoint")));
      const std::string& loss = from_tree->source->facts().losses.back();
      BOOST_TEST(loss.starts_with("the memory that tensors share: '"));
      BOOST_TEST(apart->facts().losses.back().starts_with("the memory that tensors share: '"));
    }
  }
  const auto shared = open_pt_file(pt_path("shared.pt"), kShared);
  BOOST_TEST(formats::pt::tree_tensors(shared, ReadLimits{}).has_value());
  const auto alone = open_pt_file(pt_path("dtypes.pt"), kShared);
  BOOST_TEST(!formats::pt::tree_tensors(alone, ReadLimits{}).has_value());
}

BOOST_AUTO_TEST_CASE(views_get_the_type_of_what_they_are_views_of) {
  const TemporaryFolder folder;
  for (const char* const way : {"b.pt", "b.thalia"}) {
    ConvertOptions options;
    options.precision = parse_precision_policy("bf16");
    const ConvertResult result = convert(pt_path("views.pt"), folder / way, options);
    BOOST_TEST(result.converted_tensors > 0u);
    convert(folder / way, folder / "views.pt");
    const PtTensors before = pt_open(pt_path("views.pt"));
    const PtTensors after = pt_open(folder / "views.pt");
    BOOST_TEST_REQUIRE(after.tensors().size() == before.tensors().size());
    BOOST_TEST(after.read("row").bytes().data() == after.read("whole").bytes().data() + 12);
    for (std::size_t i = 0; i < before.tensors().size(); ++i) {
      const AnyTensor &old = before.tensors()[i], &now = after.tensors()[i];
      BOOST_TEST(now.name == old.name);
      BOOST_TEST((now.layout.shape == old.layout.shape));
      BOOST_TEST(
          (now.layout.dtype == (old.layout.dtype == DType::f32 ? DType::bf16 : old.layout.dtype)));
    }
  }
}

BOOST_AUTO_TEST_CASE(codes_become_numbers_on_request) {
  const auto source =
      open_pt_file(pt_path("quantized.pt"), {.dequantize = true, .shared_memory = true});
  BOOST_TEST(source->facts().tensors.size() == 4u);
  const Tensor numbers = source->read(0);
  BOOST_TEST(numbers.as<float>()[5] == 6.0f);
  BOOST_TEST(source->read(3).as<float>()[4] == 5.0f);
  BOOST_TEST(source->facts().metadata.find("quantized\":{") == std::string::npos);
  const TemporaryFolder folder;
  BOOST_TEST(write(folder / "a.pt", *source, input_of(*source)).empty());
}

BOOST_AUTO_TEST_CASE(tensors_without_an_object_become_a_dictionary) {
  const TemporaryFolder folder;
  const auto path = folder / "a.pt";
  BOOST_TEST(write_named(path, {"b", "a"}, R"({"format":"x","note":"x","steps":3})") ==
                 std::vector<std::string>{"metadata: 'format', 'note', 'steps'"},
             boost::test_tools::per_element());
  // Members of these names that somebody else has made.
  BOOST_TEST(write_named(path, {"b", "a"},
                         R"({"format":"pt","pt":"x","thalia_checkpoint":{"version":0}})") ==
                 std::vector<std::string>{"metadata: 'format', 'pt', 'thalia_checkpoint'"},
             boost::test_tools::per_element());
  const PtTensors file = pt_open(path);
  BOOST_TEST(pt_tree(path) == R"({"dict":[["b",{"tensor":"b"}],["a",{"tensor":"a"}]]})");
  BOOST_TEST(text_of(file.read("a").bytes()) == "abcdefgh");
  BOOST_TEST(read_file(path).find("archive/data/1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(metadata_that_does_not_fit_is_left_out) {
  const TemporaryFolder folder;
  const auto path = folder / "a.pt";
  const std::string flat = R"({"dict":[["w",{"tensor":"w"}]]})";
  for (
      const char* const tree :
      {R"({"tensor":"x"})",
       R"([])",
       R"({"dict":3})",
       R"({"dict":[[1]]})",
       R"({"what":1})",
       R"({"dict":[],"list":[]})",
       R"({"int":"1x"})",
       R"({"int":""})",
       R"({"float":"one"})",
       R"({"bytes":"?"})",
       R"({"dtype":"float17"})",
       R"({"device":"floppy"})",
       R"({"device":"cuda:300"})",
       R"({"size":["a"]})",
       R"({"set":[{"list":[]}]})",
       R"({"dict":[[{"tensor":"w"},1]]})",
       R"({"complex":["1.0"]})",
       R"({"tensor":3})",
       R"({"tensor":"w","view":{}})",
       R"({"list":[1e999]})",
       R"({"tensor":"w","view":{"dtype":"float32","offset":1,"shape":[2],"stride":[1]}})",
       R"({"tensor":"w","view":{"dtype":"float32","offset":0,"shape":[2],"stride":[-1]}})",
       R"({"tensor":"w","view":{"dtype":"float32","offset":0,"shape":[2],"stride":[]}})",
       R"({"tensor":"w","view":{"dtype":"float64","offset":0,"shape":[2],"stride":[1]}})",
       R"({"tensor":"w","view":{"dtype":"f","offset":0,"shape":[2],"stride":[1]}})",
       R"({"tensor":"w","view":{"dtype":"float32","offset":9223372036854775807,"shape":[2,9223372036854775807],"stride":[1,9223372036854775807]}})",
       R"({"list":[1,2]})"}) {
    const std::vector<std::string> said = write_named(path, {"w"}, with_tree(tree));
    BOOST_TEST_CONTEXT(tree) {
      BOOST_TEST(said.size() == 1u);
      BOOST_TEST(pt_tree(path) == flat);
    }
  }
  std::string deep = "1";
  for (int i = 0; i < 81; ++i) deep = "{\"list\":[" + deep + "]}";
  BOOST_TEST(write_named(path, {"w"}, with_tree(deep)).size() == 1u);
  // Another version, members of the wrong kinds.
  write_named(path, {"w"}, R"({"thalia_checkpoint":{"version":2,"tree":{"list":[]}},"pt":[]})");
  BOOST_TEST(pt_tree(path) == flat);
  write_named(
      path, {"w"},
      R"({"pt":{"folder":"a/../b","version":"99","serialization_id":1,"records":3,"attributes":[1,["",2]]}})");
  BOOST_TEST(pt_tree(path) == flat);
  BOOST_TEST(read_file(path).find("archive/version") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(attributes_that_cannot_be_read_take_no_tensor_with_them) {
  const TemporaryFolder folder;
  const auto path = folder / "a.pt";
  const std::vector<std::string> said = write_named(
      path, {"v", "w"},
      R"({"pt":{"attributes":[["",{"list":[{"tensor":"w"},{"what":1}]}]]},)"
      R"("thalia_checkpoint":{"version":1,"tree":{"ordered":[["v",{"tensor":"v"}]]}}})");
  BOOST_TEST(said.size() == 1u);
  BOOST_TEST(pt_tree(path) == R"({"dict":[["v",{"tensor":"v"}],["w",{"tensor":"w"}]]})");
}

BOOST_AUTO_TEST_CASE(tensors_that_the_object_lacks_are_added_to_it) {
  const TemporaryFolder folder;
  const auto path = folder / "a.pt";
  const std::string tree = R"({"ordered":[["a",{"tensor":"a"}],["b",7]]})";
  BOOST_TEST(write_named(path, {"a", "b"}, with_tree(tree)).empty());
  BOOST_TEST(pt_tree(path) ==
             R"({"ordered":[["a",{"tensor":"a"}],["b",7],["b#",{"tensor":"b#"}]]})");
}

BOOST_AUTO_TEST_CASE(gradients_and_quantizers_are_those_that_torch_takes) {
  const TemporaryFolder folder;
  const auto path = folder / "a.pt";
  SinkInput input{
      .metadata = with_tree(
          R"({"list":[{"tensor":"i","parameter":true},{"tensor":"q","quantized":{"dtype":"qint8","scale":"0.5","zero_point":1}},{"tensor":"q"}]})")};
  input.tensors = {{.name = "i", .layout = {.dtype = DType::i64, .shape = Shape({1})}},
                   {.name = "q", .layout = {.dtype = DType::i8, .shape = Shape({8})}}};
  std::vector<std::string> said;
  const auto emit = [](std::size_t, const PieceSink& sink) { sink(bytes_of("abcdefgh")); };
  SinkOptions options{.announce = [&](const std::vector<std::string>& losses) { said = losses; }};
  options.save.output.durability = Durability::none;
  write_pt(path, input, options, emit);
  BOOST_TEST(said.size() == 1u);  // the codes are plain elsewhere
  input.metadata = with_tree(R"({"list":[{"tensor":"i","parameter":true},{"tensor":"q"}]})");
  write_pt(path, input, options, emit);
  BOOST_TEST(said.empty());
  // Integers have no gradients.
  BOOST_TEST(pt_tree(path).starts_with(R"({"list":[{"tensor":"0","parameter":false})"));
}

BOOST_AUTO_TEST_CASE(types_and_encodings_that_torch_lacks_are_refused_before_anything_is_written) {
  const TemporaryFolder folder;
  const auto refuse = [&](const TensorLayout& layout, ErrorCode code) {
    SinkInput input{.tensors = {{.name = "w", .layout = layout}}};
    BOOST_CHECK_EXCEPTION(write_pt(folder / "a.pt", input, {},
                                   [](std::size_t, const PieceSink&) { BOOST_FAIL("written"); }),
                          UnsupportedError, says(code, "a.pt", "w"));
    BOOST_TEST(list_folder(folder.path()).empty());
  };
  for (const DType dtype : {DType::i4, DType::u2, DType::f4_e2m1, DType::ternary})
    refuse({.dtype = dtype, .shape = Shape({4})}, ErrorCode::unsupported_dtype);
  refuse({.shape = Shape({4}), .encoding = Encoding::quantized}, ErrorCode::unsupported_feature);
}

BOOST_AUTO_TEST_CASE(integers_of_any_length_come_back) {
  for (const char* const number :
       {"0", "255", "256", "65536", "-1", "-128", "2147483648", "-2147483648", "-2147483649",
        "9223372036854775807", "9223372036854775808", "-9223372036854775808",
        "-9223372036854775809", "-18446744073709551616",
        "340282366920938463463374607431768211455"}) {
    SinkInput input{.metadata = with_tree(std::string("{\"int\":\"") + number + "\"}")};
    const formats::pt::PtPlan plan = formats::pt::make_plan(input, {});
    const std::string bytes = formats::pt::write_pickle(plan.graph).bytes;
    formats::pt::Graph graph = formats::pt::read_pickle(bytes_of(bytes));
    const formats::pt::Node& root = graph.at(graph.root);
    BOOST_TEST((root.kind == formats::pt::NodeKind::integer ? std::to_string(root.integer)
                                                            : std::string(root.text)) == number);
  }
  SinkInput input{.metadata = with_tree("{\"int\":\"" + std::string(700, '9') + "\"}")};
  BOOST_CHECK_THROW(formats::pt::write_pickle(formats::pt::make_plan(input, {}).graph),
                    UnsupportedError);
}

BOOST_AUTO_TEST_CASE(a_dictionary_of_tensors_is_saved_in_one_call) {
  const TemporaryFolder folder;
  const std::vector<float> numbers{1, 2, 3};
  const std::vector<NamedArray> tensors{
      {.name = "w", .shape = Shape({3}), .bytes = as_byte_span(numbers)}};
  const std::uint64_t bytes = save_pt(folder / "a.pt", tensors);
  BOOST_TEST(bytes == std::filesystem::file_size(folder / "a.pt"));
  BOOST_TEST(pt_open(folder / "a.pt").read("w").as<float>()[2] == 3.0f);
  BOOST_CHECK_EXCEPTION(save_pt(folder / "b.pt", {tensors[0], tensors[0]}), UsageError,
                        has_code(ErrorCode::duplicate));
  BOOST_CHECK_EXCEPTION(save_pt(folder / "b.pt", {{.name = "w", .shape = Shape({3})}}), UsageError,
                        has_code(ErrorCode::size_mismatch));
}

BOOST_AUTO_TEST_SUITE_END()
