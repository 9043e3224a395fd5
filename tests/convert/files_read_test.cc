// An output never takes the place of a file that its input is read from, whatever that is called.
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/safetensors/model_samples.h"
#include "formats/samples.h"
#include "support/errors.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/onnx.h"
#include "thalia/formats/safetensors.h"
#include "thalia/state/delta.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(files_read_by_conversions)

namespace {

namespace fs = std::filesystem;

template <typename Work>
void check_refused(const fs::path& folder, const Work& work) {
  const auto before = contents(folder);
  BOOST_CHECK_EXCEPTION(work(), UsageError, has_code(ErrorCode::bad_argument));
  BOOST_TEST((contents(folder) == before));
}

// To formats whose names say nothing of it, and through links of both kinds.
void check_outputs(const fs::path& folder, const char* input, const char* output) {
  fs::create_symlink(output, folder / "soft");
  fs::create_hard_link(folder / output, folder / "hard");
  for (const char* const name : {output, "soft", "hard"}) {
    for (const FileFormat to :
         {FileFormat::npz, FileFormat::thalia, FileFormat::thalia_0_1, FileFormat::safetensors}) {
      BOOST_TEST_CONTEXT(input << " to " << name << ", " << file_format_name(to))
      check_refused(folder, [&] { convert(folder / input, folder / name, {.to = to}); });
    }
  }
  fs::remove(folder / "soft");
  fs::remove(folder / "hard");
}

std::vector<OwnedTensor> two_tensors(float first) {
  OwnedTensor a = make_tensor("a", DType::f32, {64}), b = make_tensor("b", DType::f32, {64});
  std::memcpy(a.bytes.data(), &first, sizeof first);
  return {a, b};
}

// "a" and "b" of a format, the second made as a delta of the first.
void write_thalia_delta(const fs::path& folder) {
  for (const auto& [name, first] : {std::pair("a", 1.0f), std::pair("b", 2.0f)}) {
    save_safetensors(folder / "in.st", borrow(two_tensors(first)));
    convert(folder / "in.st", folder / (std::string(name) + ".thalia"), {});
  }
  write_delta(state_source(ChainReader::open(folder / "b.thalia")),
              ChainReader::open(folder / "a.thalia"), folder / "d.thalia", {});
}

}  // namespace

BOOST_AUTO_TEST_CASE(shards_of_the_input_stay) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "m");
  write_model(folder / "m");
  const fs::path m = folder / "m";
  BOOST_TEST(files_read(m).size() == 3u);
  check_outputs(m, ".", "model-00001-of-00002.safetensors");
  check_outputs(m, "model.safetensors.index.json", "model-00002-of-00002.safetensors");
  // Beside it there is room.
  convert(m, m / "other.safetensors", {});
  convert(m, m / "third.safetensors", {.shard_bytes = 10});
  BOOST_TEST(open_any(m, {}, FileFormat::safetensors).tensors().size() == 4u);
}

// Whichever way the two are named: it is open by then, and its files go when the new ones are
// there.
BOOST_AUTO_TEST_CASE(a_model_may_take_the_place_of_the_one_it_is_made_from) {
  for (const char* const input : {".", "model.safetensors.index.json"}) {
    for (const char* const output : {".", "model.safetensors.index.json"}) {
      const TemporaryFolder folder;
      write_model(folder.path());
      convert(folder / input, folder / output,
              {.to = FileFormat::safetensors, .shard_bytes = std::uint64_t{10}});
      BOOST_TEST(open_any(folder.path(), {}, FileFormat::safetensors).tensors().size() == 4u);
      BOOST_TEST(list_folder(folder.path()).size() == 4u);
    }
  }
  // Not of a part of it.
  const TemporaryFolder folder;
  write_model(folder.path());
  check_refused(folder.path(), [&] {
    convert(folder / "model-00001-of-00002.safetensors", folder.path(),
            {.to = FileFormat::safetensors, .shard_bytes = std::uint64_t{10}});
  });
}

BOOST_AUTO_TEST_CASE(external_data_of_the_input_stays) {
  const TemporaryFolder folder;
  const Tensor tensor =
      Tensor::filled({.dtype = DType::f32, .shape = {4096}}, [](MutableByteSpan) {});
  save_onnx(folder / "a.onnx", {{"w", tensor}}, {}, {.external_data = true});
  BOOST_TEST_REQUIRE(fs::exists(folder / "a.onnx.data"));
  check_outputs(folder.path(), "a.onnx", "a.onnx.data");
}

BOOST_AUTO_TEST_CASE(bases_of_a_delta_stay) {
  const TemporaryFolder folder;
  write_thalia_delta(folder.path());
  check_outputs(folder.path(), "d.thalia", "a.thalia");
  const fs::path base = folder / "a.thalia", delta = folder / "d.thalia";
  check_refused(folder.path(), [&] { resolve(delta, base); });
  check_refused(folder.path(), [&] { extract(delta, {"model"}, base); });
  check_refused(folder.path(), [&] { merge({folder / "b.thalia", delta}, base); });
  resolve(delta, folder / "b.thalia");
}

BOOST_AUTO_TEST_CASE(previous_checkpoints_of_an_mckp_delta_stay) {
  const TemporaryFolder folder;
  save_safetensors(folder / "in.st", borrow(two_tensors(1)));
  convert(folder / "in.st", folder / "a.mckp", {});
  save_safetensors(folder / "in.st", borrow(two_tensors(2)));
  ConvertOptions options;
  options.base = folder / "a.mckp";
  convert(folder / "in.st", folder / "d.mckp", options);
  BOOST_TEST_REQUIRE(files_read(folder / "d.mckp").size() > 2u);
  check_outputs(folder.path(), "d.mckp", "a.mckp");
}

BOOST_AUTO_TEST_SUITE_END()
