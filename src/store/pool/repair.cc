#include "thalia/store/repair.h"

#include <algorithm>

#include "io/folder/lock.h"
#include "store/pool/examination.h"
#include "store/save/impl.h"
#include "thalia/text.h"

namespace thalia {
namespace {

StoreReport examine(store::Examination& examination) {
  const store::RunFolder& run = examination.run();
  const std::string& only = examination.options().phase;
  // The run itself has to be readable.
  run.files().folder(run.path());
  if (!only.empty()) {
    store::examine_phase(examination, run.config().phase(only));
    return examination.finish();
  }
  examination.find_temporaries(run.path());
  for (const PhaseConfig& phase : run.config().phases) store::examine_phase(examination, phase);
  store::examine_gates(examination);
  store::examine_pool(examination);
  return examination.finish();
}

}  // namespace

bool StoreReport::ok() const noexcept {
  return std::ranges::none_of(findings, [](const StoreFinding& finding) {
    return finding.severity == Severity::error && !finding.is_repaired;
  });
}

StoreReport verify_run(const Run& run, const StoreCheckOptions& options) {
  store::Examination examination(store::RunFolder::of(run), options, nullptr, false);
  if (io::is_locked(run.folder()))
    examination.find(Severity::warning, "lock", run.folder() / ".lock",
                     "held by " + printable(io::lock_holder(run.folder())) +
                         ": what it has not finished may be reported here");
  return examine(examination);
}

StoreReport repair_run(RunWriter& run, const StoreCheckOptions& options) {
  const auto& impl = store::impl_of(run);
  const auto held = impl.lock();
  const store::SaveSession session = impl.session();
  store::Examination examination(impl.folder(), options, &session, impl.is_alone());
  if (!impl.is_alone())
    examination.find(Severity::warning, "file_system", run.run().folder(),
                     "it has no locks: keep other processes from saving into the run");
  return examine(examination);
}

}  // namespace thalia
