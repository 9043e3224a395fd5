#include <algorithm>
#include <filesystem>
#include <string>

#include "boost_test.h"
#include "formats/mckp/samples.h"
#include "formats/samples.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/mckp.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(convert_mckp)

namespace {

ConvertOptions quick(std::optional<Codec> codec = Codec::none) {
  ConvertOptions options;
  options.save.output.durability = Durability::none;
  options.save.compression.codec = codec;
  return options;
}

std::filesystem::path vectors() {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/mithril";
}

}  // namespace

BOOST_AUTO_TEST_CASE(formats_are_known_by_content_and_name) {
  const TemporaryFolder folder;
  write_file(folder / "a", mckp_bytes({{"t", normal_f32({3}, 1)}}));
  BOOST_TEST((detect_format(folder / "a") == FileFormat::mckp));
  BOOST_TEST((detect_format(vectors() / "small.mst") == FileFormat::mst));
  BOOST_TEST((detect_format(folder / "new.mckp") == FileFormat::mckp));
  BOOST_TEST((file_format_from_name("mst") == FileFormat::mst));
  for (const char* const wrapper : {"MCPT\1", "MDSC\1"}) {
    write_file(folder / "w", wrapper + std::string(20, '\0'));
    BOOST_CHECK_EXCEPTION(detect_format(folder / "w"), UnsupportedError,
                          says(ErrorCode::unsupported_feature, "pickle"));
  }
}

BOOST_AUTO_TEST_CASE(safetensors_files_come_back_through_mckp) {
  const TemporaryFolder folder;
  std::vector<OwnedTensor> owned;
  for (const DType dtype : safetensors_dtypes())
    owned.push_back(make_tensor("m." + std::string(dtype_name(dtype)), dtype, {4, 6}));
  save_safetensors(folder / "a.safetensors", borrow(owned),
                   SafetensorsMetadata{{"b", "1"}, {"a", "zwei\n"}},
                   {.durability = Durability::none});
  for (const auto codec :
       {std::optional(Codec::none), std::optional(Codec::zstd), std::optional<Codec>()}) {
    const auto there = convert(folder / "a.safetensors", folder / "a.mckp", quick(codec));
    BOOST_TEST(there.losses.empty());
    BOOST_TEST(there.tensors == owned.size());
    BOOST_TEST(there.output_bytes == std::filesystem::file_size(folder / "a.mckp"));
    const MckpFile file = MckpFile::open(folder / "a.mckp");
    if (!codec)
      BOOST_TEST(file.header().compression_params.find("plane_entropy") != std::string::npos);
    const auto back = convert(folder / "a.mckp", folder / "b.safetensors", quick());
    BOOST_TEST(back.losses.empty());
    BOOST_TEST(read_file(folder / "a.safetensors") == read_file(folder / "b.safetensors"));
  }
}

BOOST_AUTO_TEST_CASE(thalia_files_come_back_through_mckp) {
  const TemporaryFolder folder;
  Sample sample;
  sample.metadata = R"({"lr":0.1,"list":[1,2]})";
  sample.training_steps = 77;
  sample.regions.push_back({.spec = {.name = "layer.0"},
                            .tensors = {dense_tensor("layer.0.w", DType::f32, {40, 3}),
                                        dense_tensor("layer.0.q", DType::i4, {7})}});
  sample.regions.push_back(
      {.spec = {.name = "layer.1"}, .tensors = {dense_tensor("layer.1.w", DType::bf16, {9})}});
  save(folder / "a.thalia", sample);
  const auto there = convert(folder / "a.thalia", folder / "a.mckp", quick(std::nullopt));
  BOOST_TEST(there.losses.empty());
  const MckpFile file = MckpFile::open(folder / "a.mckp");
  BOOST_TEST(file.header().training_step.value() == 77u);
  BOOST_TEST(file.header().metadata == sample.metadata);
  convert(folder / "a.mckp", folder / "b.thalia", quick(Codec::zstd));
  const Reader before = Reader::open(folder / "a.thalia"),
               after = Reader::open(folder / "b.thalia");
  BOOST_TEST(after.region_count() == 2u);
  BOOST_TEST(after.header().training_steps == 77u);
  BOOST_TEST(after.metadata_json() == sample.metadata);
  for (const char* const name : {"layer.0.w", "layer.0.q", "layer.1.w"})
    BOOST_TEST((Tensor::from(before.tensor(name)) == Tensor::from(after.tensor(name))));
}

