// Lines are appended, so the last one of a file counts, and a line's number orders saves; pruning
// alone writes a long journal anew, with the lines that count. A line that a crash tore is passed
// over, and so are members that are not known: a newer version may write them.
#include "store/run/journal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "json/reader.h"
#include "json/writer.h"
#include "thalia/state/value.h"

namespace thalia::store {
namespace {

constexpr unsigned kDepth = 4;
constexpr std::string_view kNan = "NaN", kInfinity = "Infinity", kMinusInfinity = "-Infinity";

// JSON has no number for these, and a loss that became one is worth remembering.
void add_number(JsonWriter& json, std::string_view name, double number) {
  json.key(name);
  if (std::isfinite(number)) {
    json.value(number);
  } else {
    json.value(std::isnan(number) ? kNan : number > 0 ? kInfinity : kMinusInfinity);
  }
}

std::optional<double> number_of(json::Value& value) {
  if (value.kind() == json::Kind::string) {
    const std::string_view text = value.string();
    if (text == kNan) return std::numeric_limits<double>::quiet_NaN();
    if (text == kInfinity) return std::numeric_limits<double>::infinity();
    if (text == kMinusInfinity) return -std::numeric_limits<double>::infinity();
    return std::nullopt;
  }
  if (value.kind() != json::Kind::number) return std::nullopt;
  return Value::number(std::string(value.token())).as_double();
}

std::string text_of(json::Value& value) {
  return value.kind() == json::Kind::string ? std::string(value.string()) : std::string();
}

struct ParsedLine {
  JournalLine saved;
  std::string removed;
  std::string checked;
  std::string resumed;
  std::string rewriting;
  bool is_damaged = false;
};

ParsedLine parse_line(json::Reader& reader, std::string_view text) {
  ParsedLine line;
  reader.object(text, kDepth, [&](std::string_view key, json::Value& value) {
    if (key == "file")
      line.saved.file = text_of(value);
    else if (key == "removed")
      line.removed = text_of(value);
    else if (key == "checked")
      line.checked = text_of(value);
    else if (key == "resumed")
      line.resumed = text_of(value);
    else if (key == "rewriting")
      line.rewriting = text_of(value);
    else if (key == "damaged")
      line.is_damaged = value.token() == "true";
    else if (key == "step")
      line.saved.step = value.unsigned_integer().value_or(0);
    else if (key == "bytes")
      line.saved.bytes = value.unsigned_integer().value_or(0);
    else if (key == "saved_at")
      line.saved.saved_at = value.unsigned_integer().value_or(0);
    else if (key == "modified_ns")
      line.saved.modified_ns = value.unsigned_integer().value_or(0);
    else if (key == "sha256")
      line.saved.sha256 = text_of(value);
    else if (key == "metric")
      line.saved.metric = number_of(value);
    else if (key == "base")
      line.saved.base = text_of(value);
    else if (key == "read_factor")
      line.saved.read_factor = number_of(value);
    else if (key == "mended")
      line.saved.is_save = false;
    else if (key == "depth")
      line.saved.depth = static_cast<unsigned>(
          std::min<std::uint64_t>(value.unsigned_integer().value_or(0), 1u << 16));
  });
  return line;
}

}  // namespace

std::string journal_text(const JournalLine& line) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("file", line.file).member("step", line.step);
  json.member("bytes", line.bytes).member("saved_at", line.saved_at);
  if (line.modified_ns != 0) json.member("modified_ns", line.modified_ns);
  if (!line.sha256.empty()) json.member("sha256", line.sha256);
  if (line.metric) add_number(json, "metric", *line.metric);
  if (line.depth != 0) json.member("base", line.base).member("depth", line.depth);
  if (line.read_factor) add_number(json, "read_factor", *line.read_factor);
  if (!line.is_save) json.member("mended", true);
  json.end_object();
  return text + "\n";
}

std::string removal_text(std::string_view file, std::string_view reason, std::uint64_t now) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("removed", file).member("reason", reason).member("at", now);
  json.end_object();
  return text + "\n";
}

std::string rewriting_text(std::string_view file, std::uint64_t now) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("rewriting", file).member("at", now).end_object();
  return text + "\n";
}

std::string resumed_text(std::string_view file, std::uint64_t now) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("resumed", file).member("at", now).end_object();
  return text + "\n";
}

std::string check_text(std::string_view file, const JournalCheck& check, std::uint64_t now) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("checked", file).member("bytes", check.bytes);
  json.member("modified_ns", check.modified_ns).member("damaged", !check.is_whole);
  json.member("at", now).end_object();
  return text + "\n";
}

Journal parse_journal(std::string_view text) {
  Journal journal;
  json::Reader reader;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    ++journal.lines;
    try {
      ParsedLine parsed = parse_line(reader, line);
      if (!parsed.resumed.empty()) {
        const auto known = journal.saved.find(parsed.resumed);
        if (known != journal.saved.end()) known->second.number = journal.lines;
      } else if (!parsed.rewriting.empty()) {
        const auto known = journal.saved.find(parsed.rewriting);
        if (known != journal.saved.end()) known->second.is_rewritten = true;
      } else if (!parsed.checked.empty()) {
        journal.checks.insert_or_assign(
            std::move(parsed.checked),
            JournalCheck{parsed.saved.bytes, parsed.saved.modified_ns, !parsed.is_damaged});
      } else if (!parsed.removed.empty()) {
        if (auto known = journal.saved.extract(parsed.removed)) {
          journal.removed.insert_or_assign(std::move(parsed.removed), std::move(known.mapped()));
        } else {
          journal.removed.try_emplace(parsed.removed, JournalLine{.file = parsed.removed});
        }
      } else if (!parsed.saved.file.empty()) {
        std::string file = parsed.saved.file;
        if (parsed.saved.modified_ns != 0)
          journal.checks.insert_or_assign(
              file, JournalCheck{parsed.saved.bytes, parsed.saved.modified_ns, true});
        const auto gone = journal.removed.extract(file);
        if (parsed.saved.is_save) {
          parsed.saved.number = journal.lines;
        } else if (const auto known = journal.saved.find(file); known != journal.saved.end()) {
          parsed.saved.number = known->second.number;
        } else if (gone) {
          parsed.saved.number = gone.mapped().number;
        }
        journal.saved.insert_or_assign(std::move(file), std::move(parsed.saved));
      }
    } catch (const FormatError&) {
      // A crash tore it. What it said of its file is lost, and the file is not.
    }
  }
  return journal;
}

}  // namespace thalia::store
