// What a version keeps of a checkpoint: all that inference needs, as it was.
#include <optional>

#include "store/pool/runs.h"
#include "thalia/state/brain.h"
#include "thalia/state/checkpoint.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_strip)

namespace {

using Names = std::vector<std::string>;

// A state with these tensors, each as "region/name".
struct Named {
  std::string region;
  std::string name;
  Role role = Role::weights;
};
StateSource state_of(const std::vector<Named>& tensors, const std::string& metadata = "{}") {
  StateSource state{.metadata_json = metadata, .regions = {}};
  for (const Named& named : tensors) {
    if (state.regions.empty() || state.regions.back().spec.name != named.region)
      state.regions.push_back({.spec = {.name = named.region}, .tensors = {}});
    const Tensor tensor = numbered_tensor(DType::f32, {2, 3}, 1);
    state.regions.back().tensors.push_back(
        {.spec = TensorSpec::of(named.name, tensor.layout(), named.role),
         .load = [tensor] { return tensor; }});
  }
  return state;
}

// A run of one phase that asks for nothing, with a pool.
RunConfig plain_config(std::vector<std::string> patterns = {}) {
  RunConfig config;
  config.phases = {{.name = "league"}};
  config.pool = PoolConfig{.phase = "league", .tensors = std::move(patterns)};
  return config;
}

class PlainRun {
 public:
  explicit PlainRun(const RunConfig& config) {
    create_run(path(), config);
    writer_.emplace(path(), quick_writing());
  }
  std::filesystem::path path() const { return folder_ / "run"; }
  RunWriter& writer() { return *writer_; }
  PoolMember add(const StateSource& state, std::uint64_t step = 1) {
    writer_->save("league", step, state);
    return Pool(*writer_).add("league", step, {}).member;
  }

 private:
  TemporaryFolder folder_;
  std::optional<RunWriter> writer_;
};

const std::string kTree =
    "{\"kept\":1,\"thalia_checkpoint\":{\"version\":1,\"tree\":{\"dict\":["
    "[\"model\",{\"ordered\":[[\"w\",{\"tensor\":\"model.w\",\"parameter\":true}]]}],"
    "[\"optimizer\",{\"dict\":[[\"state\",{\"dict\":[[0,{\"dict\":[[\"exp_avg\","
    "{\"tensor\":\"optimizer.state.0.exp_avg\"}]]}]]}],[\"lr\",0.5]]}],"
    "[\"list\",{\"list\":[{\"tensor\":\"optimizer.x\"},3]}],"
    "[\"gone\",{\"tuple\":[{\"array\":\"optimizer.x\"}]}],"
    "[\"step\",7]]}}}";

}  // namespace

BOOST_AUTO_TEST_CASE(what_only_training_needs_goes_and_the_rest_keeps_type_and_bytes) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::save(writer, 500, 9);
  const PoolMember member = Pool(writer).add("phase3", 500, {}).member;
  BOOST_TEST((tensor_names(member.path) == Names{"model_record/head", "model_record/stem"}));
  const Tensor stem = read_tensor(member.path, "model_record/stem");
  BOOST_TEST((stem.dtype() == DType::bf16));
  BOOST_TEST((stem == numbered_tensor(DType::bf16, {4, 3}, 9)));
  BOOST_TEST(
      (read_tensor(member.path, "model_record/head") == numbered_tensor(DType::f32, {3, 2}, 9)));
  BOOST_TEST(Reader::open(member.path).header().training_steps == 500u);
}

BOOST_AUTO_TEST_CASE(metadata_is_kept_and_says_which_version_it_is) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::save(writer, 500);
  Pool pool(writer);
  pool.add("phase3", 500, {});
  const Value metadata = metadata_of(pool.add("phase3", 500, {}).member.path);
  BOOST_TEST(metadata.at("checkpoint_version").as_uint64() == 1u);
  BOOST_TEST(metadata.at("global_step").as_uint64() == 500u);
  BOOST_TEST(metadata.at("pool").at("version").as_uint64() == 2u);
  BOOST_TEST(metadata.at("pool").at("source").at("file").as_string() ==
             "ckpt_phase3_step00000500.thalia");
  BOOST_TEST(metadata.at("pool").at("source").at("phase").as_string() == "phase3");
}

