// Elements in other files: which of them a model may name, and what of them it gets.
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "boost_test.h"
#include "formats/onnx/file.h"
#include "formats/onnx/models.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/onnx.h"

using namespace thalia;
using test::onnx_model_of;
using test::onnx_tensor;
using test::Proto;

BOOST_AUTO_TEST_SUITE(onnx_data_folder)

namespace {

Proto entry(std::string_view key, std::string_view value) {
  return Proto().text(1, key).text(2, value);
}

// A FLOAT of 16 bytes in another file.
Proto external(std::string_view location, std::string_view offset = "0",
               std::string_view length = "16") {
  return onnx_tensor("w", 1, {4})
      .message(13, entry("location", location))
      .message(13, entry("offset", offset))
      .message(13, entry("length", length))
      .varint(14, 1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(tensors_that_share_an_extent_count_each) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "data", std::string(1 << 20, 'd'));
  const auto first_of = [&](unsigned tensors) {
    Proto graph;
    for (unsigned i = 0; i < tensors; ++i) {
      graph.message(5, onnx_tensor("w" + std::to_string(i), 1, {1 << 18})
                           .message(13, entry("location", "data"))
                           .message(13, entry("length", std::to_string(1 << 20)))
                           .varint(14, 1));
    }
    test::write_file(folder / "m.onnx", test::onnx_model(graph));
    const AnyFile file = open_any(folder / "m.onnx");
    file.check(0);
    return file.read(0);
  };
  BOOST_TEST(first_of(64).bytes().size() == std::size_t{1} << 20);  // as weights are shared
  BOOST_CHECK_EXCEPTION(first_of(2000), FormatError,
                        test::says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
}

BOOST_AUTO_TEST_CASE(external_data_never_lead_out_of_the_folder) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "model");
  std::filesystem::create_directory(folder / "model/sub");
  test::write_file(folder / "secret", std::string(16, 's'));
  test::write_file(folder / "model/sub/inside", std::string(16, 'i'));
  std::filesystem::create_symlink("../secret", folder / "model/link");
  std::filesystem::create_symlink("sub/inside", folder / "model/inner");
  std::filesystem::create_symlink("..", folder / "model/up");
  const auto read = [&](std::string_view location,
                        const formats::onnx::OnnxReadOptions& options = {}) {
    test::write_file(folder / "model/m.onnx", onnx_model_of(external(location)));
    return test::text_of(
        formats::onnx::OnnxFile::open(folder / "model/m.onnx", options).read("w").bytes());
  };
  BOOST_TEST(read("sub/inside") == std::string(16, 'i'));
  BOOST_TEST(read("./sub/inside") == std::string(16, 'i'));
  BOOST_TEST(read("inner") == std::string(16, 'i'));
  const std::string absolute = (folder / "secret").native();
  for (const std::string& location :
       {std::string("../secret"), std::string("../../../../../../etc/passwd"),
        std::string("sub/../../secret"), std::string("sub/../sub/inside"), absolute,
        std::string("link"), std::string("up/secret"), std::string("/dev/zero"), std::string("sub"),
        std::string("sub/"), std::string(".."), std::string("sub/inside\0", 11)}) {
    BOOST_TEST_CONTEXT(location)
    BOOST_CHECK_EXCEPTION(read(location), FormatError,
                          test::says(ErrorCode::out_of_bounds, "location", "m.onnx"));
  }
  BOOST_CHECK_THROW(read("missing"), IoError);
  // Where the caller says so, links may lead further; the path in the model may not.
  const formats::onnx::OnnxReadOptions wider{.data_folder = folder.path()};
  BOOST_TEST(read("link", wider) == std::string(16, 's'));
  BOOST_CHECK_THROW(read("../secret", wider), FormatError);
}

// As the Hugging Face cache has them: names are links into a folder of contents.
BOOST_AUTO_TEST_CASE(data_of_a_model_that_is_a_link_lie_beside_its_file) {
  const test::TemporaryFolder folder;
  for (const char* const name : {"blobs", "snapshots", "snapshots/1"})
    std::filesystem::create_directory(folder / name);
  test::write_file(folder / "secret", std::string(16, 's'));
  test::write_file(folder / "blobs/d", std::string(16, 'd'));
  test::write_file(folder / "blobs/m", onnx_model_of(external("m.onnx_data")));
  const std::filesystem::path model = folder / "snapshots/1/m.onnx";
  const std::filesystem::path data = folder / "snapshots/1/m.onnx_data";
  std::filesystem::create_symlink("../../blobs/m", model);
  std::filesystem::create_symlink("../../blobs/d", data);
  BOOST_TEST(test::text_of(formats::onnx::OnnxFile::open(model).read("w").bytes()) ==
             std::string(16, 'd'));
  BOOST_TEST(convert(model, folder / "m.thalia").tensors == 1u);
  std::filesystem::remove(data);
  std::filesystem::create_symlink("../../secret", data);
  BOOST_CHECK_EXCEPTION(formats::onnx::OnnxFile::open(model).read("w"), FormatError,
                        test::says(ErrorCode::out_of_bounds, "external data", "m.onnx"));
}

