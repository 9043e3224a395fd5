// merge() with prefixes, and extract_brain().
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "boost_test.h"
#include "checkpoint/checkpoints.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/diff.h"
#include "thalia/state/metadata.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(ensembles)

namespace {

namespace fs = std::filesystem;

ConvertOptions stamped(SaveOptions save = {}) {
  return {.save = fixed_identity(std::move(save))};
}

Tensor matrix(std::uint64_t rows, std::uint64_t columns, float value) {
  Tensor tensor = Tensor::zeros(DType::f32, {rows, columns});
  std::ranges::fill(tensor.mutable_as<float>(), value);
  return tensor;
}

// Two regions and a pathway; connections of which one is stored as it was not; a growth history.
BrainState two_regions(float value, std::uint64_t steps) {
  BrainState brain;
  brain.training_steps = steps;
  for (const char* name : {"cortex", "thalamus"}) {
    BrainRegion region{.n_neurons = 40};
    region.weights()["w_ff"] = Value(matrix(40, 40, value));
    region.metadata["axes"] = parse_json(
        R"({"weights.w_ff":["neurons","source:cortex"],"weights.other":["source:retina",7]})");
    brain.regions.add(name, std::move(region));
  }
  BrainRegion pathway{.n_neurons = 2};
  pathway.weights()["w"] = Value(matrix(2, 2, value));
  pathway.metadata["axes"] = parse_json(R"({"weights.w":["neurons","source:pathway:p"]})");
  brain.pathways.add("p", std::move(pathway));
  brain.state["dopamine"] = Value(0.5);
  brain.connectivity.add(
      {.source = "cortex", .target = "thalamus", .weights = matrix(40, 40, value)});
  brain.connectivity.add({.source = "thalamus", .target = "cortex", .weights = matrix(40, 40, 0)});
  // What names no region comes first, as it does when the brain comes out of an ensemble.
  brain.metadata = parse_json(R"({"custom":{"a":1.50},"growth_history":["no event",{"step":3},)"
                              R"({"step":1,"region":"cortex","neurons_added":2},)"
                              R"({"step":2,"region":"pathway:p","neurons_added":1}]})");
  return brain;
}

struct Files {
  TemporaryFolder folder;
  fs::path at(const char* name) const { return folder / name; }
  fs::path brain(const char* name, float value, std::uint64_t steps) const {
    BrainCheckpoint::save(two_regions(value, steps), at(name), {.save = fixed_identity()});
    return at(name);
  }
  ConvertResult merged(const std::vector<fs::path>& inputs,
                       const std::vector<std::string>& prefixes,
                       const std::string& metadata = {}) const {
    return merge(inputs, at("all"), {.prefixes = prefixes, .metadata_json = metadata}, stamped());
  }
  Reader all() const { return Reader::open(at("all")); }
};

void check_same(const fs::path& a, const fs::path& b) {
  const Reader one = Reader::open(a);
  const Reader other = Reader::open(b);
  BOOST_TEST(diff(one, other).same());
  BOOST_TEST(one.metadata_json() == other.metadata_json());
  BOOST_TEST(one.header().training_steps == other.header().training_steps);
  BOOST_TEST((describe(one) == describe(other)));
}

}  // namespace

BOOST_AUTO_TEST_CASE(brains_are_apart_and_come_out_as_they_went_in) {
  const Files files;
  const auto a = files.brain("a", 1, 100);
  const auto b = files.brain("b", 2, 300);
  const ConvertResult result = files.merged({a, b, a}, {"left/", "right/", "again/"});
  BOOST_TEST(result.losses.empty());
  BOOST_TEST(result.tensors == 3 * Reader::open(a).tensor_count());
  const Reader all = files.all();
  BOOST_TEST(all.header().training_steps == 300u);
  BOOST_TEST(all.region_count() == 13u);  // four of each, and what is said of connections
  BOOST_TEST(all.connection_count() == 6u);
  BOOST_TEST(all.region("pathway:right/p").at("w").as<float>()[0] == 2);
  BOOST_TEST(all.find_connection("left/thalamus", "left/cortex").has_value());
  BOOST_TEST(!all.find_connection("left/cortex", "right/thalamus").has_value());
  BOOST_TEST(all.region("left/cortex")
                 .metadata_json()
                 .find(R"("weights.w_ff":["neurons","source:left/cortex"])") !=
             std::string_view::npos);
  BOOST_TEST(
      all.region("left/cortex").metadata_json().find(R"("weights.other":["source:retina",7])") !=
      std::string_view::npos);
  BOOST_TEST(all.region("pathway:left/p").metadata_json().find(R"("source:pathway:left/p")") !=
             std::string_view::npos);
  describe(files.at("all"));  // verifies
  BOOST_TEST(BrainCheckpoint::validate(files.at("all")).valid);
  BOOST_TEST(ensemble_prefixes(parse_json(all.metadata_json())) ==
             (std::vector<std::string>{"left/", "right/", "again/"}));
  for (const auto& [prefix, file] : {std::pair{"left/", a}, {"right/", b}, {"again/", a}}) {
    extract_brain(files.at("all"), prefix, files.at("one"), stamped({.output = {.replace = true}}));
    check_same(file, files.at("one"));
  }
}

