#include "store/save/replacement.h"

#include "io/file/file_bytes.h"
#include "store/run/names.h"
#include "store/run/sidecar.h"
#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::store {

bool restore_line(const SaveSession& session, const std::filesystem::path& path,
                  const JournalLine& line) {
  const RunFiles& files = session.files();
  const std::optional<io::EntryFacts> facts = files.facts(path);
  if (line.sha256.empty() || !facts || facts->kind != io::EntryKind::file ||
      facts->bytes != line.bytes)
    return false;
  std::optional<std::string> sha256;
  try {
    sha256 = read_sidecar(files, path);
  } catch (const FormatError&) {
    // It says nothing.
  }
  if (!sha256) sha256 = hex(digest_of(*files.open(path)).bytes);
  if (*sha256 != line.sha256) return false;
  JournalLine again = line;
  again.is_save = false;
  files.append_lines(path.parent_path() / kJournal, journal_text(again),
                     session.options.durability);
  return true;
}

Replacement::Replacement(const SaveSession& session, std::string_view phase,
                         const std::filesystem::path& path)
    : session_(session), path_(path) {
  if (!session.files().has_file(path)) return;
  const std::string file = path.filename().string();
  const Journal journal = session.run.list(phase).journal;
  const auto known = journal.saved.find(file);
  if (known == journal.saved.end()) return;
  session.files().append_lines(path.parent_path() / kJournal,
                               removal_text(file, "replaced", now_seconds()),
                               session.options.durability);
  line_ = known->second;
}

Replacement::~Replacement() {
  if (line_.file.empty()) return;
  try {
    restore_line(session_, path_, line_);
  } catch (const std::exception&) {
    // The next writer does it.
  }
}

}  // namespace thalia::store
