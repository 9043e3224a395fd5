// Walks any bytes as a JSON object. What is accepted survives being written and walked again.

#include <string>

#include "fuzz/fuzz_target.h"
#include "json/reader.h"
#include "json/writer.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace json_target {

constexpr unsigned kDepth = 64;

void copy(json::Value& value, JsonWriter& out);

void copy_member(std::string_view key, json::Value& value, JsonWriter& out) {
  out.key(key);
  copy(value, out);
}

void copy(json::Value& value, JsonWriter& out) {
  if (value.kind() == json::Kind::object) {
    out.begin_object();
    value.for_each_member([&](std::string_view k, json::Value& v) { copy_member(k, v, out); });
    out.end_object();
  } else if (value.kind() == json::Kind::array) {
    out.begin_array();
    value.for_each_element([&](json::Value& element) { copy(element, out); });
    out.end_array();
  } else if (value.kind() == json::Kind::string) {
    out.value(value.string());
  } else {
    out.raw(value.token());
  }
}

std::string compact(std::string_view text) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object();
  json::walk_object(text, kDepth,
                    [&](std::string_view k, json::Value& v) { copy_member(k, v, writer); });
  writer.end_object();
  return out;
}

bool passes_check(std::string_view text) {
  try {
    json::check_object(text, kDepth);
    return true;
  } catch (const FormatError&) {
    return false;
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string once;
  try {
    once = compact(text);
  } catch (const FormatError&) {
    FUZZ_REQUIRE(!passes_check(text));
    return;
  }
  FUZZ_REQUIRE(passes_check(text));
  FUZZ_REQUIRE(compact(once) == once);
}

}  // namespace json_target
}  // namespace

FUZZ_TARGET(json)
