// Ids of names, against those that gpt.rs's own code made (base_ids.json).
#include "thalia/formats/param_source.h"

#include <string>
#include <unordered_set>

#include "boost_test.h"
#include "formats/gptrs/samples.h"
#include "json/reader.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/error.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(param_ids)

namespace {

// "0x1a" as an id.
template <typename Id>
Id id_of(std::string_view text) {
  const std::string digits(text.substr(2));
  return Id::from_string(std::string(32 - digits.size(), '0') + digits).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(ids_and_keys_are_those_of_the_original) {
  const std::string text = "{\"all\":" + test::gptrs_vector("base_ids.json") + "}";
  unsigned names = 0, keys = 0;
  json::walk_object(text, 8, [&](std::string_view, json::Value& all) {
    all.for_each_element([&](json::Value& one) {
      std::string name;
      BaseParamId id;
      one.for_each_member([&](std::string_view key, json::Value& value) {
        if (key == "name") {
          name = value.string();
          id = base_param_id(name);
          ++names;
        } else if (key == "base_id") {
          BOOST_TEST("0x" + id.to_string() == std::string(value.string()), name);
        } else if (key == "base_id_bytes_on_disk") {
          const auto disk = id.disk_bytes();
          BOOST_TEST(test::hex(disk) == std::string(value.string()), name);
          BOOST_TEST((BaseParamId::from_disk_bytes(disk) == id));
        } else if (key == "param_key_by_namespace") {
          value.for_each_member([&](std::string_view model, json::Value& wanted) {
            const ParamKey made = param_key(id_of<ModelNamespaceId>(model), id);
            BOOST_TEST("0x" + made.to_string() == std::string(wanted.string()), name);
            ++keys;
          });
        }
      });
    });
  });
  BOOST_TEST(names == 18u);
  BOOST_TEST(keys == 72u);
}

BOOST_AUTO_TEST_CASE(a_name_that_is_not_ascii_has_no_id) {
  BOOST_CHECK_EXCEPTION(base_param_id("h\xc3\xa9"), UsageError,
                        test::says(ErrorCode::bad_argument, "h\xc3\xa9"));
  BOOST_TEST(base_param_id("\x7f").to_string().size() == 32u);
}

BOOST_AUTO_TEST_CASE(only_what_is_printed_is_read_back) {
  const BaseParamId id{0x0123456789abcdef, 0xfedcba9876543210};
  BOOST_TEST(id.to_string() == "0123456789abcdeffedcba9876543210");
  BOOST_TEST((BaseParamId::from_string(id.to_string()) == id));
  for (const char* const text :
       {"", "1", "0123456789ABCDEFfedcba9876543210", "0123456789abcdeffedcba987654321",
        "0x123456789abcdeffedcba98765432", "0123456789abcdeffedcba98765432100"})
    BOOST_TEST(!BaseParamId::from_string(text), text);
  BOOST_TEST((BaseParamId{1, 0} > BaseParamId{0, ~0ull}));
  BOOST_TEST((std::unordered_set<BaseParamId>{id, {}, id}.size() == 2u));
}

BOOST_AUTO_TEST_CASE(namespaces_differ) {
  const ModelNamespaceId first = next_model_namespace(), second = next_model_namespace();
  BOOST_TEST(first.high == 0u);
  BOOST_TEST(first.low > 0u);
  BOOST_TEST((second > first));
  const BaseParamId id = base_param_id("w");
  BOOST_TEST((param_key(first, id) != param_key(second, id)));
}

BOOST_AUTO_TEST_SUITE_END()
