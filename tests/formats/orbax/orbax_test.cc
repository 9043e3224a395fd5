// Folders that look like Orbax's: one that the original mithril program wrote is in
// tests/data/formats/mithril.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/orbax/metadata.h"
#include "formats/orbax/opened.h"
#include "formats/orbax/pretty_json.h"
#include "formats/orbax/sink.h"
#include "formats/orbax/source_metadata.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using test::write_file;

BOOST_AUTO_TEST_SUITE(mithril_orbax)

using namespace thalia::formats;

namespace {

namespace fs = std::filesystem;

fs::path original() {
  return fs::path(THALIA_SOURCE_ROOT) / "tests/data/formats/mithril/orbax_ck";
}

struct Opened {
  SinkInput input{};
  std::vector<Tensor> tensors{};
};

Opened opened(const fs::path& path, const OpenOptions& options = {}) {
  const auto source = open_orbax_file(path, options);
  Opened all{.input = {.metadata = source->facts().metadata}};
  for (std::size_t i = 0; i < source->facts().tensors.size(); ++i) {
    const AnyTensor& tensor = source->facts().tensors[i];
    all.input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
    all.tensors.push_back(source->read(i));
    BOOST_TEST((all.tensors[i].layout() == tensor.layout));
  }
  return all;
}

std::vector<std::string> write(const fs::path& path, const Opened& all) {
  std::vector<std::string> losses;
  SinkOptions options{.save = {.output = {.durability = Durability::none}}};
  options.announce = [&](const std::vector<std::string>& lost) {
    losses = lost;
    BOOST_TEST(!fs::exists(path));
  };
  write_orbax(path, all.input, options, [&](std::size_t i, const PieceSink& sink) {
    const ByteSpan bytes = all.tensors[i].bytes();
    sink(bytes.first(bytes.size() / 2));
    sink(bytes.subspan(bytes.size() / 2));
  });
  return losses;
}

void check_same_folder(const fs::path& a, const fs::path& b) {
  unsigned files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(a)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const fs::path other = b / entry.path().lexically_relative(a);
    BOOST_TEST_CONTEXT(other) {
      BOOST_TEST((test::read_file(entry.path()) == test::read_file(other)));
    }
  }
  for (const auto& entry : fs::recursive_directory_iterator(b))
    if (entry.is_regular_file()) --files;
  BOOST_TEST(files == 0u);
}

Opened of(const std::vector<std::pair<std::string, Tensor>>& tensors,
          const std::string& metadata = "{}") {
  Opened all{.input = {.metadata = metadata}};
  for (const auto& [name, tensor] : tensors) {
    all.input.tensors.push_back({.name = name, .layout = tensor.layout()});
    all.tensors.push_back(tensor);
  }
  return all;
}

constexpr const char* kGoodMetadata =
    R"({"arrays":{"w":{"dtype":"uint8","shape":[3]}},"version":1})";

// A folder with one array "w" of three bytes.
void make_folder(const fs::path& path, const std::string& metadata = kGoodMetadata) {
  fs::create_directories(path / "state/w");
  write_file(path / "_CHECKPOINT_METADATA", metadata);
  write_file(path / ".orbax-checkpoint", "");
  write_file(path / "state/w/0.npy", orbax::array_header(DType::u8, {3}) + "abc");
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_folder_of_the_original_is_read_and_written_again_byte_for_byte) {
  const test::TemporaryFolder folder;
  BOOST_TEST(is_orbax_folder(original()));
  BOOST_TEST(!is_orbax_folder(folder.path()));
  BOOST_TEST(!is_orbax_folder(original() / "_CHECKPOINT_METADATA"));
  const Opened all = opened(original());
  BOOST_REQUIRE(all.tensors.size() == 1u);
  BOOST_TEST(all.input.tensors[0].name == "params/w");
  BOOST_TEST((all.tensors[0].layout() == TensorLayout{.dtype = DType::f32, .shape = {2, 2}}));
  BOOST_TEST((test::text_of(all.tensors[0].bytes()) ==
              test::read_file(original() / "state/params/w/0.npy").substr(128)));
  BOOST_TEST(write(folder / "out", all).empty());
  check_same_folder(original(), folder / "out");
  const auto source = open_orbax_file(original(), {});
  BOOST_TEST(source->facts().file_bytes == 133u + 144u);
  BOOST_TEST(source->facts().version == "1");
}

