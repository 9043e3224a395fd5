// Precision policies: their names, their text form, and the element type that they choose. Texts
// read back as they were written: parse(to_string(policy)) is the policy. Named policies are the
// original program's (docs/format/states.md, "Precision").

#include "thalia/state/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "codec/float/conversion.h"
#include "state/precision/glob.h"

namespace thalia {
namespace {

constexpr std::array<std::string_view, 5> kPrecisions{"fp32", "fp16", "bf16", "auto", "keep"};
// As PyTorch, numpy and the element types here are called.
constexpr std::array<std::pair<std::string_view, Precision>, 7> kAliases{
    {{"f32", Precision::fp32},
     {"float32", Precision::fp32},
     {"f16", Precision::fp16},
     {"float16", Precision::fp16},
     {"half", Precision::fp16},
     {"bfloat16", Precision::bf16},
     {"float", Precision::fp32}}};
constexpr std::array<std::string_view, kPrecisionCategoryCount> kCategories{
    "weights", "biases", "membrane", "traces", "thresholds", "conductances", "default"};
constexpr std::string_view kMatchingKey = "match";
constexpr std::array<std::string_view, 2> kMatchings{"original", "role"};

PrecisionPolicy uniform(Precision precision) {
  PrecisionPolicy policy;
  for (std::size_t i = 0; i < kPrecisionCategoryCount; ++i)
    policy.of(static_cast<PrecisionCategory>(i)) = precision;
  return policy;
}

// What the original program's policies have in common: 16 bits where errors do not add up over
// training steps, 32 elsewhere.
PrecisionPolicy halved(Precision weights, Precision half) {
  PrecisionPolicy policy = uniform(Precision::fp32);
  policy.weights = weights;
  policy.traces = half;
  policy.conductances = half;
  return policy;
}

struct Named {
  std::string_view name;
  PrecisionPolicy policy;
};

const std::array<Named, 5>& named_policies() {
  static const std::array<Named, 5> policies{{
      {"fp32", uniform(Precision::fp32)},
      {"fp16", halved(Precision::fp16, Precision::fp16)},
      {"bf16", halved(Precision::bf16, Precision::bf16)},
      {"mixed", halved(Precision::automatic, Precision::fp16)},
      {"keep", PrecisionPolicy{}},
  }};
  return policies;
}

// "mixed", or a precision by any of its names.
const Named* find_policy(std::string_view name) {
  const auto precision = precision_from_name(name);
  const std::string_view wanted = precision ? precision_name(*precision) : name;
  for (const Named& named : named_policies())
    if (named.name == wanted) return &named;
  return nullptr;
}

template <typename Enum, std::size_t N>
std::optional<Enum> find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

std::string quoted(std::string_view text) {
  return fmt::format("'{}'", printable(text, 60));
}

[[noreturn]] void fail_policy(std::string_view value, std::string bound, std::string message) {
  fail_argument(ErrorCode::bad_argument, "precision", quoted(value), std::move(bound),
                std::move(message));
}

std::string policy_names() {
  std::string names;
  for (const Named& named : named_policies()) {
    if (!names.empty()) names += ", ";
    names += named.name;
  }
  return names;
}

// Without one of these a key is the name of a category, so that a misspelt category is an error.
bool is_pattern(std::string_view key) {
  return key.find_first_of("*?./") != std::string_view::npos;
}

// A pattern as a key, in quotes if it could be read as something else.
std::string pattern_key(const std::string& glob) {
  if (is_pattern(glob) && glob.find_first_of(",\"") == std::string::npos) return glob;
  std::string key = "\"";
  for (const char c : glob) {
    if (c == '"' || c == '\\') key += '\\';
    key += c;
  }
  return key + '"';
}

// The items KEY=VALUE of a text, one after the other.
class ItemReader {
 public:
  void read_all(std::string_view text) {
    while (true) {
      std::string_view rest = text;
      // Commas, '=' and backslashes between quotes belong to the pattern.
      if (text.starts_with('"')) {
        std::string glob = read_quoted(rest);
        if (!rest.starts_with('=')) fail_item(text);
        const std::size_t end = rest.find(',');
        add_pattern(std::move(glob), rest.substr(1, end - 1),
                    text.substr(0, text.size() - rest.size() + std::min(end, rest.size())));
        rest = end == std::string_view::npos ? rest.substr(rest.size()) : rest.substr(end);
      } else {
        read(text.substr(0, text.find(',')));
        rest = text.substr(std::min(text.find(','), text.size()));
      }
      if (rest.empty()) return;
      text = rest.substr(1);
    }
  }

