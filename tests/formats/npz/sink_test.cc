// What sinks of .npy and .npz files write: the same file again, and what they make of metadata.
#include "formats/npz/sink.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/npz/npz_files.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/npz.h"

using namespace thalia;
using namespace thalia::formats;
using test::bytes_of;
using test::npz_sample;
using test::random_numbers;
using test::rewrite_npz;

BOOST_AUTO_TEST_SUITE(npz_sinks)

namespace {

const OutputOptions kFast{.durability = Durability::none};

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_numpy_are_written_again_byte_for_byte) {
  const test::TemporaryFolder folder;
  for (const char* const name : {"stored.npz", "deflated.npz", "array.npy"}) {
    BOOST_TEST(rewrite_npz(npz_sample(name), folder / name).empty());
    BOOST_TEST((test::read_file(folder / name) == test::read_file(npz_sample(name))), name);
  }
}

BOOST_AUTO_TEST_CASE(any_codec_of_a_conversion_but_store_deflates) {
  const test::TemporaryFolder folder;
  const auto deflated = [&](const char* input, std::optional<Codec> codec) {
    ConvertOptions options;
    options.save.output = kFast;
    options.save.compression.codec = codec;
    convert(npz_sample(input), folder / "out.npz", options);
    return test::read_file(folder / "out.npz") == test::read_file(npz_sample("deflated.npz"));
  };
  BOOST_TEST(deflated("stored.npz", Codec::zstd));
  BOOST_TEST(!deflated("stored.npz", std::nullopt));
  BOOST_TEST(deflated("deflated.npz", std::nullopt));
  BOOST_TEST(!deflated("deflated.npz", Codec::none));
}

BOOST_AUTO_TEST_CASE(metadata_of_others_are_named_as_lost_and_trusted_in_nothing) {
  const test::TemporaryFolder folder;
  save_npz(folder / "a.npz", {{.name = "w", .tensor = random_numbers(DType::f32, {2, 3})}},
           {.output = kFast});
  const std::string plain = test::read_file(folder / "a.npz");
  int count = 0;
  const auto as_plain = [&](const std::string& metadata, const std::vector<std::string>& losses) {
    BOOST_TEST_CONTEXT(metadata) {
      const auto output = folder / (std::to_string(++count) + ".npz");
      BOOST_TEST((rewrite_npz(folder / "a.npz", output, metadata) == losses));
      BOOST_TEST((test::read_file(output) == plain));
    }
  };
  as_plain("{}", {});
  as_plain(R"({"author":"me","format":"gguf","gguf":{"a":1}})",
           {"metadata: 'author', 'format', 'gguf'"});
  as_plain(R"({"format":"npz","npz":{"arrays":[]}})", {});
  as_plain(R"({"format":"npz","npz":{"arrays":[{"name":"other","fortran_order":true}]}})", {});
  as_plain(R"({"npz":{"arrays":[{"name":"w","descr":"<i8"}]}})", {});
  as_plain(R"({"npz":{"arrays":[{"name":"w","descr":"|V4"}]}})", {});
  as_plain(R"({"npz":{"arrays":[{"name":"w","header_bytes":1}]}})", {});
  for (const char* const bad :
       {R"({"npz":{"arrays":[{"name":"w","descr":"|O"}]}})",
        R"({"npz":{"arrays":[{"name":"w","descr":"'+__import__"}]}})",
        R"({"npz":{"arrays":[{"name":"w","header_bytes":99999999999}]}})",
        R"({"npz":{"arrays":[{"name":"w","header_bytes":-1}]}})",
        R"({"npz":{"arrays":[{"name":"w","version":4}]}})",
        R"({"npz":{"arrays":[{"name":"w","fortran_order":1}]}})",
        R"({"npz":{"arrays":[{"name":"w","new":1}]}})",
        R"({"npz":{"arrays":[{"name":"w"},{"name":"w"}]}})", R"({"npz":{"arrays":[{}]}})",
        R"({"npz":{"arrays":[[]]}})", R"({"npz":{"arrays":{}}})", R"({"npz":{"deflated":1}})",
        R"({"npz":[]})", R"({"npz":null})"})
    as_plain(bad, {"metadata: 'npz'"});
}

BOOST_AUTO_TEST_CASE(types_that_numpy_lacks_are_announced) {
  const test::TemporaryFolder folder;
  SinkInput input{.tensors = {{.name = "a", .layout = {.dtype = DType::f8_e4m3, .shape = {2}}},
                              {.name = "b", .layout = {.dtype = DType::bf16, .shape = {2}}}},
                  .training_steps = 7};
  std::vector<std::string> all;
  SinkOptions options;
  options.save.output = kFast;
  options.announce = [&](const std::vector<std::string>& losses) { all = losses; };
  const std::string bytes(4, 'x');
  write_npz(folder / "a.npz", input, options, [&](std::size_t i, const PieceSink& sink) {
    sink(bytes_of(bytes).first(i == 0 ? 2 : 4));
  });
  BOOST_TEST(
      (all == std::vector<std::string>{"element types that NumPy lacks, written as bytes (V1): 'a'",
                                       "the count of training steps"}));
  const auto refuse = [](const std::vector<std::string>&) {
    throw UsageError(ErrorCode::bad_argument, "not this");
  };
  options.announce = refuse;
  BOOST_CHECK_THROW(write_npz(folder / "b.npz", input, options, {}), UsageError);
  BOOST_TEST((test::list_folder(folder.path()) == std::vector<std::string>{"a.npz"}));
}

BOOST_AUTO_TEST_CASE(pieces_may_end_anywhere) {
  const test::TemporaryFolder folder;
  const Tensor tensor = random_numbers(DType::f64, {300, 301});
  SinkInput input{.tensors = {{.name = "w", .layout = tensor.layout()}}};
  SinkOptions options;
  options.save.output = kFast;
  std::uint64_t told = 0;
  options.save.work.progress = [&](std::uint64_t done, std::uint64_t total) {
    told = done;
    BOOST_TEST(total == tensor.bytes().size());
  };
  for (const char* const array : {R"({"name":"w"})", R"({"name":"w","descr":">f8"})",
                                  R"({"name":"w","descr":">f8","fortran_order":true})"}) {
    input.metadata = std::string(R"({"npz":{"arrays":[)") + array + "]}}";
    write_npz(folder / "a.npz", input, options, [&](std::size_t, const PieceSink& sink) {
      for (ByteSpan left = tensor.bytes(); !left.empty();) {
        const ByteSpan piece = left.first(std::min<std::size_t>(left.size(), 9'973));
        sink(piece);
        left = left.subspan(piece.size());
      }
    });
    BOOST_TEST(told == tensor.bytes().size());
    BOOST_TEST((open_any(folder / "a.npz").read("w") == tensor));
  }
}

BOOST_AUTO_TEST_SUITE_END()
