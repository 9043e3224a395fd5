// merge(): several .thalia files in one.
#include <filesystem>
#include <string>
#include <vector>

#include "boost_test.h"
#include "checkpoint/checkpoints.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/state/diff.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(merge_files)

namespace {

using Kind = MergePreference::Kind;
namespace fs = std::filesystem;

ConvertOptions fixed(SaveOptions save = {}) {
  return {.save = fixed_identity(std::move(save))};
}

struct Connection {
  std::string source;
  std::string target;
  float weight;
};

// A file whose regions have one tensor each, of one value.
struct File {
  std::string metadata;
  std::vector<std::pair<std::string, float>> regions;
  std::vector<Connection> connections{};
  std::uint64_t steps = 0;
};

class Files {
 public:
  fs::path add(const std::string& name, const File& file, const SaveOptions& options = {}) {
    const fs::path path = folder_ / name;
    Writer writer(path, fixed_identity(options));
    if (!file.metadata.empty()) writer.set_metadata(file.metadata);
    writer.set_training_steps(file.steps);
    std::vector<std::vector<float>> values;
    values.reserve(file.regions.size() + file.connections.size());
    for (const auto& [region, value] : file.regions) {
      values.emplace_back(8, value);
      writer.add_tensor(writer.add_region({.name = region}), {.name = "w", .shape = {8}},
                        as_byte_span(values.back()));
    }
    for (const Connection& connection : file.connections) {
      values.emplace_back(1, connection.weight);
      writer.add_connection_weights(writer.add_connection(connection.source, connection.target),
                                    {.shape = {1}}, as_byte_span(values.back()));
    }
    writer.commit();
    return path;
  }
  fs::path output() const { return folder_ / "out.thalia"; }
  bool has_output() const { return fs::exists(output()); }
  Reader merged() const { return Reader::open(output()); }
  std::string metadata_of(const std::vector<File>& files, const MergePreference& preference = {}) {
    std::vector<fs::path> paths;
    for (const File& file : files)
      paths.push_back(add(std::to_string(paths.size()) + ".thalia", file));
    merge(paths, output(), {preference}, fixed());
    return std::string(merged().metadata_json());
  }

 private:
  TemporaryFolder folder_;
};

float value_of(const Reader& reader, std::string_view region) {
  return reader.region(region).at("w").as<float>()[0];
}

std::vector<std::string> names_of(const Reader& reader) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < reader.region_count(); ++i)
    names.emplace_back(reader.region(i).name());
  return names;
}

constexpr const char* kLongName = "hippocampus.ca3.recurrent.collaterals.layer";

}  // namespace

BOOST_AUTO_TEST_CASE(regions_and_connections_of_all_are_in_the_output) {
  Files files;
  const auto a = files.add("a", {"", {{"x", 1}, {kLongName, 2}}, {{"x", kLongName, 5}}, 30});
  const auto b =
      files.add("b", {"", {{"y", 3}}, {{"y", "y", 6}}, 70}, {.checksum = ChecksumType::none});
  const auto c = files.add("c", {"", {{"w", 4}}, {}, 50}, {.compression = {.codec = Codec::zstd}});
  const ConvertResult result = merge({a, b, c}, files.output(), {}, fixed());
  BOOST_TEST(result.losses.empty());
  BOOST_TEST(result.tensors == 6u);
  BOOST_TEST(result.input_bytes == fs::file_size(a) + fs::file_size(b) + fs::file_size(c));
  BOOST_TEST(result.output_bytes == fs::file_size(files.output()));
  const Reader merged = files.merged();
  BOOST_TEST(names_of(merged) == (std::vector<std::string>{"x", kLongName, "y", "w"}));
  BOOST_TEST(value_of(merged, "x") == 1);
  BOOST_TEST(value_of(merged, kLongName) == 2);
  BOOST_TEST(value_of(merged, "y") == 3);
  BOOST_TEST(value_of(merged, "w") == 4);
  BOOST_TEST(merged.connection_count() == 2u);
  BOOST_TEST(merged.find_connection("x", kLongName)->weights.as<float>()[0] == 5);
  BOOST_TEST(merged.find_connection("y", "y")->weights.as<float>()[0] == 6);
  BOOST_TEST(merged.header().training_steps == 70u);
  describe(files.output());  // verifies
}

BOOST_AUTO_TEST_CASE(the_parts_of_a_file_make_up_the_file) {
  const TemporaryFolder folder;
  write_rich_checkpoint(folder / "whole", fixed_identity());
  extract(folder / "whole", {"v1", kLongName}, folder / "a", fixed());
  extract(folder / "whole", {"empty", kLongName}, folder / "b",
          fixed({.compression = {.codec = Codec::lz4}}));
  merge({folder / "a", folder / "b"}, folder / "out", {}, fixed());
  const Reader whole = Reader::open(folder / "whole");
  const Reader merged = Reader::open(folder / "out");
  BOOST_TEST(diff(whole, merged).same());
  describe(folder / "out");  // verifies
  // One file is its own merger, and may be its own output.
  merge({folder / "whole"}, folder / "whole", {}, fixed());
  BOOST_TEST(diff(whole, Reader::open(folder / "whole")).same());
}

