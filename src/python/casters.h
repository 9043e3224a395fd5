// Values of the library as Python has them, both ways: an enumeration is the name of a value, a
// digest its hexadecimal digits, a shape a tuple.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "base/hex.h"
#include "python/objects.h"
#include "thalia/error.h"
#include "thalia/formats/param_source.h"
#include "thalia/options.h"
#include "thalia/recover.h"
#include "thalia/state/diff.h"
#include "thalia/store/pool.h"
#include "thalia/store/retention.h"
#include "thalia/tensor.h"
#include "thalia/text.h"
#include "thalia/types.h"
#include "thalia/verify.h"
#include "thalia/version.h"

namespace thalia::python {

/// Elements that stay their owner's, as a tuple.
template <typename T>
struct TupleOf {
  const std::vector<T>& elements;
};

// How each enumeration is spelled. What has no name is not one of its values.

inline std::string_view spelled(Change change) noexcept {
  return change_name(change);
}
inline std::string_view spelled(Codec codec) noexcept {
  return codec_name(codec);
}
inline std::string_view spelled(Encoding encoding) noexcept {
  return encoding_name(encoding);
}
inline std::string_view spelled(ErrorCode code) noexcept {
  return error_code_name(code);
}
inline std::string_view spelled(Role role) noexcept {
  return role_name(role);
}
inline std::string_view spelled(SalvageTables tables) noexcept {
  return salvage_tables_name(tables);
}
inline std::string_view spelled(Severity severity) noexcept {
  return severity_name(severity);
}
inline std::string_view spelled(IoMode mode) noexcept {
  return mode == IoMode::direct ? "direct" : mode == IoMode::buffered ? "buffered" : "automatic";
}
inline std::string_view spelled(Condition condition) noexcept {
  switch (condition) {
    case Condition::whole:
      return "whole";
    case Condition::damaged:
      return "damaged";
    case Condition::unknown:
      break;
  }
  return "unknown";
}
inline std::string_view spelled(RetentionDecision::Fate fate) noexcept {
  using Fate = RetentionDecision::Fate;
  return fate == Fate::keep ? "keep" : fate == Fate::remove ? "remove" : "squash";
}
inline std::string_view spelled(OpponentKind kind) noexcept {
  return kind == OpponentKind::pool ? "pool" : kind == OpponentKind::baseline ? "baseline" : "self";
}

}  // namespace thalia::python

// NOLINTBEGIN(readability-identifier-naming): the names that nanobind looks for.
namespace nanobind::detail {

/// A value with a text in Python: text_of(value) makes it, of_text(text) an optional value.
template <typename T, typename Derived>
struct text_value_caster {
  NB_TYPE_CASTER(T, const_name("str"))

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<std::string> text;
    if (!text.from_python(source, flags, cleanup)) return false;
    const std::optional<T> found = Derived::of_text(text.value);
    if (found) value = *found;
    return found.has_value();
  }

  static handle from_cpp(const T& value, rv_policy /*policy*/, cleanup_list* /*cleanup*/) noexcept {
    return thalia::python::text_object(Derived::text_of(value)).release();
  }
};

template <typename E>
struct enum_caster : text_value_caster<E, enum_caster<E>> {
  static std::string_view text_of(E value) noexcept { return thalia::python::spelled(value); }
  static std::optional<E> of_text(std::string_view text) noexcept {
    constexpr int kMostCodes = 1000;  // those of ErrorCode are the largest
    for (int code = 0; code < kMostCodes; ++code)
      if (thalia::python::spelled(static_cast<E>(code)) == text) return static_cast<E>(code);
    return std::nullopt;
  }
};

template <>
struct type_caster<thalia::Codec> : enum_caster<thalia::Codec> {};
template <>
struct type_caster<thalia::Encoding> : enum_caster<thalia::Encoding> {};
template <>
struct type_caster<thalia::ErrorCode> : enum_caster<thalia::ErrorCode> {};
template <>
struct type_caster<thalia::Role> : enum_caster<thalia::Role> {};
template <>
struct type_caster<thalia::Severity> : enum_caster<thalia::Severity> {};
template <>
struct type_caster<thalia::IoMode> : enum_caster<thalia::IoMode> {};
// Those whose values users compare with.
template <>
struct type_caster<thalia::Change> : enum_caster<thalia::Change> {
  static constexpr auto Name = const_name("typing.Literal['added', 'removed', 'changed']");
};
template <>
struct type_caster<thalia::SalvageTables> : enum_caster<thalia::SalvageTables> {
  static constexpr auto Name = const_name("typing.Literal['header', 'commit_record', 'side_file']");
};
template <>
struct type_caster<thalia::Condition> : enum_caster<thalia::Condition> {
  static constexpr auto Name = const_name("typing.Literal['unknown', 'whole', 'damaged']");
};
template <>
struct type_caster<thalia::RetentionDecision::Fate> : enum_caster<thalia::RetentionDecision::Fate> {
  static constexpr auto Name = const_name("typing.Literal['keep', 'squash', 'remove']");
};

