// Names that no file may have, in files that have them: whatever is made of these, the error is the
// file's, and names it.
#include <filesystem>
#include <span>
#include <string>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/append.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/state/delta.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(names_of_files)

namespace {

// A file with a region and a tensor, a byte of one of whose names is another one.
struct Renamed {
  explicit Renamed(const std::string& from, const std::string& to) {
    Writer writer(folder / "f.thalia",
                  {.checksum = ChecksumType::none, .output = {.durability = Durability::none}});
    const RegionId region = writer.add_region({.name = "some-region-of-a-name-that-is-long-x"});
    const float value = 1;
    writer.add_tensor(region, TensorSpec::of("tensor-y", {.dtype = DType::f32, .shape = {1}}),
                      std::as_bytes(std::span(&value, 1)));
    writer.commit();
    std::string bytes = read_file(folder / "f.thalia");
    for (std::size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; at += to.size())
      bytes.replace(at, to.size(), to);
    write_file(folder / "f.thalia", bytes);
  }
  TemporaryFolder folder;
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_no_file_may_have_is_not_written_into_another) {
  const struct {
    const char* from;
    std::string to;
  } cases[] = {
      {"long-x", "long-\xff"}, {"long-x", std::string("long-\0", 6)}, {"tensor-y", "tensor-\xff"}};
  for (const auto& [from, to] : cases) {
    const Renamed file(from, to);
    const auto in = file.folder / "f.thalia";
    const auto refused = says(ErrorCode::bad_name, in.string(), "name_offset");
    const auto out = file.folder / "out.thalia";
    const ReadOptions unverified{.verification = Verification::off};
    BOOST_CHECK_EXCEPTION(convert(in, out, {.chain = {.read = unverified}}), FormatError, refused);
    BOOST_CHECK_EXCEPTION(compact(in, ChangeOptions{}), FormatError, refused);
    BOOST_CHECK_EXCEPTION(resolve(in, out, {}), FormatError, refused);
    BOOST_TEST(!std::filesystem::exists(out));
  }
}

BOOST_AUTO_TEST_SUITE_END()