BOOST_AUTO_TEST_CASE(what_files_have_alike_is_taken_once) {
  Files files;
  const File file{R"({"a":1,"b":{"x":1,"y":2}})", {{"x", 1}}, {{"x", "x", 5}}};
  const auto a = files.add("a", file);
  File other = file;
  other.metadata = R"({"b": {"y":2, "x":1}, "a":1})";
  const auto b = files.add("b", other, {.compression = {.codec = Codec::zstd}});
  BOOST_TEST(merge({a, b, a}, files.output(), {}, fixed()).losses.empty());
  BOOST_TEST(diff(Reader::open(a), files.merged()).same());
}

BOOST_AUTO_TEST_CASE(conflicts_are_an_error_that_names_everything) {
  Files files;
  const auto a = files.add("a.thalia", {R"({"k":1})", {{"x", 1}, {"s", 0}}, {{"x", "x", 1}}});
  const auto b = files.add("b.thalia", {R"({"k":1})", {{"s", 0}}});
  const auto c = files.add("c.thalia", {R"({"k":2})", {{"x", 2}, {"s", 0}}, {{"x", "x", 2}}});
  BOOST_CHECK_EXCEPTION(
      merge({a, b, c}, files.output(), {}, fixed()), UsageError,
      says(ErrorCode::duplicate, "region 'x' of " + a.string() + ", " + c.string() + ";",
           "connection 'x->x' of " + a.string() + ", " + c.string() + ";",
           "metadata 'k' of " + a.string() + ", " + b.string() + ", " + c.string()));
  BOOST_TEST(!files.has_output());
  try {
    merge({a, b, c}, files.output());
  } catch (const UsageError& error) {
    BOOST_TEST(error.message().find("'s'") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(what_metadata_says_of_its_own_file_is_no_conflict) {
  Files files;
  const auto a = files.add(
      "a", {R"({"version":"1.0.0","thalia_version":"0.1.0","created":"2026-01-01T00:00:00Z"})",
            {{"x", 1}}});
  const auto b = files.add(
      "b", {R"({"version":"1.0.1","thalia_version":"0.2.0","created":"2026-02-01T00:00:00Z"})",
            {{"y", 1}}});
  BOOST_TEST(merge({a, b}, files.output(), {}, fixed()).losses.empty());
  BOOST_TEST(files.merged().metadata_json().find("2026-01-01") != std::string_view::npos);
}

BOOST_AUTO_TEST_CASE(of_many_conflicts_the_first_are_named) {
  Files files;
  File one;
  File two;
  for (int i = 0; i < 8; ++i) {
    one.regions.emplace_back("r" + std::to_string(i), 1.0f);
    two.regions.emplace_back("r" + std::to_string(i), 2.0f);
  }
  BOOST_CHECK_EXCEPTION(merge({files.add("a", one), files.add("b", two)}, files.output()),
                        UsageError, says(ErrorCode::duplicate, "'r0'", "'r4'", "; and 3 more"));
}

BOOST_AUTO_TEST_CASE(a_preference_decides_conflicts_and_tells_what_gave_way) {
  Files files;
  const auto a = files.add("a", {R"({"k":1})", {{"only", 9}}});
  const auto b = files.add("b", {R"({"k":2})", {{"x", 2}}, {{"x", "x", 2}}});
  const auto c = files.add("c", {R"({"k":3})", {{"x", 3}}, {{"x", "x", 3}}});
  const auto d = files.add("d", {R"({"k":2})", {{"x", 2}}, {{"x", "x", 2}}});
  const std::vector<fs::path> all{a, b, c, d};
  const auto check = [&](MergePreference preference, float x, const char* metadata) {
    const ConvertResult result = merge(all, files.output(), {preference}, fixed());
    BOOST_TEST(value_of(files.merged(), "x") == x);
    BOOST_TEST(files.merged().find_connection("x", "x")->weights.as<float>()[0] == x);
    BOOST_TEST(files.merged().metadata_json() == metadata);
    return result.losses;
  };
  const auto names = [](const auto&... paths) {
    std::string text;
    ((text += (text.empty() ? "" : ", ") + paths.string()), ...);
    return text;
  };
  using Losses = std::vector<std::string>;
  BOOST_TEST(check({Kind::first}, 2, R"({"k":1})") ==
             (Losses{"region 'x' of " + names(c) + ", for that of " + names(b),
                     "connection 'x->x' of " + names(c) + ", for that of " + names(b),
                     "metadata 'k' of " + names(b, c, d) + ", for that of " + names(a)}));
  BOOST_TEST(check({Kind::last}, 2, R"({"k":2})") ==
             (Losses{"region 'x' of " + names(c) + ", for that of " + names(d),
                     "connection 'x->x' of " + names(c) + ", for that of " + names(d),
                     "metadata 'k' of " + names(a, c) + ", for that of " + names(d)}));
  BOOST_TEST(check({Kind::input, 2}, 3, R"({"k":3})") ==
             (Losses{"region 'x' of " + names(b, d) + ", for that of " + names(c),
                     "connection 'x->x' of " + names(b, d) + ", for that of " + names(c),
                     "metadata 'k' of " + names(a, b, d) + ", for that of " + names(c)}));
  // The preferred file has no such region.
  BOOST_CHECK_EXCEPTION(merge(all, files.output(), {{Kind::input, 0}}, fixed()), UsageError,
                        says(ErrorCode::duplicate, "region 'x' of " + names(b, c, d)));
  BOOST_CHECK_EXCEPTION(merge(all, files.output(), {{Kind::input, 4}}, fixed()), UsageError,
                        has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(regions_conflict_in_their_facts_and_texts_too) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "c"}) {
    Writer writer(folder / name, fixed_identity());
    writer.add_region({.name = "r",
                       .config_json = *name == 'b' ? R"({"k":2})" : R"({"k":1})",
                       .n_neurons = *name == 'c' ? 2u : 1u});
    writer.commit();
  }
  for (const char* other : {"b", "c"}) {
    BOOST_CHECK_EXCEPTION(merge({folder / "a", folder / other}, folder / "out"), UsageError,
                          says(ErrorCode::duplicate, "region 'r'"));
  }
}

BOOST_AUTO_TEST_CASE(metadata_are_the_first_ones_and_what_others_add) {
  Files files;
  BOOST_TEST(
      files.metadata_of({{R"({"z":1.50,"a":"x"})", {}}, {"", {}}, {R"({"a":"x","b":[ ]})", {}}}) ==
      R"({"z":1.50,"a":"x","b":[]})");
  BOOST_TEST(files.metadata_of({{"{}", {}}, {"{}", {}}}) == "{}");
}

BOOST_AUTO_TEST_CASE(growth_histories_are_put_in_order_of_their_steps) {
  Files files;
  const auto event = [](const char* region, int step) {
    return R"({"step":)" + std::to_string(step) + R"(,"region":")" + region +
           R"(","type":"growth"})";
  };
  const auto timed = [](const char* region) {
    return std::string(R"({"region":")") + region + R"(","type":"growth","timestamp":"t"})";
  };
  const auto history = [](const std::vector<std::string>& events) {
    std::string text;
    for (const std::string& one : events) text += (text.empty() ? "" : ",") + one;
    return R"({"growth_history":[)" + text + "]}";
  };
  const File a{history({timed("early"), event("a", 10), timed("after a"), event("a", 30)}), {}};
  const File b{history({event("b", 5), event("b", 10), event("b", 40)}), {}};
  BOOST_TEST(files.metadata_of({a, b}) ==
             history({timed("early"), event("b", 5), event("a", 10), timed("after a"),
                      event("b", 10), event("a", 30), event("b", 40)}));

  // A common past counts once, what one file has twice stays twice.
  const File c{history({event("a", 1), event("a", 1), event("c", 2)}), {}};
  const File d{history({event("a", 1), event("d", 2)}), {}};
  BOOST_TEST(files.metadata_of({c, d, c}) ==
             history({event("a", 1), event("a", 1), event("c", 2), event("d", 2)}));
  // One history, alone or in all files, is taken as it is.
  BOOST_TEST(files.metadata_of({{R"({"growth_history":[{"step":1.0}]})", {}},
                                {R"({"growth_history":[{"step": 1.0}]})", {}}}) ==
             R"({"growth_history":[{"step":1.0}]})");
  const File odd{R"({"growth_history":{"not":"an array"}})", {}};
  BOOST_TEST(files.metadata_of({{"{}", {}}, odd}) == odd.metadata);
  BOOST_CHECK_EXCEPTION(files.metadata_of({a, odd}), FormatError,
                        says(ErrorCode::bad_value, "1.thalia", "growth_history"));
}

BOOST_AUTO_TEST_CASE(without_inputs_or_with_absent_ones_there_is_no_output) {
  Files files;
  BOOST_CHECK_EXCEPTION(merge({}, files.output()), UsageError, has_code(ErrorCode::bad_argument));
  BOOST_CHECK_THROW(merge({files.add("a", {"", {}}), "/nowhere/b"}, files.output()), IoError);
  BOOST_TEST(!files.has_output());
}

BOOST_AUTO_TEST_SUITE_END()
