#include "reconcilers/hand_over/render.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "domain/contract/names.h"

namespace dhc::hand_over {

namespace {

Fillings filled(std::string device = "gpu-0", std::string node = "node-a") {
  Fillings fillings;
  const auto set = [&](Placeholder one, std::string value) {
    fillings.at(static_cast<std::size_t>(one)) = std::move(value);
  };
  set(Placeholder::Node, std::move(node));
  set(Placeholder::Policy, "gpus");
  set(Placeholder::Incident, "0123456789ab");
  set(Placeholder::Device, std::move(device));
  set(Placeholder::Driver, "gpu.example.com");
  set(Placeholder::Pool, "pool-1");
  return fillings;
}

HandOverResource named(std::string name) {
  HandOverResource rules{.api_version = "a.b/v1", .kind = "K", .ns = {}, .name = std::move(name), .text = {}};
  rules.text = nlohmann::json{{"apiVersion", "a.b/v1"}, {"kind", "K"}, {"metadata", {{"name", rules.name}}}}.dump();
  return rules;
}

/// With this spec, as JSON.
HandOverResource with_spec(const std::string& spec) {
  auto rules = named("{node}");
  rules.text = R"({"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"{node}"},"spec":)" + spec + "}";
  return rules;
}

std::string name_for(const std::string& name, std::string device = "gpu-0", std::string node = "node-a") {
  return object_name(named(name), filled(std::move(device), std::move(node))).value_or("none");
}

nlohmann::json spec_for(const std::string& spec, std::string device) {
  const auto text = object_text(with_spec(spec), filled(std::move(device)), "node-a");
  return text ? nlohmann::json::parse(*text)["spec"] : nlohmann::json();
}

}  // namespace

TEST_CASE("A name is made of what it names") {
  CHECK(name_for("{node}") == "node-a");
  CHECK(name_for("reset-{node}-{device}") == "reset-node-a-gpu-0");
  CHECK(name_for("{policy}.{incident}") == "gpus.0123456789ab");
  CHECK(name_for("{node}", "x", "ip-10-0-0-1.eu.compute.internal") == "ip-10-0-0-1.eu.compute.internal");
}

TEST_CASE("What a driver calls a device becomes part of a name, and two names never become one") {
  CHECK(name_for("r-{device}", "GPU-8a56a4bc-c184-a047-2620-b5d9ad2a5b3d") ==
        "r-gpu-8a56a4bc-c184-a047-2620-b5d9ad2a5b3d");
  const auto one = name_for("r-{device}", "a/b");
  const auto other = name_for("r-{device}", "a:b");
  CHECK(one.starts_with("r-a-b-"));
  CHECK(other.starts_with("r-a-b-"));
  CHECK(one != other);
  CHECK(name_for("r-{device}", "///").size() == 10);
  CHECK(name_for("r-{device}", std::string(200, 'a')).size() == 2 + 31 + 1 + 8);
  CHECK(name_for("r-{device}", std::string(200, 'a')) != name_for("r-{device}", std::string(201, 'a')));
}

TEST_CASE("A long name is cut and ends in a hash, but for the node's own") {
  const std::string node(100, 'n');
  CHECK(name_for("{node}", "x", node) == node);
  const auto cut = name_for("reset-{node}", "x", node);
  CHECK(cut.size() == 63);
  CHECK(cut != name_for("reset-{node}", "x", node + "m"));
}

TEST_CASE("A value cannot leave its string") {
  const std::string hostile = R"("},"kind":"Secret","x":{"y":"{node})";
  const auto spec = spec_for(R"({"device":"{device}","list":["a {device} b"],"n":1,"flag":true})", hostile);
  CHECK(spec["device"] == hostile);
  CHECK(spec["list"][0] == "a " + hostile + " b");
  CHECK(spec["n"] == 1);
  CHECK(spec["flag"] == true);
  CHECK(spec.size() == 4);
}

TEST_CASE("A value that would have to be mended names nothing: another device could bear the mended name") {
  for (const auto& device : {std::string(254, 'a'), std::string("a\nb"),
                             std::string("a\xff"
                                         "b")}) {
    const auto text = object_text(with_spec(R"({"d":"{device}"})"), filled(device), "node-a");
    REQUIRE(!text);
    CHECK(text.error().starts_with("handOver.resource names {device}, and that of the device is longer than 253"));
  }
  // Where it is not named it does no harm.
  CHECK(object_text(with_spec(R"({"d":"{node}"})"), filled("a\nb"), "node-a").has_value());
}

TEST_CASE("What is not known is not left empty") {
  const auto missing = [](const std::string& word) {
    const auto text = object_text(with_spec(R"({"d":"{)" + word + R"(}"})"), filled(), "node-a");
    return text ? std::string("made") : text.error();
  };
  CHECK(missing("identity").ends_with("no hardware identity of the device is known: see recover.identityAttribute"));
  CHECK(missing("resource").contains("a device of a DRA driver has no resource"));
  CHECK(missing("driver") == "made");
  CHECK(!object_name(named("{identity}-x"), filled()));
}

TEST_CASE("Labels are made fit where a placeholder stands, and the marks by which we know it are added") {
  auto rules = named("{node}");
  rules.text = R"({"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"{node}","labels":{"d":"{device}","e":"x"},)"
               R"("annotations":{"said":"{device}"}}})";
  const auto text = object_text(rules, filled("a b/c"), "node-a");
  REQUIRE(text);
  const auto metadata = nlohmann::json::parse(*text)["metadata"];
  CHECK(metadata["labels"]["d"].get<std::string>().starts_with("a-b-c-"));
  CHECK(metadata["labels"]["e"] == "x");
  CHECK(metadata["labels"][std::string(kManagedByLabel)] == kManagedBy);
  CHECK(metadata["annotations"]["said"] == "a b/c");
  CHECK(metadata["annotations"][std::string(kIncidentAnnotation)] == "0123456789ab");
  CHECK(metadata["annotations"][std::string(kPolicyAnnotation)] == "gpus");
}

TEST_CASE("The replica of a device plugin's card is known by the card") {
  DeviceRecord record;
  record.key = DeviceKey::plugin("node-a", "nvidia.com/gpu", "GPU-8a56a4bc-c184-a047-2620-b5d9ad2a5b3d::3");
  DevicePolicy policy{.name = "p"};
  const Ground ground{.record = &record, .policy = &policy, .why = "quarantined"};
  const auto fillings = fillings_of(ground, "node-a", "i");
  const auto value = [&](Placeholder one) { return fillings.at(static_cast<std::size_t>(one)); };
  CHECK(value(Placeholder::Identity) == "GPU-8a56a4bc-c184-a047-2620-b5d9ad2a5b3d");
  CHECK(value(Placeholder::Resource) == "nvidia.com/gpu");
  CHECK(value(Placeholder::Driver).empty());
  CHECK(value(Placeholder::Pool).empty());
}

}  // namespace dhc::hand_over
