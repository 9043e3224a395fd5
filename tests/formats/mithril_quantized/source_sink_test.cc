// Quantized tensors of mithril through the interface of all formats.
#include <filesystem>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/mithril_quantized/opened.h"
#include "formats/mithril_quantized/sink.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(mithril_quantized_source_sink)

using namespace thalia::formats;

namespace {

std::filesystem::path original(const std::string& name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/mithril" / name;
}

struct Opened {
  SinkInput input;
  std::vector<Tensor> tensors;
};

Opened opened(const std::string& name) {
  const auto source = open_mithril_quantized_file(original(name), {});
  Opened all{.input = {.metadata = source->facts().metadata}, .tensors = {}};
  for (std::size_t i = 0; i < source->facts().tensors.size(); ++i) {
    const AnyTensor& tensor = source->facts().tensors[i];
    all.input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
    all.tensors.push_back(source->read(i));
    BOOST_TEST((all.tensors[i].layout() == tensor.layout));
  }
  return all;
}

std::string written(const Opened& all, std::vector<std::string>* losses = nullptr) {
  const test::TemporaryFolder folder;
  SinkOptions options;
  options.announce = [&](const std::vector<std::string>& lost) {
    if (losses != nullptr) *losses = lost;
  };
  write_mithril_quantized(folder / "o.zst", all.input, options,
                          [&](std::size_t i, const PieceSink& sink) {
                            const ByteSpan bytes = all.tensors[i].bytes();
                            sink(bytes.first(bytes.size() / 2));
                            sink(bytes.subspan(bytes.size() / 2));
                          });
  return test::read_file(folder / "o.zst");
}

}  // namespace

BOOST_AUTO_TEST_CASE(there_and_back_is_the_same_file) {
  for (const char* const name : {"quant_int8.zst", "quant_nf4_g64.zst", "quant_int4.zst"}) {
    Opened all = opened(name);
    BOOST_TEST((written(all) == test::read_file(original(name))));
    std::ranges::reverse(all.input.tensors);
    std::ranges::reverse(all.tensors);
    BOOST_TEST((written(all) == test::read_file(original(name))));
  }
}

BOOST_AUTO_TEST_CASE(numbers_take_the_place_of_codes_where_they_are_asked_for) {
  const auto source = open_mithril_quantized_file(original("quant_int4.zst"), {.dequantize = true});
  BOOST_REQUIRE(source->facts().tensors.size() == 1u);
  BOOST_TEST(
      (source->facts().tensors[0].layout == TensorLayout{.dtype = DType::f32, .shape = {16, 16}}));
  BOOST_TEST((test::text_of(source->read(0).bytes()) ==
              test::read_file(original("quant_int4.dequant.f32"))));
  BOOST_TEST(open_mithril_quantized_file(original("quant_int4.zst"), {})->facts().tensors[0].type ==
             "int4");
}

BOOST_AUTO_TEST_CASE(other_metadata_are_named_and_other_tensors_refused) {
  Opened all = opened("quant_nf4_g64.zst");
  all.input.metadata.insert(1, R"("note":"x","lr":1,)");
  all.input.training_steps = 5;
  std::vector<std::string> losses;
  written(all, &losses);
  BOOST_TEST((losses ==
              std::vector<std::string>{"metadata: 'note', 'lr'", "the count of training steps"}));
  const auto refused = [](Opened other, const std::function<void(Opened&)>& change) {
    change(other);
    try {
      written(other);
    } catch (const UnsupportedError& error) {
      return error.context().path.ends_with("o.zst");
    }
    return false;
  };
  const Opened good = opened("quant_nf4_g64.zst");
  for (const char* const own :
       {R"({})", R"([])", R"({"method":"nf4"})", R"({"method":"nf5","original_dtype":"bf16"})",
        R"({"method":"nf4","original_dtype":"bf17","group_size":64})",
        R"({"method":"nf4","original_dtype":"u16","group_size":64})",
        R"({"method":"nf4","original_dtype":"bf16","group_size":32})",
        R"({"method":"nf4","original_dtype":"bf16","group_size":0})",
        R"({"method":"nf4","original_dtype":"bf16","group_size":-1})",
        R"({"method":"nf4","original_dtype":"bf16"})",
        R"({"method":"int4","original_dtype":"bf16"})",
        R"({"method":"int8_linear","original_dtype":"bf16"})",
        R"({"method":"nf4","original_dtype":"bf16","group_size":64,"level":23})",
        R"({"method":"nf4","original_dtype":"bf16","group_size":64,"group_size":64})",
        R"({"method":"nf4","original_dtype":"bf16","group_size":64,"x":1})"}) {
    BOOST_TEST(refused(good,
                       [&](Opened& all_of) {
                         all_of.input.metadata =
                             std::string(R"({"format":"mithril-quantized","mithril-quantized":)") +
                             own + "}";
                       }),
               own);
  }
  BOOST_TEST(refused(good, [](Opened& o) { o.input.metadata = "{}"; }));
  BOOST_TEST(refused(good, [](Opened& o) { o.input.tensors[0].name = "w"; }));
  BOOST_TEST(refused(good, [](Opened& o) { o.input.tensors.pop_back(); }));
  BOOST_TEST(refused(good, [](Opened& o) { o.input.tensors[1].layout.shape = {2, 2}; }));
  BOOST_TEST(refused(good, [](Opened& o) { o.input.tensors[1].layout.dtype = DType::i32; }));
  BOOST_TEST(refused(good, [](Opened& o) { o.input.tensors[0].layout.dtype = DType::u8; }));
  BOOST_TEST(refused(good, [](Opened& o) { o.input.tensors[0].layout.shape = {256, 2}; }));
}

BOOST_AUTO_TEST_SUITE_END()
