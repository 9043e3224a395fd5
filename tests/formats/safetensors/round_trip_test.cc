// Files and models through a source and a sink: byte for byte, no matter who wrote them, as long as
// nobody changed what is in them.
#include <string>

#include "boost_test.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/model_samples.h"
#include "formats/safetensors/opened.h"
#include "formats/safetensors/opened_model.h"
#include "formats/safetensors/sink.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(safetensors_round_trip)

namespace {

// What other programs make of headers: their spaces, orders and paddings.
const std::vector<std::string> kHeaders = {
    R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
    R"({ "a" : { "shape" : [ 1 ] , "data_offsets" : [ 2 , 6 ] , "dtype" : "F32" } , "b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]} , "__metadata__" : { "k" : "v" , "j" : "\u00e9\/" } } )",
    "{\n\t\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]},\r\n\t\"b\": "
    "{\"dtype\": \"U8\", \"shape\": [2], \"data_offsets\": [4, 6]}\n}\n\n\t",
    R"({"\u005f_metadata__":{},"\u0061":{"dtype":"\u00463\u0032","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
    R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
    R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})" +
        std::string(5000, ' '),
    R"({"z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"m":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},"y":{"dtype":"U8","shape":[0],"data_offsets":[6,6]}})",
};

std::string source_metadata_of(const std::filesystem::path& path) {
  return formats::open_safetensors_file(path, {})->facts().metadata;
}

// Writes the source with other metadata, which a user may have edited.
std::vector<std::string> write_with(const std::filesystem::path& from, std::string metadata,
                                    const std::filesystem::path& to) {
  const auto source = formats::open_safetensors_file(from, {});
  formats::SinkInput input = input_of(*source);
  input.metadata = std::move(metadata);
  formats::SinkOptions options;
  std::vector<std::string> losses;
  options.announce = [&](const std::vector<std::string>& all) { losses = all; };
  formats::write_safetensors_tensors(
      to, input, options,
      [&](std::size_t i, const formats::PieceSink& sink) { source->visit(i, sink); });
  return losses;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_other_writers_come_back_byte_for_byte) {
  const TemporaryFolder folder;
  for (const std::string& header : kHeaders) {
    const std::string file = safetensors_bytes(header, 6);
    write_file(folder / "a.safetensors", file);
    BOOST_TEST(copy_safetensors(folder / "a.safetensors", folder / "b.safetensors").empty());
    BOOST_TEST_CONTEXT(header) BOOST_TEST((read_file(folder / "b.safetensors") == file));
  }
  for (const char* name : {"dtypes", "names", "metadata", "metadata_empty", "ranks", "none"}) {
    const auto original = golden(std::string(name) + ".safetensors");
    copy_safetensors(original, folder / "b.safetensors");
    BOOST_TEST((read_file(folder / "b.safetensors") == read_file(original)), name);
  }
}

// tests/data/formats/safetensors/README.md
BOOST_AUTO_TEST_CASE(files_of_loom_come_back_or_are_refused_by_name) {
  const TemporaryFolder folder;
  const auto path = golden("safetensors/export_f32.safetensors");
  const auto source = formats::open_safetensors_file(path, {});
  BOOST_TEST(source->facts().tensors[0].offset.value() == 78u);
  BOOST_TEST((source->read(0).shape() == Shape{15}));
  BOOST_TEST(copy_safetensors(path, folder / "b.safetensors").empty());
  BOOST_TEST((read_file(folder / "b.safetensors") == read_file(path)));
  const std::string whole = read_file(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_file(folder / "cut.safetensors", whole.substr(0, length));
    BOOST_CHECK_THROW(open_any(folder / "cut.safetensors"), FormatError);
  }
  BOOST_CHECK_EXCEPTION(
      formats::open_safetensors_file(golden("safetensors/all_dtypes.safetensors"), {}), FormatError,
      says(ErrorCode::bad_value, "t.f4", "no whole number of bytes"));
}

BOOST_AUTO_TEST_CASE(only_what_differs_from_the_reference_is_kept) {
  const TemporaryFolder folder;
  BOOST_TEST(source_metadata_of(golden("none.safetensors")) ==
             R"({"format":"safetensors","safetensors":{}})");
  BOOST_TEST(source_metadata_of(golden("metadata_empty.safetensors")) ==
             R"({"format":"safetensors","safetensors":{"metadata":{}}})");
  save_safetensors(folder / "a", borrow({make_tensor("w", DType::u8, {1})}), std::nullopt, {},
                   4096);
  BOOST_TEST(source_metadata_of(folder / "a") ==
             R"({"format":"safetensors","safetensors":{"header_length":4088}})");
  write_file(folder / "a", safetensors_bytes("{ }"));
  BOOST_TEST(source_metadata_of(folder / "a") ==
             R"({"format":"safetensors","safetensors":{"header":"{ }"}})");
}

