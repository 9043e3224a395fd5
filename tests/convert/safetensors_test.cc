// From safetensors to .thalia and back.
#include <algorithm>
#include <string>
#include <utility>

#include "boost_test.h"
#include "checkpoint/checkpoints.h"
#include "convert/precision_samples.h"
#include "formats/samples.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(convert_safetensors)

namespace {

ConvertOptions fixed(SaveOptions save = {}) {
  return {.save = fixed_identity(std::move(save))};
}

std::string refusal(const std::filesystem::path& input, const std::filesystem::path& output,
                    const ConvertOptions& options = fixed()) {
  try {
    convert(input, output, options);
    return "converted";
  } catch (const Error& error) {
    BOOST_TEST(!std::filesystem::exists(output));
    return std::string(error_code_name(error.code())) + ": " + error.message();
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_the_reference_come_back_byte_for_byte) {
  const TemporaryFolder folder;
  const RegionGrouping groupings[] = {
      {}, {.kind = RegionGrouping::Kind::none}, {.kind = RegionGrouping::Kind::depth, .depth = 1}};
  const SaveOptions saves[] = {{},
                               {.checksum = ChecksumType::none},
                               {.leaves = LeafAlgorithm::sha256},
                               {.compression = {.codec = Codec::zstd, .chunk_bytes = 4096}},
                               {.compression = {.codec = Codec::lz4, .chunk_bytes = 4096}}};
  for (const char* name : {"dtypes", "names", "metadata", "metadata_empty", "ranks", "none"}) {
    const auto original = golden(std::string(name) + ".safetensors");
    for (const RegionGrouping& grouping : groupings) {
      for (const SaveOptions& save : saves) {
        ConvertOptions options = fixed(save);
        options.grouping = grouping;
        BOOST_TEST(convert(original, folder / "a.thalia", options).losses.empty());
        BOOST_TEST(verify(folder / "a.thalia").ok());
        ConvertOptions back = fixed();
        back.grouping = grouping;
        const ConvertResult result = convert(folder / "a.thalia", folder / "b.safetensors", back);
        BOOST_TEST_CONTEXT(name << " with grouping " << static_cast<int>(grouping.kind)) {
          BOOST_TEST(result.losses.empty());
          BOOST_TEST((read_file(folder / "b.safetensors") == read_file(original)));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_dtype_rank_and_empty_shape_comes_back) {
  std::vector<OwnedTensor> tensors;
  for (const DType dtype : safetensors_dtypes()) {
    for (unsigned rank = 1; rank <= Shape::kMaxRank; ++rank) {
      std::vector<std::uint64_t> extents(rank, rank > 5 ? 1 : 2);
      extents.back() = 8;
      const std::string name = std::string(dtype_name(dtype)) + "." + std::to_string(rank);
      tensors.push_back(make_tensor(name + ".full", dtype, Shape(extents)));
      extents.front() = 0;
      tensors.push_back(make_tensor(name + ".empty", dtype, Shape(extents)));
    }
  }
  const TemporaryFolder folder;
  save_safetensors(folder / "a.safetensors", borrow(tensors), std::nullopt,
                   {.durability = Durability::none});
  const ConvertResult there = convert(folder / "a.safetensors", folder / "b.thalia", fixed());
  BOOST_TEST(there.tensors == tensors.size());
  BOOST_TEST(there.input_bytes == std::filesystem::file_size(folder / "a.safetensors"));
  BOOST_TEST(there.output_bytes == std::filesystem::file_size(folder / "b.thalia"));
  const Reader reader = Reader::open(folder / "b.thalia");
  for (const OwnedTensor& tensor : tensors) {
    const TensorView view = reader.tensor(tensor.name);
    BOOST_TEST((view.dtype() == tensor.dtype));
    BOOST_TEST((view.shape() == tensor.shape));
    BOOST_TEST((view.role() == Role::weights));
    BOOST_TEST(same_bytes(view.bytes(), tensor.bytes));
  }
  convert(folder / "b.thalia", folder / "c.safetensors", fixed());
  BOOST_TEST((read_file(folder / "c.safetensors") == read_file(folder / "a.safetensors")));
}

BOOST_AUTO_TEST_CASE(tensors_are_grouped_and_keep_their_whole_names) {
  const TemporaryFolder folder;
  const std::vector<OwnedTensor> tensors = {
      make_tensor("h.0.w", DType::f32, {2}), make_tensor("h.0.b", DType::f32, {2}),
      make_tensor("h.1.w", DType::f32, {2}), make_tensor("head.w", DType::f32, {2}),
      make_tensor("scale", DType::f32, {2})};
  save_safetensors(folder / "a.safetensors", borrow(tensors));
  convert(folder / "a.safetensors", folder / "b.thalia", fixed());
  const Reader reader = Reader::open(folder / "b.thalia");
  BOOST_TEST(reader.region_count() == 4u);
  BOOST_TEST(reader.region("h.0").tensor_count() == 2u);
  BOOST_TEST(reader.region("h.1").at("h.1.w").name() == "h.1.w");
  BOOST_TEST(reader.region("head").at("head.w").name() == "head.w");
  BOOST_TEST(reader.region("model").at("scale").name() == "scale");
  BOOST_TEST((reader.region("model").neuron_type() == NeuronType::none));
}

BOOST_AUTO_TEST_CASE(metadata_is_kept_in_order_under_its_own_key) {
  const TemporaryFolder folder;
  convert(golden("metadata.safetensors"), folder / "a.thalia", fixed());
  BOOST_TEST(Reader::open(folder / "a.thalia").metadata_json() ==
             "{\"format\":\"safetensors\",\"safetensors\":{\"metadata\":{\"__metadata__\":\"x\","
             "\"a\":\"\\\"\\\\/\",\"\xC3\xA9\\n\":\"\xE2\x80\xA8\\u0000\",\"\":\"\",\"z\":\"{}\","
             "\"format\":\"pt\"}}}");
  convert(golden("ranks.safetensors"), folder / "b.thalia", fixed());
  BOOST_TEST(Reader::open(folder / "b.thalia").metadata_json() ==
             R"({"format":"safetensors","safetensors":{}})");
}

BOOST_AUTO_TEST_CASE(a_file_in_another_order_comes_back_equal_tensor_for_tensor) {
  const TemporaryFolder folder;
  write_file(folder / "a",
             safetensors_bytes(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                               R"("a":{"dtype":"F32","shape":[1],"data_offsets":[2,6]},)"
                               R"("__metadata__":{"k":"v"}})",
                               6));
  convert(folder / "a", folder / "b.thalia", fixed());
  convert(folder / "b.thalia", folder / "c.safetensors", fixed());
  BOOST_TEST(same_content(SafetensorsFile::open(folder / "a"),
                          SafetensorsFile::open(folder / "c.safetensors")));
  convert(folder / "a", folder / "d.safetensors", fixed());
  BOOST_TEST((read_file(folder / "d.safetensors") == read_file(folder / "c.safetensors")));
}

BOOST_AUTO_TEST_CASE(formats_are_detected_and_can_be_forced) {
  const TemporaryFolder folder;
  BOOST_TEST(refusal(golden("none.safetensors"), folder / "out") ==
             "bad_argument: the output's name tells no format, name one");
  ConvertOptions options = fixed();
  options.to = FileFormat::thalia;
  convert(golden("none.safetensors"), folder / "out", options);
  BOOST_TEST(verify(folder / "out").ok());
  // The old content of the output does not count.
  convert(golden("metadata.safetensors"), folder / "x.safetensors", fixed());
  options.to.reset();
  convert(golden("metadata.safetensors"), folder / "x.thalia", options);
  convert(folder / "x.thalia", folder / "x.safetensors", options);
  BOOST_TEST((read_file(folder / "x.safetensors") == read_file(golden("metadata.safetensors"))));

  write_file(folder / "noise", "no checkpoint");
  BOOST_TEST(refusal(folder / "noise", folder / "y.thalia") ==
             "bad_magic: not a checkpoint of a format that is known: a text");
  options = fixed({.compression = {.codec = Codec::zstd}});
  BOOST_TEST(refusal(golden("none.safetensors"), folder / "y.safetensors", options) ==
             "bad_argument: safetensors files are not compressed");
}

BOOST_AUTO_TEST_CASE(a_file_can_be_converted_onto_itself) {
  const TemporaryFolder folder;
  write_file(folder / "a.safetensors", read_file(golden("dtypes.safetensors")));
  convert(folder / "a.safetensors", folder / "a.safetensors", fixed());
  BOOST_TEST((read_file(folder / "a.safetensors") == read_file(golden("dtypes.safetensors"))));
}

BOOST_AUTO_TEST_CASE(header_limit_holds_for_reading_and_writing) {
  const TemporaryFolder folder;
  ConvertOptions options = fixed();
  options.max_safetensors_header_bytes = 100;
  BOOST_TEST(refusal(golden("dtypes.safetensors"), folder / "a.thalia", options)
                 .starts_with("limit_exceeded: "));
  convert(golden("dtypes.safetensors"), folder / "b.thalia", fixed());
  BOOST_TEST(refusal(folder / "b.thalia", folder / "c.safetensors", options) ==
             "unsupported_feature: readers of safetensors refuse a header of this many bytes");
}

BOOST_AUTO_TEST_CASE(a_name_too_long_for_thalia_is_refused) {
  const TemporaryFolder folder;
  save_safetensors(folder / "a.safetensors",
                   borrow({make_tensor(std::string(65536, 'n'), DType::u8, {1})}));
  BOOST_TEST(refusal(folder / "a.safetensors", folder / "b.thalia") ==
             "unsupported_feature: the name is too long for .thalia");
}

BOOST_AUTO_TEST_CASE(a_damaged_input_leaves_nothing_at_the_output) {
  const TemporaryFolder folder;
  std::string file = read_file(golden("dtypes.safetensors"));
  write_file(folder / "cut.safetensors", std::string_view(file).substr(0, file.size() - 1));
  BOOST_TEST(refusal(folder / "cut.safetensors", folder / "a.thalia").starts_with("truncated: "));
  convert(golden("dtypes.safetensors"), folder / "b.thalia", fixed());
  file = read_file(folder / "b.thalia");
  const Reader reader = Reader::open(folder / "b.thalia");
  const std::size_t at = reader.tensor("uint64.1").stored_offset();
  file[at] = static_cast<char>(file[at] ^ 1);
  write_file(folder / "flipped.thalia", file);
  BOOST_TEST(refusal(folder / "flipped.thalia", folder / "c.safetensors")
                 .starts_with("checksum_mismatch: "));
  BOOST_TEST(
      refusal(folder / "flipped.thalia", folder / "c.thalia").starts_with("checksum_mismatch: "));
}

BOOST_AUTO_TEST_CASE(safetensors_are_converted_both_ways) {
  const TemporaryFolder folder;
  const std::vector<float> numbers = weights(kManyWeights);
  const ByteSpan bytes = as_byte_span(numbers);
  const std::vector<NamedArray> tensors{{"a.0.weight", DType::f32, {kManyWeights, 1}, bytes},
                                        {"b.0.weight", DType::f32, {kManyWeights, 1}, bytes},
                                        {"a.0.bias", DType::f32, {kManyWeights}, bytes},
                                        {"b.0.x_weight", DType::f32, {kManyWeights}, bytes},
                                        {"a.0.z_weight", DType::f32, {kManyWeights}, bytes}};
  save_safetensors(folder / "a.safetensors", tensors, SafetensorsMetadata{{"k", "v"}});
  const auto halves = as_type(DType::f32, DType::bf16, bytes);

  const ConvertResult same =
      convert(folder / "a.safetensors", folder / "b.safetensors", with_precision("bf16"));
  const SafetensorsFile file = SafetensorsFile::open(folder / "b.safetensors");
  BOOST_TEST((file.metadata() == SafetensorsMetadata{{"k", "v"}, {"precision_policy", "bf16"}}));
  BOOST_TEST(file.tensors().size() == 5u);
  for (const NamedArray& tensor : file.tensors()) {
    const bool is_weight = tensor.name != "a.0.bias";
    BOOST_TEST((tensor.dtype == (is_weight ? DType::bf16 : DType::f32)));
    const ByteSpan expected = is_weight ? ByteSpan(halves) : bytes;
    BOOST_TEST(same_bytes(tensor.bytes, expected));
  }
  BOOST_TEST(same.converted_tensors == 4u);

  for (const Codec codec : {Codec::none, Codec::lz4}) {
    const ConvertResult there = convert(folder / "a.safetensors", folder / "c.thalia",
                                        with_precision("bf16", {.compression = {.codec = codec}}));
    BOOST_TEST(verify(folder / "c.thalia").ok());
    BOOST_TEST((there.precision == same.precision));
    BOOST_TEST(there.rounding.largest_error == same.rounding.largest_error);
    const Reader reader = Reader::open(folder / "c.thalia");
    BOOST_TEST(reader.metadata_json() ==
               R"({"format":"safetensors","safetensors":{"metadata":{"k":"v"}},)"
               R"("precision_policy":"bf16"})");
    for (const NamedArray& tensor : tensors) {
      const bool is_weight = tensor.name != "a.0.bias";
      const auto expected = is_weight ? halves : joined({bytes});
      BOOST_TEST((payload(reader.tensor(tensor.name)) == expected));
    }
  }

  convert(folder / "a.safetensors", folder / "d.thalia", with_precision("keep"));
  const ConvertResult back = convert(folder / "c.thalia", folder / "e.safetensors",
                                     with_precision("default=fp32,weights=fp32"));
  BOOST_TEST(back.losses.empty());
  BOOST_TEST(back.converted_tensors == 4u);
  const SafetensorsFile widened = SafetensorsFile::open(folder / "e.safetensors");
  for (const NamedArray& tensor : widened.tensors()) BOOST_TEST((tensor.dtype == DType::f32));
}

// By dtype, then by name: a, b, a, b. A region's tensors have to be compressed one after the other.
BOOST_AUTO_TEST_CASE(alternating_regions_are_written_in_order) {
  const TemporaryFolder folder;
  const std::vector<float> numbers = weights(kManyWeights);
  const std::vector<double> doubles(numbers.begin(), numbers.end());
  save_safetensors(folder / "a.safetensors",
                   {{"a.0.weight2", DType::f64, {kManyWeights}, as_byte_span(doubles)},
                    {"b.0.weight2", DType::f64, {kManyWeights}, as_byte_span(doubles)},
                    {"a.0.weight", DType::f32, {kManyWeights, 1}, as_byte_span(numbers)},
                    {"b.0.weight", DType::f32, {kManyWeights, 1}, as_byte_span(numbers)}});
  convert(folder / "a.safetensors", folder / "b.thalia",
          with_precision("fp16", {.compression = {.codec = Codec::zstd}}));
  BOOST_TEST(verify(folder / "b.thalia").ok());
  const Reader reader = Reader::open(folder / "b.thalia");
  const auto halves = as_type(DType::f32, DType::f16, as_byte_span(numbers));
  for (const char* name : {"a.0.weight", "a.0.weight2", "b.0.weight", "b.0.weight2"})
    BOOST_TEST((payload(reader.tensor(name)) == halves));
}

BOOST_AUTO_TEST_SUITE_END()