template <>
struct type_caster<thalia::OpponentKind> : enum_caster<thalia::OpponentKind> {
  static constexpr auto Name = const_name("typing.Literal['self', 'pool', 'baseline']");
};

template <>
struct type_caster<thalia::DType> : text_value_caster<thalia::DType, type_caster<thalia::DType>> {
  static std::string_view text_of(thalia::DType dtype) noexcept {
    return thalia::dtype_name(dtype);
  }
  static std::optional<thalia::DType> of_text(std::string_view text) noexcept {
    return thalia::dtype_from_name(text);
  }
};

template <>
struct type_caster<thalia::Digest256>
    : text_value_caster<thalia::Digest256, type_caster<thalia::Digest256>> {
  static std::string text_of(const thalia::Digest256& digest) { return thalia::hex(digest.bytes); }
  static std::optional<thalia::Digest256> of_text(std::string_view text) noexcept {
    return thalia::parse_digest(text);
  }
};

template <>
struct type_caster<thalia::Digest128>
    : text_value_caster<thalia::Digest128, type_caster<thalia::Digest128>> {
  static std::string text_of(const thalia::Digest128& digest) { return thalia::hex(digest.bytes); }
  static std::optional<thalia::Digest128> of_text(std::string_view text) noexcept {
    thalia::Digest128 digest;
    if (text.size() != 2 * sizeof digest.bytes) return std::nullopt;
    for (std::size_t i = 0; i < sizeof digest.bytes; ++i) {
      const auto byte = thalia::parse_hex(text.substr(2 * i, 2), 2);
      if (!byte) return std::nullopt;
      digest.bytes[i] = static_cast<std::uint8_t>(*byte);
    }
    return digest;
  }
};

template <typename Kind>
struct type_caster<thalia::Id128<Kind>>
    : text_value_caster<thalia::Id128<Kind>, type_caster<thalia::Id128<Kind>>> {
  using Id = thalia::Id128<Kind>;
  static std::string text_of(const Id& id) { return id.to_string(); }
  static std::optional<Id> of_text(std::string_view text) noexcept { return Id::from_string(text); }
};

template <>
struct type_caster<thalia::FormatVersion>
    : text_value_caster<thalia::FormatVersion, type_caster<thalia::FormatVersion>> {
  static std::string text_of(const thalia::FormatVersion& version) { return version.to_string(); }
  static std::optional<thalia::FormatVersion> of_text(std::string_view text) noexcept {
    return thalia::parse_format_version(text);
  }
};

template <typename T>
struct type_caster<thalia::python::TupleOf<T>> {
  static constexpr auto Name = const_name("tuple[") + make_caster<T>::Name + const_name(", ...]");

  static handle from_cpp(const thalia::python::TupleOf<T>& tuple, rv_policy policy,
                         cleanup_list* cleanup) noexcept {
    object out = steal(PyTuple_New(static_cast<Py_ssize_t>(tuple.elements.size())));
    if (!out.is_valid()) return {};
    Py_ssize_t place = 0;
    for (const T& element : tuple.elements) {
      const handle made = make_caster<T>::from_cpp(element, policy, cleanup);
      // It takes the reference over, whatever it returns.
      if (!made.is_valid() || PyTuple_SetItem(out.ptr(), place++, made.ptr()) != 0) return {};
    }
    return out.release();
  }
};

template <>
struct type_caster<thalia::Shape> {
  NB_TYPE_CASTER(thalia::Shape, const_name("tuple[int, ...]"))
  using Extents = std::vector<std::uint64_t>;

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<Extents> extents;
    if (!extents.from_python(source, flags, cleanup)) return false;
    if (extents.value.size() > thalia::Shape::kMaxRank) return false;
    value = thalia::Shape(std::span<const std::uint64_t>(extents.value));
    return true;
  }

  static handle from_cpp(const thalia::Shape& shape, rv_policy policy,
                         cleanup_list* cleanup) noexcept {
    const auto extents = shape.extents();
    const Extents elements(extents.begin(), extents.end());
    return make_caster<thalia::python::TupleOf<std::uint64_t>>::from_cpp({elements}, policy,
                                                                         cleanup);
  }
};

}  // namespace nanobind::detail
// NOLINTEND(readability-identifier-naming)