BOOST_AUTO_TEST_CASE(a_kept_header_that_does_not_fit_is_not_used) {
  const TemporaryFolder folder;
  const std::string header =
      R"({ "a":{"dtype":"F32","shape":[1],"data_offsets":[2,6]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"__metadata__":{"k":"v"}})";
  write_file(folder / "a.safetensors", safetensors_bytes(header, 6));
  const std::string good = source_metadata_of(folder / "a.safetensors");
  const SafetensorsFile original = SafetensorsFile::open(folder / "a.safetensors");
  save_safetensors(folder / "plain", original.tensors(), original.metadata());
  const std::string plain = read_file(folder / "plain");
  const auto written = [&](std::string metadata) {
    write_with(folder / "a.safetensors", std::move(metadata), folder / "b.safetensors");
    return read_file(folder / "b.safetensors");
  };
  BOOST_TEST((written(good) == safetensors_bytes(header, 6)));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\\\"a\\\"", "\\\"c\\\""},
           {"F32", "I32"},
           {"[1]", "[1,1]"},
           {"[2,6]", "[3,7]"},
           {"[2,6]", "[2,7]"},
           {"[0,2]", "[0,3]"},
           {"{ \\\"a", "[ \\\"a"},
           {"\"header\":\"{", "\"header\":\" {"},
           {"F32", "X32"},
           {"[1]", "[1,1,1,1,1,1,1,1,1]"},
           {"[1]", "[18446744073709551615]"},
           {",\\\"b\\\":", ",\\\"a\\\":"},
           {"\\\"k\\\":\\\"v\\\"", "\\\"k\\\":\\\"w\\\""}}) {
    BOOST_TEST_CONTEXT(from << " to " << to)
    BOOST_TEST((written(replaced(good, from, to)) == plain));
  }
  // Texts that were edited count, and not those of the header.
  const std::string edited =
      written(replaced(good, R"("metadata":{"k":"v"})", R"("metadata":{"k":"x"})"));
  BOOST_TEST((edited != plain && edited.find(R"({"k":"x"})") != std::string::npos));
  BOOST_TEST((edited.find("\"v\"") == std::string::npos));
  for (const char* length : {"0", "7", "18446744073709551615", "100000001", "-1", "1.5", "\"8\""}) {
    const std::string odd =
        std::string(R"({"format":"safetensors","safetensors":{"metadata":{"k":"v"},)") +
        "\"header_length\":" + length + "}}";
    const std::string file = written(odd);
    const std::size_t at = file.find("{\"__meta");
    BOOST_TEST_CONTEXT(length) BOOST_TEST((at == 8 ? file == plain : file.starts_with(file)));
    BOOST_TEST(file.size() <= plain.size());
  }
}

