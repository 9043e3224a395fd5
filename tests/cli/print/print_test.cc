#include "cli/print/print.h"

#include <unistd.h>

#include <string>

#include "boost_test.h"

using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(print)

BOOST_AUTO_TEST_CASE(sizes_round_to_one_decimal) {
  BOOST_TEST(human_bytes(0) == "0 B");
  BOOST_TEST(human_bytes(1023) == "1023 B");
  BOOST_TEST(human_bytes(1536) == "1.5 KiB");
  BOOST_TEST(human_bytes(1048575) == "1.0 MiB");
  BOOST_TEST(human_bytes(~std::uint64_t{0}) == "16.0 EiB");
  BOOST_TEST(exact_bytes(1) == "1 byte");
  BOOST_TEST(exact_bytes(1234567) == "1.2 MiB (1,234,567 bytes)");
  BOOST_TEST(counted(1, "entry", "entries") == "1 entry");
  BOOST_TEST(counted(1000, "entry", "entries") == "1,000 entries");
  BOOST_TEST(grouped(999) == "999");
  BOOST_TEST(grouped(1000) == "1,000");
  BOOST_TEST(grouped(~std::uint64_t{0}) == "18,446,744,073,709,551,615");
}

BOOST_AUTO_TEST_CASE(times_are_utc_and_none_is_too_late) {
  BOOST_TEST(utc_time(0) == "1970-01-01 00:00:00 UTC");
  BOOST_TEST(utc_time(1795232610) == "2026-11-21 03:43:30 UTC");
  BOOST_TEST(utc_time(253402300799) == "9999-12-31 23:59:59 UTC");
  BOOST_TEST(utc_time(253402300800) == "@253402300800");
  BOOST_TEST(utc_time(~std::uint64_t{0}) == "@18446744073709551615");
}

BOOST_AUTO_TEST_CASE(table_pads_to_the_widest_and_ends_without_spaces) {
  int ends[2];
  BOOST_TEST_REQUIRE(::pipe(ends) == 0);
  Output out(ends[1]);
  Table table({{"name"}, {"bytes", Table::Align::right}, {"note"}});
  table.add_row({"caf\xc3\xa9", "1", "x"});
  table.add_row({"\xe6\xbc\xa2\xe5\xad\x97y", "12345678"});
  table.print(out);
  out.flush();
  ::close(ends[1]);
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
  ::close(ends[0]);
  BOOST_TEST(text ==
             "name      bytes  note\n"
             "caf\xc3\xa9          1  x\n"
             "\xe6\xbc\xa2\xe5\xad\x97y  12345678\n");
}

BOOST_AUTO_TEST_SUITE_END()
