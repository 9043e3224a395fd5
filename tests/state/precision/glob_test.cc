#include "state/precision/glob.h"

#include <string>
#include <vector>

#include "boost_test.h"
#include "thalia/error.h"

using thalia::state::matches_path;

BOOST_AUTO_TEST_SUITE(glob)

BOOST_AUTO_TEST_CASE(matches_the_whole_path_or_what_follows_a_separator) {
  constexpr std::string_view kPath = "regions.cortex.weights.w_ff";
  for (const std::string_view glob :
       {"regions.cortex.weights.w_ff", "regions/cortex/weights/w_ff", "weights/*", "weights.w_ff",
        "w_ff", "*", "w_*", "*_ff", "regions/*/w_ff", "re*x/we*s/*f", "w?ff", "*w_ff*", "cortex*",
        "*.cortex.*"})
    BOOST_TEST(matches_path(glob, kPath), glob);
  for (const std::string_view glob :
       {"", "weights", "ff", "_ff", "w_f", "eights/*", "regions", "w_ff?", "w_ff/*", "weights/?",
        "W_ff", "*.cortex", "regions/*/w", "cortex.w_ff", "*x*x*x*"})
    BOOST_TEST(!matches_path(glob, kPath), glob);
}

BOOST_AUTO_TEST_CASE(a_tensor_goes_by_its_path_and_by_region_and_name) {
  const thalia::state::TensorNames tensor{
      .path = "regions.cortex.weights.w_ff", .region = "cortex", .name = "w_ff"};
  for (const std::string_view glob : {"cortex/w_ff", "cortex.w_*", "cortex/weights/w_ff", "w_ff"})
    BOOST_TEST(tensor.fit(glob), glob);
  for (const std::string_view glob : {"weights/cortex", "cortex", "thalamus/w_ff"})
    BOOST_TEST(!tensor.fit(glob), glob);
  const thalia::state::TensorNames matrix{
      .path = "connections.a->b.weights", .region = {}, .name = {}};
  BOOST_TEST(matrix.fit("a->b/weights"));
  BOOST_TEST(!matrix.fit(""));
}

BOOST_AUTO_TEST_CASE(a_pattern_that_fits_nothing_is_refused_with_the_nearest_name) {
  const auto refusal = [](const std::string& glob, const std::vector<std::string>& others = {}) {
    thalia::state::PatternUse use("include", {"w_ff", glob});
    use.see({.path = "regions.cortex.weights.w_ff", .region = "cortex", .name = "w_ff"});
    use.see({.path = "regions.cortex.weights.bias", .region = "cortex", .name = "bias"});
    try {
      use.check(others);
    } catch (const thalia::UsageError& error) {
      BOOST_TEST((error.code() == thalia::ErrorCode::not_found));
      return std::string(error.what());
    }
    return std::string();
  };
  BOOST_TEST(refusal("bias") == "");
  BOOST_TEST(refusal("bais") == "include: no tensor fits 'bais', did you mean 'bias'?");
  BOOST_TEST(refusal("cortx/bias") ==
             "include: no tensor fits 'cortx/bias', did you mean 'cortex/bias'?");
  BOOST_TEST(refusal("cortx", {"cortex"}) ==
             "include: no tensor fits 'cortx', did you mean 'cortex'?");
  BOOST_TEST(refusal("x*").find("expected a pattern of a tensor, such as 'cortex/w_ff'") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(takes_brackets_as_they_are) {
  BOOST_TEST(matches_path("episodes[3].state", "regions.h.episodes[3].state"));
  BOOST_TEST(!matches_path("episodes[0-9].state", "regions.h.episodes[3].state"));
}

BOOST_AUTO_TEST_CASE(matches_empty_names) {
  BOOST_TEST(matches_path("", ""));
  BOOST_TEST(matches_path("*", ""));
  BOOST_TEST(matches_path("", "a."));
  BOOST_TEST(!matches_path("a", ""));
  BOOST_TEST(matches_path("a**b", "a.b"));
}

// Every path of up to six characters and every glob of up to four, against the definition.
BOOST_AUTO_TEST_CASE(agrees_with_the_definition) {
  struct Definition {
    static bool whole(std::string_view glob, std::string_view path) {
      if (glob.empty()) return path.empty();
      if (glob[0] == '*') {
        return whole(glob.substr(1), path) || (!path.empty() && whole(glob, path.substr(1)));
      }
      return !path.empty() && (glob[0] == '?' || glob[0] == path[0]) &&
             whole(glob.substr(1), path.substr(1));
    }
    static bool some(std::string_view glob, std::string_view path) {
      if (whole(glob, path)) return true;
      const auto dot = path.find('.');
      return dot != std::string_view::npos && some(glob, path.substr(dot + 1));
    }
  };
  const auto text = [](std::size_t number, unsigned length, std::string_view letters) {
    std::string made;
    for (; length > 0; --length, number /= letters.size()) made += letters[number % letters.size()];
    return made;
  };
  unsigned wrong = 0, matched = 0;
  for (unsigned path_length = 0, paths = 1; path_length <= 6; ++path_length, paths *= 3) {
    for (unsigned path = 0; path < paths; ++path) {
      const std::string path_text = text(path, path_length, "ab.");
      for (unsigned glob_length = 0, globs = 1; glob_length <= 4; ++glob_length, globs *= 4) {
        for (unsigned glob = 0; glob < globs; ++glob) {
          const std::string glob_text = text(glob, glob_length, "a.*?");
          const bool matches = matches_path(glob_text, path_text);
          matched += matches;
          wrong += matches != Definition::some(glob_text, path_text);
        }
      }
    }
  }
  BOOST_TEST(wrong == 0u);
  BOOST_TEST(matched > 1000u);
}

BOOST_AUTO_TEST_CASE(takes_long_paths_in_good_time) {
  const std::string path(60'000, '.');
  BOOST_TEST(!matches_path("*a*a*a*a*a*a*a*b", path));
  BOOST_TEST(!matches_path("..?..*a*a*b", path));
}

BOOST_AUTO_TEST_SUITE_END()
