#include "cli/print/print.h"

#include <unistd.h>

#include <string>

#include "boost_test.h"

using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(print)

BOOST_AUTO_TEST_CASE(numbers_of_bytes_and_things_are_grouped) {
  BOOST_TEST(exact_bytes(1) == "1 byte");
  BOOST_TEST(exact_bytes(1234567) == "1.2 MiB (1,234,567 bytes)");
  BOOST_TEST(counted(1, "entry", "entries") == "1 entry");
  BOOST_TEST(counted(1000, "entry", "entries") == "1,000 entries");
  BOOST_TEST(grouped(999) == "999");
  BOOST_TEST(grouped(1000) == "1,000");
  BOOST_TEST(grouped(~std::uint64_t{0}) == "18,446,744,073,709,551,615");
}

BOOST_AUTO_TEST_CASE(large_counts_have_three_digits_and_all_of_them) {
  BOOST_TEST(human_count(999'999) == "999,999");
  BOOST_TEST(human_count(1'000'000) == "1.00 million (1,000,000)");
  BOOST_TEST(human_count(124'439'808) == "124 million (124,439,808)");
  BOOST_TEST(human_count(999'499'999) == "999 million (999,499,999)");
  BOOST_TEST(human_count(999'500'000) == "1.00 billion (999,500,000)");
  BOOST_TEST(human_count(7'241'732'096) == "7.24 billion (7,241,732,096)");
  BOOST_TEST(human_count(70'000'000'000) == "70.0 billion (70,000,000,000)");
  BOOST_TEST(human_count(~std::uint64_t{0}) == "18.4 quintillion (18,446,744,073,709,551,615)");
}

BOOST_AUTO_TEST_CASE(long_texts_are_cut_in_the_middle_between_characters) {
  BOOST_TEST(cut_in_middle("abcdef", 6) == "abcdef");
  BOOST_TEST(cut_in_middle("a\nb", 6) == "a\\nb");
  BOOST_TEST(cut_in_middle("abcdefgh", 6) == "abc ... fgh (8 B)");
  BOOST_TEST(cut_in_middle("ab\u00e9xxx\u00e9yz", 6) == "ab ... yz (11 B)");
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
