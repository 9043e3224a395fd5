#include "cli/tensor/tensor_changes.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "boost_test.h"
#include "thalia/types.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::cli;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(changes_of_tensors)

namespace {

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "thalia-changes-XXXXXX").string();
    BOOST_TEST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

// A 3 by 4 matrix of csr, and one of coo with complex numbers.
void write(const fs::path& path, std::span<const std::uint32_t> rows,
           std::span<const std::uint32_t> columns, std::span<const float> values,
           std::span<const std::uint64_t> places, std::span<const float> pairs) {
  Writer writer(path, {});
  const RegionId region = writer.add_region({.name = "r"});
  writer.add_csr(region, {.name = "csr", .shape = {3, 4}},
                 CsrArrays<std::uint32_t>{rows, columns, as_byte_span(values)});
  writer.add_coo(region, {.name = "coo", .dtype = DType::c64, .shape = {2, 2}},
                 CooArrays<std::uint64_t>{places, as_byte_span(pairs)});
  writer.commit();
}

}  // namespace

BOOST_AUTO_TEST_CASE(entries_of_sparse_tensors_are_compared_where_either_has_one) {
  const Folder folder;
  const fs::path before = folder.path / "a.thalia";
  const fs::path after = folder.path / "b.thalia";
  using Rows = std::array<std::uint32_t, 4>;
  // (0,1)=3, (1,0)=4, (2,3)=12: norm 13. Later (0,1)=3, (1,2)=4, (2,3)=9.
  write(before, Rows{0, 1, 2, 3}, std::array<std::uint32_t, 3>{1, 0, 3}, std::array{3.f, 4.f, 12.f},
        std::array<std::uint64_t, 2>{1, 1}, std::array{0.f, 2.f});
  write(after, Rows{0, 1, 2, 3}, std::array<std::uint32_t, 3>{1, 2, 3}, std::array{3.f, 4.f, 9.f},
        std::array<std::uint64_t, 4>{0, 1, 0, 1}, std::array{1.f, 0.f, 0.f, 2.f});
  const auto changes = tensor_changes(before, after, {}, {});
  BOOST_TEST_REQUIRE(changes.size() == 2u);
  for (const TensorChange& change : changes) {
    BOOST_TEST(change.region == "r");
    BOOST_TEST((change.change == Change::changed));
    BOOST_TEST_REQUIRE(change.relative.has_value());
    const double expected = change.name == "csr" ? std::sqrt(16.0 + 16 + 9) / 13 : 0.5;
    BOOST_TEST(*change.relative == expected, boost::test_tools::tolerance(1e-14));
  }
  const auto none = tensor_changes(before, before, {}, {.tensors = {"csr"}});
  BOOST_TEST_REQUIRE(none.size() == 1u);
  BOOST_TEST(*none[0].relative == 0);
}

BOOST_AUTO_TEST_SUITE_END()
