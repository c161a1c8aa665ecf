#pragma once
#include <string>

// What a watch asks for, read off the target of its request.

inline bool is_watch_list(const std::string& target) {
  return target.find("sendInitialEvents=true") != std::string::npos;
}

inline bool has_version(const std::string& target) {
  return target.find("?resourceVersion=") != std::string::npos || target.find("&resourceVersion=") != std::string::npos;
}

inline bool watches_from(const std::string& target, const std::string& version) {
  return !is_watch_list(target) && target.find("resourceVersion=" + version + "&") != std::string::npos;
}
