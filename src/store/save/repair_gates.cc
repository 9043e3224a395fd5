#include "store/save/repair_gates.h"

#include <algorithm>

#include "container/write/file_digest.h"
#include "io/output/temporary_file.h"
#include "store/run/gate_meta.h"
#include "store/run/names.h"
#include "store/run/sidecar.h"
#include "thalia/text.h"

namespace thalia::store {

void repair_gate(const SaveSession& session, const std::string& name) {
  const std::optional<GateMeta> meta = read_gate_meta(session.run, name);
  if (!meta || !meta->before) return;
  const std::filesystem::path path =
      session.run.gates() / (name + "." + session.run.config().extension);
  const std::filesystem::path text = session.run.gates() / (name + std::string(kMetaEnding));
  const RunFiles& files = session.files();
  if (!files.has_file(path)) {
    files.remove(text);
    return;
  }
  const std::optional<std::string> beside = read_sidecar(files, path);
  const Digest256 digest = beside ? Digest256{} : digest_of(*files.open(path));
  const std::string sha256 = beside ? *beside : hex(digest.bytes);
  const bool is_new = sha256 == meta->gate.sha256;
  // The digest is of neither: anybody who loads the gate is told.
  if (!is_new && sha256 != meta->before->sha256) return;
  if (!beside) container::write_sha256_file(path, digest, session.output());
  GateEntry gate = is_new ? meta->gate : *meta->before;
  if (gate.phase.empty()) {
    files.remove(text);
    return;
  }
  gate.name = name;
  files.write_text(text, gate_text({.gate = gate}), session.options.durability);
}

void repair_gates(const SaveSession& session) {
  const std::optional<io::Folder> folder = session.files().find_folder(session.run.gates());
  if (!folder) return;
  bool has_changed = false;
  for (const io::FolderEntry& found : folder->entries()) {
    if (found.kind != io::EntryKind::file) continue;
    if (io::temporary_process(found.name)) {
      has_changed |= folder->remove(found.name);
    } else if (found.name.ends_with(kMetaEnding)) {
      repair_gate(session, found.name.substr(0, found.name.size() - kMetaEnding.size()));
    }
  }
  if (has_changed && session.syncs_folders()) folder->sync();
}

}  // namespace thalia::store
