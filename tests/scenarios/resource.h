#pragma once

/// The resource of the device plugin that most scenarios break.
inline constexpr auto kResource = "example.com/gpu";