BOOST_AUTO_TEST_CASE(names_tell_what_optimizers_keep_where_a_file_does_not) {
  PlainRun run(plain_config());
  const PoolMember member = run.add(state_of({{"net", "layer.exp_avg"},
                                              {"net", "layer.weight"},
                                              {"net", "trace", Role::learning_state},
                                              {"opt", "optimizer.m"}}));
  BOOST_TEST((tensor_names(member.path) == Names{"net/layer.weight"}));
  BOOST_TEST(!Reader::open(member.path).find_region("opt"));
}

BOOST_AUTO_TEST_CASE(keys_of_the_record_tell_what_training_alone_needs) {
  PlainRun run(plain_config());
  const PoolMember member = run.add(state_of({{"Optimizer", "m"},
                                              {"lr_schedulers", "last"},
                                              {"net", "opt_state.0.x"},
                                              {"net", "optimal.w"},
                                              {"optimal", "w"},
                                              {"rng_state", "words", Role::other},
                                              {"scaler", "mean"}},
                                             R"({"config":{"optimizer":"adam"},"global_step":7,
    "grad_scaler":{"scale":2},"lr_schedulers":[{"last_epoch":3}],"optimizer_record":{"groups":[]},
    "rng_state":[1],"scaler":1,"schedule":"cosine"})"));
  BOOST_TEST((tensor_names(member.path) == Names{"net/optimal.w", "optimal/w", "scaler/mean"}));
  Value metadata = metadata_of(member.path);
  metadata.erase("pool");
  BOOST_TEST(to_json(metadata) ==
             R"({"config":{"optimizer":"adam"},"global_step":7,"scaler":1,"schedule":"cosine"})");
}

BOOST_AUTO_TEST_CASE(patterns_say_what_stays_where_they_are_given) {
  PlainRun run(plain_config({"net/*weight", "bias"}));
  const PoolMember member = run.add(state_of(
      {{"net", "a.weight"}, {"net", "bias"}, {"net", "exp_avg.weight"}, {"net", "other"}}));
  BOOST_TEST(
      (tensor_names(member.path) == Names{"net/a.weight", "net/bias", "net/exp_avg.weight"}));
}

BOOST_AUTO_TEST_CASE(a_pattern_that_fits_nothing_is_an_error_and_adds_nothing) {
  PlainRun run(plain_config({"net/*", "wieght"}));
  run.writer().save("league", 1, state_of({{"net", "weight"}}));
  Pool pool(run.writer());
  const auto error = expect<UsageError>([&] { pool.add("league", 1, {}); }, ErrorCode::not_found);
  BOOST_TEST(says(ErrorCode::not_found, "pool.tensors", "wieght", "weight")(error));
  BOOST_TEST(pool.view().next_version == 1u);
}

BOOST_AUTO_TEST_CASE(of_a_delta_the_state_is_stripped) {
  RunConfig config = plain_config();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 4};
  PlainRun run(config);
  run.writer().save("league", 1, state_of({{"net", "w"}, {"net", "exp_avg"}}));
  run.writer().save("league", 2, state_of({{"net", "w"}, {"net", "exp_avg"}}));
  BOOST_REQUIRE(run.writer().run().list("league").at(1).is_delta());
  const PoolMember member = Pool(run.writer()).add("league", 2, {}).member;
  BOOST_TEST(!Reader::open(member.path).delta_base());
  BOOST_TEST((read_tensor(member.path, "net/w") == numbered_tensor(DType::f32, {2, 3}, 1)));
}

