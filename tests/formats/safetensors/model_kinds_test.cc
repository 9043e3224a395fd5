// Models of .thalia files, and folders in which a model of one kind takes the place of one of the
// other.
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/safetensors/model_samples.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(safetensors_model_kinds)

namespace {

using Names = std::vector<std::string>;
constexpr ShardKind kKinds[] = {ShardKind::thalia, ShardKind::safetensors};

std::string ending_of(ShardKind kind) {
  return kind == ShardKind::thalia ? ".thalia" : ".safetensors";
}

// Tensors of 100 bytes each, all of one value.
std::vector<OwnedTensor> tensors_of(std::uint8_t value) {
  std::vector<OwnedTensor> tensors{make_tensor("layers.0.weight", DType::u8, {100}),
                                   make_tensor("layers.0.bias", DType::u8, {100}),
                                   make_tensor("layers.1.weight", DType::u8, {100})};
  for (OwnedTensor& tensor : tensors)
    std::ranges::fill(tensor.bytes, static_cast<std::byte>(value));
  return tensors;
}

ModelSaveOptions options_of(ShardKind kind, bool in_shards) {
  ModelSaveOptions options{.kind = kind, .max_shard_bytes = in_shards ? 100u : 1000u};
  options.save.output.durability = Durability::none;
  return options;
}

ModelSaved save(const fs::path& path, std::uint8_t value, const ModelSaveOptions& options) {
  return save_model(path, borrow(tensors_of(value)), SafetensorsMetadata{{"format", "pt"}},
                    options);
}

// The one value that all elements have.
int value_in(const fs::path& path) {
  const AnyFile model = open_any(path);
  BOOST_TEST(model.tensors().size() == 3u);
  std::set<int> values;
  for (const AnyTensor& tensor : model.tensors()) {
    const Tensor read = model.read(tensor.name);
    for (const std::byte byte : read.bytes()) values.insert(std::to_integer<int>(byte));
  }
  BOOST_TEST(values.size() == 1u);
  return *values.begin();
}

Names shards_of(const std::string& prefix, ShardKind kind) {
  Names names;
  for (unsigned i = 1; i <= 3; ++i)
    names.push_back(prefix + "-0000" + std::to_string(i) + "-of-00003" + ending_of(kind));
  names.push_back("model" + ending_of(kind) + ".index.json");
  return names;
}

}  // namespace

BOOST_AUTO_TEST_CASE(thalia_files_have_the_regions_and_roles_of_their_names) {
  const TemporaryFolder folder;
  const ModelSaved saved = save(folder / "m", 7, options_of(ShardKind::thalia, true));
  const Names names = shards_of("model", ShardKind::thalia);
  BOOST_TEST(list_folder(folder / "m") == names, boost::test_tools::per_element());
  BOOST_TEST(saved.path == folder / "m" / names.back());
  BOOST_TEST(saved.files == Names(names.begin(), names.end() - 1),
             boost::test_tools::per_element());
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : contents(folder / "m")) bytes += content.size();
  BOOST_TEST(saved.output_bytes == bytes);
  BOOST_TEST(value_in(folder / "m") == 7);
  const Reader reader = Reader::open(folder / "m" / names[1]);
  BOOST_TEST(reader.metadata_json() ==
             R"({"format":"safetensors","safetensors":{"metadata":{"format":"pt"}}})");
  BOOST_TEST(reader.region(0).name() == "layers.0");
  BOOST_TEST((reader.region(0).at("layers.0.bias").role() == role_of_name("layers.0.bias", 1)));
  const ModelIndex index = read_model_index(saved.path);
  BOOST_TEST((index.kind == ShardKind::thalia));
  BOOST_TEST(index.total_size.value() == 300u);
}