BOOST_AUTO_TEST_CASE(every_dtype_comes_back_and_so_do_metadata) {
  const test::TemporaryFolder folder;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64,
                            DType::i8, DType::u8, DType::boolean}) {
    tensors.emplace_back("t/" + std::string(dtype_name(dtype)), Tensor::zeros(dtype, {3, 2}));
  }
  tensors.emplace_back("scalar", Tensor::zeros(DType::f32, {}));
  tensors.emplace_back("none", Tensor::zeros(DType::f32, {0, 5}));
  tensors.emplace_back("t/line", Tensor::copy_of(DType::u8, {200}, test::random_bytes(200)));
  const std::string metadata =
      R"({"note":"\u00fc\n","tree":{"b":[1,{},[]],"a":1e400},"arrays":7,"version":null})";
  const auto losses = write(folder / "a", of(tensors, metadata));
  BOOST_TEST((losses == std::vector<std::string>{"metadata: 'arrays', 'version'"}));
  const Opened back =
      opened(folder / "a", {.chain = {.read = {.input = {.access = Access::copied}}}});
  BOOST_REQUIRE(back.tensors.size() == tensors.size());
  for (std::size_t i = 0; i < back.tensors.size(); ++i) {
    const auto found = std::ranges::find(tensors, back.input.tensors[i].name,
                                         &std::pair<std::string, Tensor>::first);
    BOOST_REQUIRE(found != tensors.end());
    BOOST_TEST((back.tensors[i] == found->second), found->first);
  }
  BOOST_TEST(back.input.metadata ==
             "{\"format\":\"mithril-orbax\",\"mithril-orbax\":{\"metadata\":{\"note\":\"ü\\n\","
             "\"tree\":{\"a\":1e400,\"b\":[1,{},[]]}}}}");
  write(folder / "b", back);
  check_same_folder(folder / "a", folder / "b");
  // As the original spells bf16.
  BOOST_TEST(test::read_file(folder / "a/state/t/bf16/0.npy").find("'|V2'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(metadata_are_printed_as_serde_prints_them) {
  BOOST_TEST(orbax::pretty_json(R"({"b":[],"a":{},"c":[1,"x",[null]],"d":{"y":true,"x":2}})", 8) ==
             "{\n  \"a\": {},\n  \"b\": [],\n  \"c\": [\n    1,\n    \"x\",\n    [\n      null\n"
             "    ]\n  ],\n  \"d\": {\n    \"x\": 2,\n    \"y\": true\n  }\n}");
  BOOST_TEST(orbax::pretty_json("{}", 8) == "{}");
  BOOST_CHECK_THROW(orbax::pretty_json("[]", 8), FormatError);
  BOOST_CHECK_THROW(orbax::pretty_json(R"({"a":[[[1]]]})", 3), FormatError);
}

BOOST_AUTO_TEST_CASE(metadata_that_were_edited_are_taken_as_a_strangers) {
  const auto keys = [](const char* metadata) {
    std::string all;
    const orbax::OrbaxSourceMetadata source = orbax::source_metadata_from_json(metadata, 16);
    for (const auto& [key, value] : source.others) all += key + '=' + value + ' ';
    for (const std::string& lost : source.lost_members) all += '-' + lost + ' ';
    return all;
  };
  BOOST_TEST(keys(R"({"format":"mithril-orbax","mithril-orbax":{"metadata":{"a":1}}})") == "a=1 ");
  BOOST_TEST(
      keys(R"({"format":"mithril-orbax","mithril-orbax":{"metadata":{"a":1}},"a":2,"b":3})") ==
      "a=1 b=3 -a ");
  BOOST_TEST(keys(R"({"mithril-orbax":{"metadata":[]}})") == "mithril-orbax={\"metadata\":[]} ");
  BOOST_TEST(keys(R"({"mithril-orbax":{"metadata":{},"x":1}})") ==
             "mithril-orbax={\"metadata\":{},\"x\":1} ");
  BOOST_TEST(keys(R"({"mithril-orbax":7})") == "mithril-orbax=7 ");
  BOOST_TEST(keys(R"({"format":"pt"})") == "format=\"pt\" ");
}

BOOST_AUTO_TEST_CASE(no_name_leads_out_of_the_folder) {
  for (const char* const name : {"..", "../x", "a/../b", "/a", "a/", "a//b", "", ".", "a/./b"}) {
    BOOST_TEST(!orbax::array_path(name), name);
    const std::string metadata =
        std::string(R"({"arrays":{")") + name + R"(":{"dtype":"uint8","shape":[3]}},"version":1})";
    BOOST_CHECK_EXCEPTION(orbax::parse_metadata(metadata, {}), FormatError,
                          test::has_code(ErrorCode::bad_name));
  }
  BOOST_TEST(!orbax::array_path(std::string("a\0b", 3)));
  BOOST_TEST(!orbax::array_path(std::string(256, 'n')));
  BOOST_TEST((*orbax::array_path("a/b") == std::vector<std::string>{"state", "a", "b", "0.npy"}));

  const test::TemporaryFolder folder;
  make_folder(folder / "good");
  BOOST_TEST((test::text_of(opened(folder / "good").tensors[0].bytes()) == "abc"));
  const auto refused = [&](const std::function<void(const fs::path&)>& change) {
    make_folder(folder / "x");
    change(folder / "x");
    bool threw = false;
    try {
      opened(folder / "x");
    } catch (const UsageError&) {
      threw = true;
    }
    fs::remove_all(folder / "x");
    return threw;
  };
  BOOST_TEST(refused([](const fs::path& path) {
    fs::rename(path / "state/w/0.npy", path / "0.npy");
    fs::create_symlink("../../0.npy", path / "state/w/0.npy");
  }));
  BOOST_TEST(refused([&](const fs::path& path) {
    fs::remove_all(path / "state/w");
    fs::create_directory_symlink(folder / "good/state/w", path / "state/w");
  }));
  BOOST_TEST(refused([&](const fs::path& path) {
    fs::remove_all(path / "state");
    fs::create_directory_symlink(folder / "good/state", path / "state");
  }));
  BOOST_TEST(refused([&](const fs::path& path) {
    fs::remove(path / "_CHECKPOINT_METADATA");
    fs::create_symlink(folder / "good/_CHECKPOINT_METADATA", path / "_CHECKPOINT_METADATA");
  }));
  BOOST_TEST(refused([&](const fs::path& path) {
    fs::remove(path / "state/w/0.npy");
    fs::create_directory(path / "state/w/0.npy");
  }));
}

BOOST_AUTO_TEST_CASE(arrays_that_are_not_what_the_metadata_say_are_refused) {
  const test::TemporaryFolder folder;
  const auto with = [&](const std::string& array, const std::string& metadata = kGoodMetadata) {
    fs::remove_all(folder / "x");
    make_folder(folder / "x", metadata);
    write_file(folder / "x/state/w/0.npy", array);
    return [&] { opened(folder / "x"); };
  };
  const std::string good = orbax::array_header(DType::u8, {3}) + "abc";
  BOOST_CHECK_NO_THROW(with(good)());
  BOOST_CHECK_EXCEPTION(with(orbax::array_header(DType::i8, {3}) + "abc")(), FormatError,
                        test::says(ErrorCode::inconsistent, "descr", "'w'", "0.npy"));
  BOOST_CHECK_EXCEPTION(with(orbax::array_header(DType::u8, {3, 1}) + "abc")(), FormatError,
                        test::says(ErrorCode::inconsistent, "shape"));
  for (std::size_t length = 0; length < good.size(); ++length)
    BOOST_CHECK_THROW(with(good.substr(0, length))(), Error);
  BOOST_CHECK_THROW(with(good + "d")(), FormatError);
  BOOST_CHECK_THROW(with(orbax::array_header(DType::bf16, {3}) + "abcdef")(), FormatError);
  const std::string two = R"({"arrays":{"w":{"dtype":"bfloat16","shape":[3]}},"version":1})";
  BOOST_CHECK_NO_THROW(with(orbax::array_header(DType::bf16, {3}) + "abcdef", two)());
  BOOST_CHECK_THROW(with(orbax::array_header(DType::f16, {3}) + "abcdef", two)(), FormatError);
  fs::remove(folder / "x/state/w/0.npy");
  BOOST_CHECK_THROW(opened(folder / "x"), IoError);
}

BOOST_AUTO_TEST_CASE(metadata_files_that_lie_or_are_damaged_are_refused) {
  const std::string good = kGoodMetadata;
  BOOST_TEST(orbax::parse_metadata(good, {}).arrays.size() == 1u);
  for (std::size_t length = 0; length < good.size(); ++length)
    BOOST_CHECK_THROW(orbax::parse_metadata(good.substr(0, length), {}), FormatError);
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int bit : {0, 3, 7}) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      try {
        static_cast<void>(orbax::parse_metadata(damaged, {}));
      } catch (const FormatError&) {
      } catch (const UnsupportedError&) {
      }
    }
  const struct {
    const char* text;
    ErrorCode code;
    const char* says;
  } kCases[] = {
      {R"({"item_handlers":{},"metrics":{}})", ErrorCode::unsupported_feature, "Orbax's own"},
      {R"({"arrays":{},"version":2})", ErrorCode::unsupported_version, "version"},
      {R"({"arrays":{}})", ErrorCode::bad_value, "version"},
      {R"({"arrays":{},"version":"1"})", ErrorCode::bad_value, "version"},
      {R"({"arrays":[],"version":1})", ErrorCode::bad_value, "arrays"},
      {R"({"arrays":{},"arrays":{},"version":1})", ErrorCode::inconsistent, "arrays"},
      {R"({"arrays":{"w":7},"version":1})", ErrorCode::bad_value, "arrays"},
      {R"({"arrays":{"w":{"dtype":"uint8"}},"version":1})", ErrorCode::bad_value, "shape"},
      {R"({"arrays":{"w":{"dtype":"uint16","shape":[]}},"version":1})",
       ErrorCode::unsupported_dtype, "uint16"},
      {R"({"arrays":{"w":{"dtype":"uint8","shape":[-1]}},"version":1})", ErrorCode::bad_value,
       "shape"},
      {R"({"arrays":{"w":{"dtype":"float64","shape":[4294967296,4294967296]}},"version":1})",
       ErrorCode::out_of_bounds, "shape"},
      {R"({"arrays":{"w":{"dtype":"uint8","shape":[1,1,1,1,1,1,1,1,1]}},"version":1})",
       ErrorCode::unsupported_feature, "shape"},
      {R"({"arrays":{"w":{"dtype":"uint8","shape":[]},"w":{"dtype":"uint8","shape":[]}},)"
       R"("version":1})",
       ErrorCode::bad_name, "repeats"},
  };
  for (const auto& one : kCases) {
    BOOST_TEST_CONTEXT(one.text)
    BOOST_CHECK_EXCEPTION(orbax::parse_metadata(one.text, {}), Error,
                          test::says(one.code, one.says));
  }
  ReadLimits limits;
  limits.max_tensors = 0;
  BOOST_CHECK_EXCEPTION(orbax::parse_metadata(good, limits), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
  limits = {};
  limits.max_json_bytes = 10;
  BOOST_CHECK_EXCEPTION(orbax::parse_metadata(good, limits), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
}

BOOST_AUTO_TEST_CASE(what_such_folders_lack_is_refused_before_anything_is_written) {
  const test::TemporaryFolder folder;
  const Tensor good = Tensor::zeros(DType::u8, {3});
  const auto refused = [&](const Opened& all) {
    SinkOptions options;
    options.announce = [](const auto&) { BOOST_ERROR("announced"); };
    try {
      write_orbax(folder / "o", all.input, options, [](std::size_t, const auto&) {});
    } catch (const UnsupportedError& error) {
      return error.context().path == (folder / "o").string() &&
             test::list_folder(folder.path()).empty();
    }
    return false;
  };
  BOOST_TEST(refused(of({{"w", Tensor::zeros(DType::u16, {3})}})));
  BOOST_TEST(refused(of({{"w", Tensor::zeros(DType::f32, {3, 3}).to_csr()}})));
  for (const char* const name : {"../w", "/w", "", "a//b", "\xff"})
    BOOST_TEST(refused(of({{name, good}})));
  BOOST_TEST(refused(of({{"a", good}, {"a/0.npy", good}})));
  BOOST_TEST(refused(of({{"a/0.npy/b", good}, {"a", good}})));
  // An array that has less than it said.
  BOOST_CHECK_THROW(
      write_orbax(folder / "o", of({{"w", good}}).input, {},
                  [](std::size_t, const PieceSink& sink) { sink(test::bytes_of("ab")); }),
      UsageError);
  BOOST_TEST(test::list_folder(folder.path()).empty());
  write(folder / "o", of({{"w", good}}));
  BOOST_CHECK_EXCEPTION(
      write_orbax(folder / "o", of({{"w", good}}).input, {}, [](std::size_t, const auto&) {}),
      UsageError, test::has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_SUITE_END()
