// Models in shards: which tensor goes where, names, and what is left when a save ends early.
#include <algorithm>
#include <string>

#include "boost_test.h"
#include "formats/safetensors/index.h"
#include "formats/safetensors/model_samples.h"
#include "formats/safetensors/opened_model.h"
#include "formats/safetensors/shard_plan.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(safetensors_model_save)

namespace {

using Names = std::vector<std::string>;

std::vector<OwnedTensor> of_bytes(const std::vector<std::uint64_t>& sizes) {
  std::vector<OwnedTensor> tensors;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    tensors.push_back(make_tensor("t" + std::to_string(i), DType::u8, {sizes[i]}));
  return tensors;
}

std::string shards_of(const std::vector<std::uint64_t>& sizes, std::uint64_t most) {
  std::string text;
  for (const auto& shard : formats::safetensors::split_into_shards(sizes, most)) {
    text += "|";
    for (const std::size_t i : shard) text += std::to_string(i);
  }
  return text;
}

bool holds(const std::filesystem::path& path, const std::vector<OwnedTensor>& tensors) {
  const AnyFile model = open_any(path, {}, FileFormat::safetensors);
  if (model.tensors().size() != tensors.size()) return false;
  return std::ranges::all_of(tensors, [&](const OwnedTensor& tensor) {
    return same_bytes(model.read(tensor.name).bytes(), tensor.bytes);
  });
}

}  // namespace

// What split_state_dict_into_shards_factory() of huggingface_hub 2.4.0 gives for these sizes.
BOOST_AUTO_TEST_CASE(tensors_are_split_as_hugging_face_does) {
  BOOST_TEST(shards_of({6, 6, 2, 6, 2, 2}, 10) == "|0|12|345");
  BOOST_TEST(shards_of({1, 2, 3}, 6) == "|012");
  BOOST_TEST(shards_of({1, 2, 3}, 5) == "|01|2");
  BOOST_TEST(shards_of({1, 20, 2}, 10) == "|1|02");
  BOOST_TEST(shards_of({20, 1, 30}, 10) == "|0|2|1");
  BOOST_TEST(shards_of({5, 5, 20, 5}, 10) == "|2|01|3");
  BOOST_TEST(shards_of({0, 0, 1}, 0) == "|2|01");
  BOOST_TEST(shards_of({10}, 10) == "|0");
  BOOST_TEST(shards_of({}, 10) == "|");
  BOOST_TEST(shards_of({UINT64_MAX, UINT64_MAX}, UINT64_MAX) == "|0|1");
}

BOOST_AUTO_TEST_CASE(index_is_written_as_python_does) {
  BOOST_TEST(
      formats::safetensors::write_index(
          {{"b", "y.safetensors"}, {"a\"\\\n\x7f\xc3\xa9\xf0\x9f\x98\x80", "x.safetensors"}}, 5) ==
      "{\n  \"metadata\": {\n    \"total_size\": 5\n  },\n  \"weight_map\": {\n    "
      "\"a\\\"\\\\\\n\\u007f\\u00e9\\ud83d\\ude00\": \"x.safetensors\",\n    \"b\": "
      "\"y.safetensors\"\n  }\n}\n");
  BOOST_TEST(formats::safetensors::write_index({}, 0) ==
             "{\n  \"metadata\": {\n    \"total_size\": 0\n  },\n  \"weight_map\": {}\n}\n");
}

