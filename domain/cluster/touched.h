#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "domain/contract/device_key.h"

namespace dhc {

/// What has changed since it was last asked for: a decision that rests on none of it stands. Bounded: who asks for
/// nothing, as a standby does, keeps little of it.
class Touched {
 public:
  using Names = std::set<std::string, std::less<>>;
  using PoolNames = std::set<std::pair<std::string, std::string>>;  ///< Driver and pool.
  /// Of each kind; with more than these everything is decided anew, which costs no more.
  static constexpr std::size_t kMost = 10'000;

  /// Something on which any decision may rest.
  void everything() {
    *this = {};
    all_ = true;
  }
  void device(DeviceKey key) { note(devices_, std::move(key)); }
  void pod(std::string_view uid) { note(pods_, uid); }
  /// Its object, or what its pods hold there.
  void node(std::string_view name) { note(nodes_, name); }
  /// A controller, by its identity, or pods of it.
  void owner(std::string identity) { note(owners_, std::move(identity)); }
  /// A controller of any kind, by its identity, one of whose pods is another now.
  void pods_of(std::string identity) { note(workloads_, std::move(identity)); }
  /// What was read of owners in it.
  void owners_in(std::string_view ns) { note(namespaces_, ns); }
  /// What is published there.
  void pool(std::pair<std::string, std::string> name) { note(pools_, std::move(name)); }
  void add(const Touched& other) {
    if (other.all_) everything();
    add_all(devices_, other.devices_);
    add_all(pods_, other.pods_);
    add_all(nodes_, other.nodes_);
    add_all(owners_, other.owners_);
    add_all(workloads_, other.workloads_);
    add_all(namespaces_, other.namespaces_);
    add_all(pools_, other.pools_);
  }

  [[nodiscard]] bool all() const { return all_; }
  [[nodiscard]] const std::set<DeviceKey>& devices() const { return devices_; }
  [[nodiscard]] const Names& pods() const { return pods_; }
  [[nodiscard]] const Names& nodes() const { return nodes_; }
  [[nodiscard]] const Names& owners() const { return owners_; }
  [[nodiscard]] const Names& workloads() const { return workloads_; }
  [[nodiscard]] const Names& namespaces() const { return namespaces_; }
  [[nodiscard]] const PoolNames& pools() const { return pools_; }

 private:
  void note(Names& names, std::string_view name) {
    if (all_ || names.contains(name)) return;
    note(names, std::string(name));
  }
  template <class Key>
  void note(std::set<Key>& known, Key key) {
    insert(known, std::move(key));
  }
  void note(Names& names, std::string name) { insert(names, std::move(name)); }
  template <class Set>
  void insert(Set& known, typename Set::value_type key) {
    if (all_) return;
    if (known.size() == kMost && !known.contains(key)) return everything();
    known.insert(std::move(key));
  }
  template <class Set>
  void add_all(Set& known, const Set& more) {
    for (const auto& key : more) insert(known, key);
  }

  bool all_ = false;
  std::set<DeviceKey> devices_;
  Names pods_;
  Names nodes_;
  Names owners_;
  Names workloads_;
  Names namespaces_;
  PoolNames pools_;
};

}  // namespace dhc
