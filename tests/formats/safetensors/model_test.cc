// Opening, reading and checking models of one file and of several.
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"

#include <string>

#include "boost_test.h"
#include "formats/safetensors/model_samples.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(safetensors_model)

namespace {

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

AnyFile open_model(const std::filesystem::path& path, const OpenOptions& options = {}) {
  return open_any(path, options, FileFormat::safetensors);
}

std::string names_of(const AnyFile& model) {
  std::string names;
  for (const AnyTensor& tensor : model.tensors()) names += tensor.name;
  return names;
}

std::string refusal(const std::filesystem::path& path, const OpenOptions& options = {}) {
  try {
    return "opened: " + names_of(open_model(path, options));
  } catch (const Error& error) {
    return std::string(error_code_name(error.code())) + ": " + error.what();
  }
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What opening the folder says once the index has this text.
std::string index_verdict(const TemporaryFolder& folder, const std::string& text) {
  write_file(folder / kIndex, text);
  return refusal(folder.path());
}

std::string map_to(std::string_view file) {
  return "{\"weight_map\":{\"a\":\"" + std::string(file) + "\"}}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_model_of_several_files_is_read_as_one) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const auto tensors = model_tensors();
  for (const Access access : {Access::mapped, Access::copied}) {
    for (const auto& path : {folder.path(), folder / kIndex}) {
      const AnyFile model = open_model(path, {.chain = {.read = {.input = {.access = access}}}});
      BOOST_TEST(names_of(model) == "abdc");
      BOOST_TEST(model.files() == (std::vector<std::filesystem::path>{
                                      folder / kIndex, folder / kFirst, folder / kSecond}),
                 boost::test_tools::per_element());
      std::uint64_t bytes = 0;
      for (const auto& [name, content] : contents(folder.path())) bytes += content.size();
      BOOST_TEST(model.file_bytes() == bytes);
      for (const OwnedTensor& tensor : tensors) {
        const Tensor read = model.read(tensor.name);
        BOOST_TEST((read.dtype() == tensor.dtype && read.shape() == tensor.shape));
        BOOST_TEST(same_bytes(read.bytes(), tensor.bytes));
      }
      BOOST_TEST(!model.find("e"));
      BOOST_CHECK_EXCEPTION(model.read("e"), UsageError, has_code(ErrorCode::not_found));
      BOOST_CHECK_EXCEPTION(model.read(std::size_t{4}), UsageError, has_code(ErrorCode::not_found));
    }
  }
  BOOST_TEST(check_safetensors_model(folder.path()).empty());
}

BOOST_AUTO_TEST_CASE(a_tensor_outlives_the_model) {
  const TemporaryFolder folder;
  write_model(folder.path());
  Tensor kept;
  kept = open_model(folder.path()).read("b");
  BOOST_TEST(same_bytes(kept.bytes(), model_tensors()[1].bytes));
}

BOOST_AUTO_TEST_CASE(a_folder_is_opened_by_what_is_in_it) {
  const TemporaryFolder folder;
  BOOST_TEST(refusal(folder.path()) ==
             "not_found: " + folder.path().string() + ": the folder has no safetensors file");
  const auto save = [&](const char* file, const char* name) {
    save_safetensors(folder / file, borrow({make_tensor(name, DType::u8, {1})}));
  };
  // A shard without its index is no model, and neither is a hidden file or a folder.
  save("x-00001-of-00002.safetensors", "s");
  save(".hidden.safetensors", "h");
  std::filesystem::create_directory(folder / "folder.safetensors");
  BOOST_TEST(contains(refusal(folder.path()),
                      "the folder has shards and no index: got 'x-00001-of-00002.safetensors'"));
  write_file(folder / "x.safetensors.index.json",
             R"({"weight_map":{"s":"x-00001-of-00002.safetensors"}})");
  BOOST_TEST(refusal(folder.path()) == "opened: s");
  write_file(folder / "y.safetensors.index.json", "{}");
  BOOST_TEST(contains(refusal(folder.path()), "bad_argument"));
  BOOST_TEST(contains(refusal(folder.path()),
                      "several models, name one of them: got 'x.safetensors.index.json', "
                      "'y.safetensors.index.json'"));
  save("one.safetensors", "1");
  BOOST_TEST(refusal(folder.path()) == "opened: 1");
  std::filesystem::remove(folder / "y.safetensors.index.json");
  std::filesystem::remove(folder / "x.safetensors.index.json");
  save("two.safetensors", "2");
  BOOST_TEST(contains(refusal(folder.path()), "got 'one.safetensors', 'two.safetensors'"));
  save("model.safetensors", "m");
  BOOST_TEST(refusal(folder.path()) == "opened: m");
  // A whole file comes before an index, as transformers has it.
  write_model(folder.path());
  BOOST_TEST(refusal(folder.path()) == "opened: m");
  std::filesystem::remove(folder / "model.safetensors");
  BOOST_TEST(refusal(folder.path()) == "opened: abdc");
  BOOST_TEST(find_safetensors_model(folder / "two.safetensors") == folder / "two.safetensors");
  BOOST_TEST(refusal(folder / "two.safetensors") == "opened: 2");
  BOOST_TEST(contains(refusal(folder / "three"), "io: "));
}

BOOST_AUTO_TEST_CASE(files_that_are_missing_or_damaged_are_named) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const std::string second = read_file(folder / kSecond);
  std::filesystem::remove(folder / kSecond);
  BOOST_TEST(contains(refusal(folder.path()), "io: "));
  BOOST_TEST(contains(refusal(folder.path()), kSecond));
  auto findings = check_safetensors_model(folder.path());
  BOOST_TEST_REQUIRE(findings.size() == 1u);
  BOOST_TEST(findings[0].file == kSecond);
  write_file(folder / kSecond, second.substr(0, second.size() - 1));
  BOOST_TEST(contains(refusal(folder.path()), "truncated: "));
  BOOST_TEST(contains(refusal(folder.path()), kSecond));
  write_file(folder / kFirst, "");
  findings = check_safetensors_model(folder.path());
  BOOST_TEST(findings.size() == 2u);
  BOOST_TEST(check_safetensors_model(folder / kFirst).size() == 1u);
}

BOOST_AUTO_TEST_CASE(index_and_files_have_the_same_tensors) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const auto index = [&](std::vector<std::pair<std::string, std::string>> weights) {
    return index_verdict(folder, index_text(weights, 30));
  };
  BOOST_TEST(index({{"a", kFirst}, {"b", kFirst}, {"c", kSecond}, {"d", kSecond}}) ==
             "opened: abdc");
  BOOST_TEST(contains(index({{"a", kFirst}, {"c", kSecond}}),
                      "index (tensor 'b'): model-00001-of-00002.safetensors has a tensor that the "
                      "index lacks: got 'b', 'd'"));
  BOOST_TEST(contains(
      index({{"a", kFirst}, {"b", kFirst}, {"c", kSecond}, {"d", kSecond}, {"e", kSecond}}),
      "index (tensor 'e'): model-00002-of-00002.safetensors has no such tensor, which the index "
      "places there: got 'e'"));
  BOOST_TEST(contains(index({{"a", kSecond}, {"b", kFirst}, {"c", kSecond}, {"d", kSecond}}),
                      "the tensor is in model-00001-of-00002.safetensors, and the index places it "
                      "in model-00002-of-00002.safetensors"));
  save_safetensors(folder / kSecond,
                   borrow({make_tensor("a", DType::u8, {1}), make_tensor("c", DType::u8, {1})}));
  BOOST_TEST(contains(index({{"a", kFirst}, {"b", kFirst}, {"c", kSecond}}),
                      "the tensor is in model-00001-of-00002.safetensors and in "
                      "model-00002-of-00002.safetensors"));
  write_file(folder / kIndex, index_text({{"a", kFirst}, {"e", kFirst}, {"c", kFirst}}, 9));
  std::string found;
  for (const SafetensorsFinding& finding : check_safetensors_model(folder.path()))
    found += finding.tensor + ": " + finding.message + "\n";
  BOOST_TEST(contains(found, "e: model-00001-of-00002.safetensors has no such tensor"));
  BOOST_TEST(contains(found, "b: model-00001-of-00002.safetensors has a tensor"));
}

