// What is alike for files of all formats: numbers of tensors, options, files that lie.
#include "thalia/formats/any_file.h"

#include <ctime>
#include <string>

#include "boost_test.h"
#include "formats/samples.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(any_file)

namespace {

ConvertOptions to(FileFormat format) {
  ConvertOptions options{.to = format};
  options.save.output = {.durability = Durability::none, .replace = true};
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_number_past_the_last_tensor_is_refused) {
  const AnyFile file = open_any(golden("plain.safetensors"));
  const std::size_t count = file.tensors().size();
  BOOST_CHECK_EXCEPTION(file.read(count), UsageError, says(ErrorCode::not_found, "tensor"));
  BOOST_CHECK_EXCEPTION(file.check(count), UsageError, says(ErrorCode::not_found, "tensor"));
}

BOOST_AUTO_TEST_CASE(options_that_the_output_has_no_use_for_are_refused) {
  const TemporaryFolder folder;
  for (const FileFormat format : {FileFormat::gguf, FileFormat::pt, FileFormat::thalia_0_1}) {
    const auto refused = [&](const ConvertOptions& options, const char* what) {
      BOOST_CHECK_EXCEPTION(convert(golden("plain.safetensors"), folder / "out", options),
                            UsageError, says(ErrorCode::bad_argument, what));
      BOOST_TEST(!std::filesystem::exists(folder / "out"));
    };
    ConvertOptions options = to(format);
    options.save.compression.codec = Codec::zstd;
    refused(options, "codec");
    options = to(format);
    options.save.automatic_codec = true;
    refused(options, "codec");
    options = to(format);
    options.save.sha256 = true;
    refused(options, "sha256");
    options = to(format);
    options.shard_bytes = 1000;
    refused(options, "shard_bytes");
  }
}

BOOST_AUTO_TEST_CASE(options_of_the_output_are_none_of_the_file_in_between) {
  const TemporaryFolder folder;
  convert(golden("plain.safetensors"), folder / "v01", to(FileFormat::thalia_0_1));
  ConvertOptions options = to(FileFormat::safetensors);
  options.shard_bytes = 60;
  convert(folder / "v01", folder / "model.safetensors", options);
  BOOST_TEST(open_any(folder / "model.safetensors.index.json").tensors().size() == 3u);
}

BOOST_AUTO_TEST_CASE(the_name_of_an_index_asks_for_shards) {
  const TemporaryFolder folder;
  convert(golden("plain.safetensors"), folder / "new/model.safetensors.index.json");
  BOOST_TEST(open_any(folder / "new").tensors().size() == 3u);
}

BOOST_AUTO_TEST_CASE(what_a_format_lacks_is_told_of_the_input) {
  const TemporaryFolder folder;
  write_file(folder / "in", safetensors_bytes(one_tensor(R"("F4")", "[2]", "[0,1]"), 1));
  for (const FileFormat format : {FileFormat::gguf, FileFormat::pt, FileFormat::npz}) {
    BOOST_CHECK_EXCEPTION(convert(folder / "in", folder / "out", to(format)), UnsupportedDtypeError,
                          [&](const UnsupportedDtypeError& error) {
                            return error.code() == ErrorCode::unsupported_dtype &&
                                   error.context().path == (folder / "in").string();
                          });
  }
}

BOOST_AUTO_TEST_CASE(a_codec_makes_a_compressed_archive) {
  const TemporaryFolder folder;
  ConvertOptions options = to(FileFormat::npz);
  convert(golden("plain.safetensors"), folder / "stored.npz", options);
  options.save.compression.codec = Codec::zstd;
  convert(golden("plain.safetensors"), folder / "deflated.npz", options);
  BOOST_TEST(open_any(folder / "stored.npz").tensors()[0].in_place);
  BOOST_TEST(!open_any(folder / "deflated.npz").tensors()[0].in_place);
}

// With a look at all texts for each text, this takes minutes.
BOOST_AUTO_TEST_CASE(many_texts_are_carried_in_no_time) {
  const TemporaryFolder folder;
  std::string texts;
  for (unsigned i = 0; i < 200'000; ++i)
    texts += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":\"\"";
  write_file(folder / "in", safetensors_bytes(R"({"__metadata__":{)" + texts + "}}"));
  // Beside the source metadata, as users put them there.
  {
    Writer writer(folder / "in.thalia", {.output = to(FileFormat::thalia).save.output});
    writer.set_metadata(R"({"format":"safetensors","safetensors":{},)" + texts + "}");
    writer.commit();
  }
  const std::clock_t begin = std::clock();  // of the processor: others may be busy
  for (const FileFormat format : {FileFormat::gguf, FileFormat::onnx, FileFormat::mst,
                                  FileFormat::orbax, FileFormat::safetensors}) {
    const std::string name(file_format_name(format));
    convert(folder / "in", folder / name, to(format));
    if (format != FileFormat::orbax) convert(folder / "in.thalia", folder / name, to(format));
  }
  BOOST_TEST((std::clock() - begin) / CLOCKS_PER_SEC < 60);
}

// The shape says 16 PiB, which the original finds out when it reads the tensor.
BOOST_AUTO_TEST_CASE(no_sink_asks_for_the_memory_of_a_tensor_that_is_not_there) {
  const TemporaryFolder folder;
  std::string bytes = read_file(golden("gptrs/hand_v2_stored_id.gptrschk"));
  const std::string extent("\2\0\0\0\0\0\0\0", 8);
  bytes[bytes.find(extent, 48) + 6] = '\x10';
  write_file(folder / "w.gptrschk", bytes);
  for (const FileFormat format : file_formats()) {
    if (!file_format_is_written(format)) continue;
    ConvertOptions options = to(format);
    options.chain.read.input.legacy = true;
    BOOST_TEST_CONTEXT(file_format_name(format))
    BOOST_CHECK_THROW(convert(folder / "w.gptrschk", folder / "out", options), Error);
    BOOST_TEST(!std::filesystem::exists(folder / "out"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
