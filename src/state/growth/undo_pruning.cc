// Puts back what a pruning removed, bit for bit, by its log. The log may come from a file and the
// state may have changed since: each entry is checked against the tensor as it is now. Changes
// since the pruning stay, but for the removed places themselves. The brain changes only after the
// whole log fitted.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "state/growth/prune_log.h"
#include "state/growth/record.h"
#include "state/growth/region.h"
#include "state/tensor/axis.h"
#include "state/tensor/sparse_elements.h"
#include "thalia/state/growth.h"

namespace thalia {
namespace {

[[noreturn]] void fail_log(std::string_view member, std::string value, std::string bound) {
  fail_argument(ErrorCode::bad_argument, "log." + std::string(member), std::move(value),
                std::move(bound), "this is no log of a pruning");
}

// Stored elements with those of the log in their places.
state::SparseElements merged(const state::SparseElements& now,
                             const std::vector<std::uint64_t>& positions, ByteSpan values,
                             std::size_t width) {
  state::SparseElements all;
  const auto add = [&](std::uint64_t position, const std::byte* value) {
    all.positions.push_back(position);
    all.values.insert(all.values.end(), value, value + width);
  };
  std::size_t i = 0;
  for (std::size_t k = 0; k < positions.size(); ++k) {
    for (; i < now.positions.size() && now.positions[i] < positions[k]; ++i)
      add(now.positions[i], now.values.data() + i * width);
    // A synapse that grew again at the place gives way to the one of the log.
    if (i < now.positions.size() && now.positions[i] == positions[k]) ++i;
    add(positions[k], values.data() + k * width);
  }
  for (; i < now.positions.size(); ++i) add(now.positions[i], now.values.data() + i * width);
  return all;
}

void put_back(Tensor& tensor, const Value& entry) {
  // Ascend strictly (indices_of() checks it), so that the last is the largest.
  const std::vector<std::uint64_t> positions = state::indices_of(entry, "positions");
  const Tensor& values = state::require_member(entry, "values", Value::Kind::tensor).as_tensor();
  if (values.dtype() != tensor.dtype() || !values.is_dense() ||
      values.shape() != Shape{positions.size()} ||
      (!positions.empty() && positions.back() >= tensor.element_count())) {
    fail_argument(ErrorCode::size_mismatch, "log.values", values.shape().to_string(),
                  fmt::format("{} elements of a {}{}", positions.size(), dtype_name(tensor.dtype()),
                              tensor.shape().to_string()));
  }
  const std::size_t width = dtype_bits(tensor.dtype()) / 8;
  if (!tensor.is_dense()) {
    tensor = state::sparse_tensor(
        tensor, tensor.shape(),
        merged(state::sparse_elements(tensor), positions, values.bytes(), width));
    return;
  }
  const MutableByteSpan bytes = tensor.mutable_bytes();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    std::memcpy(bytes.data() + positions[i] * width, values.bytes().data() + i * width, width);
  }
}

// Backwards: of an element that two entries name, the first one took what was there.
std::uint64_t undo_synapses(state::BrainEdit& edit, const Value& tensors) {
  std::uint64_t count = 0;
  const auto& entries = tensors.elements();
  for (std::size_t i = entries.size(); i-- > 0;) {
    const Value& entry = entries[i];
    put_back(state::tensor_in(edit, state::place_of(entry)), entry);
    count += state::indices_of(entry, "positions").size();
  }
  return count;
}

// The reverse order of the removal: an axis that was cut second was cut from the smaller tensor.
std::uint64_t undo_neurons(state::BrainEdit& edit, const Value& log, const Value& tensors) {
  const std::vector<std::uint64_t> neurons = state::indices_of(log, "neurons");
  const auto& entries = tensors.elements();
  for (std::size_t i = entries.size(); i-- > 0;) {
    Tensor& tensor = state::tensor_in(edit, state::place_of(entries[i]));
    const std::uint64_t axis =
        state::require_member(entries[i], "axis", Value::Kind::number).as_uint64();
    if (axis >= tensor.shape().rank()) {
      fail_log("tensors.axis", std::to_string(axis),
               fmt::format("below {}", tensor.shape().rank()));
    }
    const Tensor& taken =
        state::require_member(entries[i], "taken", Value::Kind::tensor).as_tensor();
    tensor = state::with_indices(tensor, static_cast<unsigned>(axis), neurons, taken);
  }
  const auto count = static_cast<std::int64_t>(neurons.size());
  const std::string& region = state::require_member(log, "region", Value::Kind::string).as_string();
  state::change_neurons(edit.region(region), count);
  for (const Value& target : state::require_member(log, "targets", Value::Kind::array).elements())
    state::change_inputs(edit.region(target.as_string()), count);
  return neurons.size();
}

}  // namespace

void undo_pruning(BrainState& brain, const Value& log) {
  const Value& version = state::require_member(log, "version", Value::Kind::number);
  if (version.number_text() != "1") fail_log("version", version.number_text(), "1");
  const std::string& kind = state::require_member(log, "kind", Value::Kind::string).as_string();
  const Value& tensors = state::require_member(log, "tensors", Value::Kind::array);
  if (kind != "synapses" && kind != "neurons")
    fail_log("kind", printable(kind, 40), "synapses or neurons");
  state::BrainEdit edit(brain);
  GrowthEvent event;
  event.step = brain.training_steps;
  event.region = state::require_member(log, "region", Value::Kind::string).as_string();
  event.reason = "a pruning was undone";
  if (kind == "synapses") {
    event.synapses_added = static_cast<std::int64_t>(undo_synapses(edit, tensors));
  } else {
    event.neurons_added = static_cast<std::int64_t>(undo_neurons(edit, log, tensors));
  }
  state::append_event(edit.metadata(), event);
  edit.commit();
}

}  // namespace thalia