BOOST_AUTO_TEST_CASE(a_tree_of_python_loses_what_is_gone_and_nothing_else) {
  PlainRun run(plain_config());
  const PoolMember member =
      run.add(state_of({{"state", "model.w"},
                        {"state", "optimizer.state.0.exp_avg", Role::optimizer},
                        {"state", "optimizer.x", Role::optimizer}},
                       kTree));
  const Value metadata = metadata_of(member.path);
  BOOST_TEST(metadata.at("kept").as_uint64() == 1u);
  BOOST_TEST(
      to_json(metadata.at("thalia_checkpoint").at("tree")) ==
      "{\"dict\":[[\"model\",{\"ordered\":[[\"w\",{\"tensor\":\"model.w\",\"parameter\":true}"
      "]]}],[\"list\",{\"list\":[null,3]}],"
      "[\"step\",7]]}");
}

BOOST_AUTO_TEST_CASE(a_record_within_a_tree_loses_what_only_training_needs) {
  const std::string tree =
      R"({"dict":[["model",{"dict":[["scheduler.w",{"tensor":"model.scheduler.w"}],)"
      R"(["rng",{"dict":[["w",{"tensor":"model.rng.w"}],["k",1]]}]]}],)"
      R"(["extra",{"dict":[["rng",{"tensor":"extra.rng"}],["sched",{"dict":[["epoch",3]]}],["note","n"]]}],)"
      R"(["state",{"dict":[["optimizer",{"dict":[["m",{"tensor":"state.m"}],["lr",1]]}],["rng_state",{"list":[7]}],)"
      R"(["scaler",{"dict":[["scale",2]]}]]}],)"
      R"(["agents",{"list":[{"dict":[["w",{"tensor":"agents.0.w"}],["optimizer",{"dict":[["exp_avg",{"tensor":"agents.0.exp_avg"}],)"
      R"(["groups",{"list":[1]}]]}],["scheduler",{"dict":[["epoch",3]]}]]}]}]]})";
  PlainRun run(plain_config());
  const PoolMember member =
      run.add(state_of({{"model", "model.scheduler.w"},
                        {"model", "model.rng.w"},
                        {"extra", "extra.rng", Role::other},
                        {"state", "state.m", Role::other},
                        {"agents", "agents.0.w"},
                        {"agents", "agents.0.exp_avg", Role::optimizer}},
                       R"({"thalia_checkpoint":{"version":1,"tree":)" + tree + "}}"));
  BOOST_TEST((tensor_names(member.path) ==
              Names{"agents/agents.0.w", "model/model.rng.w", "model/model.scheduler.w"}));
  BOOST_TEST(
      to_json(metadata_of(member.path).at("thalia_checkpoint").at("tree")) ==
      R"({"dict":[["model",{"dict":[["scheduler.w",{"tensor":"model.scheduler.w"}],)"
      R"(["rng",{"dict":[["w",{"tensor":"model.rng.w"}],["k",1]]}]]}],)"
      R"(["extra",{"dict":[["note","n"]]}],["state",{"dict":[]}],)"
      R"(["agents",{"list":[{"dict":[["w",{"tensor":"agents.0.w"}],["scheduler",{"dict":[["epoch",3]]}]]}]}]]})");
}