  PrecisionPolicy finish() {
    PrecisionPolicy policy;
    // A category that is not named follows `default`, and that is `keep` unless it is named.
    const auto by_default = precisions_[static_cast<std::size_t>(PrecisionCategory::other)];
    for (std::size_t i = 0; i < kPrecisionCategoryCount; ++i) {
      policy.of(static_cast<PrecisionCategory>(i)) =
          precisions_[i].value_or(by_default.value_or(Precision::keep));
    }
    policy.patterns = std::move(patterns_);
    policy.matching = matching_.value_or(CategoryMatching::role);
    return policy;
  }

 private:
  [[noreturn]] static void fail_item(std::string_view item) {
    fail_policy(item, policy_names() + ", KEY=PRECISION,…", "unknown precision policy");
  }

  // The pattern that `rest` begins with, in quotes; `rest` is then what follows them.
  static std::string read_quoted(std::string_view& rest) {
    std::string glob;
    for (std::size_t i = 1; i < rest.size(); ++i) {
      if (rest[i] == '"') {
        rest = rest.substr(i + 1);
        return glob;
      }
      if (rest[i] == '\\' && ++i == rest.size()) break;
      glob += rest[i];
    }
    fail_item(rest);
  }

  void read(std::string_view item) {
    // The last '=': a pattern may have others, a precision has none.
    const std::size_t equals = item.rfind('=');
    if (equals == std::string_view::npos || equals == 0) fail_item(item);
    const std::string_view key = item.substr(0, equals);
    const std::string_view value = item.substr(equals + 1);
    if (key == kMatchingKey) {
      set(matching_, find_name<CategoryMatching>(kMatchings, value), item,
          fmt::format("{}", fmt::join(kMatchings, ", ")));
      return;
    }
    if (const auto category = category_from_name(key)) {
      set(precisions_[static_cast<std::size_t>(*category)], precision_from_name(value), item,
          precision_names());
    } else if (!is_pattern(key)) {
      fail_policy(key,
                  fmt::format("{}, {}, a pattern with '*', '?', '.' or '/', or one in quotes",
                              fmt::join(kCategories, ", "), kMatchingKey),
                  "unknown category");
    } else {
      add_pattern(std::string(key), value, item);
    }
  }

  static std::string precision_names() { return fmt::format("{}", fmt::join(kPrecisions, ", ")); }

  void add_pattern(std::string glob, std::string_view value, std::string_view item) {
    std::optional<Precision> precision;
    set(precision, precision_from_name(value), item, precision_names());
    patterns_.push_back({std::move(glob), *precision});
  }

  template <typename T>
  static void set(std::optional<T>& field, std::optional<T> value, std::string_view item,
                  std::string names) {
    if (!value) fail_policy(item, std::move(names), "invalid precision");
    // Two different answers for one category cannot both be meant.
    if (field) fail_argument(ErrorCode::duplicate, "precision", quoted(item), "each key once");
    field = value;
  }

