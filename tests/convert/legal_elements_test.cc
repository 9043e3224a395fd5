// Elements that no .thalia file may have do not get into one, nor out of one.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(legal_elements)

namespace {

using Path = std::filesystem::path;

SaveOptions saving(std::optional<Codec> codec = {}) {
  return {.compression = {.codec = codec, .chunk_bytes = 4096},
          .output = {.durability = Durability::none}};
}

// Three truth values, of which the last is `last`, in one of the ways of storing them.
struct Stored {
  const char* name;
  std::function<void(Writer&, RegionId, ByteSpan)> add;
  std::optional<Codec> codec{};
};

const std::vector<Stored>& ways() {
  static const std::array<std::uint32_t, 3> kIndices{0, 1, 2};
  static const std::array<std::uint32_t, 2> kRows{0, 3};
  static const auto dense = [](Writer& writer, RegionId region, ByteSpan values) {
    writer.add_tensor(region, {.name = "t", .dtype = DType::boolean, .shape = {3}}, values);
  };
  static const std::vector<Stored> all{
      {"dense", dense},
      {"in chunks", dense, Codec::zstd},
      {"csr",
       [](Writer& writer, RegionId region, ByteSpan values) {
         writer.add_csr<std::uint32_t>(region,
                                       {.name = "t", .dtype = DType::boolean, .shape = {1, 3}},
                                       {kRows, kIndices, values});
       }},
      {"coo",
       [](Writer& writer, RegionId region, ByteSpan values) {
         writer.add_coo<std::uint32_t>(region, {.name = "t", .dtype = DType::boolean, .shape = {3}},
                                       {kIndices, values});
       }},
  };
  return all;
}

void write(const Path& path, const Stored& stored, std::uint8_t last) {
  const std::array<std::uint8_t, 3> values{0, 1, last};
  Writer writer(path, saving(stored.codec));
  stored.add(writer, writer.add_region({.name = "r"}), std::as_bytes(std::span(values)));
  writer.commit();
}

ConvertOptions converting(bool dense) {
  ConvertOptions options{.save = saving()};
  options.save.output.replace = true;
  options.dense = dense;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(copies_are_refused_as_their_own_check_would_refuse_them) {
  const TemporaryFolder folder;
  const Path input = folder / "in.thalia";
  const std::vector<std::pair<const char*, std::function<void()>>> copies{
      {"o.thalia", [&] { convert(input, folder / "o.thalia", converting(false)); }},
      {"o.pt", [&] { convert(input, folder / "o.pt", converting(false)); }},
      {"o.npz", [&] { convert(input, folder / "o.npz", converting(true)); }},
      {"o.mckp", [&] { convert(input, folder / "o.mckp", converting(false)); }},
      {"o1.thalia", [&] { extract(input, {"r"}, folder / "o1.thalia", converting(false)); }},
      {"o2.thalia", [&] { merge({input}, folder / "o2.thalia", {}, converting(false)); }},
      {"o3.thalia",
       [&] {
         migrate(input, folder / "o3.thalia", {0, 1, 0}, {.across_major = true, .save = saving()});
       }},
  };
  for (const Stored& stored : ways()) {
    for (const auto& [output, copy] : copies) {
      BOOST_TEST_CONTEXT(stored.name << " to " << output) {
        for (const char* const name : {"in.thalia", output}) std::filesystem::remove(folder / name);
        write(input, stored, 2);
        BOOST_TEST(!verify(input).ok());
        BOOST_CHECK_EXCEPTION(copy(), FormatError, says(ErrorCode::bad_value, "t", "0x02"));
        BOOST_TEST(!std::filesystem::exists(folder / output));
        std::filesystem::remove(input);
        write(input, stored, 1);
        copy();
        BOOST_TEST(std::filesystem::exists(folder / output));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_other_formats_take_no_thalia_file_gets) {
  const TemporaryFolder folder;
  for (const int last : {1, 2}) {
    const std::string header = R"({"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})";
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size());
    bytes += header + std::string{0, 1, static_cast<char>(last)};
    write_file(folder / "b.safetensors", bytes);
    std::filesystem::remove(folder / "b.thalia");
    const auto copy = [&](const char* output) {
      convert(folder / "b.safetensors", folder / output, converting(false));
    };
    copy("b.npz");
    if (last == 1) {
      copy("b.thalia");
      BOOST_TEST(verify(folder / "b.thalia").ok());
    } else {
      BOOST_CHECK_EXCEPTION(copy("b.thalia"), FormatError,
                            says(ErrorCode::bad_value, "b.safetensors", "'b'", "0x02"));
      BOOST_TEST(!std::filesystem::exists(folder / "b.thalia"));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
