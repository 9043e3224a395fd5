// Members of an object that somebody wrote by hand or another program wrote: each is asked for by
// its name and kind, and an error names it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/state/value.h"

namespace thalia::store {

/// The members of one object, which outlives this. Externally synchronised.
class Fields {
 public:
  /// @param place of the object, in messages: "phases[0].". @throws FormatError (bad_value) unless
  /// it is an object.
  explicit Fields(const Value& object, std::string place = {});

  // nullopt if the member is not there, or null. @throws FormatError (bad_value) for one of
  // another kind, or out of bounds.
  std::optional<std::string> text(std::string_view name);
  std::optional<std::uint64_t> integer(std::string_view name, std::uint64_t least,
                                       std::uint64_t most);
  std::optional<double> number(std::string_view name);
  std::optional<bool> truth(std::string_view name);
  std::optional<std::vector<std::string>> texts(std::string_view name);
  const Value* object(std::string_view name);
  const std::vector<Value>* list(std::string_view name);
  std::string place_of(std::string_view name) const { return place_ + std::string(name); }

  /// @throws FormatError (bad_value) for a member that was never asked for.
  void require_all_known() const;
  /// @throws FormatError (bad_value).
  [[noreturn]] void fail(std::string_view name, std::string value, std::string expected) const;

 private:
  const Value* find(std::string_view name);
  const Value& object_;
  std::string place_;
  std::set<std::string, std::less<>> asked_;
};

/// A value as messages show it: a text in quotation marks, a number as it is, else its kind.
std::string shown(const Value& value);

}  // namespace thalia::store
