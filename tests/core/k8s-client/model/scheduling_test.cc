#include "k8s-client/model/scheduling.h"

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "k8s-client/model/decoder.h"

namespace {

using namespace dhc::k8s;
using Operator = NodeRequirement::Operator;

std::expected<Object, BadObject> read_spec(std::string_view spec) {
  return Decoder(Kind::Pod).decode_object(fmt::format(
      R"({{"metadata":{{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7"}},"spec":{{"containers":[{{"resources":
        {{"limits":{{"example.com/gpu":"1"}}}}}}],{}}}}})",
      spec));
}

SchedulingTerms terms(std::string_view spec) {
  const auto pod = read_spec(spec);
  REQUIRE(pod.has_value());
  return *std::get<Pod>(*pod).scheduling;
}

Node node(StringMap labels, std::vector<Taint> taints = {}) {
  Node made;
  made.meta.name = "node-a";
  made.meta.labels = std::move(labels);
  made.taints = std::move(taints);
  return made;
}

NodeRequirement label(std::string key, Operator op, std::vector<std::string> values = {}) {
  return {std::move(key), op, std::move(values), false};
}

NodeRequirement field(std::string key, Operator op, std::vector<std::string> values = {}) {
  return {std::move(key), op, std::move(values), true};
}

SchedulingTerms with_terms(std::vector<NodeTerm> terms) {
  SchedulingTerms made;
  made.has_node_terms = true;
  made.node_terms = std::move(terms);
  return made;
}

SchedulingTerms with_selector(StringMap labels) {
  SchedulingTerms made;
  made.node_selector = std::move(labels);
  return made;
}

bool tolerates(Toleration toleration, const Node& on) {
  SchedulingTerms made;
  made.tolerations = {std::move(toleration)};
  return tolerates_taints(made, on);
}

bool term_selects(NodeRequirement requirement, const Node& on) {
  return selects_node(with_terms({{std::move(requirement)}}), on);
}

TEST_CASE("A pod's node selector, required node affinity, tolerations and gates are read_spec") {
  CHECK(terms(R"("nodeSelector":{"b":"2","a":"1"})").node_selector == StringMap{{"a", "1"}, {"b", "2"}});
  const auto affine = terms(R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v","w"]}],
                             "matchFields":[{"key":"metadata.name","operator":"NotIn","values":["x"]}]},{}]},
      "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1}]}})");
  CHECK(affine.has_node_terms);
  REQUIRE(affine.node_terms.size() == 2);
  CHECK(affine.node_terms[0] ==
        NodeTerm{label("k", Operator::In, {"v", "w"}), field("metadata.name", Operator::NotIn, {"x"})});
  CHECK(affine.node_terms[1].empty());
  CHECK_FALSE(affine.has_other_terms);
  CHECK(terms(R"("tolerations":[{"key":"a","value":"b","effect":"NoSchedule"},{"operator":"Exists"}])").tolerations ==
        std::vector<Toleration>{{"a", "b", "NoSchedule", false}, {"", "", "", true}});
  CHECK(terms(R"("schedulingGates":[{"name":"kueue"}])").gated);
  CHECK_FALSE(terms(R"("schedulingGates":[])").gated);
  CHECK(terms(R"("topologySpreadConstraints":[{}])").has_other_terms);
  CHECK(terms(R"("affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{}]}})")
            .has_other_terms);
}

