// Which files there are and what is based on what is found once, before anything is written; the
// plan then says the rest. A file is known by its path without links, as a rename would replace the
// link. What is based on a file is found by reading the folders: a delta tells the identity of its
// base, and only where that is a file of ours is its chain opened.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "io/folder/folder.h"
#include "io/folder/lock.h"
#include "state/rebase/plan.h"
#include "state/rebase/rewrite.h"
#include "thalia/files.h"
#include "thalia/state/delta.h"

namespace thalia {
namespace {

namespace fs = std::filesystem;

class Rebase {
 public:
  Rebase(const std::vector<fs::path>& files, const RebaseOptions& options) : options_(options) {
    options_.chain.read.work.cancel = options.save.work.cancel;
    options_.save.work.progress = {};
    for (const fs::path& file : files) given_.push_back(resolved_path(file));
    std::set<fs::path> named;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (named.insert(given_[i]).second) continue;
      throw UsageError(ErrorCode::bad_argument, "a file that is named twice",
                       {.path = files[i].string()});
    }
  }

  RebaseResult run() {
    hold_folders();
    std::vector<std::size_t> order;
    for (const fs::path& file : given_) order.push_back(add_chain(open(file)));
    // A chain is turned whole.
    if (given_.size() == 1)
      while (bases_[order.back()]) order.push_back(*bases_[order.back()]);
    add_dependents();
    const std::vector<state::RebaseStep> steps =
        state::plan_rebase(bases_, order, options_.max_depth);
    for (const state::RebaseStep& step : steps) state::require_rewritable(open(paths_[step.file]));
    for (const std::size_t base : state::first_bases(steps))
      state::require_whole(open(paths_[base]), options_.save.work.cancel);
    for (const state::RebaseStep& step : steps) write(step);
    return result();
  }

 private:
  ChainReader open(const fs::path& path) const { return ChainReader::open(path, options_.chain); }

  // Always in the same order, so that no two calls wait for each other. What is in them may be
  // another file by then: nothing is known of it yet.
  void hold_folders() {
    std::set<fs::path> folders;
    for (const fs::path& file : given_) {
      const ChainReader chain = open(file);
      for (const fs::path& link : chain.paths()) folders.insert(folder_of(resolved_path(link)));
    }
    for (const fs::path& folder : folders) {
      held_.push_back(std::make_unique<io::HeldFolder>(folder, options_.save.output.durability,
                                                       options_.save.work.cancel));
      folders_.push_back(folder);
    }
  }

  // The number of its top.
  std::size_t add_chain(const ChainReader& chain) {
    const std::vector<fs::path> links = chain.paths();
    std::optional<std::size_t> base;
    for (auto link = links.rbegin(); link != links.rend(); ++link) base = add(*link, base);
    return *base;
  }

  std::size_t add(const fs::path& link, std::optional<std::size_t> base) {
    const fs::path path = resolved_path(link);
    const auto [found, is_new] = numbers_.emplace(path, paths_.size());
    if (!is_new) return found->second;
    const Reader reader = Reader::open(path, options_.chain.read);
    identities_.push_back(reader.closing_checksum());
    paths_.push_back(path);
    bases_.push_back(base);
    before_.push_back({.path = path,
                       .bytes_before = file_bytes(path),
                       .depth_before = base ? before_[*base].depth_before + 1 : 0});
    return found->second;
  }

  // Every delta of a file that was found, until there are no more.
  void add_dependents() {
    std::vector<std::pair<fs::path, DeltaBase>> deltas;
    const auto look = [&](const fs::path& path) {
      stop_if_cancelled(options_.save.work.cancel);
      try {
        if (const auto base = Reader::open(path, options_.chain.read).delta_base())
          deltas.emplace_back(path, *base);
      } catch (const FormatError&) {
      } catch (const IntegrityError&) {
      } catch (const UnsupportedError&) {
        // It is no delta of ours, or none that could be restored.
      }
    };
    for (const fs::path& folder : folders_)
      for (const io::FolderEntry& found : io::Folder(folder).entries())
        if (found.kind == io::EntryKind::file) look(folder / found.name);
    for (const fs::path& other : options_.others) look(resolved_path(other));
    for (std::size_t known = 0; known != paths_.size();) {
      known = paths_.size();
      for (const auto& [path, base] : deltas) {
        if (numbers_.contains(path) ||
            std::ranges::find(identities_, base.checksum) == identities_.end())
          continue;
        // Its base may also be another file with the same bytes.
        const std::optional<ChainReader> chain = open_if_whole(path);
        if (chain && numbers_.contains(resolved_path(chain->paths().at(1)))) add_chain(*chain);
      }
    }
  }

  std::optional<ChainReader> open_if_whole(const fs::path& path) const {
    try {
      return open(path);
    } catch (const MissingBaseError&) {
    } catch (const IntegrityError&) {
    }
    return std::nullopt;
  }

  void write(const state::RebaseStep& step) {
    stop_if_cancelled(options_.save.work.cancel);
    const std::optional<ChainReader> base =
        step.base ? std::optional(open(paths_[*step.base])) : std::nullopt;
    const state::RewrittenFile written =
        state::rewrite(open(paths_[step.file]), base, options_.save, options_.pack);
    before_[step.file].bytes = written.bytes;
    before_[step.file].depth = written.depth;
    written_.insert(step.file);
  }

  RebaseResult result() {
    RebaseResult result;
    for (const std::size_t file : written_) {
      result.input_bytes += before_[file].bytes_before;
      result.output_bytes += before_[file].bytes;
      result.files.push_back(std::move(before_[file]));
    }
    std::ranges::stable_sort(result.files, {}, &RebasedFile::depth);
    result.seconds = watch_.seconds();
    return result;
  }

  const Stopwatch watch_;
  RebaseOptions options_;
  std::vector<fs::path> given_;
  std::vector<std::unique_ptr<io::HeldFolder>> held_;
  std::vector<fs::path> folders_;
  std::vector<fs::path> paths_;
  std::vector<std::optional<std::size_t>> bases_;
  std::vector<RebasedFile> before_;
  std::map<fs::path, std::size_t> numbers_;
  std::vector<Digest256> identities_;
  std::set<std::size_t> written_;
};

}  // namespace

RebaseResult rebase(const std::vector<fs::path>& files, const RebaseOptions& options) {
  if (files.empty())
    fail_argument(ErrorCode::bad_argument, "files", "none", "a checkpoint, or more");
  state::check_rebase_depth(options.max_depth);
  return Rebase(files, options).run();
}

}  // namespace thalia