BOOST_AUTO_TEST_CASE(one_brain_is_loaded_as_if_it_were_alone) {
  const Files files;
  const auto a = files.brain("a", 1, 100);
  files.merged({a, files.brain("b", 2, 300)}, {"left/", "right/"});
  const BrainState alone = BrainCheckpoint::load(a);
  for (const bool lazy : {false, true}) {
    const BrainState brain =
        BrainCheckpoint::load(files.at("all"), {.brain = "left/", .lazy = lazy});
    BOOST_TEST(brain.regions.names() == alone.regions.names());
    BOOST_TEST(brain.pathways.names() == alone.pathways.names());
    for (const std::string& name : alone.regions.names()) {
      BOOST_TEST((brain.regions.at(name).state == alone.regions.at(name).state));
      BOOST_TEST((brain.regions.at(name).metadata == alone.regions.at(name).metadata));
    }
    BOOST_TEST((brain.state == alone.state));
    BOOST_TEST((brain.state_metadata == alone.state_metadata));
    BOOST_TEST((brain.metadata == alone.metadata));
    BOOST_TEST(brain.training_steps == 100u);
    BOOST_TEST(brain.connectivity.size() == 2u);
    // Zeros are stored as csr and come back dense: what the file says of them is found by number.
    BOOST_TEST(brain.connectivity.at("thalamus", "cortex").weights.is_dense());
    BOOST_TEST((brain.connectivity.at("thalamus", "cortex").weights.shape() == Shape({40, 40})));
  }
  BrainLoadReport report;
  const BrainState part =
      BrainCheckpoint::load(files.at("all"), {.regions = {"cortex"}, .brain = "right/"}, &report);
  BOOST_TEST(part.regions.names() == (std::vector<std::string>{"cortex"}));
  BOOST_TEST(report.connections_left_out ==
             (std::vector<std::string>{"cortex->thalamus", "thalamus->cortex"}));
  BOOST_CHECK_EXCEPTION(
      BrainCheckpoint::load(files.at("all"), {.regions = {"left/cortex"}, .brain = "left/"}),
      UsageError, has_code(ErrorCode::not_found));
}

BOOST_AUTO_TEST_CASE(any_file_may_be_a_brain) {
  const Files files;
  write_rich_checkpoint(files.at("rich"), fixed_identity({.compression = {.codec = Codec::zstd}}));
  const auto a = files.brain("a", 1, 100);
  const auto b = files.brain("b", 2, 300);
  BrainCheckpoint::save_delta(two_regions(2, 300), files.at("b.delta"), a,
                              {.brain = {.save = fixed_identity()}});
  files.merged({files.at("rich"), files.at("b.delta"), a}, {"x.", "y.", "z."});
  extract_brain(files.at("all"), "x.", files.at("one"), stamped());
  BOOST_TEST(diff(Reader::open(files.at("rich")), Reader::open(files.at("one"))).same());
  extract_brain(files.at("all"), "y.", files.at("two"), stamped());
  check_same(b, files.at("two"));
}

BOOST_AUTO_TEST_CASE(ensembles_are_brains_of_ensembles) {
  const Files files;
  const auto a = files.brain("a", 1, 100);
  const auto b = files.brain("b", 2, 300);
  files.merged({a, b}, {"left/", "right/"}, R"({"custom":{"n":4}})");
  fs::rename(files.at("all"), files.at("inner"));
  files.merged({files.at("inner"), a}, {"p", "q"});
  BOOST_TEST(files.all().find_region("pleft/brain:state").has_value());
  extract_brain(files.at("all"), "p", files.at("inner again"), stamped());
  check_same(files.at("inner"), files.at("inner again"));
  extract_brain(files.at("inner again"), "right/", files.at("b again"), stamped());
  check_same(b, files.at("b again"));
}

BOOST_AUTO_TEST_CASE(metadata_of_the_file_and_its_history_are_told) {
  const Files files;
  const auto a = files.brain("a", 1, 100);
  files.merged({a, a}, {"left/", "right/"},
               R"({"custom":{"n":4},"growth_history":[{"step":9,"region":"none"}]})");
  const BrainInfo info = BrainCheckpoint::info(files.at("all"));
  BOOST_TEST(info.metadata.at("custom").at("n").as_int64() == 4);
  std::vector<std::string> regions;
  for (const GrowthEvent& event : info.growth_history) regions.push_back(event.region);
  BOOST_TEST(regions == (std::vector<std::string>{"none", "left/cortex", "pathway:left/p",
                                                  "right/cortex", "pathway:right/p"}));
  BOOST_TEST(info.metadata.at("version").as_string() == "1.0.0");
}

