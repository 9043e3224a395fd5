// What the writer makes is what the original would have made of the same tensors: its own files
// come out byte for byte.
#include <filesystem>
#include <string>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/mithril.h"

using namespace thalia;
using test::text_of;

BOOST_AUTO_TEST_SUITE(mst_writer)

namespace {

std::filesystem::path original(const char* name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/mithril" / name;
}

// In the order of the frames, as the original's writer got them.
std::string rewritten(const MstFile& file, MstWriteOptions options) {
  const test::TemporaryFolder folder;
  options.level = file.level();
  options.byte_grouping = file.byte_grouping();
  options.metadata = file.metadata();
  MstWriter writer(folder / "out.mst", options);
  for (const MstTensor& tensor : file.tensors()) writer.add(tensor.name, file.read(tensor.name));
  const std::uint64_t bytes = writer.commit();
  BOOST_TEST(test::list_folder(folder.path()).size() == 1u);
  std::string text = test::read_file(folder / "out.mst");
  BOOST_TEST(text.size() == bytes);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_of_the_original_is_written_again_byte_for_byte) {
  const MstFile file = MstFile::open(original("nogroup_l19.mst"));
  BOOST_TEST((rewritten(file, {}) == test::read_file(original("nogroup_l19.mst"))));
}

// Its names are in the header in the order of a hash table, so only they are elsewhere.
BOOST_AUTO_TEST_CASE(frames_of_grouped_and_of_empty_tensors_are_the_originals) {
  const std::string there = test::read_file(original("small.mst"));
  const MstFile file = MstFile::open(original("small.mst"));
  BOOST_TEST((file.header_order() == std::vector<std::size_t>{0, 1, 3, 2}));
  const std::string again = rewritten(file, {});
  BOOST_TEST(again.size() == there.size());
  BOOST_TEST((again.substr(0, 16) == there.substr(0, 16)));
  BOOST_TEST((again.substr(611) == there.substr(611)));
  // A spool in a file gives the same.
  BOOST_TEST((rewritten(file, {.work = {.memory_bytes = 0}}) == again));
}

BOOST_AUTO_TEST_CASE(a_long_tensor_comes_back_grouped_or_not) {
  const test::TemporaryFolder folder;
  const Tensor tensor = Tensor::copy_of(DType::f32, {1'000'003}, test::random_bytes(4'000'012, 1));
  for (const bool grouping : {true, false}) {
    MstWriter writer(folder / "long.mst", {.level = 1, .byte_grouping = grouping});
    writer.add("t", tensor);
    writer.commit();
    const MstFile file = MstFile::open(folder / "long.mst");
    BOOST_TEST(file.byte_grouping() == grouping);
    BOOST_TEST((file.read("t") == tensor));
  }
}

BOOST_AUTO_TEST_CASE(what_the_format_lacks_is_refused_and_leaves_nothing) {
  const test::TemporaryFolder folder;
  {
    MstWriter writer(folder / "a.mst");
    writer.add("x", Tensor::zeros(DType::u8, {3}));
    BOOST_CHECK_EXCEPTION(writer.add("x", Tensor()), UsageError,
                          test::has_code(ErrorCode::duplicate));
    BOOST_CHECK_EXCEPTION(writer.add("\xff", Tensor()), UsageError,
                          test::has_code(ErrorCode::bad_argument));
    BOOST_CHECK_EXCEPTION(writer.add("u", Tensor::zeros(DType::u16, {3})), UnsupportedDtypeError,
                          test::says(ErrorCode::unsupported_dtype, "u16", "a.mst"));
    BOOST_CHECK_EXCEPTION(writer.add("s", Tensor::zeros(DType::f32, {3, 3}).to_csr()),
                          UnsupportedError, test::has_code(ErrorCode::unsupported_feature));
  }
  BOOST_TEST(test::list_folder(folder.path()).empty());
  const auto made = [&](const MstWriteOptions& options) { MstWriter(folder / "b.mst", options); };
  BOOST_CHECK_THROW(made({.level = 23}), UsageError);
  BOOST_CHECK_THROW(made({.level = -1}), UsageError);
  BOOST_CHECK_THROW(made({.metadata = {{"a", "1"}, {"a", "2"}}}), UsageError);
  BOOST_CHECK_THROW(made({.metadata = {{"a", "\xff"}}}), UsageError);
  MstWriter writer(folder / "c.mst");
  writer.commit();
  BOOST_TEST(MstFile::open(folder / "c.mst").tensors().empty());
  BOOST_CHECK_EXCEPTION(writer.commit(), UsageError, test::has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(MstWriter(folder / "c.mst", {.output = {.replace = false}}), UsageError,
                        test::has_code(ErrorCode::exists));
}

BOOST_AUTO_TEST_SUITE_END()
