// Judges what a kube-apiserver's audit log says of the controller.
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "tests/support/core/audit_log.h"

namespace {

// As tests/cluster/realcluster reads them.
constexpr int kBroken = 1;
constexpr int kCannotTell = 2;
constexpr int kNothingOfOurs = 3;

int check(const char* path, bool with_earlier_release) {
  std::ifstream file(path);
  if (!file) {
    std::cerr << path << ": cannot be read\n";
    return kCannotTell;
  }
  dhc::test::AuditLog log;
  if (with_earlier_release) log.let_earlier_release();
  std::size_t broken = 0;
  for (std::string line; std::getline(file, line);) {
    log.take(line);
    for (const auto& text : log.take_broken()) {
      ++broken;
      std::cerr << text << "\n";
    }
  }
  for (const auto& [name, account] : log.accounts()) {
    std::cout << name << ": " << account.requests << " requests, " << account.writes << " writes";
    if (account.refused > 0) std::cout << ", " << account.refused << " of them refused unread";
    std::cout << "\n";
  }
  std::cout << log.accounts().size() << " accounts, " << broken << " writes break an invariant";
  if (log.unread() > 0) std::cout << "; " << log.unread() << " lines cannot be read";
  std::cout << "\n";
  if (broken > 0) return kBroken;
  return log.accounts().empty() ? kNothingOfOurs : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool with_earlier_release = argc == 3 && argv[1] == std::string_view("--with-0.1.0");
  if (argc != 2 && !with_earlier_release) {
    std::cerr << "usage: audit-check [--with-0.1.0] LOG\n";
    return kCannotTell;
  }
  try {
    return check(argv[argc - 1], with_earlier_release);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return kCannotTell;
  }
}
