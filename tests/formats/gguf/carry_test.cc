// GGUF files as the tensors and the metadata of another file, and back.
#include <map>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/gguf/carrying.h"
#include "formats/gguf/files.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/gguf.h"

BOOST_AUTO_TEST_SUITE(gguf_carry)

namespace {

using namespace thalia;
using namespace test::gguf;
using test::text_of;

}  // namespace

BOOST_AUTO_TEST_CASE(files_come_back_byte_for_byte_in_any_order_of_tensors) {
  for (const char* const name : {"key_values.gguf", "blocks.gguf"}) {
    const auto source = open_gguf_file(vector_path(name), {});
    BOOST_TEST(source->facts().losses.empty());
    BOOST_TEST(source->facts().version == "3");
    const std::string original = test::read_file(vector_path(name));
    BOOST_TEST(source->facts().file_bytes == original.size());
    SinkInput input = input_of(*source);
    const Written same = written(input, source.get());
    BOOST_TEST((same.bytes == original), name);
    BOOST_TEST(same.losses.empty());

    // As if what lies between had sorted them.
    std::map<std::string, std::size_t> sorted;
    for (std::size_t i = 0; i < input.tensors.size(); ++i) sorted.emplace(input.tensors[i].name, i);
    SinkInput other{.metadata = input.metadata};
    std::vector<std::size_t> from;
    for (const auto& [tensor, i] : sorted) {
      other.tensors.push_back(input.tensors[i]);
      from.push_back(i);
    }
    const test::TemporaryFolder folder;
    write_gguf(folder / "out.gguf", other, {},
               [&](std::size_t i, const PieceSink& sink) { source->visit(from[i], sink); });
    BOOST_TEST((test::read_file(folder / "out.gguf") == original), name);
  }
}

BOOST_AUTO_TEST_CASE(a_file_without_an_architecture_comes_back_without_it) {
  const test::TemporaryFolder folder;
  const Bytes file = start(0, 1).text("k").u32(0).u8(9).pad();
  test::write_file(folder / "in.gguf", file.bytes);
  const auto source = open_gguf_file(folder / "in.gguf", {});
  BOOST_TEST((written(input_of(*source)).bytes == file.bytes));
}

BOOST_AUTO_TEST_CASE(the_metadata_say_types_and_shapes) {
  const auto source = open_gguf_file(vector_path("key_values.gguf"), {});
  const std::string& text = source->facts().metadata;
  for (const char* const part :
       {R"({"format":"gguf","gguf":{"key_values":{"general.architecture":{"string":"test"})",
        R"("a.u64":{"u64":18446744073709551615})", R"("a.f32":{"f32":0.1})",
        R"("a.nan":{"f32":{"hex":"7fc00000"}})", R"("a.minus_zero":{"f32":-0)",
        R"("a.minus_infinity":{"f64":{"hex":"fff0000000000000"}})",
        R"("b.strings":{"string[]":["","a","▁the"]})",
        R"("b.bytes":{"string[]":[{"hex":"fffe"},"ok"]})", R"("b.bool":{"bool[]":[true,false]})",
        R"("tensors":{"t.float32":{"type":"F32"})"})
    BOOST_TEST(text.find(part) != text.npos, part);
  const auto blocks = open_gguf_file(vector_path("blocks.gguf"), {});
  BOOST_TEST(blocks->facts().metadata.find(R"("Q4_K":{"type":"Q4_K","shape":[2,512]})") !=
             std::string::npos);
  const auto& q4_k = blocks->facts().tensors[7];
  BOOST_TEST(q4_k.type == "Q4_K");
  BOOST_TEST((q4_k.layout == TensorLayout{.dtype = DType::u8, .shape = {2, 288}}));
  BOOST_TEST(*q4_k.stored_bytes == 576u);
  BOOST_TEST(*q4_k.offset % 32 == 0u);
  BOOST_TEST(source->facts().tensors[0].type == "");
}

