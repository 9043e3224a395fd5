// Metadata of one format in files of others: they come back from a file that says nothing else, and
// what somebody has written into it since is not lost.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "boost_test.h"
#include "formats/onnx/file.h"
#include "formats/samples.h"
#include "support/files.h"
#include "thalia/append.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/gguf.h"
#include "thalia/formats/mithril.h"
#include "thalia/formats/onnx.h"
#include "thalia/formats/safetensors.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(embedded_metadata)

namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

// Files of `source metadata`'s metadata in other formats.
struct Embedders {
  TemporaryFolder folder;

  std::filesystem::path at(const std::string& name) const { return folder / name; }
  std::string converted(const std::string& from, const std::string& to) const {
    const auto result = convert(at(from), at(to), {.save = {.timestamp = 1}});
    BOOST_TEST(result.losses.empty(), from << " to " << to);
    return read_file(at(to));
  }
  std::string metadata_through_thalia(const std::string& from) const {
    converted(from, "through.thalia");
    return std::string(Reader::open(at("through.thalia")).metadata_json());
  }
};

const OwnedTensor kWeights = make_tensor("w", DType::f32, {4, 3});

Tensor weights() {
  return Tensor::copy_of(kWeights.dtype, kWeights.shape, kWeights.bytes);
}

void save_texts(const std::filesystem::path& path, const Texts& texts) {
  save_safetensors(path, borrow({kWeights}), texts);
}

const char* const kEmbedded = R"({"metadata":{"q":1}})";

}  // namespace

BOOST_FIXTURE_TEST_CASE(what_a_file_carries_alone_comes_back, Embedders) {
  save_texts(at("a.safetensors"), {{"a", "b"}, {"name", "x"}});
  const std::string original = read_file(at("a.safetensors"));
  for (const char* const name : {"b.gguf", "b.onnx", "b.mst", "b.gptrschk"}) {
    converted("a.safetensors", name);
    BOOST_TEST(converted(name, "back.safetensors") == original, name);
    const std::string again = "again" + at(name).extension().string();
    BOOST_TEST(converted(name, again) == read_file(at(name)), name);
    BOOST_TEST(converted(again, "back.safetensors") == original, name);
    const std::string metadata = metadata_through_thalia(name);
    BOOST_TEST(metadata.starts_with(R"({"format":"safetensors",)"), metadata);
  }
  convert(at("b.gguf"), at("folder"), {.to = FileFormat::orbax});
  BOOST_TEST(converted("folder", "back.safetensors") == original);
}

BOOST_FIXTURE_TEST_CASE(texts_beside_it_are_never_lost, Embedders) {
  save_texts(at("alone.safetensors"), {{"thalia.metadata", kEmbedded}});
  BOOST_TEST(metadata_through_thalia("alone.safetensors") == R"({"q":1})");
  const Texts edited[] = {{{"thalia.metadata", kEmbedded}, {"format", "pt"}},
                          {{"author", "me"}, {"thalia.metadata", kEmbedded}}};
  for (const Texts& texts : edited) {
    save_texts(at("a.safetensors"), texts);
    const std::string original = read_file(at("a.safetensors"));
    for (const char* const between : {"b.thalia", "b.gguf", "b.onnx", "b.mst", "b.safetensors"}) {
      converted("a.safetensors", between);
      BOOST_TEST(converted(between, "back.safetensors") == original, between);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(key_values_and_types_of_a_quantized_file_are_kept, Embedders) {
  save_texts(at("a.safetensors"), {{"a", "b"}});
  converted("a.safetensors", "a.gguf");
  const GgufFile exported = GgufFile::open(at("a.gguf"));
  const std::vector<std::byte> blocks(2 * 34);
  const GgufTensor tensor{.name = "w", .type = GgmlType::q8_0, .shape = {2, 32}, .bytes = blocks};
  save_gguf(at("types.gguf"), {tensor}, exported.key_values());
  GgufKeyValues more = exported.key_values();
  more.push_back({"llama.block_count", std::uint32_t{12}});
  save_gguf(at("more.gguf"), {tensor}, more);
  for (const char* const name : {"types.gguf", "more.gguf"}) {
    BOOST_TEST(converted(name, "again.gguf") == read_file(at(name)), name);
    converted(name, "b.thalia");
    BOOST_TEST(converted("b.thalia", "again.gguf") == read_file(at(name)), name);
  }
}

BOOST_FIXTURE_TEST_CASE(what_was_written_into_a_model_is_kept, Embedders) {
  save_texts(at("a.safetensors"), {{"a", "b"}});
  converted("a.safetensors", "a.onnx");
  const formats::onnx::OnnxFile exported = formats::onnx::OnnxFile::open(at("a.onnx"));
  OnnxModel produced = exported.model();
  produced.producer_name = "somebody";
  OnnxMetadata changed = exported.metadata(), steps = exported.metadata();
  changed.front().second = "changed";
  steps.emplace_back("thalia.training_steps", "7");
  const std::pair<OnnxMetadata, OnnxModel> edits[] = {
      {exported.metadata(), produced}, {changed, exported.model()}, {steps, exported.model()}};
  for (const auto& [metadata, model] : edits) {
    save_onnx(at("b.onnx"), {{"w", weights()}}, metadata, {.model = model});
    const std::string original = read_file(at("b.onnx"));
    BOOST_TEST(converted("b.onnx", "again.onnx") == original);
    converted("b.onnx", "b.thalia");
    BOOST_TEST(converted("b.thalia", "again.onnx") == original);
  }
}

BOOST_FIXTURE_TEST_CASE(texts_of_an_mst_file_are_kept, Embedders) {
  MstWriter writer(at("a.mst"), {.metadata = {{"thalia.metadata", kEmbedded}, {"k", "v"}}});
  writer.add("w", weights());
  writer.commit();
  converted("a.mst", "b.thalia");
  BOOST_TEST(converted("b.thalia", "again.mst") == read_file(at("a.mst")));
}

BOOST_FIXTURE_TEST_CASE(a_model_in_several_files_gives_back_what_it_carries, Embedders) {
  const auto named = [](const char* name) {
    return GgufTensor{.name = name, .shape = {4, 3}, .bytes = kWeights.bytes};
  };
  save_gguf(at("a.gguf"), {named("v"), named("w")}, {{"k", "v"}});
  convert(at("a.gguf"), at("model"), {.to = FileFormat::safetensors, .shard_bytes = 48});
  BOOST_TEST(converted("model", "back.gguf") == read_file(at("a.gguf")));
  std::string index = read_file(at("model/model.safetensors.index.json"));
  index.insert(index.find("\"total_size\""), "\"note\": \"mine\", ");
  write_file(at("model/model.safetensors.index.json"), index);
  BOOST_TEST(metadata_through_thalia("model").find("mine") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
