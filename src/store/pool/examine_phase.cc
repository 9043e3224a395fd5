// Holds what a phase's folder says of its checkpoints (journal, latest, best, digests) against the
// files that are there. The files are the truth: repairing changes what is said of them, and never
// a checkpoint.
#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "store/pool/examination.h"
#include "store/run/names.h"
#include "store/run/pointer.h"
#include "store/run/sidecar.h"
#include "store/save/publish.h"

namespace thalia::store {
namespace {

class PhaseExamination {
 public:
  PhaseExamination(Examination& examination, const PhaseConfig& phase)
      : examination_(examination),
        config_(examination.run().config()),
        phase_(phase),
        path_(examination.run().phase(phase.name)),
        listing_(examination.run().list(phase.name)) {}

  void run() {
    const std::optional<io::Folder> folder = examination_.run().files().find_folder(path_);
    if (!folder) return;
    examination_.find_temporaries(path_);
    for (const std::string& name : listing_.lone_digests)
      examination_.find_useless("lone_digest", path_ / name, "its file is gone");
    check_files();
    check_latest(*folder);
    check_best(*folder);
    check_links(*folder);
    check_journal();
    check_transition();
  }

 private:
  bool has(const std::optional<std::string>& file) const {
    return file && std::ranges::find(listing_.entries, *file, &CheckpointEntry::file) !=
                       listing_.entries.end();
  }
  std::filesystem::path link(const char* pointer) const {
    return path_ / fmt::format("{}.{}", pointer, config_.extension);
  }

  void check_files() {
    for (const CheckpointEntry& entry : listing_.entries) {
      const std::filesystem::path path = path_ / entry.file;
      if (examination_.options().quick && entry.is_delta() && !has(entry.base))
        examination_.find(Severity::error, "missing_base", path,
                          fmt::format("{}, which it is based on, is not there", entry.base));
      if (entry.left_behind)
        examination_.find(Severity::warning, "left_behind", path,
                          "the run went back to an earlier step, and has not come here again");
      examination_.check({.path = path, .bytes = entry.bytes, .is_thalia = config_.is_thalia()});
    }
  }

  void point(const SaveSession& session, const char* pointer, const std::string& file) const {
    const io::Folder folder = session.files().folder(path_);
    write_pointer(session.files(), folder, pointer, config_.extension, file,
                  session.options.durability);
    if (session.syncs_folders()) folder.sync();
  }

  void check_latest(const io::Folder& folder) {
    if (listing_.latest) return;
    const auto reported = read_pointer(folder, "latest", config_.extension);
    if (listing_.entries.empty()) {
      if (reported)
        examination_.find_useless("dangling_latest", link("latest"),
                                  "it leads to a checkpoint that is not there");
      return;
    }
    const std::string& newest = listing_.entries.back().file;
    examination_.find(Severity::warning, "dangling_latest", link("latest"),
                      reported ? fmt::format("it leads to {}, which is not there", *reported)
                               : "there is none, and there are checkpoints",
                      [&](const SaveSession& session) { point(session, "latest", newest); });
  }

  void check_best(const io::Folder& folder) {
    const std::optional<Best> best = examination_.run().best(phase_.name);
    const auto reported = read_pointer(folder, "best", config_.extension);
    const auto choose = [&](const SaveSession& session) { choose_best(session, phase_.name); };
    if (best && !has(best->file)) {
      examination_.find(Severity::warning, "dangling_best", path_ / kBestMeta,
                        fmt::format("it names {}, which is not there", best->file), choose);
    } else if (best && reported != best->file) {
      examination_.find(Severity::warning, "dangling_best", link("best"),
                        fmt::format("it does not lead to {}, which is the best", best->file),
                        [&](const SaveSession& session) { point(session, "best", best->file); });
    } else if (!best && folder.facts(std::string(kBestMeta))) {
      examination_.find(Severity::warning, "dangling_best", path_ / kBestMeta, "nobody can read it",
                        choose);
    } else if (!best && reported && !has(reported)) {
      examination_.find(Severity::warning, "dangling_best", link("best"),
                        fmt::format("it leads to {}, which is not there", *reported), choose);
    }
  }

  void check_links(const io::Folder& folder) {
    for (const char* const pointer : {"latest", "best"}) {
      const std::string name = std::string(pointer) + ".txt";
      if (folder.facts(name))
        examination_.find(Severity::warning, "file_system", path_ / name,
                          "it stands for a symbolic link, which the file system had not");
    }
  }

  void check_journal() {
    const std::filesystem::path path = path_ / kJournal;
    for (const CheckpointEntry& entry : listing_.entries) {
      const auto line = listing_.journal.saved.find(entry.file);
      if (line == listing_.journal.saved.end()) {
        examination_.find(Severity::warning, "journal", path,
                          fmt::format("it does not know {}", entry.file),
                          [&](const SaveSession& session) { repair(session, phase_.name, false); });
      } else if (line->second.bytes != entry.bytes) {
        examination_.find(Severity::warning, "journal", path,
                          fmt::format("{} has {} bytes, and had {} when it was saved", entry.file,
                                      entry.bytes, line->second.bytes));
      }
    }
    std::vector<std::string> gone;
    for (const auto& [file, line] : listing_.journal.saved)
      if (!has(file)) gone.push_back(file);
    std::ranges::sort(gone);
    for (const std::string& file : gone) {
      examination_.find(
          Severity::warning, "journal", path,
          fmt::format("{} was saved, and went without anybody's having noted why", file),
          [&path, file](const SaveSession& session) {
            session.files().append_lines(path,
                                         removal_text(file, "was found to be gone", now_seconds()),
                                         session.options.durability);
          });
    }
  }

  void check_transition() {
    const std::filesystem::path folder = path_.parent_path();
    examination_.find_temporaries(folder);
    const std::optional<io::Folder> open = examination_.run().files().find_folder(folder);
    const bool has_begun = open && open->facts("transition.json");
    const auto check = [&](const std::string& name, bool is_checkpoint) {
      const std::optional<io::EntryFacts> facts = open->facts(name);
      if (facts)
        examination_.check({.path = folder / name,
                            .bytes = facts->bytes,
                            .is_thalia = is_checkpoint,
                            .is_counted = is_checkpoint});
      return facts.has_value();
    };
    if (!has_begun) return;
    check("transition.json", false);
    const std::string start = "start." + config_.extension;
    if (!check(start, true))
      examination_.find(Severity::error, "damaged", folder / start,
                        "the phase has begun with it, and it is not there");
    check("kl_anchor." + config_.extension, true);
  }

  Examination& examination_;
  const RunConfig& config_;
  const PhaseConfig& phase_;
  const std::filesystem::path path_;
  const RunListing listing_;
};

}  // namespace

void examine_phase(Examination& examination, const PhaseConfig& phase) {
  PhaseExamination(examination, phase).run();
}

}  // namespace thalia::store
