#include "interop/orbax/pretty_json.h"

#include "json/copy.h"
#include "json/reader.h"

namespace thalia::interop::orbax {
namespace {

class Printer {
 public:
  // Recursive; the depth is that of a text which was read within a limit.
  void print(json::Value& value) {
    if (value.kind() == json::Kind::object) {
      nested('{', '}', [&] {
        value.for_each_member([&](std::string_view key, json::Value& member) {
          next();
          JsonWriter(text_).value(key);
          text_ += ": ";
          print(member);
        });
      });
    } else if (value.kind() == json::Kind::array) {
      nested('[', ']', [&] {
        value.for_each_element([&](json::Value& element) {
          next();
          print(element);
        });
      });
    } else {
      JsonWriter writer(text_);
      json::copy_value(value, writer);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  template <typename Each>
  void nested(char open, char close, const Each& each) {
    text_ += open;
    ++depth_;
    const std::size_t before = text_.size();
    each();
    --depth_;
    if (text_.size() != before) {
      text_ += '\n';
      text_.append(2 * depth_, ' ');
    }
    text_ += close;
  }
  void next() {
    if (text_.back() != '{' && text_.back() != '[') text_ += ',';
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }

  std::string text_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string pretty_json(std::string_view object, unsigned max_depth) {
  Printer printer;
  json::walk_value(json::canonical_object(object, max_depth), max_depth,
                   [&](json::Value& value) { printer.print(value); });
  return printer.take();
}

}  // namespace thalia::interop::orbax
