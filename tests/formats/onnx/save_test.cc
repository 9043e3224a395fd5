// Models that the library writes; onnx_reference_test.py has them checked by the package onnx.
#include <filesystem>
#include <set>
#include <string>

#include "boost_test.h"
#include "formats/onnx/file.h"
#include "formats/onnx/models.h"
#include "formats/onnx/write.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/onnx.h"

using namespace thalia;
using formats::SinkTensor;
using test::random_tensor;
using test::read_file;
using test::sparse_tensor;

BOOST_AUTO_TEST_SUITE(onnx_save)

namespace {

using Tensors = std::vector<std::pair<std::string, Tensor>>;

std::uint64_t save(const std::filesystem::path& path, const Tensors& tensors,
                   OnnxSaveOptions options = {}, const OnnxMetadata& metadata = {}) {
  options.output.durability = Durability::none;
  return save_onnx(path, tensors, metadata, options);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_saved_is_read_again) {
  const test::TemporaryFolder folder;
  Tensors tensors;
  for (unsigned code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (dtype == DType::ternary || dtype == DType::binary) continue;
    // 8 elements do not end within a byte, where bits that are not theirs would have to be zero.
    tensors.emplace_back("w." + std::string(dtype_name(dtype)), random_tensor(dtype, {2, 4}));
  }
  tensors.emplace_back("scalar", random_tensor(DType::f32, {}));
  tensors.emplace_back("sparse", sparse_tensor());
  tensors.emplace_back("empty", random_tensor(DType::f64, {0, 7}));
  tensors.emplace_back("wide", sparse_tensor(true));
  const OnnxMetadata metadata{{"key", "value"}, {"", "of nothing"}, {"ключ", "значение"}};
  const std::uint64_t bytes = save(folder / "w.onnx", tensors, {}, metadata);
  BOOST_TEST(bytes == read_file(folder / "w.onnx").size());
  const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(folder / "w.onnx");
  BOOST_TEST((file.metadata() == metadata));
  BOOST_TEST(file.graph().outputs_are_tensors);
  BOOST_TEST(file.graph().outputs == tensors.size());
  BOOST_REQUIRE(file.tensors().size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    BOOST_TEST(file.tensors()[i].name == tensors[i].first);
    const Tensor& expected = tensors[i].first == "wide" ? sparse_tensor() : tensors[i].second;
    BOOST_TEST((file.read(i) == expected), tensors[i].first);
  }
}

BOOST_AUTO_TEST_CASE(versions_are_as_new_as_the_types_need) {
  const test::TemporaryFolder folder;
  const auto versions = [&](DType dtype, OnnxModel model = {}) {
    save(folder / "v.onnx", {{"w", random_tensor(dtype, {4})}}, {.model = std::move(model)});
    const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(folder / "v.onnx");
    return std::pair(file.model().ir_version, file.model().opset_imports[0].version);
  };
  const auto are = [](std::int64_t ir, std::int64_t opset) { return std::pair(ir, opset); };
  BOOST_TEST((versions(DType::f32) == are(8, 15)));
  BOOST_TEST((versions(DType::bf16) == are(8, 15)));
  BOOST_TEST((versions(DType::f8_e4m3) == are(9, 19)));
  BOOST_TEST((versions(DType::u4) == are(10, 21)));
  BOOST_TEST((versions(DType::f4_e2m1) == are(11, 23)));
  BOOST_TEST((versions(DType::f8_e8m0) == are(12, 24)));
  BOOST_TEST((versions(DType::i2) == are(13, 25)));
  BOOST_TEST((versions(DType::f6_e3m2) == are(14, 28)));
  OnnxModel model;
  model.ir_version = 4;
  model.opset_imports = {{.domain = "ai.onnx", .version = 9}};
  BOOST_TEST((versions(DType::f32, model) == are(4, 9)));
  BOOST_TEST((versions(DType::i4, model) == are(10, 21)));
  model.ir_version = 13;
  BOOST_TEST((versions(DType::i4, model) == are(13, 21)));
  save(folder / "v.onnx", {{"s", sparse_tensor()}},
       {.model = {.ir_version = 4, .opset_imports = {{.domain = {}, .version = 9}}}});
  BOOST_TEST(formats::onnx::OnnxFile::open(folder / "v.onnx").model().ir_version == 5);
}

BOOST_AUTO_TEST_CASE(what_onnx_lacks_is_refused_before_anything_is_written) {
  const test::TemporaryFolder folder;
  const auto refuses = [&](const Tensors& tensors, ErrorCode code, const OnnxModel& model = {},
                           const OnnxMetadata& metadata = {}) {
    BOOST_CHECK_EXCEPTION(save(folder / "w.onnx", tensors, {.model = model}, metadata), Error,
                          test::has_code(code));
    BOOST_TEST(test::list_folder(folder.path()).empty());
  };
  const Tensor one = random_tensor(DType::u8, {1});
  refuses({{"w", random_tensor(DType::ternary, {4})}}, ErrorCode::unsupported_dtype);
  refuses({{"w", random_tensor(DType::binary, {8})}}, ErrorCode::unsupported_dtype);
  refuses({{"", one}}, ErrorCode::unsupported_feature);
  refuses({{"\xff", one}}, ErrorCode::unsupported_feature);
  refuses({{"w", one}, {"w", one}}, ErrorCode::unsupported_feature);
  refuses({{"w", Tensor::zeros(DType::u8, {0, 1ull << 63})}}, ErrorCode::unsupported_feature);
  const auto model = [](const auto& change) {
    OnnxModel changed;
    change(changed);
    return changed;
  };
  refuses({}, ErrorCode::bad_argument, model([](OnnxModel& m) { m.ir_version = 3; }));
  refuses({}, ErrorCode::bad_argument, model([](OnnxModel& m) { m.ir_version = 15; }));
  refuses({}, ErrorCode::bad_argument, model([](OnnxModel& m) { m.opset_imports.clear(); }));
  refuses({}, ErrorCode::bad_argument, model([](OnnxModel& m) { m.opset_imports[0].version = 0; }));
  refuses({}, ErrorCode::bad_argument, model([](OnnxModel& m) { m.doc_string = "\xff"; }));
  refuses({}, ErrorCode::bad_argument, {}, {{"\xff", ""}});
  refuses({}, ErrorCode::duplicate, {}, {{"k", "1"}, {"k", "2"}});
}

BOOST_AUTO_TEST_CASE(large_tensors_lie_aligned_in_a_file_beside_the_model) {
  const test::TemporaryFolder folder;
  const Tensors tensors{{"a", random_tensor(DType::f32, {300})},
                        {"small", random_tensor(DType::f32, {255})},
                        {"sparse", sparse_tensor()},
                        {"b", random_tensor(DType::u8, {5000})},
                        {"c", random_tensor(DType::u8, {1024})}};
  const std::uint64_t bytes = save(folder / "w.onnx", tensors, {.external_data = true});
  const std::vector<std::string> names{"w.onnx", "w.onnx.data"};
  BOOST_TEST(test::list_folder(folder.path()) == names, boost::test_tools::per_element());
  const std::string data = read_file(folder / "w.onnx.data");
  BOOST_TEST(data.size() == 12288u + 1024u);
  BOOST_TEST(bytes == data.size() + read_file(folder / "w.onnx").size());
  const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(folder / "w.onnx");
  const std::vector<std::optional<std::uint64_t>> offsets{0, {}, {}, 4096, 12288};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    BOOST_TEST((file.read(i) == tensors[i].second), tensors[i].first);
    BOOST_TEST(file.tensors()[i].location == (offsets[i] ? "w.onnx.data" : ""));
    if (offsets[i]) BOOST_TEST(*file.tensors()[i].offset == *offsets[i]);
  }
  BOOST_TEST(file.file_bytes() == bytes);
}