BOOST_AUTO_TEST_CASE(a_wrong_total_size_is_found_and_does_no_harm) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const std::vector<std::pair<std::string, std::string>> weights{
      {"a", kFirst}, {"b", kFirst}, {"c", kSecond}, {"d", kSecond}};
  BOOST_TEST(index_verdict(folder, index_text(weights, 31)) == "opened: abdc");
  const auto findings = check_safetensors_model(folder.path());
  BOOST_TEST_REQUIRE(findings.size() == 1u);
  BOOST_TEST(findings[0].file.empty());
  BOOST_TEST(findings[0].message == "total_size is 31, and the tensors have 30 bytes");
  // Some programs write it with a fraction, and some not at all.
  std::string text = index_text(weights, 30);
  text.replace(text.find("30"), 2, "30.0");
  BOOST_TEST(index_verdict(folder, text) == "opened: abdc");
  BOOST_TEST(check_safetensors_model(folder.path()).empty());
}

BOOST_AUTO_TEST_CASE(an_index_leads_nowhere_but_into_its_folder) {
  const TemporaryFolder outer;
  const TemporaryFolder folder;
  write_model(folder.path());
  save_safetensors(outer / "a.safetensors", borrow({model_tensors()[0]}));
  for (const std::string& name :
       {std::string("/etc/passwd"), (outer / "a.safetensors").string(),
        "../" + outer.path().filename().string() + "/a.safetensors", std::string("x/a.safetensors"),
        std::string(".."), std::string("."), std::string(""), std::string(".a.safetensors"),
        std::string(".safetensors"), std::string("a.safetensors/"), std::string("config.json"),
        std::string("..\\\\a.safetensors"), std::string("a.safetensors\\u0000.safetensors"),
        std::string(300, 'x') + ".safetensors", std::string("a\\n.safetensors"),
        std::string("a.thalia")}) {
    BOOST_TEST_CONTEXT(name)
    BOOST_TEST(index_verdict(folder, map_to(name)).starts_with("bad_name: "));
  }
  // A link is the owner's own way out, as caches of models have it, unless a policy forbids it.
  std::filesystem::create_symlink(outer / "a.safetensors", folder / "link.safetensors");
  BOOST_TEST(index_verdict(folder, map_to("link.safetensors")) == "opened: a");
  BOOST_TEST(
      contains(refusal(folder.path(), {.chain = {.bases = within(folder.path())}}), "outside"));
  std::filesystem::create_symlink("loop.safetensors", folder / "loop.safetensors");
  BOOST_TEST(contains(index_verdict(folder, map_to("loop.safetensors")), "loop.safetensors"));
  std::filesystem::create_directory(folder / "folder.safetensors");
  BOOST_TEST(contains(index_verdict(folder, map_to("folder.safetensors")), "a folder"));
  std::filesystem::create_symlink("/dev/zero", folder / "zero.safetensors");
  BOOST_TEST(contains(index_verdict(folder, map_to("zero.safetensors")), "not a regular file"));
}

