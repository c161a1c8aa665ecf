#include "k8s-client/model/quantity.h"

#include <doctest/doctest.h>

namespace {

using dhc::k8s::is_extended_resource;
using dhc::k8s::parse_whole_quantity;

TEST_CASE("Whole quantities are read in every form that the API allows") {
  CHECK(parse_whole_quantity("8") == 8);
  CHECK(parse_whole_quantity("+8") == 8);
  CHECK(parse_whole_quantity("0") == 0);
  CHECK(parse_whole_quantity("1k") == 1000);
  CHECK(parse_whole_quantity("2Ki") == 2048);
  CHECK(parse_whole_quantity("2000m") == 2);
  CHECK(parse_whole_quantity("1.5k") == 1500);
  CHECK(parse_whole_quantity("8.") == 8);
  CHECK(parse_whole_quantity("8.000") == 8);
  CHECK(parse_whole_quantity("1e3") == 1000);
  CHECK(parse_whole_quantity("1E3") == 1000);
  CHECK(parse_whole_quantity("1e+3") == 1000);
  CHECK(parse_whole_quantity("12e-1") == std::nullopt);
  CHECK(parse_whole_quantity("1E") == 1'000'000'000'000'000'000);
  CHECK(parse_whole_quantity("9223372036854775807") == 9223372036854775807);
  CHECK(parse_whole_quantity("0Ei") == 0);
}

TEST_CASE("Fractions, negatives, overflows and other text are no whole quantity") {
  for (const auto* text : {"",      "-1",       "500m",
                           "1.5",   "1u",       "9223372036854775808",
                           "8Ei",   "10E",      "99999999999999999999999",
                           "1e19",  "1e400",    "1e",
                           "e3",    "k",        "1kk",
                           "1 ",    " 1",       "1,000",
                           "0x8",   "1e-",      "1e+-3",
                           "1e--3", "Infinity", "NaN",
                           "1.2.3", "."}) {
    CAPTURE(text);
    CHECK(parse_whole_quantity(text) == std::nullopt);
  }
}

TEST_CASE("Only resources with a domain that is not Kubernetes' own are extended") {
  CHECK(is_extended_resource("nvidia.com/gpu"));
  CHECK(is_extended_resource("example.com/gpu"));
  for (const auto* name : {"cpu", "memory", "ephemeral-storage", "pods", "hugepages-2Mi", "attachable-volumes-aws-ebs",
                           "kubernetes.io/batch-cpu", "requests.nvidia.com/gpu"}) {
    CAPTURE(name);
    CHECK_FALSE(is_extended_resource(name));
  }
}

}  // namespace
