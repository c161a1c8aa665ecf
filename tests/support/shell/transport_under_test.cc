#include "tests/support/shell/transport_under_test.h"

#include <doctest/doctest.h>

namespace dhc::test {

void check_unless(Limitation limitation, bool held) {
  if (lacks(limitation)) {
    CHECK_MESSAGE(!held,
                  "this adapter can do it now: take its limitation out of the table and of k8s-client/README.md");
  } else {
    CHECK(held);
  }
}

}  // namespace dhc::test