BOOST_AUTO_TEST_CASE(blocks_are_handed_out_as_numbers_where_that_is_asked_for) {
  OpenOptions options;
  options.dequantize = true;
  const auto source = open_gguf_file(vector_path("blocks.gguf"), options);
  const GgufFile file = GgufFile::open(vector_path("blocks.gguf"));
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const GgufTensor& tensor = file.tensors()[i];
    const TensorLayout& layout = source->facts().tensors[i].layout;
    BOOST_TEST((layout == TensorLayout{.dtype = DType::f32, .shape = tensor.shape}));
    BOOST_TEST(source->facts().tensors[i].type.empty());
    const Tensor expected = file.dequantize(tensor.name);
    BOOST_TEST(test::same_bytes(source->read(i).bytes(), expected.bytes()));
    std::string visited;
    source->visit(i, [&](ByteSpan piece) { visited += text_of(piece); });
    BOOST_TEST((visited == text_of(expected.bytes())));
  }
  // And a file of those has them as F32.
  const GgufFile back = test::gguf::from_text(written(input_of(*source), source.get()).bytes);
  BOOST_TEST((back.tensor("Q4_K").type == GgmlType::f32));
  BOOST_TEST(back.key_values().size() == file.key_values().size());
}

BOOST_AUTO_TEST_CASE(large_blocks_are_visited_in_pieces) {
  const test::TemporaryFolder folder;
  Bytes file = start(1, 0).tensor("w", {1 << 20, 2}, 35, 0).pad();
  file.raw(text_of(test::random_bytes((2 << 20) / 256 * 66)));
  test::write_file(folder / "in.gguf", file.bytes);
  OpenOptions options;
  options.dequantize = true;
  options.chain.read.work.threads = 2;
  const auto source = open_gguf_file(folder / "in.gguf", options);
  std::string visited;
  unsigned pieces = 0;
  source->visit(0, [&](ByteSpan piece) {
    visited += text_of(piece);
    ++pieces;
  });
  BOOST_TEST(pieces == 4u);
  BOOST_TEST((visited == text_of(source->read(0).bytes())));
}

BOOST_AUTO_TEST_CASE(blocks_that_cannot_be_numbers_are_refused_by_name) {
  const test::TemporaryFolder folder;
  const Bytes file = start(1, 0).tensor("w", {256}, 16, 0).pad().raw(std::string(66, '\1'));
  test::write_file(folder / "in.gguf", file.bytes);
  OpenOptions options;
  const auto raw = open_gguf_file(folder / "in.gguf", options);
  BOOST_TEST(raw->facts().tensors[0].type == "IQ2_XXS");
  options.dequantize = true;
  BOOST_CHECK_EXCEPTION(open_gguf_file(folder / "in.gguf", options), UnsupportedError,
                        test::says(ErrorCode::unsupported_dtype, "IQ2_XXS", "'w'", "in.gguf"));
}

BOOST_AUTO_TEST_CASE(bytes_that_belong_to_no_tensor_are_told) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "in.gguf", start(0, 0).pad().raw("more").bytes);
  const auto source = open_gguf_file(folder / "in.gguf", {});
  BOOST_TEST(source->facts().losses.size() == 1u);
  BOOST_TEST(source->facts().losses[0] == "4 bytes that belong to no tensor");
}

// By way of a double, the shortest decimal of this float would be rounded to its neighbour.
BOOST_AUTO_TEST_CASE(a_float_that_would_be_rounded_twice_is_carried_by_its_bits) {
  const test::TemporaryFolder folder;
  save_gguf(folder / "in.gguf", {}, {{"k", 7.038531e-26f}});
  const auto source = open_gguf_file(folder / "in.gguf", {});
  BOOST_TEST(source->facts().metadata.find("hex") != std::string::npos);
  BOOST_TEST((written(input_of(*source)).bytes == test::read_file(folder / "in.gguf")));
}

BOOST_AUTO_TEST_CASE(large_vocabularies_are_carried) {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  for (unsigned i = 0; i < 150'000; ++i) {
    tokens.push_back(i % 1000 == 0 ? std::string("\xe2\x96") : "▁token" + std::to_string(i));
    scores.push_back(-static_cast<float>(i) / 3);
  }
  const test::TemporaryFolder folder;
  save_gguf(
      folder / "in.gguf", {},
      {{"tokenizer.ggml.tokens", GgufArray(tokens)}, {"tokenizer.ggml.scores", GgufArray(scores)}});
  const auto source = open_gguf_file(folder / "in.gguf", {});
  BOOST_TEST((written(input_of(*source)).bytes == test::read_file(folder / "in.gguf")));
}

BOOST_AUTO_TEST_SUITE_END()
