// JSON text as Go's encoding/json writes it, byte for byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace thalia::formats::loom {

/// Appends to a string that the caller may hand on and clear between any two calls. Indented by two
/// spaces a level, or without any white space.
class GoJson {
 public:
  GoJson(std::string& out, bool indented) : out_(out), indented_(indented) {}

  GoJson& begin_object() { return open('{'); }
  GoJson& end_object() { return close('}'); }
  GoJson& begin_array() { return open('['); }
  GoJson& end_array() { return close(']'); }
  GoJson& key(std::string_view key);

  GoJson& text(std::string_view text);
  GoJson& number(std::int64_t number);
  GoJson& number(std::uint64_t number);
  /// The shortest decimals that read back as the same number of its width. @throws UsageError
  /// (bad_argument) for NaN and infinities.
  GoJson& number(double number);
  GoJson& number(float number);
  GoJson& boolean(bool value);
  GoJson& null();
  /// A string whose characters, none of which needs an escape, the caller appends itself.
  void begin_text();
  void end_text() { out_ += '"'; }

 private:
  GoJson& open(char bracket);
  GoJson& close(char bracket);
  void begin_value();
  void new_line();

  std::string& out_;
  bool indented_;
  std::vector<bool> filled_;  ///< of each bracket that is open: whether something is in it
  bool after_key_ = false;
};

}  // namespace thalia::formats::loom
