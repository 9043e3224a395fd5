// The log of a pruning as a tree of values and tensors, which an application may save with the
// state and load years later: docs/format/growth.md, "Events and logs". What is read here may come
// from a file, so that each member is checked for its kind before it is used.

#include "state/growth/prune_log.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia::state {
namespace {

// Checked by undo_pruning().
constexpr std::uint64_t kVersion = 1;

[[noreturn]] void fail_log(std::string_view member, std::string bound) {
  fail_argument(ErrorCode::bad_argument, "log." + std::string(member), "another value",
                std::move(bound), "this is no log of a pruning");
}

// nullopt if there is none: negative, with a fraction, or no number at all.
std::optional<std::uint64_t> whole_number(const Value* value) {
  if (value == nullptr || value->kind() != Value::Kind::number) return std::nullopt;
  const std::string& text = value->number_text();
  std::uint64_t number = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stopped != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Tensor& tensor_in(BrainEdit& edit, const TensorPlace& place) {
  if (place.region.empty()) {
    BrainConnection& connection = edit.connectivity().at(place.source, place.target);
    if (place.path == "weights") return connection.weights;
    if (place.path == "delays" && connection.delays) return *connection.delays;
  } else {
    Value* found = edit.region(place.region).find_path(place.path);
    if (found != nullptr && found->is_tensor()) return found->as_tensor();
  }
  throw UsageError(ErrorCode::not_found, "no such tensor",
                   {.region = printable(place.owner()), .tensor = printable(place.path)});
}

Value new_log(std::string_view kind, std::string_view region, std::uint64_t step) {
  Value log = Value::object();
  log["version"] = kVersion;
  log["kind"] = kind;
  log["region"] = region;
  log["step"] = step;
  log["tensors"] = Value::array();
  return log;
}

Value& add_place(Value& log, const TensorPlace& place) {
  Value entry = Value::object();
  if (place.region.empty()) {
    entry["source"] = place.source;
    entry["target"] = place.target;
  } else {
    entry["region"] = place.region;
  }
  entry["path"] = place.path;
  log["tensors"].push_back(std::move(entry));
  return log["tensors"].elements().back();
}

Tensor index_tensor(std::span<const std::uint64_t> indices) {
  return Tensor::copy_of<std::uint64_t>({indices.size()}, indices);
}

const Value& require_member(const Value& entry, std::string_view member, Value::Kind kind) {
  const Value* found = entry.find(member);
  if (found == nullptr || found->kind() != kind)
    fail_log(member, "a value of kind " + std::string(kind_name(kind)));
  return *found;
}

TensorPlace place_of(const Value& entry) {
  const auto text = [&](std::string_view member) {
    return require_member(entry, member, Value::Kind::string).as_string();
  };
  TensorPlace place{.path = text("path")};
  if (entry.find("region") != nullptr) {
    place.region = text("region");
  } else {
    place.source = text("source");
    place.target = text("target");
  }
  return place;
}

std::vector<std::uint64_t> indices_of(const Value& entry, std::string_view member) {
  const Tensor& tensor = require_member(entry, member, Value::Kind::tensor).as_tensor();
  if (tensor.dtype() != DType::u64 || !tensor.is_dense() || tensor.shape().rank() != 1)
    fail_log(member, "u64 of one dimension");
  const auto values = tensor.as<std::uint64_t>();
  for (std::size_t i = 1; i < values.size(); ++i) {
    // axis.cc and undo_pruning.cc rely on it.
    if (values[i - 1] >= values[i]) fail_log(member, "ascending indices");
  }
  return {values.begin(), values.end()};
}

// What is not known to be settled counts as changing: pruning waits.
std::string task_change_reason(const BrainState& brain, bool is_changing, std::uint64_t window) {
  if (is_changing) return "the task is changing";
  const Value* change = brain.state.find("task_change");
  if (change == nullptr) return "no task_change tells when the task last changed";
  const Value* active = change->find("active");
  if (active == nullptr || active->kind() != Value::Kind::boolean)
    return "task_change.active does not tell whether the task is changing";
  if (active->as_bool()) return "the task is changing";
  const auto changed = whole_number(change->find("step"));
  if (!changed) return "task_change.step does not tell when the task last changed";
  // A step in the future is no step that can be trusted.
  if (*changed > brain.training_steps || brain.training_steps - *changed < window) {
    return fmt::format("the task changed at step {}, less than {} steps ago", *changed, window);
  }
  return {};
}

}  // namespace thalia::state