BOOST_AUTO_TEST_CASE(shards_and_index_are_named_and_open_again) {
  const TemporaryFolder folder;
  const auto tensors = of_bytes({6, 6, 2, 6, 2, 2});
  const auto saved = save_model(folder / "new/deep", borrow(tensors),
                                SafetensorsMetadata{{"format", "pt"}}, {.max_shard_bytes = 10});
  BOOST_TEST(saved.path == folder / "new/deep/model.safetensors.index.json");
  const Names names{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                    "model-00003-of-00003.safetensors", "model.safetensors.index.json"};
  BOOST_TEST(list_folder(folder / "new/deep") == names, boost::test_tools::per_element());
  BOOST_TEST(saved.files == Names(names.begin(), names.end() - 1),
             boost::test_tools::per_element());
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : contents(folder / "new/deep")) bytes += content.size();
  BOOST_TEST(saved.output_bytes == bytes);
  BOOST_TEST(holds(folder / "new/deep", tensors));
  BOOST_TEST(check_safetensors_model(folder / "new/deep").empty());
  for (const auto& file : formats::safetensors::open_model(folder / "new/deep", {}).files)
    BOOST_TEST((file.parsed.metadata == SafetensorsMetadata{{"format", "pt"}}));
  // Each shard is the file that save_safetensors() writes.
  save_safetensors(folder / "first", borrow({tensors[0]}), SafetensorsMetadata{{"format", "pt"}});
  BOOST_TEST((read_file(folder / "first") == read_file(folder / "new/deep" / names[0])));
}

BOOST_AUTO_TEST_CASE(the_path_gives_folder_and_name) {
  const TemporaryFolder folder;
  const auto tensors = of_bytes({1, 1});
  const auto names = [&](const char* path, std::uint64_t most) {
    const TemporaryFolder own;
    save_model(own.path().string() + "/" + path, borrow(tensors), std::nullopt,
               {.max_shard_bytes = most});
    return list_folder(own.path());
  };
  const Names shards{"x-00001-of-00002.safetensors", "x-00002-of-00002.safetensors",
                     "x.safetensors.index.json"};
  BOOST_TEST(names("x.safetensors.index.json", 1) == shards, boost::test_tools::per_element());
  BOOST_TEST(names("x.safetensors", 1) == shards, boost::test_tools::per_element());
  BOOST_TEST(names("x.safetensors", 2) == Names{"x.safetensors"}, boost::test_tools::per_element());
  BOOST_TEST(names("", 2) == Names{"model.safetensors"}, boost::test_tools::per_element());
  BOOST_TEST(names("x.safetensors.index.json", 2) ==
                 (Names{"x-00001-of-00001.safetensors", "x.safetensors.index.json"}),
             boost::test_tools::per_element());
  for (const std::string& path :
       {std::string(".x.safetensors"), std::string("\xff.safetensors.index.json"),
        std::string(240, 'x') + ".safetensors"}) {
    BOOST_CHECK_EXCEPTION(save_model(folder / path, borrow(tensors)), UsageError,
                          has_code(ErrorCode::bad_argument));
  }
  BOOST_TEST(list_folder(folder.path()).empty());
}