BOOST_AUTO_TEST_CASE(prefixes_that_cannot_be) {
  const Files files;
  const auto a = files.brain("a", 1, 100);
  const auto refuses = [&](const std::vector<std::string>& prefixes, ErrorCode code) {
    BOOST_CHECK_EXCEPTION(files.merged({a, a}, prefixes), UsageError, has_code(code));
    BOOST_TEST(!fs::exists(files.at("all")));
  };
  refuses({"x"}, ErrorCode::bad_argument);
  refuses({"x", "y", "z"}, ErrorCode::bad_argument);
  refuses({"x", ""}, ErrorCode::bad_argument);
  refuses({"x", "x"}, ErrorCode::duplicate);
  refuses({"left/", "left"}, ErrorCode::duplicate);
  refuses({"x", "\xff"}, ErrorCode::bad_argument);
  refuses({"x", "pathway:"}, ErrorCode::bad_argument);
  refuses({"x", std::string("y\0", 2)}, ErrorCode::bad_argument);
  BOOST_CHECK_EXCEPTION(
      merge({a, a}, files.at("all"),
            {.preference = {MergePreference::Kind::last}, .prefixes = {"x", "y"}}),
      UsageError, has_code(ErrorCode::bad_argument));
  BOOST_CHECK_EXCEPTION(merge({a, a}, files.at("all"), {.metadata_json = "{}"}), UsageError,
                        has_code(ErrorCode::bad_argument));
  BOOST_CHECK_THROW(files.merged({a, a}, {"x", "y"}, "[]"), UsageError);
  BOOST_CHECK_THROW(files.merged({a, a}, {"x", "y"}, R"({"growth_history":{}})"), UsageError);
  BOOST_CHECK_THROW(files.merged({a, files.at("missing")}, {"x", "y"}), IoError);
  BOOST_TEST(!fs::exists(files.at("all")));
  // A region "state" would get the name of the brain-wide region.
  Writer writer(files.at("odd"), fixed_identity());
  writer.add_region({.name = "state"});
  writer.commit();
  BOOST_CHECK_EXCEPTION(files.merged({a, files.at("odd")}, {"x", "brain:"}), UsageError,
                        says(ErrorCode::bad_argument, "'brain:state'"));
  BOOST_TEST(!fs::exists(files.at("all")));
}

BOOST_AUTO_TEST_CASE(what_is_no_ensemble_or_a_damaged_one) {
  const Files files;
  const auto a = files.brain("a", 1, 100);
  const auto out = files.at("out");
  BOOST_CHECK_EXCEPTION(extract_brain(a, "x", out), UsageError, has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(BrainCheckpoint::load(a, {.brain = "x"}), UsageError,
                        has_code(ErrorCode::wrong_state));
  files.merged({a}, {"left/"});
  BOOST_CHECK_EXCEPTION(extract_brain(files.at("all"), "letf/", out), UsageError,
                        says(ErrorCode::not_found, "did you mean 'left/'"));
  const auto told = [&](const char* ensemble) {
    Writer writer(files.at("odd"), fixed_identity({.output = {.replace = true}}));
    writer.set_metadata(std::string(R"({"thalia_ensemble":)") + ensemble + "}");
    writer.commit();
    return files.at("odd");
  };
  BOOST_CHECK_EXCEPTION(extract_brain(told(R"({"version":2,"brains":[]})"), "x", out),
                        UnsupportedError, has_code(ErrorCode::unsupported_version));
  BOOST_CHECK_EXCEPTION(extract_brain(told(R"({"brains":[]})"), "x", out), UnsupportedError,
                        has_code(ErrorCode::unsupported_version));
  for (const char* ensemble :
       {"3", "null", R"({"version":1})", R"({"version":1,"brains":{}})",
        R"({"version":1,"brains":[3]})", R"({"version":1,"brains":[{"prefix":"x"}]})",
        R"({"version":1,"brains":[{"prefix":7,"training_steps":1,"metadata":{}}]})",
        R"({"version":1,"brains":[{"prefix":"","training_steps":1,"metadata":{}}]})",
        R"({"version":1,"brains":[{"prefix":"x","training_steps":-1,"metadata":{}}]})",
        R"({"version":1,"brains":[{"prefix":"x","training_steps":1.5,"metadata":{}}]})",
        R"({"version":1,"brains":[{"prefix":"x","training_steps":1,"metadata":[]}]})",
        R"({"version":1,"brains":[{"prefix":"x","training_steps":1,"metadata":{}},)"
        R"({"prefix":"xy","training_steps":1,"metadata":{}}]})"}) {
    BOOST_CHECK_EXCEPTION(extract_brain(told(ensemble), "x", out), FormatError,
                          says(ErrorCode::bad_value, "thalia_ensemble", "odd"));
  }
  BOOST_TEST(!fs::exists(out));
  // A brain without regions is one.
  extract_brain(told(R"({"version":1,"brains":[{"prefix":"x","training_steps":7,"metadata":{}}]})"),
                "x", out);
  BOOST_TEST(Reader::open(out).header().training_steps == 7u);
}

BOOST_AUTO_TEST_SUITE_END()