  std::array<std::optional<Precision>, kPrecisionCategoryCount> precisions_;
  std::optional<CategoryMatching> matching_;
  std::vector<PrecisionPattern> patterns_;
};

Precision precision_of(const PrecisionPolicy& policy, std::string_view path, Role role) {
  // Patterns in their order, the first that fits decides, and any of them before the categories.
  for (const PrecisionPattern& pattern : policy.patterns)
    if (state::matches_path(pattern.glob, path)) return pattern.precision;
  if (policy.matching == CategoryMatching::original) return policy.of(category_of_path(path));
  // Rounded moments change training in ways that no error of weights tells.
  if (role == Role::optimizer) return Precision::keep;
  return policy.of(category_of_role(role, path));
}

}  // namespace

std::string_view precision_name(Precision precision) noexcept {
  return kPrecisions[static_cast<std::size_t>(precision)];
}
std::optional<Precision> precision_from_name(std::string_view name) noexcept {
  for (const auto& [alias, precision] : kAliases)
    if (alias == name) return precision;
  return find_name<Precision>(kPrecisions, name);
}
std::string_view category_name(PrecisionCategory category) noexcept {
  return kCategories[static_cast<std::size_t>(category)];
}
std::optional<PrecisionCategory> category_from_name(std::string_view name) noexcept {
  return find_name<PrecisionCategory>(kCategories, name);
}

Precision& PrecisionPolicy::of(PrecisionCategory category) noexcept {
  // In the order of the enumeration, and of kCategories.
  Precision* const fields[] = {&weights,    &biases,       &membrane, &traces,
                               &thresholds, &conductances, &other};
  return *fields[static_cast<std::size_t>(category)];
}

Precision PrecisionPolicy::of(PrecisionCategory category) const noexcept {
  return const_cast<PrecisionPolicy&>(*this).of(category);
}

bool PrecisionPolicy::keeps_all() const noexcept {
  for (std::size_t i = 0; i < kPrecisionCategoryCount; ++i)
    if (of(static_cast<PrecisionCategory>(i)) != Precision::keep) return false;
  return std::all_of(patterns.begin(), patterns.end(), [](const PrecisionPattern& pattern) {
    return pattern.precision == Precision::keep;
  });
}

PrecisionPolicy parse_precision_policy(std::string_view text) {
  if (const Named* named = find_policy(text)) return named->policy;
  ItemReader items;
  items.read_all(text);
  return items.finish();
}

std::string to_string(const PrecisionPolicy& policy) {
  for (const Named& named : named_policies())
    if (named.policy == policy) return std::string(named.name);
  std::string text;
  const auto add = [&](std::string_view key, std::string_view value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  };
  for (const PrecisionPattern& pattern : policy.patterns)
    add(pattern_key(pattern.glob), precision_name(pattern.precision));
  for (std::size_t i = 0; i < kPrecisionCategoryCount; ++i) {
    const auto category = static_cast<PrecisionCategory>(i);
    const bool is_default = category == PrecisionCategory::other;
    // Only what differs from what finish() would fill in.
    const Precision usual = is_default ? Precision::keep : policy.other;
    if (policy.of(category) != usual) add(kCategories[i], precision_name(policy.of(category)));
  }
  if (policy.matching != CategoryMatching::role)
    add(kMatchingKey, kMatchings[static_cast<std::size_t>(policy.matching)]);
  return text;
}

DType stored_dtype(const PrecisionPolicy& policy, std::string_view path, Role role, DType dtype,
                   std::uint64_t element_count) {
  // Integers, truth values and small floats are never rounded.
  if (!codec::is_convertible(dtype)) return dtype;
  constexpr std::uint64_t kAutomaticBytes = 1 << 20;
  switch (precision_of(policy, path, role)) {
    case Precision::fp32:
      return DType::f32;
    case Precision::fp16:
      return DType::f16;
    case Precision::bf16:
      return DType::bf16;
    case Precision::automatic:
      // Divided instead of multiplied: the product could overflow.
      return element_count > kAutomaticBytes / (dtype_bits(dtype) / 8) ? DType::f16 : DType::f32;
    case Precision::keep:
      return dtype;
  }
  return dtype;
}

}  // namespace thalia
