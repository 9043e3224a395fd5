#include "cli/print/progress.h"

#include <chrono>
#include <string>
#include <string_view>

#include "boost_test.h"
#include "cli/terminal/escape.h"

using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(progress)

BOOST_AUTO_TEST_CASE(bar_waits_a_second_and_wipes_itself) {
  ProgressBar::Clock::time_point now{};
  std::string drawn;
  {
    ProgressBar bar(
        "hashing", 80, [&](std::string_view text) { drawn += text; }, [&] { return now; });
    bar.update(1, 100);
    now += std::chrono::milliseconds(999);
    bar.update(50 << 20, 100 << 20);
    BOOST_TEST(drawn == "");
    now += std::chrono::milliseconds(1001);
    bar.update(50 << 20, 100 << 20);
    BOOST_TEST(drawn.find("hashing [") != std::string::npos);
    BOOST_TEST(drawn.find(" 50 %  50.0 MiB of 100.0 MiB  25.0 MiB/s  2 s left") !=
               std::string::npos);
    BOOST_TEST(display_width(drawn) <= 80u + 4);
    const std::size_t once = drawn.size();
    bar.update(51 << 20, 100 << 20);
    BOOST_TEST(drawn.size() == once);
  }
  BOOST_TEST(drawn.ends_with("\r\x1b[K"));
}

BOOST_AUTO_TEST_CASE(long_label_drops_the_amounts) {
  ProgressBar::Clock::time_point now{};
  std::string drawn;
  ProgressBar bar(
      "converting model.safetensors", 80, [&](std::string_view text) { drawn += text; },
      [&] { return now; });
  now += std::chrono::seconds(2);
  bar.update(50 << 20, 100 << 20);
  BOOST_TEST(
      drawn ==
      "\r\x1b[Kconverting model.safetensors [##########..........]  50 %  25.0 MiB/s  2 s left");
  BOOST_TEST(drawn.size() == 79u + 4);
}

BOOST_AUTO_TEST_CASE(bar_fits_a_narrow_terminal) {
  ProgressBar::Clock::time_point now{};
  std::string drawn;
  ProgressBar bar(
      "hashing", 20, [&](std::string_view text) { drawn += text; }, [&] { return now; });
  now += std::chrono::seconds(2);
  bar.update(1, 3);
  BOOST_TEST(drawn.size() <= 20u + 4);
}

BOOST_AUTO_TEST_CASE(short_work_draws_nothing) {
  std::string drawn;
  {
    ProgressBar bar(
        "x", 80, [&](std::string_view text) { drawn += text; }, ProgressBar::Clock::now);
    bar.update(1, 2);
  }
  BOOST_TEST(drawn == "");
}

BOOST_AUTO_TEST_SUITE_END()
