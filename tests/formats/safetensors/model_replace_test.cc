// What a save takes the place of: not without being asked, and never the files of who saves there
// at the same time.
#include <string>
#include <thread>
#include <vector>

#include "boost_test.h"
#include "formats/safetensors/model_samples.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(safetensors_model_replace)

namespace {

std::vector<OwnedTensor> three_tensors() {
  return {make_tensor("x", DType::u8, {100}), make_tensor("y", DType::u8, {100}),
          make_tensor("z", DType::u8, {100})};
}

// In one file, or in one for each tensor.
void save_beside(const std::filesystem::path& path, bool in_shards, bool replace = false) {
  const auto tensors = three_tensors();
  ModelSaveOptions options{.max_shard_bytes = in_shards ? 100u : 1000u};
  options.save.output.replace = replace;
  save_model(path, borrow(tensors), std::nullopt, options);
}

void check_is_refused(const TemporaryFolder& folder, const char* what) {
  BOOST_TEST_CONTEXT(what) {
    const auto before = contents(folder.path());
    for (const bool in_shards : {false, true}) {
      BOOST_CHECK_EXCEPTION(save_beside(folder.path(), in_shards), UsageError,
                            has_code(ErrorCode::exists));
      BOOST_TEST((contents(folder.path()) == before));
    }
    save_safetensors(folder / "in.st", borrow(three_tensors()));
    for (const std::optional<std::uint64_t> shard : {std::optional<std::uint64_t>(), {100}}) {
      ConvertOptions options{.to = FileFormat::safetensors, .shard_bytes = shard};
      options.save.output.replace = false;
      BOOST_CHECK_EXCEPTION(convert(folder / "in.st", folder.path(), options), UsageError,
                            has_code(ErrorCode::exists));
    }
    std::filesystem::remove(folder / "in.st");
    BOOST_TEST((contents(folder.path()) == before));
    save_beside(folder.path(), true, /*replace=*/true);
    BOOST_TEST(list_folder(folder.path()).size() == 4u);
    BOOST_TEST(open_any(folder.path()).tensors().size() == 3u);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_of_a_model_goes_unless_that_is_asked_for) {
  const TemporaryFolder shards, file, stray, index;
  write_model(shards.path());
  check_is_refused(shards, "shards and index");
  save_beside(file / "model.safetensors", false);
  check_is_refused(file, "one file");
  write_file(stray / "model-00001-of-00009.safetensors", "of some other save");
  check_is_refused(stray, "a stray shard");
  write_file(index / "model.safetensors.index.json", "no index");
  check_is_refused(index, "an index that cannot be read");
  // What is of no such name is in nobody's way.
  const TemporaryFolder others;
  write_file(others / "other.safetensors", "x");
  write_file(others / "other-00001-of-00002.safetensors", "x");
  write_file(others / "config.json", "{}");
  save_beside(others.path(), true);
  BOOST_TEST(list_folder(others.path()).size() == 7u);
}

BOOST_AUTO_TEST_CASE(of_two_saves_at_once_the_later_one_is_whole) {
  const TemporaryFolder folder;
  for (unsigned round = 0; round < 30; ++round) {
    // In rounds the folder is there, or made by one of the two.
    const std::filesystem::path model = folder / std::to_string(round / 2);
    {
      std::vector<std::jthread> savers;
      for (unsigned i = 0; i < 3; ++i)
        savers.emplace_back([&, i] { save_beside(model, (i + round) % 3 != 0, /*replace=*/true); });
    }
    BOOST_TEST(open_any(model).tensors().size() == 3u);
    const std::size_t files = list_folder(model).size();
    BOOST_TEST((files == 1 || files == 4), files);
  }
}

BOOST_AUTO_TEST_CASE(a_shard_without_room_is_refused) {
  const TemporaryFolder folder;
  const auto tensors = three_tensors();
  BOOST_CHECK_EXCEPTION(
      save_model(folder / "m", borrow(tensors), std::nullopt, {.max_shard_bytes = 0}), UsageError,
      has_code(ErrorCode::bad_argument));
  BOOST_TEST(list_folder(folder.path()).empty());
  save_safetensors(folder / "a.safetensors", borrow(tensors));
  BOOST_CHECK_EXCEPTION(convert(folder / "a.safetensors", folder / "m",
                                {.to = FileFormat::safetensors, .shard_bytes = std::uint64_t{0}}),
                        UsageError, has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(the_result_tells_the_index) {
  const TemporaryFolder folder;
  const auto tensors = three_tensors();
  save_safetensors(folder / "a.safetensors", borrow(tensors));
  const auto written = [&](const char* output, std::uint64_t most) {
    return convert(folder / "a.safetensors", folder / output,
                   {.to = FileFormat::safetensors, .shard_bytes = most})
        .output;
  };
  BOOST_TEST(written("x.safetensors", 100) == folder / "x.safetensors.index.json");
  BOOST_TEST(written("y.safetensors", 1000) == folder / "y.safetensors");
  BOOST_TEST(written("z.safetensors.index.json", 1000) == folder / "z.safetensors.index.json");
  BOOST_TEST(written("m", 100) == folder / "m");
}

BOOST_AUTO_TEST_SUITE_END()