BOOST_AUTO_TEST_CASE(a_model_that_would_be_too_long_has_its_data_in_another_file) {
  const test::TemporaryFolder folder;
  const Tensor tensor = random_tensor(DType::u8, {4000});
  const std::vector<SinkTensor> layouts{{.name = "w", .layout = tensor.layout()}};
  const auto write = [&](std::optional<bool> external, std::uint64_t most) {
    return formats::onnx::write_model(
        folder / "w.onnx", layouts, {}, {}, {.external_data = external, .most_model_bytes = most},
        [] {}, [&](std::size_t, const formats::PieceSink& sink) { sink(tensor.bytes()); });
  };
  const std::uint64_t bytes = write({}, 5000);
  BOOST_TEST(test::list_folder(folder.path()).size() == 1u);
  write({}, bytes);
  BOOST_TEST(test::list_folder(folder.path()).size() == 1u);
  BOOST_CHECK_THROW(write(false, bytes - 1), UnsupportedError);
  write({}, bytes - 1);
  BOOST_TEST(test::list_folder(folder.path()).size() == 2u);
  BOOST_TEST((formats::onnx::OnnxFile::open(folder / "w.onnx").read("w") == tensor));
  BOOST_CHECK_THROW(write({}, 100), UnsupportedError);
}

// A model of 3 GiB that is all zeros takes no memory here, and no elements are written.
BOOST_AUTO_TEST_CASE(lengths_beyond_what_a_message_holds_are_reckoned_without_overflow) {
  const test::TemporaryFolder folder;
  const auto refuses = [&](const TensorLayout& layout) {
    const std::vector<SinkTensor> tensors{{.name = "w", .layout = layout}};
    BOOST_CHECK_THROW(formats::onnx::write_model(
                          folder / "w.onnx", tensors, {}, {}, {.external_data = false}, [] {},
                          [](std::size_t, const formats::PieceSink&) {}),
                      UnsupportedError);
  };
  refuses({.dtype = DType::u8, .shape = {1ull << 31}});
  refuses({.dtype = DType::u8, .shape = {(1ull << 63) - 1}});
  refuses({.dtype = DType::f64, .shape = {1ull << 61}});
  refuses({.dtype = DType::u8,
           .shape = {1ull << 62},
           .encoding = Encoding::coo,
           .nnz = 1ull << 58,
           .wide_indices = true});
  refuses({.dtype = DType::u8, .shape = {4}, .encoding = Encoding::coo, .nnz = 5});
}

