#include "boost_test.h"
#include "support/errors.h"
#include "thalia/store/run.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_record)

namespace {

Value record(int version) {
  Value metadata = Value::object();
  metadata.add("checkpoint_version", version);
  metadata.add("lr", 0.1);
  return metadata;
}

RecordSchema schema() {
  RecordSchema schema{.version = 3};
  schema.migrations[1] = [](Value& metadata) {
    Value rate = metadata.at("lr");
    metadata.erase("lr");
    metadata["learning_rate"] = std::move(rate);
  };
  schema.migrations[2] = [](Value& metadata) {
    Value optimizer = Value::object();
    optimizer.add("learning_rate", metadata.at("learning_rate"));
    metadata["optimizer"] = optimizer;
  };
  return schema;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_record_goes_through_every_version_up_to_today_s) {
  const MigratedRecord migrated = migrate_record(record(1), schema());
  BOOST_TEST(migrated.from == 1u);
  BOOST_TEST(migrated.metadata.at("checkpoint_version").as_uint64() == 3u);
  BOOST_TEST(migrated.metadata.find("lr") == nullptr);
  BOOST_TEST(migrated.metadata.at("optimizer").at("learning_rate").as_double() == 0.1);
}

BOOST_AUTO_TEST_CASE(a_record_of_today_stays_as_it_is) {
  const MigratedRecord migrated = migrate_record(record(3), schema());
  BOOST_TEST(migrated.from == 3u);
  BOOST_TEST((migrated.metadata == record(3)));
}

BOOST_AUTO_TEST_CASE(a_version_that_no_migration_takes_is_refused_before_any_is_called) {
  RecordSchema broken = schema();
  broken.migrations.erase(2);
  bool was_called = false;
  broken.migrations[1] = [&](Value&) { was_called = true; };
  const auto error = expect<UnsupportedError>([&] { migrate_record(record(1), broken); },
                                              ErrorCode::unsupported_version);
  BOOST_TEST(says(ErrorCode::unsupported_version, "version 2", "checkpoint_version")(error));
  BOOST_TEST(!was_called);
}

BOOST_AUTO_TEST_CASE(a_newer_record_is_refused) {
  const auto error = expect<UnsupportedError>([&] { migrate_record(record(4), schema()); },
                                              ErrorCode::unsupported_version);
  BOOST_TEST(error.context().value == "4");
  BOOST_TEST(error.context().bound == "3");
}

BOOST_AUTO_TEST_CASE(a_record_has_to_have_a_version_that_is_an_integer) {
  Value metadata = Value::object();
  expect<FormatError>([&] { migrate_record(metadata, schema()); }, ErrorCode::bad_value);
  for (const Value& version : {Value(1.5), Value("1"), Value(-1), Value::array()}) {
    metadata["checkpoint_version"] = version;
    expect<FormatError>([&] { migrate_record(metadata, schema()); }, ErrorCode::bad_value);
  }
  expect<FormatError>([&] { migrate_record(Value("text"), schema()); }, ErrorCode::bad_value);
}

BOOST_AUTO_TEST_CASE(what_a_migration_throws_comes_out) {
  RecordSchema refusing = schema();
  refusing.migrations[1] = [](Value&) {
    throw UsageError(ErrorCode::wrong_state, "records of the trial run are not taken");
  };
  expect<UsageError>([&] { migrate_record(record(1), refusing); }, ErrorCode::wrong_state);
}

BOOST_AUTO_TEST_CASE(the_member_may_have_another_name) {
  Value metadata = Value::object();
  metadata.add("schema", 0);
  RecordSchema named{.version = 1, .version_key = "schema"};
  named.migrations[0] = [](Value& of) { of["seen"] = true; };
  const MigratedRecord migrated = migrate_record(metadata, named);
  BOOST_TEST(migrated.metadata.at("schema").as_uint64() == 1u);
  BOOST_TEST(migrated.metadata.at("seen").as_bool());
}

BOOST_AUTO_TEST_SUITE_END()
