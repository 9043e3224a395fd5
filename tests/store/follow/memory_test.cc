// Memory of the server's own: which tensors it is for, and what has to fit.
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "boost_test.h"
#include "store/follow/training.h"
#include "support/errors.h"
#include "thalia/state/checkpoint.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;

BOOST_AUTO_TEST_SUITE(store_follow_memory)

BOOST_AUTO_TEST_CASE(memory_has_to_fit) {
  Training training;
  training.save(1);
  std::vector<std::byte> memory(16);
  Follower small(training.path());
  small.add_memory("model", "w", memory);
  BOOST_CHECK_EXCEPTION(small.wait(kNow), UsageError,
                        says(ErrorCode::size_mismatch, "16 bytes", "16384"));
  Follower other(training.path());
  other.add_memory("model", "x", memory);
  BOOST_CHECK_EXCEPTION(other.wait(kNow), UsageError, has_code(ErrorCode::not_found));
  const auto refused = [&](const ServerMemory& wrong) {
    Follower follower(training.path());
    follower.add_memory("model", "w", wrong);
    try {
      follower.wait(kNow);
    } catch (const UsageError& error) {
      return error.code();
    }
    return ErrorCode::io;
  };
  std::vector<std::byte> all(std::size_t{64} * 64 * 4);
  BOOST_TEST((refused({all, DType::i32, {64, 64}}) == ErrorCode::dtype_mismatch));
  BOOST_TEST((refused({all, DType::f32, {64 * 64}}) == ErrorCode::shape_mismatch));
  BOOST_TEST((refused({all, DType::f32, {64, 64}}) == ErrorCode::io));
}

BOOST_AUTO_TEST_CASE(what_a_callback_gives_has_to_fit) {
  Training training;
  training.save(1);
  std::vector<std::byte> all(std::size_t{64} * 64 * 4);
  Names asked;
  FollowOptions options;
  options.memory = [&](const FollowedTensor& tensor) -> ServerMemory {
    asked.push_back(tensor.name);
    if (tensor.name != "w") return {};
    return {all, DType::bf16, tensor.layout.shape};
  };
  BOOST_CHECK_EXCEPTION(Follower(training.path(), options).wait(kNow), UsageError,
                        says(ErrorCode::dtype_mismatch, "bf16", "f32"));
  BOOST_TEST(asked == (Names{"b", "w"}), per_element());
}

BOOST_AUTO_TEST_CASE(memory_may_have_several_names) {
  Training training;
  training.save(1);
  std::vector<std::byte> all(std::size_t{64} * 64 * 4);
  const std::array<std::string, 2> names{"tied", "w"};
  Follower follower(training.path());
  follower.add_memory(names, {all, DType::f32, {64, 64}});
  BOOST_CHECK_EXCEPTION(follower.add_memory(std::span(names).first(1), all), UsageError,
                        has_code(ErrorCode::bad_argument));
  follower.wait(kNow);
  BOOST_TEST(training.holds(*follower.current(), 1));
  BOOST_TEST(follower.current()->at("model", "w").bytes().data() == all.data());
  Follower none(training.path());
  none.add_memory(std::span(names).first(1), all);
  BOOST_CHECK_EXCEPTION(none.wait(kNow), UsageError, has_code(ErrorCode::not_found));
}

BOOST_AUTO_TEST_CASE(memory_of_a_name_is_of_one_tensor_and_that_of_its_own_region_comes_first) {
  const TemporaryFolder folder;
  BrainState brain;
  const std::vector<float> one(16, 1), two(16, 2);
  brain.regions.add("a").weights()["w"] = Tensor::copy_of({16}, one);
  brain.regions.add("b").weights()["w"] = Tensor::copy_of({16}, two);
  BrainCheckpoint::save(brain, folder / "s.thalia");
  std::vector<float> any(16), own(16);
  const std::array<std::string, 1> names{"w"};
  Follower unclear(folder.path());
  unclear.add_memory(names, std::as_writable_bytes(std::span(any)));
  BOOST_CHECK_EXCEPTION(unclear.wait(kNow), UsageError, has_code(ErrorCode::duplicate));
  BOOST_TEST(any == std::vector<float>(16), per_element());
  Follower follower(folder.path());
  follower.add_memory(names, std::as_writable_bytes(std::span(any)));
  follower.add_memory("a", "w", std::as_writable_bytes(std::span(own)));
  BOOST_REQUIRE(follower.wait(kNow).has_value());
  BOOST_TEST(own == one, per_element());
  BOOST_TEST(any == two, per_element());
}

BOOST_AUTO_TEST_SUITE_END()
