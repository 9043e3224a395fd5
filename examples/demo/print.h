// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace demo {

/// "1,234,567"
std::string with_commas(std::uint64_t number);
/// "192.6 MiB", as the program thalia writes it.
std::string bytes_text(double bytes);
/// "0.18 ms", "12.3 s"
std::string seconds_text(double seconds);
/// "1.83 GiB/s"
std::string speed_text(double bytes, double seconds);
/// "2.5 %", with as many digits as it takes to be more than zero.
std::string share_text(double part, double whole);
/// A word for a POSIX shell: quoted if it has to be.
std::string shell_word(const std::string& word);

/// A name from a file, without what would move a terminal's cursor.
std::string printable(std::string_view name);

/// Seconds since construction.
class Stopwatch {
 public:
  Stopwatch();
  double seconds() const;

 private:
  std::int64_t start_ns_;
};

}  // namespace demo
