// JSON from Python may hold lone surrogates in its strings, which no UTF-8 text can. Going to 1.0
// they are replaced, names included; two names that become equal are numbered, so that no member is
// lost.
#include "formats/v01/text.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace thalia::formats {
namespace {

class Replacer {
 public:
  void replace(Value& value) {
    if (value.kind() == Value::Kind::string) {
      if (!is_valid_utf8(value.as_string())) value = replaced(value.as_string());
    } else if (value.is_array()) {
      for (Value& element : value.elements()) replace(element);
    } else if (value.is_object()) {
      rename(value.members());
      for (auto& [name, member] : value.members()) replace(member);
    }
  }
  std::uint64_t count() const noexcept { return count_; }

 private:
  // The parser has seen to it that lone surrogates, of three bytes each, are all that is not UTF-8.
  std::string replaced(std::string_view text) {
    constexpr std::size_t kSurrogateBytes = 3;
    std::string out;
    for (std::size_t fault; (fault = find_invalid_utf8(text)) != std::string_view::npos; ++count_) {
      out += text.substr(0, fault);
      out += "\xEF\xBF\xBD";
      text.remove_prefix(std::min(fault + kSurrogateBytes, text.size()));
    }
    return out.append(text);
  }

  // One pass, with a counter for each name: trying numbers from 1 for each of many equal names
  // would take quadratic time.
  void rename(std::vector<Value::Member>& members) {
    std::unordered_set<std::string> taken;
    // All names first: a number must not make a name that comes later.
    for (const auto& [name, member] : members) taken.insert(name);
    std::unordered_map<std::string, unsigned> numbers;
    for (auto& [name, member] : members) {
      if (is_valid_utf8(name)) continue;
      const std::string wanted = replaced(name);
      std::string unused = wanted;
      for (unsigned& i = numbers.try_emplace(wanted, 1).first->second;
           !taken.insert(unused).second;)
        unused = fmt::format("{}~{}", wanted, ++i);
      name = std::move(unused);
    }
  }

  std::uint64_t count_ = 0;
};

}  // namespace

std::uint64_t replace_lone_surrogates(V01Document& document) {
  Replacer replacer;
  replacer.replace(document.metadata);
  for (V01Entry& entry : document.entries) replacer.replace(entry.state);
  return replacer.count();
}

}  // namespace thalia::formats
