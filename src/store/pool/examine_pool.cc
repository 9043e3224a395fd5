// What belongs to no phase alone: gates, and the pool.
#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "store/pool/examination.h"
#include "store/pool/member_text.h"
#include "store/pool/pool_folder.h"
#include "store/run/gate_meta.h"
#include "store/run/names.h"

namespace thalia::store {
namespace {

// Nothing replaces a gate: what is left of one that is gone says which one it was.
void find_lost_gates(Examination& examination, const std::vector<GateEntry>& gates) {
  const std::filesystem::path path = examination.run().gates();
  const std::optional<io::Folder> folder = examination.run().files().find_folder(path);
  if (!folder) return;
  const std::string digest_ending =
      fmt::format(".{}{}", examination.run().config().extension, kDigestEnding);
  for (const io::FolderEntry& found : folder->entries()) {
    for (const std::string_view ending : {std::string_view(digest_ending), kMetaEnding}) {
      if (!found.name.ends_with(ending)) continue;
      const std::string gate = found.name.substr(0, found.name.size() - ending.size());
      if (std::ranges::find(gates, gate, &GateEntry::name) != gates.end()) continue;
      // One that a crash kept from being there: the next writer removes what describes it.
      const std::optional<GateMeta> meta = read_gate_meta(examination.run(), gate);
      if (!meta || !meta->before)
        examination.find(Severity::error, "gate", path / found.name,
                         fmt::format("the gate {} is gone", gate));
    }
  }
}

}  // namespace

void examine_gates(Examination& examination) {
  const RunFolder& run = examination.run();
  examination.find_temporaries(run.gates());
  const std::vector<GateEntry> gates = run.list_gates();
  for (const GateEntry& gate : gates) {
    const std::filesystem::path meta = run.gates() / (gate.name + std::string(kMetaEnding));
    if (gate.phase.empty()) {
      examination.find(Severity::warning, "gate", meta,
                       "nothing there tells what the gate was copied from");
    } else if (gate.source_file.empty() && !gate.sha256.empty()) {
      examination.find(Severity::warning, "gate", meta, "it names another file");
    }
    examination.check({.path = run.gates() / gate.file,
                       .bytes = gate.bytes,
                       .is_thalia = run.config().is_thalia(),
                       .is_gate = true});
  }
  find_lost_gates(examination, gates);
}

void examine_pool(Examination& examination) {
  const RunFolder& run = examination.run();
  if (!run.config().pool) return;
  const std::filesystem::path path = run.pool();
  examination.find_temporaries(path);
  const PoolListing listing = list_pool(run);
  for (const std::string& name : listing.lone)
    examination.find_useless(name.ends_with(kDigestEnding) ? "lone_digest" : "pool", path / name,
                             "its version is gone");
  for (const PoolDamage& damage : listing.damaged)
    examination.find(Severity::warning, "pool", damage.path, damage.sentence);
  for (const PoolMember& member : listing.without_meta)
    examination.find(Severity::warning, "pool", path / member.name,
                     "it has no metadata, and the rating of a new model",
                     [&](const SaveSession& session) { write_meta(session, member); });
  if (listing.is_version_behind)
    examination.find(
        Severity::warning, "pool", path / kVersionFile,
        fmt::format("it does not say that {} versions were numbered",
                    listing.view.next_version - 1),
        [&](const SaveSession& session) { write_version(session, listing.view.next_version - 1); });
  const bool has_begun = !listing.view.versions.empty() || !listing.roster.empty();
  if (has_begun && listing.roster != roster_text(listing.view))
    examination.find(Severity::warning, "pool", path / kRoster, "it is not what the pool is now",
                     write_roster);
  for (const PoolMember& member : listing.view.versions)
    examination.check(
        {.path = member.path, .bytes = member.bytes, .is_thalia = run.config().is_thalia()});
}

}  // namespace thalia::store
