// Reading JSON with bounds: RFC 8259, UTF-8 checked, depth limited. Numbers of any size are well
// formed; keys may repeat, what that means is the caller's business. Also the dialect of Python's
// json module, which the original program's files are written in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace thalia::json {

/// No text is read deeper than this, whatever the caller's limit, because the walk is recursive.
inline constexpr unsigned kDepthCeiling = 1024;

enum class Dialect {
  rfc8259,
  /// What Python's json module reads and writes: also the numbers NaN, Infinity and -Infinity, and
  /// escapes of lone surrogates, which are decoded to the three bytes that UTF-8 would give them
  /// ("WTF-8").
  python,
};

/// @throws FormatError (bad_json) unless `text` is one well-formed JSON object no deeper than
/// `max_depth`; code limit_exceeded where only the depth is at fault. The message says what is
/// wrong, as far as the parser tells.
void check_object(std::string_view text, unsigned max_depth);

/// True of a number as RFC 8259, section 6, spells it.
bool is_number(std::string_view token) noexcept;

enum class Kind { object, array, string, number, boolean, null };

std::string_view kind_name(Kind kind) noexcept;

class Value;
class Walk;
using MemberVisitor = std::function<void(std::string_view key, Value& value)>;
using ElementVisitor = std::function<void(Value& value)>;

/// One value while a text is walked, in the order of the text. A value can be taken once, as the
/// kind that it is: string(), for_each_member() and for_each_element() throw FormatError (bad_json)
/// for other kinds. What a visitor does not take is checked all the same.
class Value {
 public:
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  Kind kind() const noexcept { return kind_; }
  /// The token of a number, boolean or null as it is in the text, else empty.
  std::string_view token() const noexcept { return token_; }
  /// nullopt for other kinds, and for numbers that are negative, have a fraction or an exponent, or
  /// exceed 2^64 - 1.
  std::optional<std::uint64_t> unsigned_integer() const noexcept;
  /// The text of a string, decoded. Valid until the walk returns.
  std::string_view string();
  void for_each_member(const MemberVisitor& visit);    ///< of an object
  void for_each_element(const ElementVisitor& visit);  ///< of an array

 private:
  friend class Walk;
  Value(Walk& walk, void* parsed, unsigned depth);
  void take(Kind wanted);
  void finish();

  Walk& walk_;
  void* parsed_;
  unsigned depth_;
  Kind kind_;
  bool taken_ = false;
  std::string_view token_;
};

/// Calls `visit` for every member of the object that `text` is; keys are valid until the walk
/// returns. An exception of the visitor ends the walk and passes through.
/// @throws FormatError as check_object(), possibly after members before the fault were visited.
void walk_object(std::string_view text, unsigned max_depth, const MemberVisitor& visit,
                 Dialect dialect = Dialect::rfc8259);

/// Reads many texts one after the other, and keeps the memory that it needs between them: most of
/// the time of a short text goes into getting that.
class Reader {
 public:
  Reader();
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// walk_object() and walk_value() are these, of one text. @throws FormatError as those.
  void object(std::string_view text, unsigned max_depth, const MemberVisitor& visit,
              Dialect dialect = Dialect::rfc8259);
  void value(std::string_view text, unsigned max_depth, const ElementVisitor& visit,
             Dialect dialect = Dialect::rfc8259);

  struct Memory;

 private:
  std::unique_ptr<Memory> memory_;
};

/// The same of a text that is any value: calls `visit` once. @throws FormatError (bad_json,
/// limit_exceeded) as check_object().
void walk_value(std::string_view text, unsigned max_depth, const ElementVisitor& visit,
                Dialect dialect = Dialect::rfc8259);

}  // namespace thalia::json