BOOST_AUTO_TEST_CASE(a_crash_between_the_files_leaves_the_old_model_its_data) {
  const test::TemporaryFolder folder;
  const Tensor old = random_tensor(DType::u8, {3000}), fresh = random_tensor(DType::u8, {3001});
  const auto reads = [&](const Tensor& expected) {
    return formats::onnx::OnnxFile::open(folder / "w.onnx").read("w") == expected;
  };
  const OnnxSaveOptions external{.external_data = true};
  save(folder / "w.onnx", {{"w", old}}, external);
  // What a crash after the data file leaves: both files of data, and the old model.
  const std::string model = read_file(folder / "w.onnx");
  save(folder / "w.onnx", {{"w", fresh}}, external);
  BOOST_TEST(reads(fresh));
  const std::vector<std::string> second{"w.onnx", "w.onnx.1.data"};
  BOOST_TEST(test::list_folder(folder.path()) == second, boost::test_tools::per_element());
  save(folder / "w.onnx", {{"w", old}}, external);
  BOOST_TEST(reads(old));
  const std::vector<std::string> first{"w.onnx", "w.onnx.data"};
  BOOST_TEST(test::list_folder(folder.path()) == first, boost::test_tools::per_element());
  BOOST_TEST(read_file(folder / "w.onnx") == model);
  test::write_file(folder / "w.onnx.1.data", "left by a crash");
  BOOST_TEST(reads(old));
  save(folder / "w.onnx", {{"w", fresh}}, external);
  BOOST_TEST(reads(fresh));
  BOOST_TEST(test::list_folder(folder.path()) == second, boost::test_tools::per_element());
  // A model whose data are gone still names them: the new ones may have the name.
  save(folder / "w.onnx", {{"w", old}}, external);
  std::filesystem::remove(folder / "w.onnx.data");
  test::write_file(folder / "w.onnx.1.data", "left by a crash");
  save(folder / "w.onnx", {{"w", fresh}}, external);
  BOOST_TEST(reads(fresh));
  // A model that cannot be read may use any file, so none is replaced or removed.
  test::write_file(folder / "w.onnx", "damaged");
  test::write_file(folder / "w.onnx.data", "of whom?");
  save(folder / "w.onnx", {{"w", old}}, external);
  BOOST_TEST(reads(old));
  BOOST_TEST(read_file(folder / "w.onnx.data") == "of whom?");
  BOOST_TEST(test::list_folder(folder.path()).size() == 4u);
}

BOOST_AUTO_TEST_CASE(an_error_on_the_way_leaves_what_was_there) {
  const test::TemporaryFolder folder;
  save(folder / "w.onnx", {{"w", random_tensor(DType::u8, {3000})}}, {.external_data = true});
  const std::string model = read_file(folder / "w.onnx"), data = read_file(folder / "w.onnx.data");
  const Tensor tensor = random_tensor(DType::u8, {4000});
  const std::vector<SinkTensor> layouts{{.name = "a", .layout = tensor.layout()},
                                        {.name = "b", .layout = tensor.layout()}};
  BOOST_CHECK_THROW(formats::onnx::write_model(
                        folder / "w.onnx", layouts, {}, {}, {.external_data = true}, [] {},
                        [&](std::size_t i, const formats::PieceSink& sink) {
                          if (i == 1) throw std::runtime_error("lost");
                          sink(tensor.bytes());
                        }),
                    std::runtime_error);
  BOOST_TEST(test::list_folder(folder.path()).size() == 2u);
  BOOST_TEST(read_file(folder / "w.onnx") == model);
  BOOST_TEST(read_file(folder / "w.onnx.data") == data);
  OnnxSaveOptions kept{.external_data = true};
  kept.output.replace = false;
  BOOST_CHECK_EXCEPTION(save(folder / "w.onnx", {{"w", tensor}}, kept), UsageError,
                        test::has_code(ErrorCode::exists));
  BOOST_TEST(read_file(folder / "w.onnx.data") == data);
}

BOOST_AUTO_TEST_SUITE_END()
