#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "crash/store_run.h"

namespace thalia::crash {
namespace judging {
namespace {

using Items = std::map<std::string, std::string>;

Items items_of(const std::string& description) {
  Items items;
  for (std::size_t at = 0; at < description.size();) {
    const std::size_t end = description.find('\n', at);
    const std::size_t tab = description.find('\t', at);
    items[description.substr(at, tab - at)] = description.substr(tab + 1, end - tab - 1);
    at = end + 1;
  }
  return items;
}

std::string value_of(const Items& items, const std::string& key) {
  const auto found = items.find(key);
  return found == items.end() ? "" : found->second;
}

// The part before the metric.
std::string content_of_item(const std::string& value) {
  return value.substr(0, value.find(' '));
}

class Judgement {
 public:
  Judgement(const std::string& observed, std::span<const std::string> allowed)
      : observed_(items_of(observed)) {
    for (const std::string& one : allowed) allowed_.push_back(items_of(one));
  }

  std::string fault() const {
    Items keys = observed_;
    for (const Items& one : allowed_) keys.insert(one.begin(), one.end());
    for (const auto& [key, any] : keys) {
      const std::string value = value_of(observed_, key);
      if (is_one_of(key, value) || may_be(key, value)) continue;
      return fmt::format("{} is '{}' where '{}' was promised", key, value,
                         value_of(allowed_[0], key));
    }
    return "";
  }

 private:
  bool is_one_of(const std::string& key, const std::string& value) const {
    return std::ranges::any_of(allowed_,
                               [&](const Items& one) { return value_of(one, key) == value; });
  }
  bool changes(const std::string& key) const {
    return std::ranges::any_of(allowed_, [&](const Items& one) {
      return value_of(one, key) != value_of(allowed_[0], key);
    });
  }

  // What is neither as before nor as after.
  bool may_be(const std::string& key, const std::string& value) const {
    if (key.starts_with("checkpoint ")) {
      const std::string of = key.substr(0, key.rfind(' '));
      // A file that is put in the place of another has no digest for a while.
      if (key.ends_with(" digest")) return value.empty() && is_rewritten(of);
      // A delta that is too dear, or a file that replaces one.
      if (key.ends_with(" form")) return is_rewritten(of);
      // It has its line in the journal last: but no content has the metric of another.
      if (!is_rewritten(key) || !value.ends_with(" -")) return false;
      return std::ranges::any_of(allowed_, [&](const Items& one) {
        return content_of_item(value_of(one, key)) == content_of_item(value);
      });
    }
    // If several saves were attempted, each is the latest and perhaps the best in its turn.
    if (key.starts_with("latest ") || key.starts_with("load ") || key.starts_with("best "))
      return is_rewritten("checkpoint " + value);
    // One that is begun again by force has not begun until all of it is there.
    if (key.starts_with("begun ")) return value.empty() && changes(key);
    // While a gate is replaced, both that it may be a copy of are.
    if (key.ends_with(" protects")) return value == all_values(key);
    return false;
  }

  // Those of all that are allowed, each once and in their order.
  std::string all_values(const std::string& key) const {
    std::set<std::string> values;
    for (const Items& one : allowed_) values.insert(value_of(one, key));
    return fmt::format("{}", fmt::join(values, ""));
  }

  bool is_rewritten(const std::string& checkpoint) const {
    return changes(checkpoint) || changes(checkpoint + " form");
  }

  const Items observed_;
  std::vector<Items> allowed_;
};

}  // namespace
}  // namespace judging

std::string fault_of_run(const std::string& observed, std::span<const std::string> allowed) {
  return judging::Judgement(observed, allowed).fault();
}

}  // namespace thalia::crash
