// Where tensors are paired, the tables of both files are listed first; then each pair that is asked
// for is read and let go. Patterns are asked once both files are known: a name that is a region in
// one of them may be the beginning of names in the other.
#include "inspect/diff_files.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inspect/describe_file.h"
#include "inspect/file_tensors.h"
#include "inspect/shown_name.h"
#include "thalia/formats/file_facts.h"
#include "thalia/reader.h"

namespace thalia::inspect {
namespace {

// Nothing on the side that has none.
struct TensorPair {
  std::optional<ShownTensor> before{};
  std::optional<ShownTensor> after{};
};

std::vector<ShownTensor> tensors_of(const AnyFile& file, Selection& selection) {
  selection.know_regions(file);
  std::vector<ShownTensor> tensors;
  const std::size_t count = file.tensor_count();
  for (std::size_t i = 0; i < count; ++i) tensors.emplace_back(file, i);
  return tensors;
}

using NameOf = std::string (*)(const state::TensorNames& names);

std::string with_dots(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}
std::string own_path(const state::TensorNames& names) {
  return std::string(names.path);
}
std::string path_key(const state::TensorNames& names) {
  return with_dots(std::string(names.path));
}
std::string shown_key(const state::TensorNames& names) {
  return with_dots(names.shown());
}
std::string bare_key(const state::TensorNames& names) {
  return with_dots(std::string(names.name));
}

// Pairs what has no partner yet and one name in each file. `ambiguous`: tensors that share a name
// with some of the other file, and are not the only ones there, or here.
class Pairing {
 public:
  Pairing(std::vector<ShownTensor> before, std::vector<ShownTensor> after)
      : before_(std::move(before)), after_(std::move(after)), partners_(before_.size()) {
    taken_.resize(after_.size());
  }

  void pair_by(NameOf name_of) {
    struct Holders {
      std::vector<std::size_t> before;
      std::vector<std::size_t> after;
    };
    std::map<std::string, Holders> holders;
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (!partners_[i]) holders[name_of(before_[i].names())].before.push_back(i);
    for (std::size_t i = 0; i < after_.size(); ++i)
      if (!taken_[i]) holders[name_of(after_[i].names())].after.push_back(i);
    ambiguous_ = 0;
    for (const auto& [name, of] : holders) {
      if (of.before.empty() || of.after.empty()) continue;
      if (of.before.size() > 1 || of.after.size() > 1) {
        ambiguous_ += of.before.size() + of.after.size();
        continue;
      }
      partners_[of.before[0]] = of.after[0];
      taken_[of.after[0]] = true;
    }
  }

  std::uint64_t ambiguous() const noexcept { return ambiguous_; }

  /// In the order of the earlier file, then what only the later one has.
  std::vector<TensorPair> pairs() const {
    std::vector<TensorPair> pairs;
    for (std::size_t i = 0; i < before_.size(); ++i)
      pairs.push_back(
          {before_[i], partners_[i] ? std::optional(after_[*partners_[i]]) : std::nullopt});
    for (std::size_t i = 0; i < after_.size(); ++i)
      if (!taken_[i]) pairs.push_back({std::nullopt, after_[i]});
    return pairs;
  }