BOOST_AUTO_TEST_CASE(hostile_indexes_are_refused) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const struct {
    std::string text;
    const char* verdict;
  } kCases[] = {
      {"", "bad_json"},
      {"{", "bad_json"},
      {"[]", "bad_json"},
      {"null", "bad_json"},
      {"{}", "bad_value"},
      {R"({"weight_map":{}} x)", "bad_json"},
      {R"({"weight_map":[]})", "bad_value"},
      {R"({"weight_map":null})", "bad_value"},
      {R"({"weight_map":{"a":1}})", "bad_value"},
      {R"({"weight_map":{"a":{"b":"c"}}})", "bad_value"},
      {R"({"weight_map":{},"weight_map":{}})", "inconsistent"},
      {R"({"metadata":{},"metadata":{},"weight_map":{}})", "inconsistent"},
      {R"({"weight_map":{"a":"a.safetensors","\u0061":"a.safetensors"}})", "inconsistent"},
      {"{\"weight_map\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
       "bad_value"},
      {"{\"x\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", "limit_exceeded"},
      {"{\"weight_map\":{\"\xff\":\"a.safetensors\"}}", "bad_json"},
  };
  for (const auto& one : kCases) {
    const std::string verdict = index_verdict(folder, one.text);
    BOOST_TEST_CONTEXT(one.text.substr(0, 60) << ": " << verdict) {
      BOOST_TEST(verdict.starts_with(one.verdict));
      BOOST_TEST(verdict.size() < 1000u);
    }
  }
  // Metadata may be anything that is JSON.
  for (const char* const metadata : {"null", "[]", "3", "\"text\"", "{\"a\":{\"a\":1,\"a\":2}}"}) {
    const std::string text = std::string("{\"metadata\":") + metadata + ",\"weight_map\":{}}";
    BOOST_TEST(index_verdict(folder, text) == "opened: ", metadata);
  }
  for (const char* const metadata : {"NaN", "-Infinity", "\"\\ud800\"", "01"}) {
    const std::string text = std::string("{\"metadata\":") + metadata + ",\"weight_map\":{}}";
    BOOST_TEST(index_verdict(folder, text).starts_with("bad_json"), metadata);
  }
  // It may have no files: that is an empty model.
  BOOST_TEST(index_verdict(folder, R"({"weight_map":{}})") == "opened: ");
}

