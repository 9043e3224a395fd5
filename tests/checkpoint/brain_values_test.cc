// What of a state is read and written for states of Python, and by those that read texts alone.
#include "boost_test.h"
#include "state/brain/brain_sample.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/reader.h"
#include "thalia/state/checkpoint.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(brain_values)

BOOST_AUTO_TEST_CASE(validate_tells_of_a_state_that_cannot_be_made) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const auto issue = [&](const std::string& metadata, const std::string& region) {
    Writer writer(path);
    writer.add_region({.name = "r", .metadata_json = region});
    writer.set_metadata(metadata);
    writer.commit();
    const BrainValidation found = BrainCheckpoint::validate(path);
    return found.valid ? "" : found.issues.at(0);
  };
  BOOST_TEST(issue("{}", "{}") == "");
  const std::string tree = R"({"thalia_state": {"version": 1, "components": {"a": {"_type": )";
  BOOST_TEST(issue("{}", tree + R"("tensor", "_name": "w"}}}})").find("_name") !=
             std::string::npos);
  BOOST_TEST(issue("{}", tree + R"("number", "_text": "1"}}}})").find("_text") !=
             std::string::npos);
  BOOST_TEST(issue(R"({"growth_history": 5})", "{}").find("growth_history") != std::string::npos);
  // Anybody who asks for the events is told, too.
  BOOST_CHECK_THROW(BrainCheckpoint::info(path), FormatError);
}

BOOST_AUTO_TEST_CASE(a_state_without_its_tensors_is_read_from_the_texts) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const auto delta = folder.path() / "b.thalia";
  BrainState brain = sample_brain();
  BrainCheckpoint::save(brain, path);
  BrainCheckpoint::save_delta(brain, delta, path);
  BOOST_TEST(!BrainCheckpoint::info(path).is_delta);
  BOOST_TEST(BrainCheckpoint::info(delta).is_delta);
  std::filesystem::remove(path);  // a base is read for tensors alone
  const BrainState outline = BrainCheckpoint::load(delta, {.read_tensors = false});
  BOOST_TEST(outline.regions.names() == brain.regions.names(), boost::test_tools::per_element());
  for (const std::string& name : brain.regions.names()) {
    const BrainRegion& region = outline.regions.at(name);
    BOOST_TEST(region.n_neurons == brain.regions.at(name).n_neurons);
    BOOST_TEST((region.metadata == brain.regions.at(name).metadata));
    BOOST_TEST((region.config() == brain.regions.at(name).config()));
    std::size_t tensors = 0;
    for_each_tensor(region.state, [&](const std::string&, const Tensor& tensor) {
      ++tensors;
      BOOST_TEST(tensor.bytes().empty());
    });
    std::size_t expected = 0;
    for_each_tensor(brain.regions.at(name).state,
                    [&](const std::string&, const Tensor&) { ++expected; });
    BOOST_TEST(tensors == expected);
  }
}

BOOST_AUTO_TEST_CASE(the_policy_of_an_earlier_file_is_not_the_new_ones) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  BrainState brain;
  brain.regions.add("r").weights()["half"] = Tensor::zeros(DType::f16, {4});
  brain.regions.at("r").weights()["whole"] = Tensor::zeros(DType::f32, {4});
  BrainCheckpoint::save(brain, path, {.precision_policy = parse_precision_policy("fp16")});
  const BrainState loaded = BrainCheckpoint::load(path);
  BOOST_TEST((loaded.regions == brain.regions));
  // Saved as it is, it comes back as it is: f16 was widened where the metadata named a policy.
  BrainCheckpoint::save(loaded, path);
  BOOST_TEST((BrainCheckpoint::load(path).regions == brain.regions));
  BOOST_TEST((BrainCheckpoint::info(path).metadata.find("precision_policy") == nullptr));
}

BOOST_AUTO_TEST_CASE(tensors_of_python_values_have_the_names_of_the_values) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const auto python = [](const char* kind, Value value) {
    Value node = Value::object();
    node["_type"] = "python";
    node["_kind"] = kind;
    node["_value"] = std::move(value);
    return node;
  };
  const Tensor tensor = Tensor::zeros(DType::f32, {2, 2});
  Value pair = Value::array();
  pair.push_back(0);
  pair.push_back(python("numpy", tensor));
  Value pairs = Value::array();
  pairs.push_back(pair);
  Value list = Value::array();
  list.push_back(tensor);
  BrainState brain;
  BrainRegion& region = brain.regions.add("r");
  Value& optimizer = region.state["adam"];
  optimizer["state"] = python("dict", pairs);
  optimizer["param_groups"] = Value::array();
  region.state["layer"]["weight"] = tensor;
  region.state["seen"] = python("tuple", list);
  region.config()["size"] = python("size", Value::array());
  BrainCheckpoint::save(brain, path, {.roles_by_name = true});
  const Reader reader = Reader::open(path);
  const RegionView view = reader.region(0);
  BOOST_TEST((view.at("state.0").role() == Role::optimizer));
  BOOST_TEST((view.at("weight").role() == Role::weights));
  BOOST_TEST((view.at("seen[0]").role() == Role::weights));
  BOOST_TEST(view.config_json().find("python") == std::string_view::npos);
  BOOST_TEST((BrainCheckpoint::load(path).regions == brain.regions));
  BrainCheckpoint::save(brain, path);
  BOOST_TEST((Reader::open(path).region(0).at("weight").role() == Role::other));
  BOOST_TEST((Reader::open(path).region(0).at("state.0").role() == Role::optimizer));
}

BOOST_AUTO_TEST_SUITE_END()
