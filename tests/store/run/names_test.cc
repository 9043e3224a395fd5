#include "store/run/names.h"

#include "boost_test.h"
#include "support/errors.h"
#include "thalia/store/run.h"

using namespace thalia;
using namespace thalia::test;
using namespace thalia::store;

BOOST_AUTO_TEST_SUITE(store_names)

BOOST_AUTO_TEST_CASE(names_are_the_specifications_and_sort_as_steps_do) {
  BOOST_TEST(checkpoint_name("phase2", 45'000, "pt") == "ckpt_phase2_step00045000.pt");
  BOOST_TEST(checkpoint_name("phase2", 9'999, "pt") < checkpoint_name("phase2", 10'000, "pt"));
  BOOST_TEST(checkpoint_step("ckpt_phase2_step00045000.pt", "phase2", "pt").value() == 45'000);
  BOOST_TEST(pool_name(42, 120'000, "pt") == "pool_v0042_step00120000.pt");
  BOOST_TEST(pool_name(12'345, 0, "pt") == "pool_v12345_step00000000.pt");
  BOOST_TEST(parse_pool_name("pool_v12345_step00000007.pt", "pt")->version == 12'345);
  BOOST_CHECK_EXCEPTION(checkpoint_name("a", 100'000'000, "pt"), UsageError,
                        says(ErrorCode::bad_argument, "100000000", "99999999"));
}

BOOST_AUTO_TEST_CASE(other_names_are_none) {
  for (const char* const name : {"ckpt_phase1_step00045000.pt", "ckpt_phase2_step45000.pt",
                                 "ckpt_phase2_step00045000.pt.tmp", "ckpt_phase2_step0004500a.pt",
                                 "ckpt_phase2_step00045000.pt.sha256", "latest.pt", "",
                                 "ckpt_phase2_step+0045000.pt", "xckpt_phase2_step00045000.pt"})
    BOOST_TEST(!checkpoint_step(name, "phase2", "pt"), name);
  for (const char* const name : {"pool_v042_step00120000.pt", "pool_v0042_step0120000.pt",
                                 "pool_v0042step00120000.pt", "pool_v00-1_step00120000.pt"})
    BOOST_TEST(!parse_pool_name(name, "pt"), name);
  for (const char* const name : {"", ".hidden", "a/b", "a b", "-a", "\xc3\xa4"})
    BOOST_TEST(!is_name(name), name);
}

BOOST_AUTO_TEST_CASE(a_run_id_tells_start_and_seed) {
  // 2026-01-15 14:30:22 UTC.
  BOOST_TEST(run_id(1'768'487'422, 0xffff'ffff'a1b2'c3d4) == "20260115_143022_a1b2c3d4");
  BOOST_TEST(run_id(1'768'487'422, 7) == "20260115_143022_00000007");
  BOOST_TEST(is_run_id("20260115_143022_a1b2c3d4"));
  for (const char* const text : {"20260115_143022_A1B2C3D4", "20260115_143022_a1b2c3d",
                                 "20260115-143022_a1b2c3d4", "2026011x_143022_a1b2c3d4"})
    BOOST_TEST(!is_run_id(text), text);
}

BOOST_AUTO_TEST_SUITE_END()