 private:
  std::vector<ShownTensor> before_;
  std::vector<ShownTensor> after_;
  std::vector<std::optional<std::size_t>> partners_;  ///< of those before
  std::vector<bool> taken_;                           ///< of those after
  std::uint64_t ambiguous_ = 0;
};

TensorFacts facts_of(const AnyTensor& listed) {
  return {.layout = listed.layout, .role = listed.role, .logical_bytes = listed.logical_bytes};
}

// The facts of what is read: for codes and for what a delta stores, of what comes out.
TensorFacts facts_of(const AnyTensor& listed, const OpenedTensor& source) {
  TensorFacts facts = facts_of(listed);
  facts.layout = source.layout;
  facts.restored = listed.layout.encoding == Encoding::quantized;
  return facts;
}

std::string name_of(const ShownTensor& tensor) {
  const state::TensorNames names = tensor.names();
  return names.region.empty() ? std::string(names.name) : names.shown();
}

// nullopt if nothing differs.
std::optional<TensorDiff> diff_pair(const TensorPair& pair, const DiffOptions& options) {
  const ShownTensor& known = pair.before ? *pair.before : *pair.after;
  TensorDiff diff{.name = name_of(known)};
  if (!pair.before || !pair.after) {
    diff.change = pair.before ? Change::removed : Change::added;
    (pair.before ? diff.before : diff.after) = facts_of(known.list());
    return diff;
  }
  const AnyTensor& old = pair.before->list();
  const AnyTensor& fresh = pair.after->list();
  // Formats without such types hold the codes of one that was converted.
  const bool as_codes = old.type.empty() != fresh.type.empty() &&
                        old.layout.dtype == fresh.layout.dtype &&
                        old.layout.shape == fresh.layout.shape;
  const OpenedTensor from = as_codes ? pair.before->open_codes() : pair.before->open();
  const OpenedTensor to = as_codes ? pair.after->open_codes() : pair.after->open();
  diff.before = facts_of(old, from);
  diff.after = facts_of(fresh, to);
  diff.values =
      diff_values(compared(from, old.logical_bytes), compared(to, fresh.logical_bytes), options);
  // One that has no role is of any.
  if (!diff.before->role || !diff.after->role) diff.before->role = diff.after->role = std::nullopt;
  const bool tolerant = options.absolute_tolerance > 0 || options.relative_tolerance > 0;
  const bool differs = diff.shape_changed() || diff.role_changed() || diff.values->differing > 0 ||
                       (diff.dtype_changed() && !tolerant);
  if (!differs) return std::nullopt;
  return diff;
}

std::uint64_t bytes_of(const TensorPair& pair) {
  return (pair.before ? pair.before->list().logical_bytes : 0) +
         (pair.after ? pair.after->list().logical_bytes : 0);
}

// A region's name stands for all of the region, whichever of the two files has it.
std::vector<std::string> with_regions(std::vector<std::string> patterns, const Reader& before,
                                      const Reader& after) {
  for (std::string& pattern : patterns) {
    const auto is_region = [&](const std::string& name) {
      return before.find_region(name) || after.find_region(name);
    };
    const std::string unescaped = unescape_name(pattern);
    if (is_region(pattern)) {
      pattern += "/*";
    } else if (is_region(unescaped)) {
      pattern = unescaped + "/*";
    }
  }
  return patterns;
}

void diff_tensors(FilesDiff& result, const AnyFile& earlier, const AnyFile& later,
                  const DiffOptions& options) {
  if (options.tensors.empty() && result.before_format == result.after_format) {
    result.metadata_compared = true;
    result.diff.metadata = diff_metadata(describe_file(earlier).metadata,
                                         describe_file(later).metadata, options.input.limits);
  }

  Selection selection("tensors", options.tensors);
  Pairing pairing(tensors_of(earlier, selection), tensors_of(later, selection));
  pairing.pair_by(own_path);
  pairing.pair_by(path_key);
  pairing.pair_by(shown_key);
  pairing.pair_by(bare_key);
  result.ambiguous = pairing.ambiguous();

  std::vector<TensorPair> pairs = pairing.pairs();
  std::erase_if(pairs, [&](const TensorPair& pair) {
    // Both are asked: a pattern is used by either name.
    const bool takes_before = pair.before && selection.takes(pair.before->names());
    const bool takes_after = pair.after && selection.takes(pair.after->names());
    return !takes_before && !takes_after;
  });
  selection.check();
  std::uint64_t total = 0;
  for (const TensorPair& pair : pairs) total += bytes_of(pair);
  std::uint64_t done = 0;
  DiffOptions of_pair = options;
  of_pair.work.progress = nullptr;
  for (TensorPair& pair : pairs) {
    const std::uint64_t bytes = bytes_of(pair);
    if (auto changed = diff_pair(pair, of_pair)) {
      result.diff.tensors.push_back(*std::move(changed));
    } else {
      ++result.diff.same_tensors;
    }
    pair = {};
    done += bytes;
    if (options.work.progress) options.work.progress(done, total);
  }
}

}  // namespace

ComparedTensor compared(const OpenedTensor& source, std::uint64_t bytes) {
  ComparedTensor tensor{
      .dtype = source.layout.dtype, .shape = source.layout.shape, .read_bytes = bytes};
  if (source.entries) {
    tensor.load = [entries = source.entries] { return entries->tensor(); };
    tensor.sparse = true;
    tensor.entries = source.layout.nnz;
  } else {
    tensor.read = source.read;
  }
  return tensor;
}

FilesDiff diff_files(const std::filesystem::path& before, const std::filesystem::path& after,
                     const ChainOptions& open, const DiffOptions& options) {
  AnyFile earlier = open_stored(before, open);
  // A .thalia file has what shares memory as one tensor: so has then the other file.
  const AnyFile later = open_stored(after, open, earlier.format() == FileFormat::thalia);
  if (later.format() == FileFormat::thalia && earlier.format() == FileFormat::pt)
    earlier = open_stored(before, open, true);
  FilesDiff result{.before_format = earlier.format(), .after_format = later.format()};
  result.before_lacks = earlier.lacks();
  result.after_lacks = later.lacks();
  ChainOptions tables = open;
  const bool reads_elements =
      options.values || options.absolute_tolerance > 0 || options.relative_tolerance > 0;
  // Checking blocks of the tree would read the payloads that share these blocks.
  if (!reads_elements) tables.read.verification = Verification::off;
  const auto old = earlier.state(tables), fresh = later.state(tables);
  if (!old || !fresh) {
    diff_tensors(result, earlier, later, options);
    return result;
  }
  DiffOptions of_states = options;
  of_states.tensors = with_regions(options.tensors, old->reader(), fresh->reader());
  result.diff = diff(*old, *fresh, of_states);
  result.metadata_compared = options.tensors.empty();
  return result;
}

}  // namespace thalia::inspect
