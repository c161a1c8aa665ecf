#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/core/conduct.h"

namespace dhc::test {

/// What a kube-apiserver's audit log says of the controller's program: by its user agent, under whatever account it
/// runs.
class AuditLog {
 public:
  struct Account {
    std::size_t requests = 0;
    std::size_t writes = 0;
    std::size_t refused = 0;  ///< Those of its writes that were refused before anybody read what they hold.
  };

  AuditLog();

  /// Release 0.1.0 has run as well, and is judged by what held for it, too.
  void let_earlier_release() { conduct_.let_earlier_release(); }

  /// Takes in the next line.
  void take(std::string_view line);

  /// Those that the program has spoken for, by their names. None: it was not there, or was not recognised.
  [[nodiscard]] const std::map<std::string, Account>& accounts() const { return accounts_; }
  /// Lines that are no JSON, as one that was cut off when the API server was killed.
  [[nodiscard]] std::size_t unread() const { return unread_; }
  /// What was broken since the last call, each with its moment and account.
  [[nodiscard]] std::vector<std::string> take_broken() { return std::exchange(broken_, {}); }

 private:
  void take_write(const nlohmann::json& event, k8s::Method method, Account& account);

  Conduct conduct_;
  std::map<std::string, Account> accounts_;
  std::size_t unread_ = 0;
  std::vector<std::string> broken_;
};

}  // namespace dhc::test
