// Works on texts that the library has checked: strings are closed and brackets match, so scanning
// for quotes and brackets is enough, and no tree is built.
#include "cli/print/json_text.h"

#include <algorithm>

#include "cli/print/print.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

constexpr std::string_view kSpace = " \t\n\r";

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Length of the string literal that `text` starts with, quotes included.
std::size_t string_length(std::string_view text) {
  std::size_t i = 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

// Calls visit(piece) for what stands between the commas of one pair of brackets.
template <typename Visit>
void for_each_piece(std::string_view inside, const Visit& visit) {
  if (trim(inside).empty()) return;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const char c = inside[i];
    if (c == '"') {
      i += string_length(inside.substr(i)) - 1;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      visit(trim(inside.substr(start, i - start)));
      start = i + 1;
    }
  }
  visit(trim(inside.substr(start)));
}

std::optional<std::string_view> inside_of(std::string_view json, char open) {
  json = trim(json);
  if (json.size() < 2 || json.front() != open) return std::nullopt;
  return json.substr(1, json.size() - 2);
}

}  // namespace

std::string pretty_json(std::string_view json, std::string_view margin) {
  std::string out;
  std::size_t depth = 0;
  const auto new_line = [&] { out.append("\n").append(margin).append(2 * depth, ' '); };
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (kSpace.find(c) != std::string_view::npos) continue;
    if (c == '"') {
      const std::size_t length = string_length(json.substr(i));
      out += json.substr(i, length);
      i += length - 1;
    } else if (c == '{' || c == '[') {
      out += c;
      const std::size_t next = json.find_first_not_of(kSpace, i + 1);
      if (next != std::string_view::npos && (json[next] == '}' || json[next] == ']')) {
        out += json[next];
        i = next;
      } else {
        ++depth;
        new_line();
      }
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
      new_line();
      out += c;
    } else {
      out += c;
      if (c == ',') new_line();
      if (c == ':') out += ' ';
    }
  }
  return out;
}

void print_pretty_json(Output& out, std::string_view json, std::string_view margin) {
  const std::string text = pretty_json(json, margin);
  for (std::size_t begin = 0; begin <= text.size() && !out.closed();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out.write(escape(std::string_view(text).substr(begin, end - begin)) + "\n");
    begin = end + 1;
  }
}

void print_metadata(Output& out, std::string_view json) {
  if (json.empty()) return out.line("metadata", "none");
  out.write("metadata\n  ");
  print_pretty_json(out, json, "  ");
}

void print_short_metadata(Output& out, std::string_view json) {
  constexpr std::size_t kShownMembers = 8, kLongest = 100;
  const auto inside = inside_of(json, '{');
  if (!inside) return;
  std::size_t members = 0;
  for_each_piece(*inside, [&](std::string_view member) {
    const std::size_t length = string_length(member);
    const std::string_view key = member.substr(1, length - 2);
    if (key == "growth_history") return;
    if (members == 0) out.write("metadata\n");
    if (++members > kShownMembers) return;
    const std::string name = cut_in_middle(key);
    const std::string_view value = trim(member.substr(member.find(':', length) + 1));
    const std::size_t left = kLongest - std::min(kLongest / 2, name.size());
    out.print("  {}: {}\n", name, cut_in_middle(compact_json(value), left));
  });
  if (members > kShownMembers)
    out.print("  and {} more, which --metadata shows\n", grouped(members - kShownMembers));
}

std::string compact_json(std::string_view json) {
  std::string out;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') {
      const std::size_t length = string_length(json.substr(i));
      out += json.substr(i, length);
      i += length - 1;
    } else if (kSpace.find(json[i]) == std::string_view::npos) {
      out += json[i];
    }
  }
  return out;
}

std::optional<std::string_view> json_member(std::string_view json, std::string_view key) {
  const auto inside = inside_of(json, '{');
  if (!inside) return std::nullopt;
  std::optional<std::string_view> found;
  for_each_piece(*inside, [&](std::string_view member) {
    const std::size_t length = member.empty() ? 0 : string_length(member);
    if (length < 2 || member.substr(1, length - 2) != key) return;
    const std::size_t colon = member.find(':', length);
    if (colon != std::string_view::npos) found = trim(member.substr(colon + 1));
  });
  return found;
}

std::optional<std::vector<std::string_view>> json_elements(std::string_view json) {
  const auto inside = inside_of(json, '[');
  if (!inside) return std::nullopt;
  std::vector<std::string_view> elements;
  for_each_piece(*inside, [&](std::string_view element) { elements.push_back(element); });
  return elements;
}

}  // namespace thalia::cli
