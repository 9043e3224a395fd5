// The opcodes of protocol 2 as torch.save's pickler writes them, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace thalia::formats::pt {

class PickleText {
 public:
  PickleText() : out_("\x80\x02") {}

  void put(char op) { out_ += op; }
  /// With the opcode that ends it; the last call.
  std::string finish() { return std::move(out_) + '.'; }

  /// Remembers what is on top of the stack. @return what get() takes.
  std::uint32_t memoize();
  void get(std::uint32_t place);
  /// What a text's first place is remembered in; equal texts are one object.
  using Texts = std::unordered_map<std::string, std::uint32_t>;
  void text(std::string_view content) { memo_text(texts_, content); }
  void memo_text(Texts& memo, std::string_view content);
  /// "torch._utils _rebuild_tensor_v2": module and name.
  void global(const std::string& name);
  void integer(std::int64_t number);
  /// @throws UnsupportedError for one that torch.load does not read with weights_only.
  void long_integer(std::string_view decimal);
  void real(double number);
  void flag(bool truth) { put(truth ? '\x88' : '\x89'); }
  /// Makes a tuple of values on the stack: up to three, or those above a mark.
  void close_tuple(std::size_t count);
  /// Calls what is below its arguments.
  std::uint32_t call() {
    put('R');
    return memoize();
  }
  void bytes(std::string_view content);
  void device(std::string_view content);

 private:
  template <typename T>
  void put_number(T number) {
    out_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  std::string out_;
  std::uint32_t memo_ = 0;
  Texts texts_, globals_;
};

}  // namespace thalia::formats::pt