BOOST_AUTO_TEST_CASE(source_metadata_of_another_form_count_for_nothing) {
  const TemporaryFolder folder;
  const auto losses = [&](const std::string& inner) {
    return write_with(golden("none.safetensors"),
                      "{\"format\":\"safetensors\",\"safetensors\":" + inner + "}",
                      folder / "out.safetensors");
  };
  const std::vector<std::string> lost{"metadata: 'safetensors'"};
  BOOST_TEST(losses("{}").empty());
  BOOST_TEST(losses(R"({"index":{"name":"m","text":"{}"},"files":[{"name":"a"}]})").empty());
  for (const char* const inner :
       {"1", "[]", R"({"header":1})", R"({"header":"a","header":"b"})", R"({"header_length":"1"})",
        R"({"metadata":{"a":1}})", R"({"metadata":null})", R"({"index":{}})", R"({"index":"a"})",
        R"({"index":{"name":"m"}})", R"({"index":{"name":"m","text":"","more":1}})",
        R"({"files":[]  ,"x":1})", R"({"files":[{"name":"a"}]})", R"({"files":{}})",
        R"({"index":{"name":"m","text":""},"files":[1]})",
        R"({"index":{"name":"m","text":""},"files":[{"header":"a"}]})",
        R"({"index":{"name":"m","text":""},"header":"a"})"}) {
    BOOST_TEST_CONTEXT(inner) BOOST_TEST(losses(inner) == lost, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_model_comes_back_byte_for_byte) {
  const TemporaryFolder folder;
  write_model(folder / "a");
  // A file of another writer, with texts of its own; and an index with what its program says there.
  write_file(
      folder / "a/model-00002-of-00002.safetensors",
      safetensors_bytes(
          R"({ "c":{"dtype":"U8","shape":[4],"data_offsets":[2,6]},"__metadata__":{},"d":{"shape":[1],"dtype":"BF16","data_offsets":[0,2]}})",
          6));
  for (const std::string& index : {std::string("model.safetensors.index.json"),
                                   std::string("d.safetensors.index.fp16.json")}) {
    std::filesystem::rename(folder / "a/model.safetensors.index.json", folder / ("a/" + index));
    BOOST_TEST(copy_safetensors(folder / "a", (folder / "b").string() + "/").empty());
    BOOST_TEST((contents(folder / "a") == contents(folder / "b")));
    std::filesystem::remove_all(folder / "b");
    BOOST_TEST(copy_safetensors(folder / "a", folder / ("c/" + index)).empty());
    BOOST_TEST((contents(folder / "a") == contents(folder / "c")));
    std::filesystem::remove_all(folder / "c");
    std::filesystem::rename(folder / ("a/" + index), folder / "a/model.safetensors.index.json");
  }
}

BOOST_AUTO_TEST_CASE(a_model_becomes_one_file_and_a_file_a_model) {
  const TemporaryFolder folder;
  write_model(folder / "a");
  BOOST_TEST(copy_safetensors(folder / "a", folder / "one.safetensors").empty());
  const SafetensorsFile one = SafetensorsFile::open(folder / "one.safetensors");
  BOOST_TEST((one.metadata() == SafetensorsMetadata{{"format", "pt"}}));
  save_safetensors(folder / "expected", borrow(model_tensors()), one.metadata());
  BOOST_TEST((read_file(folder / "one.safetensors") == read_file(folder / "expected")));

  formats::SinkOptions options;
  options.shard_bytes = 24;
  BOOST_TEST(copy_safetensors(folder / "one.safetensors", folder / "b", options).empty());
  const formats::safetensors::OpenedModel opened =
      formats::safetensors::open_model(folder / "b", {});
  BOOST_TEST(opened.files.size() == 2u);
  BOOST_TEST((opened.files[1].parsed.metadata == SafetensorsMetadata{{"format", "pt"}}));
  const AnyFile model = open_any(folder / "b");
  for (const OwnedTensor& tensor : model_tensors())
    BOOST_TEST(same_bytes(model.read(tensor.name).bytes(), tensor.bytes));
  // Into a folder without a shard size: one file, and what else was there of the model is gone.
  BOOST_TEST(copy_safetensors(folder / "one.safetensors", folder / "b").empty());
  BOOST_TEST(list_folder(folder / "b") == std::vector<std::string>{"model.safetensors"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(texts_that_differ_between_files_are_told) {
  const TemporaryFolder folder;
  write_model(folder / "a");
  const auto tensors = model_tensors();
  save_safetensors(folder / "a/model-00002-of-00002.safetensors", borrow({tensors[2], tensors[3]}),
                   SafetensorsMetadata{{"format", "tf"}, {"more", "1"}});
  BOOST_TEST(copy_safetensors(folder / "a", folder / "one.safetensors") ==
                 std::vector<std::string>{"texts that differ between files: 'format'"},
             boost::test_tools::per_element());
  BOOST_TEST((SafetensorsFile::open(folder / "one.safetensors").metadata() ==
              SafetensorsMetadata{{"format", "pt"}, {"more", "1"}}));
  BOOST_TEST(copy_safetensors(folder / "a", (folder / "b").string() + "/").empty());
  BOOST_TEST((contents(folder / "a") == contents(folder / "b")));
}

BOOST_AUTO_TEST_CASE(a_kept_index_that_does_not_fit_is_not_used) {
  const TemporaryFolder folder;
  write_model(folder / "a");
  const std::string good = source_metadata_of(folder / "a");
  const auto names = [&](std::string metadata) {
    std::filesystem::remove_all(folder / "b");
    std::filesystem::create_directory(folder / "b");
    write_with(folder / "a", std::move(metadata), folder / "b");
    return list_folder(folder / "b");
  };
  BOOST_TEST(names(good).size() == 3u);
  const std::vector<std::string> one{"model.safetensors"};
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\\\"a\\\":", "\\\"e\\\":"},
           {"\\\"a\\\":", "\\\"b\\\":"},
           {"model-00001", "../model-00001"},
           {"model-00001", ".model-00001"},
           {".safetensors\\\",\\\"b\\\"", ".json\\\",\\\"b\\\""},
           {"weight_map", "other"},
           {"\"name\":\"", "\"name\":\"../"},
           {"\"name\":\"model.safetensors.index.json\"", "\"name\":\"config.json\""}}) {
    BOOST_TEST_CONTEXT(from << " to " << to)
    BOOST_TEST(names(replaced(good, from, to)) == one, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(texts_of_users_are_taken_and_the_rest_is_told) {
  const TemporaryFolder folder;
  const auto written = [&](const char* metadata) {
    return write_with(golden("none.safetensors"), metadata, folder / "out.safetensors");
  };
  const auto texts = [&] { return SafetensorsFile::open(folder / "out.safetensors").metadata(); };
  BOOST_TEST(written(R"({"a":"1","b":2,"c":{"d":"e"},"format":"pt"})") ==
                 std::vector<std::string>{"metadata: 'b', 'c'"},
             boost::test_tools::per_element());
  BOOST_TEST((texts() == SafetensorsMetadata{{"a", "1"}, {"format", "pt"}}));
  BOOST_TEST(written(R"({"format":"mckp","mckp":{"x":1}})") ==
                 std::vector<std::string>{"metadata: 'mckp'"},
             boost::test_tools::per_element());
  BOOST_TEST(!SafetensorsFile::open(folder / "out.safetensors").has_metadata());
  BOOST_TEST(
      written(R"({"format":"safetensors","safetensors":{"metadata":{"k":"v"}},"k":"w","n":"1"})") ==
          std::vector<std::string>{"metadata: 'k'"},
      boost::test_tools::per_element());
  BOOST_TEST((texts() == SafetensorsMetadata{{"k", "v"}, {"n", "1"}}));
}

BOOST_AUTO_TEST_CASE(what_the_format_lacks_is_refused_before_anything_is_written) {
  const TemporaryFolder folder;
  const auto refused = [&](std::string name, const TensorLayout& layout) {
    formats::SinkInput input;
    input.tensors.push_back({.name = std::move(name), .layout = layout});
    bool announced = false;
    formats::SinkOptions options;
    options.announce = [&](const std::vector<std::string>&) { announced = true; };
    try {
      formats::write_safetensors_tensors(folder / "out.safetensors", input, options,
                                         [](std::size_t, const formats::PieceSink&) {});
    } catch (const UnsupportedError&) {
      BOOST_TEST(!announced);
      return list_folder(folder.path()).empty();
    }
    return false;
  };
  BOOST_TEST(refused("w", {.dtype = DType::c128, .shape = {1}}));
  BOOST_TEST(refused("w", {.dtype = DType::i4, .shape = {2}}));
  BOOST_TEST(refused("__metadata__", {.shape = {1}}));
  BOOST_TEST(refused("w", {.shape = {2, 2}, .encoding = Encoding::csr, .nnz = 1}));
  BOOST_TEST(!refused("w", {.shape = {0}}));
}

BOOST_AUTO_TEST_CASE(what_announcing_throws_leaves_nothing) {
  const TemporaryFolder folder;
  formats::SinkOptions options;
  options.announce = [](const std::vector<std::string>&) {
    throw CancelledError(ErrorCode::cancelled, "no");
  };
  for (const char* const name : {"out.safetensors", "out/"}) {
    BOOST_CHECK_THROW(
        formats::write_safetensors_tensors(folder / name, {}, options,
                                           [](std::size_t, const formats::PieceSink&) {}),
        CancelledError);
  }
  BOOST_TEST(list_folder(folder.path()).empty());
}

BOOST_AUTO_TEST_CASE(a_source_tells_where_bytes_lie) {
  const TemporaryFolder folder;
  write_model(folder / "a");
  const auto model = formats::open_safetensors_file(folder / "a", {});
  BOOST_TEST(!model->facts().tensors[0].offset);
  BOOST_TEST(model->facts().tensors[0].stored_bytes.value() == 8u);
  const auto file = formats::open_safetensors_file(golden("names.safetensors"), {});
  const std::string bytes = read_file(golden("names.safetensors"));
  for (std::size_t i = 0; i < file->facts().tensors.size(); ++i) {
    const auto& told = file->facts().tensors[i];
    BOOST_TEST(same_bytes(file->read(i).bytes(),
                          bytes_of(bytes).subspan(told.offset.value(), told.stored_bytes.value())));
  }
  BOOST_TEST(file->facts().file_bytes == bytes.size());
}

BOOST_AUTO_TEST_SUITE_END()
