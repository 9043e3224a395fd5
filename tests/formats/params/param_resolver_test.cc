#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"
#include "thalia/error.h"
#include "thalia/formats/param_source.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(param_resolver)

namespace {

const ParamKey kOne{0, 1}, kTwo{0, 2};

}  // namespace

BOOST_AUTO_TEST_CASE(a_form_is_made_once_for_each_key_and_name) {
  const ParamResolver resolver;
  int made = 0;
  const auto make = [&] { return std::to_string(++made); };
  const auto first = resolver.resolve<std::string>(kOne, "packed", make);
  BOOST_TEST(resolver.resolve<std::string>(kOne, "packed", make) == first);
  BOOST_TEST(*first == "1");
  BOOST_TEST(*resolver.resolve<std::string>(kOne, "transposed", make) == "2");
  BOOST_TEST(*resolver.resolve<std::string>(kTwo, "packed", make) == "3");
  // A form of another type is another one, whatever its name.
  BOOST_TEST(*resolver.resolve<int>(kOne, "packed", [] { return 7; }) == 7);
  const ParamResolver same = resolver;
  BOOST_TEST(*same.resolve<std::string>(kTwo, "packed", make) == "3");
  BOOST_TEST(same.size() == 4u);
}

BOOST_AUTO_TEST_CASE(what_is_forgotten_is_made_again_and_lives_with_its_holders) {
  const ParamResolver resolver;
  int made = 0;
  const auto make = [&] { return ++made; };
  const auto held = resolver.resolve<int>(kOne, "a", make);
  resolver.resolve<int>(kOne, "b", make);
  resolver.resolve<int>(kTwo, "a", make);
  BOOST_TEST(resolver.forget(kOne) == 2u);
  BOOST_TEST(resolver.forget(kOne) == 0u);
  BOOST_TEST(*held == 1);
  BOOST_TEST(*resolver.resolve<int>(kTwo, "a", make) == 3);
  BOOST_TEST(*resolver.resolve<int>(kOne, "a", make) == 4);
  BOOST_TEST(resolver.clear() == 2u);
  BOOST_TEST(resolver.size() == 0u);
}

// The numbers may have been changed after make() read them.
BOOST_AUTO_TEST_CASE(what_is_forgotten_while_it_is_made_is_not_kept) {
  const ParamResolver resolver;
  const auto form = resolver.resolve<int>(kOne, "a", [&] {
    resolver.forget(kOne);
    return 1;
  });
  BOOST_TEST(*form == 1);
  BOOST_TEST(resolver.size() == 0u);
}

BOOST_AUTO_TEST_CASE(what_fails_is_not_kept) {
  const ParamResolver resolver;
  BOOST_CHECK_THROW(
      resolver.resolve<int>(kOne, "a", []() -> int { throw std::runtime_error("no"); }),
      std::runtime_error);
  BOOST_TEST(resolver.size() == 0u);
  BOOST_TEST(*resolver.resolve<int>(kOne, "a", [] { return 1; }) == 1);
}

BOOST_AUTO_TEST_CASE(a_form_may_need_others_but_not_itself) {
  const ParamResolver resolver;
  const auto outer = resolver.resolve<int>(
      kOne, "outer", [&] { return *resolver.resolve<int>(kOne, "inner", [] { return 20; }) + 1; });
  BOOST_TEST(*outer == 21);
  const auto itself = [&] {
    return resolver.resolve<int>(
        kTwo, "a", [&] { return *resolver.resolve<int>(kTwo, "a", [] { return 1; }); });
  };
  BOOST_CHECK_EXCEPTION(itself(), UsageError, test::has_code(ErrorCode::wrong_state));
  BOOST_TEST(*resolver.resolve<int>(kTwo, "a", [] { return 1; }) == 1);
}

BOOST_AUTO_TEST_CASE(a_form_that_several_ask_for_is_made_once) {
  constexpr unsigned kThreads = 8;
  const ParamResolver resolver;
  std::atomic<unsigned> started{0}, made{0}, right{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      ++started;
      right += *resolver.resolve<unsigned>(kOne, "a", [&] {
        while (started < kThreads) std::this_thread::yield();
        return ++made;
      });
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(made == 1u);
  BOOST_TEST(right == kThreads);
}

BOOST_AUTO_TEST_SUITE_END()
