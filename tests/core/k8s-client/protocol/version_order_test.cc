#include "k8s-client/protocol/version_order.h"

#include <string>

#include <doctest/doctest.h>

using dhc::k8s::is_older_version;
using dhc::k8s::version_order;

TEST_CASE("versions are compared as numbers of any length") {
  CHECK(version_order("9", "10") == std::strong_ordering::less);
  CHECK(version_order("10", "9") == std::strong_ordering::greater);
  CHECK(version_order("120", "120") == std::strong_ordering::equal);
  CHECK(version_order("199", "200") == std::strong_ordering::less);
  const std::string huge(400, '9');
  CHECK(version_order(huge, "1" + huge) == std::strong_ordering::less);
  CHECK(version_order("18446744073709551616", "18446744073709551615") == std::strong_ordering::greater);
}

TEST_CASE("what is no decimal number without a leading zero has no order") {
  for (const auto* other : {"", "0", "01", "-5", "+5", "1e3", " 5", "5 ", "v5", "5.0"}) {
    CAPTURE(other);
    CHECK_FALSE(version_order(other, "100").has_value());
    CHECK_FALSE(version_order("100", other).has_value());
    CHECK_FALSE(is_older_version(other, "100"));
    CHECK_FALSE(is_older_version("100", other));
  }
}

TEST_CASE("only a smaller version is older") {
  CHECK(is_older_version("99", "100"));
  CHECK_FALSE(is_older_version("100", "100"));
  CHECK_FALSE(is_older_version("101", "100"));
}
