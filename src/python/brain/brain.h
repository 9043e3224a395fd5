// A brain's state as Python builds it, for whatever saves, grows or prunes one.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "base/inside.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/exclusive.h"
#include "python/saver.h"
#include "python/value.h"
#include "thalia/state/brain.h"

namespace thalia::python {

/// A state, with the arrays that it borrows. Used with the GIL held; what works on it alone needs
/// none.
struct OpenBrain {
  BrainState state{};
  std::vector<HeldBuffer> held{};
  /// What is odd about the file that it is of.
  std::vector<std::string> warnings{};

  Value value(nanobind::handle object) { return value_of(object, held); }
  Tensor tensor(nanobind::handle object) { return std::move(value(object).as_tensor()); }
};
using PyBrain = Exclusive<OpenBrain>;

/// Begins begin(saver, state, token), and has the saver keep what the save reads where nothing was
/// copied.
template <typename Begin>
auto begin_brain(PyBrain& self, Saver& to, Snapshot snapshot, Begin begin) {
  const std::shared_ptr<AsyncSaver> saver = to.get();
  const auto use = self.use();
  std::stop_source cancel;
  std::optional<std::invoke_result_t<Begin, AsyncSaver&, const BrainState&, std::stop_token>> begun;
  interruptible([&](const std::stop_token& stop) {
    const std::stop_callback forward(stop, [&] { cancel.request_stop(); });
    begun.emplace(begin(*saver, use->state, cancel.get_token()));
  });
  if (!begun->skipped() && snapshot == Snapshot::borrowed)
    to.saves.push_back({detail::Inside::outcome(*begun).pointer(), std::exchange(use->held, {})});
  to.let_go();
  return *std::move(begun);
}

}  // namespace thalia::python
