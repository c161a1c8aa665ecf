#pragma once
#include <array>
#include <string>

#include "domain/policy/config.h"

/// As the one file of a configuration.
inline dhc::ConfigResult parse(const std::string& text) {
  const std::array files = {dhc::ConfigFile{"f.yaml", text}};
  return dhc::parse_config(files);
}

/// All mistakes, one a line.
inline std::string mistakes(const std::string& text) {
  const auto config = parse(text);
  std::string all;
  if (config) return all;
  for (const dhc::ConfigMistake& mistake : config.error()) all += format_mistake(mistake) + "\n";
  return all;
}
