// .mst files through the interface of all formats: what the source says is what the sink needs.
#include <filesystem>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/mst/opened.h"
#include "formats/mst/sink.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/mithril.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(mst_source_sink)

using namespace thalia::formats;

namespace {

std::filesystem::path original(const char* name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/mithril" / name;
}

SinkInput input_of(const formats::OpenedFile& source) {
  SinkInput input{.metadata = source.facts().metadata};
  for (const AnyTensor& tensor : source.facts().tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  return input;
}

struct Written {
  std::string bytes;
  std::vector<std::string> losses;
};

// In pieces of 7 bytes, which are no whole elements.
Written written(const SinkInput& input, const std::vector<Tensor>& tensors,
                SinkOptions options = {}) {
  const test::TemporaryFolder folder;
  Written made;
  options.announce = [&](const std::vector<std::string>& losses) {
    made.losses = losses;
    BOOST_TEST(test::list_folder(folder.path()).empty());
  };
  const std::uint64_t bytes =
      write_mst(folder / "out.mst", input, options, [&](std::size_t i, const PieceSink& sink) {
        ByteSpan rest = tensors[i].bytes();
        while (!rest.empty()) {
          const ByteSpan piece = rest.first(std::min<std::size_t>(7, rest.size()));
          sink(piece);
          rest = rest.subspan(piece.size());
        }
      });
  made.bytes = test::read_file(folder / "out.mst");
  BOOST_TEST(made.bytes.size() == bytes);
  return made;
}

MstFile opened(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return MstFile::from_bytes({.bytes = test::bytes_of(*owner), .owner = owner});
}

MstFile written_with(const std::string& metadata, std::vector<std::string>* losses = nullptr) {
  SinkInput input{.metadata = metadata};
  input.tensors.push_back({.name = "t", .layout = {.dtype = DType::f32, .shape = {2}}});
  const Written made = written(input, {Tensor::zeros(DType::f32, {2})});
  if (losses != nullptr) *losses = made.losses;
  return opened(made.bytes);
}

}  // namespace

BOOST_AUTO_TEST_CASE(there_and_back_is_the_same_file_in_whatever_order_the_tensors_come) {
  for (const char* const name : {"small.mst", "nogroup_l19.mst"}) {
    const auto source = open_mst_file(original(name), {});
    std::vector<Tensor> tensors;
    SinkInput input = input_of(*source);
    for (std::size_t i = 0; i < input.tensors.size(); ++i) tensors.push_back(source->read(i));
    std::ranges::reverse(input.tensors);
    std::ranges::reverse(tensors);
    const Written made = written(input, tensors);
    BOOST_TEST((made.bytes == test::read_file(original(name))));
    BOOST_TEST(made.losses.empty());
  }
  const auto source = open_mst_file(original("small.mst"), {});
  BOOST_TEST(source->facts().version == "1");
  BOOST_TEST(source->facts().file_bytes == 2131u);
  BOOST_TEST(source->facts().tensors[1].offset.value() == 611u + 1003u);
  BOOST_TEST(source->facts().tensors[1].stored_bytes.value() == 470u);
  BOOST_TEST(source->facts().losses.empty());
}

BOOST_AUTO_TEST_CASE(bytes_beside_the_frames_are_said_to_be_lost) {
  const test::TemporaryFolder folder;
  const auto path = folder / "a.mst";
  const std::vector<std::string> said{"bytes that are no tensor's"};
  const auto whole = original("nogroup_l19.mst");
  std::string bytes = test::read_file(whole);
  test::write_file(path, bytes + "more");
  BOOST_TEST((open_mst_file(path, {})->facts().losses == said));
  // Before the only frame.
  const std::string from = R"("compressed_offset":0,)";
  const std::size_t place = bytes.find(from);
  BOOST_REQUIRE(place != std::string::npos);
  bytes[place + from.size() - 2] = '1';
  test::write_file(path, bytes.insert(MstFile::open(whole).tensors()[0].offset, "x"));
  BOOST_TEST((open_mst_file(path, {})->facts().losses == said));
}

BOOST_AUTO_TEST_CASE(a_tensor_that_was_added_or_went_away_keeps_the_order_of_the_others) {
  const auto source = open_mst_file(original("small.mst"), {});
  SinkInput input = input_of(*source);
  std::vector<Tensor> tensors{Tensor::zeros(DType::u8, {1}), source->read(3), source->read(1)};
  input.tensors = {
      {.name = "new", .layout = tensors[0].layout()}, input.tensors[3], input.tensors[1]};
  const MstFile file = opened(written(input, tensors).bytes);
  BOOST_TEST(file.header_order().empty());
  BOOST_TEST(file.tensors()[0].name == "w.bf16");
  BOOST_TEST(file.tensors()[1].name == "empty");
  BOOST_TEST(file.tensors()[2].name == "new");
  BOOST_TEST((file.read("w.bf16") == tensors[2]));
}

BOOST_AUTO_TEST_CASE(metadata_of_other_formats_are_taken_as_far_as_they_are_texts) {
  using Texts = std::vector<std::pair<std::string, std::string>>;
  std::vector<std::string> losses;
  MstFile file = written_with(R"({"format":"pt","note":"x","lr":0.1,"tree":{}})", &losses);
  BOOST_TEST((file.metadata() == Texts{{"format", "pt"}, {"note", "x"}}));
  BOOST_TEST((losses == std::vector<std::string>{"metadata: 'lr', 'tree'"}));
  BOOST_TEST(file.byte_grouping());
  BOOST_TEST(file.level() == 3);

  file = written_with(
      R"({"format":"safetensors","safetensors":{"metadata":{"format":"pt"}},"mst":{"level":23}})",
      &losses);
  BOOST_TEST((file.metadata() == Texts{{"format", "pt"}}));
  BOOST_TEST((losses == std::vector<std::string>{"metadata: 'mst'"}));

  file =
      written_with(R"({"format":"gguf","gguf":{"metadata":{"a":"b"},"kv":[1]},"a":"c"})", &losses);
  BOOST_TEST((file.metadata() == Texts{{"a", "b"}}));
  BOOST_TEST((losses == std::vector<std::string>{"metadata: 'gguf', 'a'"}));
}

// Anybody may have edited them: each of these is what the file's own metadata cannot be.
BOOST_AUTO_TEST_CASE(own_metadata_that_do_not_fit_are_a_strangers) {
  for (const char* const own : {R"([])",
                                R"({"version":2})",
                                R"({"version":-1})",
                                R"({"level":"3"})",
                                R"({"level":3.5})",
                                R"({"byte_grouping":1})",
                                R"({"metadata":{"a":1}})",
                                R"({"metadata":[]})",
                                R"({"metadata":{"a":"1","a":"2"}})",
                                R"({"order":"t"})",
                                R"({"order":[1]})",
                                R"({"order":["t"],"header_order":[1]})",
                                R"({"order":["t","u"],"header_order":[0,0]})",
                                R"({"order":["t"],"header_order":[0,1]})",
                                R"({"header_order":[0]})",
                                R"({"header_order":[18446744073709551616]})",
                                R"({"level":3,"level":3})",
                                R"({"x":1})",
                                R"(null)",
                                R"(7)"}) {
    std::vector<std::string> losses;
    const MstFile file =
        written_with(std::string(R"({"format":"mst","mst":)") + own + "}", &losses);
    BOOST_TEST_CONTEXT(own) {
      BOOST_TEST((losses == std::vector<std::string>{"metadata: 'mst'"}));
      BOOST_TEST((file.read("t") == Tensor::zeros(DType::f32, {2})));
    }
  }
  // A text is not lost: it is one of the file's.
  BOOST_TEST(written_with(R"({"mst":"x"})").metadata()[0].second == "x");
  // An order of other tensors is no order of these.
  BOOST_TEST(written_with(R"({"format":"mst","mst":{"order":["a","b"],"header_order":[1,0]}})")
                 .tensors()
                 .size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_sink_refuses_before_it_writes) {
  const auto refused = [](const SinkTensor& tensor, SinkOptions options = {}) {
    const test::TemporaryFolder folder;
    options.announce = [](const auto&) { BOOST_ERROR("announced"); };
    try {
      write_mst(folder / "o.mst", {.tensors = {tensor}}, options, [](std::size_t, const auto&) {});
    } catch (const UnsupportedError& error) {
      BOOST_TEST(error.context().path == (folder / "o.mst").string());
      return test::list_folder(folder.path()).empty();
    } catch (const UsageError&) {
      return test::list_folder(folder.path()).empty();
    }
    return false;
  };
  const TensorLayout good{.dtype = DType::u8, .shape = {1}};
  BOOST_TEST(refused({.name = "u", .layout = {.dtype = DType::u16, .shape = {1}}}));
  BOOST_TEST(refused({.name = "\xff", .layout = good}));
  BOOST_TEST(refused({.name = "s", .layout = {.shape = {1}, .encoding = Encoding::coo}}));
  BOOST_TEST(
      refused({.name = "a", .layout = good}, {.save = {.compression = {.codec = Codec::lz4}}}));
  BOOST_TEST(refused({.name = "a", .layout = good}, {.save = {.compression = {.level = 23}}}));
}

BOOST_AUTO_TEST_CASE(a_level_that_is_asked_for_stands_in_the_header) {
  const auto source = open_mst_file(original("nogroup_l19.mst"), {});
  const Written made = written(input_of(*source), {source->read(0)},
                               {.save = {.compression = {.codec = Codec::zstd, .level = 1}}});
  BOOST_TEST(opened(made.bytes).level() == 1);
  BOOST_TEST((opened(made.bytes).read("w.bf16") == source->read(0)));
}

BOOST_AUTO_TEST_SUITE_END()