BOOST_AUTO_TEST_CASE(trees_of_regions_lose_what_only_training_needs) {
  const auto tree = [](const std::string& components) {
    return R"({"thalia_state":{"version":1,"components":)" + components + "}}";
  };
  StateSource state = state_of({{"brain:state", "m", Role::other},
                                {"brain:state", "theta", Role::oscillator},
                                {"net", "w"},
                                {"net", "trace", Role::learning_state},
                                {"net", "p", Role::learning_state},
                                {"net", "state.0.exp_avg", Role::optimizer}});
  state.regions[0].spec.metadata_json =
      tree(R"({"optimizer":{"m":{"_type":"tensor","_name":"m"},"lr":1},"scheduler":{"epoch":3},)"
           R"("oscillators":{"theta":{"_type":"tensor","_name":"theta"}},"note":"n"})");
  state.regions[1].spec.metadata_json = tree(
      R"({"weights":{"w":{"_type":"tensor","_name":"w"}},)"
      R"("learning_state":{"e":{"_type":"python","_kind":"numpy","_value":{"_type":"tensor","_name":"trace"}},)"
      R"("p":{"_type":"python","_kind":"tuple","_value":[{"_type":"tensor","_name":"p"},1]}},)"
      R"("optimizer":{"state":{"_type":"python","_kind":"dict","_value":[[0,{"exp_avg":{"_type":"tensor","_name":"state.0.exp_avg"}}]]},)"
      R"("param_groups":[{"lr":1}]},"scheduler":{"epoch":3}})");
  PlainRun run(plain_config());
  const Reader reader = Reader::open(run.add(state).path);
  BOOST_TEST(reader.region("brain:state").tensor_count() == 1u);
  BOOST_TEST(std::string(reader.region("brain:state").metadata_json()) ==
             tree(R"({"oscillators":{"theta":{"_type":"tensor","_name":"theta"}},"note":"n"})"));
  BOOST_TEST(reader.region("net").tensor_count() == 1u);
  BOOST_TEST(
      std::string(reader.region("net").metadata_json()) ==
      tree(R"({"weights":{"w":{"_type":"tensor","_name":"w"}},)"
           R"("learning_state":{"p":{"_type":"python","_kind":"tuple","_value":[null,1]}}})"));
}

BOOST_AUTO_TEST_CASE(a_tree_that_loses_nothing_stays_as_it_is) {
  PlainRun run(plain_config({"*"}));
  const PoolMember member = run.add(state_of(
      {{"state", "model.w"}, {"state", "optimizer.state.0.exp_avg"}, {"state", "optimizer.x"}},
      kTree));
  Value metadata = metadata_of(member.path);
  metadata.erase("pool");
  BOOST_TEST(to_json(metadata) == to_json(parse_json(kTree)));
}

BOOST_AUTO_TEST_CASE(a_brain_comes_back_without_its_learning_state) {
  PlainRun run(plain_config());
  BrainState brain;
  for (const char* const name : {"cortex", "hippocampus"}) {
    BrainRegion region;
    region.weights()["w_ff"] = numbered_tensor(DType::f32, {3, 3}, 2);
    region.learning_state()["eligibility"] = numbered_tensor(DType::f32, {3, 3}, 3);
    brain.regions.add(name, std::move(region));
  }
  run.writer().save("league", 1, brain);
  const PoolMember member = Pool(run.writer()).add("league", 1, {}).member;
  const BrainState loaded = BrainCheckpoint::load(member.path);
  for (const char* const name : {"cortex", "hippocampus"}) {
    const BrainRegion& region = loaded.regions.at(name);
    BOOST_TEST((region.weights().at("w_ff").as_tensor() == numbered_tensor(DType::f32, {3, 3}, 2)));
    BOOST_TEST(region.learning_state().find("eligibility") == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(a_connection_goes_with_its_weights_and_keeps_its_ends_with_them) {
  StateSource state = state_of({{"a", "w"}, {"b", "w"}});
  const Tensor matrix = numbered_tensor(DType::f32, {2, 2}, 4);
  const TensorSource weights{.spec = TensorSpec::of("", matrix.layout()),
                             .load = [matrix] { return matrix; }};
  state.connections.push_back({.source = "a", .target = "b", .weights = weights});
  state.connections.push_back({.source = "b", .target = "b", .weights = weights});
  PlainRun run(plain_config({"a.*w", "connections.b->b.weights"}));
  const Reader reader = Reader::open(run.add(state).path);
  BOOST_TEST(reader.connection_count() == 1u);
  BOOST_TEST(reader.connection(0).source == "b");
  BOOST_TEST(reader.region("b").tensor_count() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
