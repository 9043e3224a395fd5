#include <string>

#include "boost_test.h"
#include "interop/samples.h"
#include "support/files.h"
#include "thalia/convert.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(detect)

namespace {

std::string detected(const std::filesystem::path& path) {
  const auto format = detect_format(path);
  return format ? std::string(file_format_name(*format)) : "unknown";
}

}  // namespace

BOOST_AUTO_TEST_CASE(content_decides_before_the_name) {
  const TemporaryFolder folder;
  write_file(folder / "a.thalia", safetensors_bytes("{}"));
  BOOST_TEST(detected(folder / "a.thalia") == "safetensors");
  write_file(folder / "a.safetensors", "THAL\1\0\0\0");
  BOOST_TEST(detected(folder / "a.safetensors") == "thalia");
  write_file(folder / "bare", "THAL");
  BOOST_TEST(detected(folder / "bare") == "thalia");
}

BOOST_AUTO_TEST_CASE(name_decides_where_the_content_tells_nothing) {
  const TemporaryFolder folder;
  BOOST_TEST(detected(folder / "new.thalia") == "thalia");
  BOOST_TEST(detected(folder / "new.safetensors") == "safetensors");
  BOOST_TEST(detected(folder / "new.bin") == "unknown");
  BOOST_TEST(detected(folder / "new") == "unknown");
  for (const std::string& content : {std::string(), std::string("TH"), std::string(100, '\0'),
                                     safetensors_bytes("{}").substr(0, 9)}) {
    write_file(folder / "odd.thalia", content);
    BOOST_TEST(detected(folder / "odd.thalia") == "thalia");
    write_file(folder / "odd", content);
    BOOST_TEST(detected(folder / "odd") == "unknown");
  }
}

BOOST_AUTO_TEST_CASE(a_folder_is_judged_by_its_name) {
  const TemporaryFolder folder;
  BOOST_TEST(detected(folder.path()) == "unknown");
}

BOOST_AUTO_TEST_CASE(names_and_formats_map_both_ways) {
  BOOST_TEST((file_format_from_name("thalia") == FileFormat::thalia));
  BOOST_TEST((file_format_from_name("safetensors") == FileFormat::safetensors));
  BOOST_TEST(!file_format_from_name("Thalia").has_value());
  BOOST_TEST(!file_format_from_name("").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