BOOST_AUTO_TEST_CASE(an_older_model_is_replaced_and_its_files_go) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", "{}");
  write_file(folder / "other.safetensors", "not of the model");
  const auto save = [&](const std::vector<OwnedTensor>& tensors, std::uint64_t most) {
    save_model(folder.path(), borrow(tensors), std::nullopt, {.max_shard_bytes = most});
    BOOST_TEST(holds(folder.path(), tensors));
    Names names = list_folder(folder.path());
    std::erase_if(names, [](const std::string& name) { return !name.starts_with("model"); });
    BOOST_TEST(std::filesystem::exists(folder / "config.json"));
    BOOST_TEST(std::filesystem::exists(folder / "other.safetensors"));
    return names;
  };
  const auto few = of_bytes({1, 2}), many = of_bytes({3, 2, 1});
  BOOST_TEST(save(few, 10) == Names{"model.safetensors"}, boost::test_tools::per_element());
  BOOST_TEST(save(few, 2).size() == 3u);
  BOOST_TEST(save(many, 3) ==
                 (Names{"model-2-00001-of-00002.safetensors", "model-2-00002-of-00002.safetensors",
                        "model.safetensors.index.json"}),
             boost::test_tools::per_element());
  BOOST_TEST(
      save(few, 2) == (Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                             "model.safetensors.index.json"}),
      boost::test_tools::per_element());
  BOOST_TEST(save(many, 10) == Names{"model.safetensors"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_variant_lies_beside_its_model) {
  const TemporaryFolder folder;
  const auto tensors = of_bytes({1, 2}), others = of_bytes({2, 1});
  const auto save = [&](const char* index, const std::vector<OwnedTensor>& some) {
    save_model(folder / index, borrow(some), std::nullopt, {.max_shard_bytes = 2});
  };
  save("x.safetensors.index.json", tensors);
  save("x.safetensors.index.fp16.json", others);
  save("x.safetensors.index.fp16.json", others);
  BOOST_TEST(
      list_folder(folder.path()) ==
          (Names{"x-00001-of-00002.safetensors", "x-00002-of-00002.safetensors",
                 "x.fp16-2-00001-of-00002.safetensors", "x.fp16-2-00002-of-00002.safetensors",
                 "x.safetensors.index.fp16.json", "x.safetensors.index.json"}),
      boost::test_tools::per_element());
  BOOST_TEST(holds(folder / "x.safetensors.index.json", tensors));
  BOOST_TEST(holds(folder / "x.safetensors.index.fp16.json", others));
}

BOOST_AUTO_TEST_CASE(files_that_a_crash_left_are_in_nobodys_way) {
  const TemporaryFolder folder;
  const auto tensors = of_bytes({1, 2});
  // Before the index: the older model is what it was.
  write_model(folder.path());
  write_file(folder / "model-2-00001-of-00002.safetensors", "whole or not");
  BOOST_TEST(open_any(folder.path()).tensors().size() == 4u);
  save_model(folder.path(), borrow(tensors), std::nullopt, {.max_shard_bytes = 2});
  BOOST_TEST(holds(folder.path(), tensors));
  BOOST_TEST(list_folder(folder.path()) ==
                 (Names{"model-3-00001-of-00002.safetensors", "model-3-00002-of-00002.safetensors",
                        "model.safetensors.index.json"}),
             boost::test_tools::per_element());
  // A link that leads nowhere is not written through.
  const TemporaryFolder linked;
  std::filesystem::create_symlink(folder / "outside", linked / "model-00001-of-00002.safetensors");
  save_model(linked.path(), borrow(tensors), std::nullopt, {.max_shard_bytes = 2});
  BOOST_TEST(!std::filesystem::exists(folder / "outside"));
  BOOST_TEST(holds(linked.path(), tensors));
}

// An index of one file that it shares with no other still counts as a model of its own.
BOOST_AUTO_TEST_CASE(a_file_that_an_older_index_names_is_not_written_over) {
  const TemporaryFolder folder;
  const auto tensors = of_bytes({1, 2});
  save_safetensors(folder / "model.safetensors", borrow({tensors[0]}));
  save_safetensors(folder / "more.safetensors", borrow({tensors[1]}));
  write_file(folder / "model.safetensors.index.json",
             index_text({{"t0", "model.safetensors"}, {"t1", "more.safetensors"}}, 3));
  const std::string before = read_file(folder / "model.safetensors");
  bool seen = false;
  ModelSaveOptions options;
  options.save.work.progress = [&](std::uint64_t, std::uint64_t) {
    seen = read_file(folder / "model.safetensors") == before &&
           holds(folder / "model.safetensors.index.json", tensors);
  };
  const auto others = of_bytes({4, 4});
  save_model(folder.path(), borrow(others), std::nullopt, options);
  BOOST_TEST(seen);
  BOOST_TEST(holds(folder.path(), others));
  BOOST_TEST(list_folder(folder.path()) ==
                 (Names{"model-00001-of-00001.safetensors", "model.safetensors.index.json"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_older_model_is_there_until_the_index_is) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const auto before = contents(folder.path());
  const auto tensors = of_bytes({5, 5, 5});
  // Cancelled at each piece: nothing but the older model is left.
  for (unsigned stop_at = 1; stop_at <= 3; ++stop_at) {
    std::stop_source stop;
    unsigned pieces = 0;
    ModelSaveOptions options{.max_shard_bytes = 5};
    options.save.work.cancel = stop.get_token();
    options.save.work.progress = [&](std::uint64_t done, std::uint64_t total) {
      BOOST_TEST((done == 5 * (pieces + 1) && total == 15));
      BOOST_TEST(open_any(folder.path()).tensors().size() == 4u);
      if (++pieces == stop_at) stop.request_stop();
    };
    BOOST_CHECK_THROW(save_model(folder.path(), borrow(tensors), std::nullopt, options),
                      CancelledError);
    BOOST_TEST((contents(folder.path()) == before), stop_at);
  }
  // Folders that were made for it go, too.
  std::stop_source stop;
  ModelSaveOptions stopped{.max_shard_bytes = 5};
  stopped.save.work.cancel = stop.get_token();
  stopped.save.work.progress = [&](std::uint64_t, std::uint64_t) { stop.request_stop(); };
  BOOST_CHECK_THROW(save_model(folder / "a/b/", borrow(tensors), std::nullopt, stopped),
                    CancelledError);
  BOOST_TEST(!std::filesystem::exists(folder / "a"));
  // So it is where a save is refused.
  ModelSaveOptions keep{.max_shard_bytes = 5};
  keep.save.output.replace = false;
  BOOST_CHECK_EXCEPTION(save_model(folder.path(), borrow(tensors), std::nullopt, keep), UsageError,
                        has_code(ErrorCode::exists));
  auto twice = tensors;
  twice.push_back(tensors[0]);
  BOOST_CHECK_EXCEPTION(
      save_model(folder.path(), borrow(twice), std::nullopt, {.max_shard_bytes = 5}), UsageError,
      has_code(ErrorCode::duplicate));
  BOOST_TEST((contents(folder.path()) == before));
}

BOOST_AUTO_TEST_CASE(a_folder_in_which_no_model_came_to_be_goes) {
  const TemporaryFolder folder;
  std::stop_source stop;
  ModelSaveOptions options{.max_shard_bytes = 10};
  options.save.work.cancel = stop.get_token();
  options.save.work.progress = [&](std::uint64_t, std::uint64_t) { stop.request_stop(); };
  const auto tensors = of_bytes({8, 8, 8});
  BOOST_CHECK_THROW(save_model(folder / "new", borrow(tensors), {}, options), CancelledError);
  BOOST_TEST(!std::filesystem::exists(folder / "new"));
  std::filesystem::create_directory(folder / "old");
  BOOST_CHECK_THROW(save_model(folder / "old", borrow(tensors), {}, options), CancelledError);
  BOOST_TEST(std::filesystem::is_empty(folder / "old"));
}

BOOST_AUTO_TEST_CASE(tensors_begin_at_multiples_of_the_alignment) {
  const TemporaryFolder folder;
  const auto tensors = model_tensors();
  for (const std::uint64_t align : {8, 24, 64, 4096, 1 << 20}) {
    save_safetensors(folder / "a.safetensors", borrow(tensors), std::nullopt, {}, align);
    const AnyFile file = open_any(folder / "a.safetensors");
    BOOST_TEST(*file.tensors()[0].offset % align == 0u);
    for (const AnyTensor& tensor : file.tensors())
      BOOST_TEST(*tensor.offset % (dtype_bits(tensor.layout.dtype) / 8) == 0u);
  }
  save_model(folder / "m", borrow(tensors), std::nullopt, {.max_shard_bytes = 16, .align = 512});
  for (const std::string& name : list_folder(folder / "m")) {
    if (name.ends_with(".json")) continue;
    const AnyFile file = open_any(folder / "m" / name);
    for (std::size_t i = 0; i < file.tensors().size(); ++i)
      BOOST_TEST(((i == 0) == (*file.tensors()[i].offset % 512 == 0)));
  }
  for (const std::uint64_t align : {std::uint64_t{0}, std::uint64_t{4}, std::uint64_t{12},
                                    std::uint64_t{1} << 23, UINT64_MAX}) {
    BOOST_CHECK_EXCEPTION(save_safetensors(folder / "b", borrow(tensors), std::nullopt, {}, align),
                          UsageError, has_code(ErrorCode::bad_argument));
  }
  BOOST_TEST(!std::filesystem::exists(folder / "b"));
}

BOOST_AUTO_TEST_SUITE_END()
