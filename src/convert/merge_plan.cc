// Decides which input each thing comes from. choose() never throws: a conflict that the preference
// does not settle is put down in words, and throw_if_open() raises all of them at once, so that a
// user sees them together. A preference that names an input which lacks the thing settles nothing.
#include "convert/merge_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "state/diff/structure.h"
#include "thalia/error.h"

namespace thalia::formats {
namespace {

// What several inputs have under one name: their numbers there, in the order in which names came.
template <typename Key>
class Holders {
 public:
  void add(const Key& key, Taken taken) {
    const auto [place, is_new] = places_.emplace(key, found_.size());
    if (is_new) found_.emplace_back(key, std::vector<Taken>());
    found_[place->second].second.push_back(taken);
  }
  const std::vector<std::pair<Key, std::vector<Taken>>>& all() const { return found_; }

 private:
  std::map<Key, std::size_t> places_;
  std::vector<std::pair<Key, std::vector<Taken>>> found_;
};

// The one of `found` that the conflicts' choice names. same(a, b) compares two of them.
template <typename Same>
Taken choose(MergeConflicts& conflicts, const std::string& what, const std::vector<Taken>& found,
             const Same& same) {
  std::vector<std::size_t> inputs;
  for (const Taken& taken : found) inputs.push_back(taken.input);
  const auto of = [&](std::size_t input) {
    return *std::find_if(found.begin(), found.end(),
                         [&](const Taken& taken) { return taken.input == input; });
  };
  return of(conflicts.choose(what, inputs,
                             [&](std::size_t a, std::size_t b) { return same(of(a), of(b)); }));
}

}  // namespace

std::string MergeConflicts::name(std::size_t input) const {
  return printable(inputs_[input].path().string());
}

std::size_t MergeConflicts::choose(const std::string& what, const std::vector<std::size_t>& holders,
                                   const std::function<bool(std::size_t, std::size_t)>& same) {
  const bool agree = std::all_of(holders.begin() + 1, holders.end(),
                                 [&](std::size_t input) { return same(holders.front(), input); });
  if (agree) return holders.front();

  using Kind = MergePreference::Kind;
  std::size_t chosen = preference_.kind == Kind::last ? holders.back() : holders.front();
  if (preference_.kind == Kind::input) chosen = preference_.number;
  const bool decided = preference_.kind != Kind::none &&
                       std::find(holders.begin(), holders.end(), chosen) != holders.end();
  std::vector<std::string> names;
  for (const std::size_t input : holders) {
    // An input that has the same as the chosen one loses nothing and is not named.
    if (!decided || (input != chosen && !same(chosen, input))) names.push_back(name(input));
  }
  if (!decided) {
    open_.push_back(fmt::format("{} of {}", what, fmt::join(names, ", ")));
    return holders.front();
  }
  losses_.push_back(
      fmt::format("{} of {}, for that of {}", what, fmt::join(names, ", "), name(chosen)));
  return chosen;
}

void MergeConflicts::throw_if_open() const {
  // Two checkpoints of one run may differ in thousands of regions.
  constexpr std::size_t kNamed = 5;
  if (open_.empty()) return;
  const std::size_t named = std::min(open_.size(), kNamed);
  std::string message = fmt::format(
      "not the same, prefer one file: {}",
      fmt::join(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(named), "; "));
  if (named < open_.size()) message += fmt::format("; and {} more", open_.size() - named);
  throw UsageError(ErrorCode::duplicate, std::move(message));
}

std::vector<Taken> plan_regions(const std::vector<Reader>& inputs, const ReadLimits& limits,
                                MergeConflicts& conflicts) {
  Holders<std::string> holders;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::uint32_t r = 0; r < inputs[i].region_count(); ++r)
      holders.add(std::string(inputs[i].region(r).name()), {i, r});
  }
  std::vector<Taken> plan;
  state::TensorFilter everything;
  for (const auto& [name, found] : holders.all()) {
    plan.push_back(choose(conflicts, fmt::format("region '{}'", printable(name)), found,
                          [&](const Taken& a, const Taken& b) {
                            // Compares contents; places in the files do not count.
                            return !state::differs(state::diff_regions(
                                inputs[a.input].region(a.number), inputs[b.input].region(b.number),
                                everything, limits));
                          }));
  }
  return plan;
}

// A connection is known by the pair of its regions.
std::vector<Taken> plan_connections(const std::vector<Reader>& inputs, MergeConflicts& conflicts) {
  Holders<std::pair<std::string, std::string>> holders;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::uint32_t c = 0; c < inputs[i].connection_count(); ++c) {
      ConnectionView connection = inputs[i].connection(c);
      holders.add({std::move(connection.source), std::move(connection.target)}, {i, c});
    }
  }
  std::vector<Taken> plan;
  state::TensorFilter everything;
  for (const auto& [names, found] : holders.all()) {
    plan.push_back(
        choose(conflicts,
               fmt::format("connection '{}->{}'", printable(names.first), printable(names.second)),
               found, [&](const Taken& a, const Taken& b) {
                 return !state::diff_connections(inputs[a.input].connection(a.number),
                                                 inputs[b.input].connection(b.number), everything);
               }));
  }
  return plan;
}

}  // namespace thalia::formats
