// From one phase to the next, whether a checkpoint fits a model, and records of earlier versions.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/store/store.h"
#include "python/value.h"
#include "thalia/store/transition.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Texts = std::vector<std::string>;
// By the version that each takes.
using Migrations = nb::typed<nb::dict, std::uint64_t, nb::any>;
// The name, dtype and shape of each tensor of a model.
using Model = ListOf<TupleWith<std::string, std::string, Shape>>;

std::vector<ExpectedTensor> model_of(const Model& model) {
  std::vector<ExpectedTensor> expected;
  for (const nb::handle tensor : model)
    expected.push_back({.name = nb::cast<std::string>(tensor[0]),
                        .shape = nb::cast<Shape>(tensor[2]),
                        .dtype = dtype_of(nb::cast<std::string>(tensor[1]))});
  return expected;
}

// The members of TransitionPlan in Python.
TransitionPlan plan_of(const Members& members) {
  TransitionPlan plan{.from = nb::cast<std::string>(members["from_phase"]),
                      .to = nb::cast<std::string>(members["to_phase"]),
                      .gate = nb::cast<std::string>(members["gate"]),
                      .carries = nb::cast<Texts>(members["carries"]),
                      .resets = nb::cast<Texts>(members["resets"]),
                      .anchor = nb::cast<Texts>(members["anchor"]),
                      .pool_anchors = nb::cast<Texts>(members["pool_anchors"]),
                      .seeds_pool = nb::cast<bool>(members["seeds_pool"])};
  for (const auto& [key, value] : nb::cast<nb::dict>(members["checks"]))
    plan.checks.push_back({nb::cast<std::string>(key), nb::cast<double>(value)});
  for (const nb::handle copy : nb::object(members["copies"]))
    plan.copies.push_back({nb::cast<std::string>(copy[0]), nb::cast<std::string>(copy[1])});
  return plan;
}

nb::tuple tuple_of(const Texts& texts) {
  return nb::tuple(text_list(texts));
}

Members members_of(const TransitionPlan& plan) {
  nb::dict checks;
  for (const TransitionCheck& check : plan.checks) checks[text_object(check.key)] = check.value;
  nb::list copies;
  for (const TransitionCopy& copy : plan.copies)
    copies.append(nb::make_tuple(text_object(copy.from), text_object(copy.to)));
  nb::dict members;
  members["from_phase"] = text_object(plan.from);
  members["to_phase"] = text_object(plan.to);
  members["gate"] = text_object(plan.gate);
  members["checks"] = checks;
  members["carries"] = tuple_of(plan.carries);
  members["resets"] = tuple_of(plan.resets);
  members["copies"] = nb::tuple(copies);
  members["anchor"] = tuple_of(plan.anchor);
  members["pool_anchors"] = tuple_of(plan.pool_anchors);
  members["seeds_pool"] = plan.seeds_pool;
  return members;
}

ListOf<Members> hydra_plans() {
  nb::list plans;
  for (const TransitionPlan& plan : hydra_transitions()) plans.append(members_of(plan));
  return plans;
}

TransitionResult begin_phase(const PyRunWriter& self, const Members& members,
                             std::uint64_t master_seed, const Model& model, bool force) {
  const std::shared_ptr<RunWriter> run = self.get();
  const TransitionPlan plan = plan_of(members);
  const TransitionOptions options{
      .master_seed = master_seed, .model = model_of(model), .force = force};
  return interruptible([&](const std::stop_token&) { return transition(*run, plan, options); });
}

ChainReader chain_of(const File& file) {
  return file.chain ? *file.chain : ChainReader::open(file.reader);
}

ModelFit fit_of(const File& file, const Model& model, const Texts& patterns) {
  const std::vector<ExpectedTensor> expected = model_of(model);
  const Unlocked unlocked;
  return compare_with_model(chain_of(file), expected, patterns);
}

void require_fit(const File& file, const Model& model, const Texts& patterns) {
  const std::vector<ExpectedTensor> expected = model_of(model);
  const Unlocked unlocked;
  check_strictly(chain_of(file), expected, patterns);
}

// The library decides which migrations there are to be, and in which order; the record itself stays
// Python's, which may hold what no Value does. Returns it, and the version that it had.
TupleWith<Members, std::uint64_t> migrate(const Members& given, std::uint64_t version,
                                          const std::string& version_key,
                                          const Migrations& migrations) {
  nb::dict record = nb::cast<nb::dict>(given.attr("copy")());
  const nb::object key = text_object(version_key);
  RecordSchema schema{.version = version, .version_key = version_key};
  for (const auto& [from, step] : migrations) {
    const auto migration = nb::borrow<nb::object>(step);
    schema.migrations.emplace(nb::cast<std::uint64_t>(from), [&, migration](Value& metadata) {
      record[key] = object_of(metadata.at(version_key));
      nb::object made = migration(record);
      if (!made.is_none()) record = nb::cast<nb::dict>(made);
    });
  }
  std::vector<HeldBuffer> none;
  Value metadata = Value::object();
  if (record.contains(key)) metadata.add(version_key, value_of(record[key], none));
  const MigratedRecord migrated = migrate_record(std::move(metadata), schema);
  record[key] = object_of(migrated.metadata.at(version_key));
  return nb::make_tuple(record, migrated.from);
}

void bind_transition_results(nb::module_& module) {
  bind_result<TransitionStep>(
      module, "TransitionStep", "A step of a transition.",
      field("name", &TransitionStep::name,
            "\"load\", \"check\", \"carry\", \"reset\", \"copy\", \"anchor\", \"pool\", "
            "\"seed\" or \"best\"."),
      field("what", &TransitionStep::what, "A sentence."));
  bind_result<TransitionResult>(
      module, "TransitionResult", "How a phase began.", field("steps", &TransitionResult::steps),
      field("start", &TransitionResult::start, "The file that the phase begins with."),
      field("anchor", &TransitionResult::anchor,
            "The file of the policy that is kept frozen, if the plan has one."),
      field("carried", &TransitionResult::carried, "REGION/NAME of tensors."),
      field("reset", &TransitionResult::reset, "Tensors, and members of the metadata."),
      field("seed", &TransitionResult::seed, "For the phase's random numbers."));
}

}  // namespace

void bind_phases(nb::module_& module, RunWriterClass& writer) {
  bind_transition_results(module);
  module.def("hydra_transitions", hydra_plans);
  module.def("compare_with_model", fit_of, nb::arg("file"), nb::arg("model"), nb::arg("patterns"));
  module.def("check_strictly", require_fit, nb::arg("file"), nb::arg("model"), nb::arg("patterns"));
  module.def("migrate_record", migrate, nb::arg("record"), nb::arg("version"),
             nb::arg("version_key"), nb::arg("migrations"));
  writer.def("transition", begin_phase, nb::arg("plan"), nb::arg("master_seed"), nb::arg("model"),
             nb::arg("force"));
}

}  // namespace thalia::python
