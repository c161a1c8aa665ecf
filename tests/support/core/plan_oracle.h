#pragma once
#include <span>

#include "app/controller.h"

namespace dhc::test {

/// Takes the messages in and plans, as `Controller::turn` does; fails the test where the controller says that the last
/// plan stands and a plan made all the same says or does anything else.
[[nodiscard]] Turn turn_checked(Controller& controller, std::span<Message> messages, const Now& now);

}  // namespace dhc::test