BOOST_AUTO_TEST_CASE(a_million_entries_are_bounded) {
  const TemporaryFolder folder;
  write_model(folder.path());
  std::string names = "{\"weight_map\":{", files = names;
  for (int i = 0; i < 1'000'000; ++i) {
    const std::string comma = i == 0 ? "" : ",", number = std::to_string(i);
    names += comma + "\"t" + number + "\":\"" + kFirst + "\"";
    if (i < 20'000) files += comma + "\"t" + number + "\":\"f" + number + ".safetensors\"";
  }
  names += "}}";
  files += "}}";
  BOOST_TEST(contains(index_verdict(folder, names), "'t0', 't1', 't2' and 999997 more"));
  OpenOptions few;
  few.chain.read.input.limits.max_tensors = 1000;
  BOOST_TEST(contains(refusal(folder.path(), few), "max_tensors"));
  few.chain.read.input.limits.max_tensors = 1 << 28;
  few.chain.read.input.limits.max_json_bytes = 1000;
  BOOST_TEST(contains(refusal(folder.path(), few), "max_json_bytes"));
  BOOST_TEST(contains(index_verdict(folder, files), "max_files"));
}

BOOST_AUTO_TEST_CASE(every_truncation_of_an_index_is_refused) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const std::string whole = read_file(folder / kIndex);
  for (std::size_t length = 0; length < whole.size(); ++length)
    BOOST_TEST(!index_verdict(folder, whole.substr(0, length)).starts_with("opened"), length);
}

BOOST_AUTO_TEST_CASE(part_of_a_tensor_is_read_without_the_rest) {
  const TemporaryFolder folder;
  const OwnedTensor w = make_tensor("w", DType::u8, {4, 3, 5});
  const OwnedTensor f4 = make_tensor("f4", DType::f4_e2m1, {3, 4});
  const OwnedTensor s = make_tensor("s", DType::f32, {});
  const OwnedTensor e = make_tensor("e", DType::f32, {2, 0});
  save_safetensors(folder / "m.safetensors", borrow({w, f4, s, e}));
  for (const Access access : {Access::mapped, Access::copied}) {
    const AnyFile model =
        open_model(folder.path(), {.chain = {.read = {.input = {.access = access}}}});
    const auto part_of = [&](const char* name, const std::vector<SliceRange>& ranges,
                             std::size_t bytes) {
      std::vector<std::byte> part(bytes);
      model.elements(model.at(name)).read(ranges, part);
      return part;
    };
    for (std::uint64_t a = 0; a < 4; ++a)
      for (std::uint64_t b = 0; b < 3; ++b)
        for (std::uint64_t c = 0; c < 5; ++c) {
          const auto part = part_of("w", {{a, 4}, {b, 3}, {c, 5}}, (4 - a) * (3 - b) * (5 - c));
          std::string expected;
          for (std::uint64_t i = a; i < 4; ++i)
            for (std::uint64_t j = b; j < 3; ++j)
              for (std::uint64_t k = c; k < 5; ++k)
                expected += static_cast<char>(w.bytes[(i * 3 + j) * 5 + k]);
          BOOST_TEST((text_of(part) == expected));
        }
    // Elements of four bits: row 1 begins at a byte, column 1 does not.
    BOOST_TEST(same_bytes(part_of("f4", {{1, 2}, {0, 4}}, 2), ByteSpan(f4.bytes).subspan(2, 2)));
    const auto narrow = part_of("f4", {{0, 3}, {1, 2}}, 2);
    const auto high = [&](int i) {
      return std::to_integer<unsigned>(f4.bytes[static_cast<std::size_t>(i)]) >> 4;
    };
    BOOST_TEST(std::to_integer<unsigned>(narrow[0]) == (high(0) | high(2) << 4));
    BOOST_TEST(std::to_integer<unsigned>(narrow[1]) == high(4));

    BOOST_TEST(same_bytes(part_of("s", {}, 4), s.bytes));
    part_of("e", {{0, 1}, {0, 0}}, 0);
    part_of("w", {{2, 2}, {0, 3}, {0, 5}}, 0);
    BOOST_CHECK_EXCEPTION(part_of("s", {{0, 1}}, 4), UsageError, has_code(ErrorCode::bad_argument));
    BOOST_CHECK_EXCEPTION(part_of("w", {{3, 5}, {0, 3}, {0, 5}}, 30), UsageError,
                          says(ErrorCode::bad_argument, "[3, 5)", "[0, 4)"));
    BOOST_CHECK_THROW(part_of("w", {{3, 2}, {0, 3}, {0, 5}}, 0), UsageError);
    BOOST_CHECK_EXCEPTION(part_of("w", {{0, 1}, {0, 3}, {0, 5}}, 14), UsageError,
                          has_code(ErrorCode::size_mismatch));
  }
}

BOOST_AUTO_TEST_SUITE_END()
