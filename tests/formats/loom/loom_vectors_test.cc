// All files of the original program: a selection of them in tests/data, and those of the folder
// that THALIA_VECTORS names.
#include <cstdlib>
#include <filesystem>

#include "boost_test.h"
#include "formats/loom/vectors.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(loom_vectors)

namespace {

std::filesystem::path selection() {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/loom";
}

// A vector that throws counts as one that does not agree.
template <typename Check>
std::size_t agreeing(const std::filesystem::path& folder, Check check) {
  std::size_t good = 0;
  if (!std::filesystem::exists(folder)) return 0;
  for (const auto& stem : test::vector_stems(folder)) {
    std::vector<std::string> wrong;
    try {
      wrong = check(stem);
    } catch (const std::exception& error) {
      wrong = {error.what()};
    }
    for (const std::string& what : wrong) BOOST_ERROR(stem.string() << ": " << what);
    good += wrong.empty() ? 1 : 0;
  }
  BOOST_TEST_MESSAGE(folder.string() << ": " << good << " agree");
  return good;
}

std::size_t check_all(const std::filesystem::path& root) {
  std::size_t good = 0;
  for (const char* const folder :
       {"dtype", "unmorphed_first_save", "preset_scale", "layers", "nested", "quirks"})
    good += agreeing(root / folder, test::check_network_vector);
  good += agreeing(root / "legacy_fp32", test::check_legacy_vector);
  good += agreeing(root / "legacy_fp32_noscale", test::check_legacy_vector);
  return good + agreeing(root / "arch", test::check_architecture_vector);
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_the_original_are_read_and_written_as_it_does) {
  BOOST_TEST(check_all(selection()) == 117u);
}

BOOST_AUTO_TEST_CASE(so_are_all_that_there_are) {
  const char* const vectors = std::getenv("THALIA_VECTORS");
  if (vectors == nullptr) return;
  BOOST_TEST(check_all(std::filesystem::path(vectors) / "loom") >= 117u);
}

BOOST_AUTO_TEST_SUITE_END()
