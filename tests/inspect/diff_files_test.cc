#include "inspect/diff_files.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "boost_test.h"
#include "thalia/formats/convert.h"
#include "thalia/types.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::inspect;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(differences_of_files)

namespace {

struct Scratch {
  Scratch() {
    std::string name = (fs::temp_directory_path() / "thalia-diff-XXXXXX").string();
    BOOST_TEST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Scratch() { fs::remove_all(path); }
  fs::path path;
};

fs::path write(const fs::path& path, float first, const std::string& region) {
  const std::array<float, 2> values{first, 2.f};
  const std::array<float, 2> same{5.f, 6.f};
  Writer writer(path, {});
  const RegionId id = writer.add_region({.name = region});
  writer.add_tensor(id, {.name = "w", .shape = {2}}, as_byte_span(values));
  writer.add_tensor(id, {.name = "same", .shape = {2}}, as_byte_span(same));
  writer.commit();
  return path;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_name_of_a_region_stands_for_all_of_it_as_typed_or_as_shown) {
  const Scratch folder;
  const fs::path before = write(folder.path / "a.thalia", 1.f, "r\n1");
  const fs::path after = write(folder.path / "b.thalia", 3.f, "r\n1");
  for (const std::string pattern : {"r\n1", "r\\n1"}) {
    const FilesDiff found = diff_files(before, after, {}, {.tensors = {pattern}});
    BOOST_TEST(!found.metadata_compared);
    BOOST_TEST_REQUIRE(found.diff.regions.size() == 1u);
    BOOST_TEST(found.diff.regions[0].tensors.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(files_of_two_formats_differ_in_elements_alone) {
  const Scratch folder;
  const fs::path before = write(folder.path / "a.thalia", 1.f, "r");
  const fs::path same = folder.path / "a.safetensors";
  convert(before, same, {});
  FilesDiff found = diff_files(before, same, {}, {});
  BOOST_TEST(found.diff.same());
  BOOST_TEST(found.diff.same_tensors == 2u);
  BOOST_TEST(!found.metadata_compared);
  BOOST_TEST((found.after_format == FileFormat::safetensors));
  found = diff_files(write(folder.path / "b.thalia", 3.f, "r"), same, {}, {});
  BOOST_TEST_REQUIRE(found.diff.tensors.size() == 1u);
  BOOST_TEST(found.diff.tensors[0].values->max_difference == 2.0);
}

BOOST_AUTO_TEST_SUITE_END()