BOOST_AUTO_TEST_CASE(external_data_lie_in_their_file) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "data", std::string(20, 'd'));
  const auto read = [&](const Proto& tensor) {
    test::write_file(folder / "m.onnx", onnx_model_of(tensor));
    return test::text_of(formats::onnx::OnnxFile::open(folder / "m.onnx").read("w").bytes());
  };
  BOOST_TEST(read(external("data", "4")).size() == 16u);
  BOOST_CHECK_EXCEPTION(read(external("data", "5")), FormatError,
                        test::says(ErrorCode::out_of_bounds, "16 bytes at 5", "20 bytes", "data"));
  BOOST_CHECK_EXCEPTION(read(external("data", "18446744073709551615")), FormatError,
                        test::has_code(ErrorCode::out_of_bounds));
  for (const char* const number : {"-1", "", "0x10", "1 ", "+1", "18446744073709551616", "1e3"}) {
    BOOST_CHECK_EXCEPTION(read(external("data", number)), FormatError,
                          test::says(ErrorCode::bad_value, "offset"));
  }
  BOOST_CHECK_EXCEPTION(read(external("data", "0", "17")), FormatError,
                        test::says(ErrorCode::inconsistent, "length"));
  BOOST_CHECK_EXCEPTION(read(external("")), FormatError, test::has_code(ErrorCode::bad_value));
  BOOST_CHECK_EXCEPTION(read(external("data").text(9, std::string(16, 'r'))), FormatError,
                        test::says(ErrorCode::inconsistent, "external"));
  // Without a length: as many as the shape asks for, from the offset on.
  const Proto plain = onnx_tensor("w", 1, {4}).message(13, entry("location", "data")).varint(14, 1);
  BOOST_TEST(read(plain).size() == 16u);
  // If a tensor lies here, its external data count for nothing.
  BOOST_TEST(read(onnx_tensor("w", 3, {1}).text(9, "x").message(13, entry("location", "../x"))) ==
             "x");
}

BOOST_AUTO_TEST_CASE(a_checksum_of_the_data_file_is_checked_where_there_is_one) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "data", "abc of 16 bytes.");
  const auto check = [&](const char* sum) {
    test::write_file(folder / "m.onnx",
                     onnx_model_of(external("data").message(13, entry("checksum", sum))));
    const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(folder / "m.onnx");
    BOOST_TEST(file.read("w").bytes().size() == 16u);
    file.check(0);
    file.check(0);
  };
  // By sha1sum.
  check("4cd6cf262a285bd96ba2a38d45ddf2cfc38c554a");
  check("4CD6CF262A285BD96BA2A38D45DDF2CFC38C554A");
  for (const char* const other : {"0000000000000000000000000000000000000000", "x"}) {
    BOOST_CHECK_EXCEPTION(check(other), IntegrityError,
                          test::says(ErrorCode::checksum_mismatch, "SHA-1", "data"));
  }
}

// As older exporters of PyTorch write large models.
BOOST_AUTO_TEST_CASE(a_model_may_have_more_files_than_a_process_may_open) {
  rlimit limit{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit lower{.rlim_cur = 256, .rlim_max = limit.rlim_max};
  const test::TemporaryFolder folder;
  Proto graph;
  for (unsigned i = 0; i < 300; ++i) {
    const std::string name = std::to_string(i);
    test::write_file(folder / name, std::string(16, static_cast<char>(i)));
    graph.message(5, onnx_tensor(name, 1, {4}).message(13, entry("location", name)).varint(14, 1));
  }
  test::write_file(folder / "m.onnx", onnx_model(graph));
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  BOOST_CHECK_NO_THROW(convert(folder / "m.onnx", folder / "m.thalia"));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const AnyFile file = open_any(folder / "m.thalia");
  for (unsigned i = 0; i < 300; ++i) {
    const Tensor tensor = file.read(std::to_string(i));
    BOOST_TEST((tensor.bytes()[0] == static_cast<std::byte>(i)));
  }
}

// Holes: nothing of these files is on the disk.
BOOST_AUTO_TEST_CASE(lengths_beyond_4_gib_are_no_32_bit_numbers) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "m.onnx", "");
  std::filesystem::resize_file(folder / "m.onnx", 0x7fffffff);
  BOOST_CHECK_EXCEPTION(formats::onnx::OnnxFile::open(folder / "m.onnx"), UnsupportedError,
                        test::says(ErrorCode::unsupported_feature, "protobuf", "m.onnx"));
  test::write_file(folder / "data", "");
  std::filesystem::resize_file(folder / "data", (5ull << 30) - 1);
  test::write_file(folder / "m.onnx", onnx_model_of(external("data", "5368709100")));
  BOOST_TEST(formats::onnx::OnnxFile::open(folder / "m.onnx").read("w").bytes().size() == 16u);
  const Proto large =
      onnx_tensor("w", 3, {5ll << 30}).message(13, entry("location", "data")).varint(14, 1);
  test::write_file(folder / "m.onnx", onnx_model_of(large));
  BOOST_CHECK_EXCEPTION(formats::onnx::OnnxFile::open(folder / "m.onnx").read("w"), FormatError,
                        test::says(ErrorCode::out_of_bounds, "5368709120 bytes at 0"));
  std::filesystem::resize_file(folder / "data", 5ull << 30);
  BOOST_TEST(formats::onnx::OnnxFile::open(folder / "m.onnx").read("w").bytes().size() ==
             5ull << 30);
}

BOOST_AUTO_TEST_SUITE_END()