TEST_CASE("What admission gives every pod, and an operator that we do not know, is not kept") {
  CHECK(terms(R"("tolerations":[
      {"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
      {"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
      {"key":"n","operator":"Gt","value":"5"}])") == SchedulingTerms{});
}

TEST_CASE("Terms of the wrong shape make the pod unreadable, and null is none") {
  CHECK(terms(R"("nodeSelector":null,"affinity":null,"tolerations":null,"schedulingGates":null)") == SchedulingTerms{});
  CHECK_FALSE(read_spec(R"("nodeSelector":[])").has_value());
  CHECK_FALSE(read_spec(R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms":{}}}})")
                  .has_value());
  CHECK_FALSE(read_spec(R"("tolerations":[7])").has_value());
}

TEST_CASE("A node selector wants every label, and terms want one of them to be met in full") {
  const auto labelled = node({{"a", "1"}, {"b", "2"}});
  CHECK(selects_node({}, labelled));
  CHECK(selects_node(with_selector({{"a", "1"}, {"b", "2"}}), labelled));
  CHECK_FALSE(selects_node(with_selector({{"a", "1"}, {"c", "3"}}), labelled));
  CHECK_FALSE(selects_node(with_terms({}), labelled));
  CHECK_FALSE(selects_node(with_terms({NodeTerm{}}), labelled));
  const auto met = label("a", Operator::Exists);
  const auto unmet = label("c", Operator::Exists);
  CHECK(selects_node(with_terms({{met, unmet}, {met}}), labelled));
  CHECK_FALSE(selects_node(with_terms({{met, unmet}}), labelled));
}

TEST_CASE("Each operator of a node requirement means what the scheduler means") {
  const auto on = node({{"a", "1"}, {"n", "8"}, {"word", "x"}});
  CHECK(term_selects(label("a", Operator::In, {"0", "1"}), on));
  CHECK_FALSE(term_selects(label("z", Operator::In, {"1"}), on));
  CHECK_FALSE(term_selects(label("a", Operator::NotIn, {"1"}), on));
  CHECK(term_selects(label("z", Operator::NotIn, {"1"}), on));
  CHECK(term_selects(label("z", Operator::DoesNotExist), on));
  CHECK(term_selects(label("n", Operator::Gt, {"7"}), on));
  CHECK_FALSE(term_selects(label("n", Operator::Gt, {"8"}), on));
  CHECK(term_selects(label("n", Operator::Lt, {"9"}), on));
  CHECK_FALSE(term_selects(label("word", Operator::Lt, {"9"}), on));
  CHECK_FALSE(term_selects(label("n", Operator::Gt, {"99999999999999999999"}), on));
  CHECK_FALSE(term_selects(label("a", Operator::Unknown, {"1"}), on));
  CHECK(term_selects(field("metadata.name", Operator::In, {"node-a"}), on));
  CHECK_FALSE(term_selects(field("spec.x", Operator::DoesNotExist), on));
}

TEST_CASE("Every NoSchedule and NoExecute taint must be tolerated, by key, value and effect") {
  const auto tainted = node({}, {{"k", "v", "NoSchedule"}, {"soft", "", "PreferNoSchedule"}});
  CHECK_FALSE(tolerates_taints({}, tainted));
  CHECK(tolerates({"k", "v", "", false}, tainted));
  CHECK(tolerates({"k", "", "NoSchedule", true}, tainted));
  CHECK(tolerates({"", "", "", true}, tainted));
  CHECK_FALSE(tolerates({"k", "w", "", false}, tainted));
  CHECK_FALSE(tolerates({"k", "v", "NoExecute", false}, tainted));
  CHECK_FALSE(tolerates({"", "v", "", false}, tainted));
}

TEST_CASE("Equal terms are kept once, and those that nobody uses are dropped") {
  SharedPool<SchedulingTerms> pool;
  Shared a(with_selector({{"a", "1"}}));
  Shared b(with_selector({{"a", "1"}}));
  pool.share(a);
  pool.share(b);
  CHECK(&*a == &*b);
  Shared none(SchedulingTerms{});
  pool.share(none);
  CHECK(pool.size() == 1);
  for (int i = 0; i < 1000; ++i) {
    Shared passing(with_selector({{"i", std::to_string(i)}}));
    pool.share(passing);
  }
  CHECK(pool.size() < 200);
  CHECK(*a == with_selector({{"a", "1"}}));
}

}  // namespace