BOOST_AUTO_TEST_CASE(options_of_a_save_count_for_each_file) {
  const TemporaryFolder folder;
  ModelSaveOptions options = options_of(ShardKind::thalia, true);
  options.save.sha256 = true;
  options.save.compression.codec = Codec::zstd;
  std::uint64_t last = 0;
  options.save.work.progress = [&](std::uint64_t done, std::uint64_t total) {
    BOOST_TEST((done >= last && done <= total && total == 300), done << " of " << total);
    last = done;
  };
  save(folder.path(), 1, options);
  BOOST_TEST(last == 300u);
  for (const Names names = shards_of("model", ShardKind::thalia); const std::string& name : names) {
    const bool is_shard = name.ends_with(".thalia");
    BOOST_TEST(fs::exists(folder / (name + ".sha256")) == is_shard);
    if (is_shard) BOOST_TEST(Reader::open(folder / name).tensor_count() == 1u);
  }
  options.save.work.progress = {};
  // Side files go with what they are of.
  save(folder.path(), 2, options);
  BOOST_TEST(list_folder(folder.path()).size() == 7u);
  options.save.sha256 = false;
  save(folder.path(), 3, options);
  BOOST_TEST(list_folder(folder.path()) == shards_of("model", ShardKind::thalia),
             boost::test_tools::per_element());
  // Also that of a whole file, which would be of another file then.
  ModelSaveOptions whole = options_of(ShardKind::thalia, false);
  whole.save.sha256 = true;
  save(folder.path(), 4, whole);
  BOOST_TEST(list_folder(folder.path()) == (Names{"model.thalia", "model.thalia.sha256"}),
             boost::test_tools::per_element());
  whole.save.sha256 = false;
  save(folder.path(), 5, whole);
  BOOST_TEST(list_folder(folder.path()) == Names{"model.thalia"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(payloads_are_asked_for_file_by_file) {
  for (const ShardKind kind : kKinds) {
    const TemporaryFolder folder;
    const auto tensors = tensors_of(9);
    std::vector<NamedArray> specs = borrow(tensors);
    for (NamedArray& spec : specs) spec.bytes = {};
    std::vector<std::vector<std::size_t>> asked;
    ModelSaveOptions options = options_of(kind, true);
    options.max_shard_bytes = 200;
    options.payloads = [&](std::span<const std::size_t> places) {
      asked.emplace_back(places.begin(), places.end());
      std::vector<ByteSpan> bytes;
      for (const std::size_t i : places) bytes.emplace_back(tensors[i].bytes);
      return bytes;
    };
    save_model(folder.path(), specs, std::nullopt, options);
    BOOST_TEST((asked.size() == 2 && asked[0].size() == 2 && asked[1].size() == 1));
    BOOST_TEST(value_in(folder.path()) == 9);
    const auto before = contents(folder.path());
    options.payloads = [&](std::span<const std::size_t>) {
      return std::vector<ByteSpan>(1, ByteSpan(tensors[0].bytes).first(1));
    };
    BOOST_CHECK_EXCEPTION(save_model(folder.path(), specs, std::nullopt, options), UsageError,
                          has_code(ErrorCode::size_mismatch));
    options.max_shard_bytes = 100;
    BOOST_CHECK_EXCEPTION(save_model(folder.path(), specs, std::nullopt, options), UsageError,
                          has_code(ErrorCode::size_mismatch));
    BOOST_TEST((contents(folder.path()) == before));
  }
}

BOOST_AUTO_TEST_CASE(a_model_of_either_kind_takes_the_place_of_any_other) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", "{}");
  std::uint8_t value = 0;
  for (const ShardKind before : kKinds) {
    for (const ShardKind kind : kKinds) {
      for (const bool before_in_shards : {false, true}) {
        for (const bool in_shards : {false, true}) {
          save(folder.path(), ++value, options_of(before, before_in_shards));
          BOOST_TEST(value_in(folder.path()) == value);
          save(folder.path(), ++value, options_of(kind, in_shards));
          BOOST_TEST(value_in(folder.path()) == value);
          BOOST_TEST(list_folder(folder.path()).size() == (in_shards ? 5u : 2u));
          BOOST_TEST(
              fs::exists(folder / ("model" + ending_of(kind) + (in_shards ? ".index.json" : ""))));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_named_leaves_the_other_kind) {
  const TemporaryFolder folder;
  save(folder.path(), 1, options_of(ShardKind::thalia, true));
  const auto before = contents(folder.path());
  const auto still_there = [&] {
    const auto now = contents(folder.path());
    return std::ranges::all_of(before, [&](const auto& file) {
      return now.contains(file.first) && now.at(file.first) == file.second;
    });
  };
  for (const char* const name :
       {"model.safetensors", "model.safetensors.index.json", "model.safetensors"}) {
    save(folder / name, 2, options_of(ShardKind::safetensors, true));
    BOOST_TEST(still_there(), name);
    BOOST_TEST(value_in(folder / "model.safetensors.index.json") == 2);
  }
  // Nor does a conversion remove what it may not have read.
  ConvertOptions options{.to = FileFormat::safetensors, .shard_bytes = 1000};
  convert(folder / "model.thalia.index.json", folder.path(), options);
  BOOST_TEST(still_there());
  BOOST_TEST(value_in(folder / "model.safetensors") == 1);
  // A name of the other kind is a mistake.
  for (const char* const name : {"x.safetensors", "x.safetensors.index.json"}) {
    BOOST_CHECK_EXCEPTION(save(folder / name, 3, options_of(ShardKind::thalia, false)), UsageError,
                          has_code(ErrorCode::bad_argument));
    BOOST_TEST(!fs::exists(folder / name));
  }
  BOOST_CHECK_EXCEPTION(save(folder / "x.thalia", 3, options_of(ShardKind::safetensors, true)),
                        UsageError, has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(nothing_of_either_kind_goes_unless_that_is_asked_for) {
  for (const ShardKind there : kKinds) {
    for (const bool there_in_shards : {false, true}) {
      const TemporaryFolder folder;
      save(folder.path(), 1, options_of(there, there_in_shards));
      const auto before = contents(folder.path());
      const std::string opens = "model" + ending_of(there) + (there_in_shards ? ".index.json" : "");
      for (const ShardKind kind : kKinds) {
        for (const bool in_shards : {false, true}) {
          ModelSaveOptions options = options_of(kind, in_shards);
          options.save.output.replace = false;
          BOOST_CHECK_EXCEPTION(save(folder.path(), 2, options), UsageError,
                                [&](const UsageError& error) {
                                  return error.code() == ErrorCode::exists &&
                                         error.context().path == (folder / opens).string();
                                });
          BOOST_TEST((contents(folder.path()) == before));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(links_of_a_folder_are_replaced_and_never_written_through) {
  const TemporaryFolder cache;
  for (const ShardKind kind : kKinds) {
    for (const bool in_shards : {false, true}) {
      const TemporaryFolder folder;
      write_file(cache / "precious", "precious");
      const std::string model = "model" + ending_of(kind);
      for (const std::string& name :
           {model, model + ".index.json", "model-00001-of-00003" + ending_of(kind)})
        fs::create_symlink(cache / "precious", folder / name);
      save(folder.path(), 3, options_of(kind, in_shards));
      BOOST_TEST(value_in(folder.path()) == 3);
      BOOST_TEST(read_file(cache / "precious") == "precious");
      for (const std::string& name : list_folder(folder.path()))
        BOOST_TEST(!fs::is_symlink(folder / name));
    }
  }
}

// Files that never got their names, and checksums of files that are gone.
BOOST_AUTO_TEST_CASE(what_killed_saves_have_left_goes_and_what_is_written_stays) {
  const TemporaryFolder folder;
  const std::string dead = ".4194304-0123456789abcdef.thalia-tmp";  // more than processes are
  const std::string alive = "." + std::to_string(::getpid()) + "-0123456789abcdef.thalia-tmp";
  const Names debris{".model.thalia" + dead,
                     ".model.thalia.sha256" + dead,
                     ".model.safetensors.index.json" + dead,
                     ".model-2-00001-of-00002.thalia" + dead,
                     "model-00001-of-00002.thalia.sha256",
                     "model-7-00001-of-00002.safetensors"};
  const Names stays{".model.thalia" + alive, ".other.thalia" + dead, "other.thalia.sha256",
                    "model-00001-of-00002.gguf", "models-00001-of-00002.thalia"};
  for (const Names& names : {debris, stays})
    for (const std::string& name : names) write_file(folder / name, "x");
  save(folder.path(), 1, options_of(ShardKind::thalia, true));
  for (const std::string& name : debris) BOOST_TEST(!fs::exists(folder / name), name);
  for (const std::string& name : stays) BOOST_TEST(fs::exists(folder / name), name);
  BOOST_TEST(value_in(folder.path()) == 1);
  BOOST_TEST(list_folder(folder.path()).size() == 4 + stays.size());
}

BOOST_AUTO_TEST_CASE(a_save_that_fails_leaves_the_older_model_alone) {
  for (const ShardKind before_kind : kKinds) {
    const TemporaryFolder folder;
    save(folder.path(), 1, options_of(before_kind, true));
    const auto before = contents(folder.path());
    for (const ShardKind kind : kKinds) {
      ModelSaveOptions options = options_of(kind, true);
      options.save.sha256 = true;
      for (const std::uint64_t end : {100, 200, 300}) {
        std::stop_source stop;
        options.save.work.cancel = stop.get_token();
        options.save.work.progress = [&](std::uint64_t done, std::uint64_t) {
          if (done == end) stop.request_stop();
        };
        BOOST_CHECK_THROW(save(folder.path(), 2, options), CancelledError);
        BOOST_TEST((contents(folder.path()) == before));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