BOOST_AUTO_TEST_CASE(deltas_are_resolved_by_converting) {
  const TemporaryFolder folder;
  const Tensor first = normal_f32({50}, 1);
  Tensor second = first;
  second.mutable_as<float>()[7] = 1;
  MckpWriteResult result;
  write_file(folder / "one.mckp", mckp_bytes({{"w", first}}, {}, {}, &result));
  write_file(folder / "two.mckp",
             mckp_bytes({{"w", second}},
                        {.header = {.training_step = 9,
                                    .previous = MckpPrevious{"one", result.content_hash}}},
                        {{"w", first}}));
  BOOST_TEST(MckpFile::open(folder / "two.mckp").header().previous.has_value());
  const auto done = convert(folder / "two.mckp", folder / "whole.mckp", quick());
  BOOST_TEST(done.losses.empty());
  BOOST_TEST((MckpFile::open(folder / "whole.mckp").read("w") == second));
  const auto flat = convert(folder / "two.mckp", folder / "a.safetensors", quick());
  BOOST_TEST(flat.losses.empty());
  convert(folder / "a.safetensors", folder / "back.mckp", quick());
  BOOST_TEST(MckpFile::open(folder / "back.mckp").header().training_step.value() == 9u);
  std::filesystem::remove(folder / "one.mckp");
  BOOST_CHECK_THROW(convert(folder / "two.mckp", folder / "x.mckp", quick()), MissingBaseError);
  BOOST_TEST(!std::filesystem::exists(folder / "x.mckp"));
}

BOOST_AUTO_TEST_CASE(mst_files_become_what_else_there_is) {
  const TemporaryFolder folder;
  for (const char* const name : {"a.mckp", "a.thalia", "a.safetensors"}) {
    const auto done = convert(vectors() / "small.mst", folder / name, quick());
    BOOST_TEST(done.tensors == 4u);
    BOOST_TEST(done.losses.empty());
  }
  convert(folder / "a.mckp", folder / "b.safetensors", quick());
  BOOST_TEST(read_file(folder / "a.safetensors") == read_file(folder / "b.safetensors"));
  const Reader reader = Reader::open(folder / "a.thalia");
  BOOST_TEST(text_of(reader.tensor("w.f32").bytes()) == read_file(vectors() / "raw.f32"));
  convert(folder / "a.mckp", folder / "b.mst");
  BOOST_TEST(read_file(folder / "b.mst") == read_file(vectors() / "small.mst"));
  BOOST_CHECK_THROW(convert(folder / "a.mckp", folder / "c.mst", quick()), UsageError);
}

BOOST_AUTO_TEST_CASE(precision_is_chosen_on_the_way) {
  const TemporaryFolder folder;
  write_file(folder / "a.mckp", mckp_bytes({{"weight", normal_f32({5, 10}, 1)}}));
  ConvertOptions options = quick();
  options.precision = parse_precision_policy("bf16");
  for (const char* const name : {"b.mckp", "b.safetensors", "b.thalia"}) {
    const auto done = convert(folder / "a.mckp", folder / name, options);
    BOOST_TEST(done.converted_tensors == 1u);
    convert(folder / name, folder / (std::string("c_") + name + ".mckp"), quick());
    BOOST_TEST(
        (MckpFile::open(folder / (std::string("c_") + name + ".mckp")).find("weight")->dtype ==
         DType::bf16));
  }
}

BOOST_AUTO_TEST_CASE(sparse_tensors_come_back_through_mckp) {
  const TemporaryFolder folder;
  save(folder / "a.thalia", small_sample());
  convert(folder / "a.thalia", folder / "a.mckp", quick());
  convert(folder / "a.mckp", folder / "b.thalia", quick());
  const Reader before = Reader::open(folder / "a.thalia"),
               after = Reader::open(folder / "b.thalia");
  unsigned sparse = 0;
  for (std::uint32_t r = 0; r < before.region_count(); ++r) {
    const RegionView region = before.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const TensorView tensor = region.tensor(t);
      sparse += is_sparse(tensor.encoding()) ? 1 : 0;
      BOOST_TEST((Tensor::from(tensor) == Tensor::from(after.tensor(tensor.name()))));
    }
  }
  BOOST_TEST(sparse > 0u);
}

BOOST_AUTO_TEST_CASE(options_that_mckp_has_no_use_for_are_refused) {
  const TemporaryFolder folder;
  ConvertOptions options = quick();
  options.save.sha256 = true;
  write_file(folder / "b.mckp", mckp_bytes({{"t", normal_f32({3}, 1)}}));
  BOOST_CHECK_THROW(convert(folder / "b.mckp", folder / "c.mckp", options), UsageError);
}

BOOST_AUTO_TEST_SUITE_END()
