#include "k8s-client/cpprest_call.h"

#include <utility>

#include "k8s-client/resolver.h"
#include "k8s-client/tls_context.h"

namespace dhc::k8s {
namespace {

/// Where a context keeps its call; asio deletes what lies under SSL_CTX_set_app_data.
int call_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

CpprestCall* call_of(const SSL* ssl) {
  return static_cast<CpprestCall*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), call_index()));
}

void note_progress(const SSL* ssl, int where, int /*result*/) {
  if ((where & SSL_CB_HANDSHAKE_DONE) == 0) return;
  if (CpprestCall* call = call_of(ssl)) call->connected();
}

int verify(X509_STORE_CTX* store, void* call) {
  if (X509_verify_cert(store) == 1) return 1;
  static_cast<CpprestCall*>(call)->certificate_refused(X509_STORE_CTX_get_error(store));
  return 0;
}

int refuse(X509_STORE_CTX* /*store*/, void* /*call*/) { return 0; }

bool expect_name(SSL_CTX& context, const std::string& name) {
  X509_VERIFY_PARAM* param = SSL_CTX_get0_param(&context);
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (is_ip_address(name)) return X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) == 1;
  return !name.empty() && X509_VERIFY_PARAM_set1_host(param, name.data(), name.size()) == 1;
}

using Byte = std::uint8_t;

/// Write-only; each `_putn` waits for the calling thread.
class BodyBuffer final : public concurrency::streams::details::streambuf_state_manager<Byte> {
 public:
  explicit BodyBuffer(std::shared_ptr<CpprestCall> call)
      : streambuf_state_manager<Byte>(std::ios_base::out), call_(std::move(call)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode /*direction*/) const override { return 0; }
  void set_buffer_size(std::size_t /*size*/, std::ios_base::openmode /*direction*/) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode /*direction*/) const override { return nowhere(); }
  pos_type seekpos(pos_type /*pos*/, std::ios_base::openmode /*direction*/) override { return nowhere(); }
  pos_type seekoff(off_type /*offset*/, std::ios_base::seekdir /*way*/, std::ios_base::openmode /*mode*/) override {
    return nowhere();
  }
  bool acquire(Byte*& pointer, std::size_t& count) override {
    pointer = nullptr;
    count = 0;
    return false;
  }
  void release(Byte* /*pointer*/, std::size_t /*count*/) override {}

 protected:
  pplx::task<int_type> _putc(Byte byte) override {
    held_ = byte;
    return call_->got_piece(&held_, 1).then([byte](std::size_t) { return static_cast<int_type>(byte); });
  }
  pplx::task<std::size_t> _putn(const Byte* bytes, std::size_t count) override {
    return call_->got_piece(bytes, count);
  }
  pplx::task<std::size_t> _putn(const Byte* bytes, std::size_t count, bool copy) override {
    if (!copy) return _putn(bytes, count);
    auto kept = std::make_shared<std::vector<Byte>>(bytes, bytes + count);
    return call_->got_piece(kept->data(), count).then([kept](std::size_t n) { return n; });
  }
  pplx::task<int_type> _bumpc() override { return nothing(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return nothing(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return nothing(); }
  pplx::task<int_type> _ungetc() override { return nothing(); }
  pplx::task<std::size_t> _getn(Byte* /*pointer*/, std::size_t /*count*/) override {
    return pplx::task_from_result<std::size_t>(0);
  }
  std::size_t _scopy(Byte* /*pointer*/, std::size_t /*count*/) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  Byte* _alloc(std::size_t /*count*/) override { return nullptr; }
  void _commit(std::size_t /*count*/) override {}

 private:
  static pos_type nowhere() { return static_cast<pos_type>(traits::eof()); }
  static pplx::task<int_type> nothing() { return pplx::task_from_result<int_type>(traits::eof()); }

  std::shared_ptr<CpprestCall> call_;
  Byte held_ = 0;
};

}  // namespace

void CpprestCall::connected() {
  const std::lock_guard lock(mutex_);
  news_.connected = true;
  changed_.notify_all();
}

void CpprestCall::got_head(Response head) {
  const std::lock_guard lock(mutex_);
  news_.head = std::move(head);
  changed_.notify_all();
}

pplx::task<std::size_t> CpprestCall::got_piece(const unsigned char* bytes, std::size_t count) {
  if (count == 0) return pplx::task_from_result<std::size_t>(0);
  const std::lock_guard lock(mutex_);
  // Not an error, though nobody reads any more: on a failed piece cpprestsdk waits on its one thread for a task that
  // needs that thread, for ever (streambuf_state_manager::create_exception_checked_task). The cancel ends the call.
  if (abandoned_) return pplx::task_from_result(count);
  news_.piece = {reinterpret_cast<const char*>(bytes), count};
  taken_.emplace();
  changed_.notify_all();
  return pplx::create_task(*taken_);
}

void CpprestCall::ended(Status status) {
  const std::lock_guard lock(mutex_);
  if (!status && !refused_.empty()) status.error().message += ": " + refused_;
  news_.ended = std::move(status);
  changed_.notify_all();
}

void CpprestCall::certificate_refused(long verify_result) {
  const std::lock_guard lock(mutex_);
  refused_ = explain_tls_failure(verify_result, SSL_R_CERTIFICATE_VERIFY_FAILED, "", verified_name_);
}

bool CpprestCall::wait(News& seen, std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool came = changed_.wait_until(lock, stop, deadline, [&] {
    // A piece may lie there before the head: cpprestsdk posts the head and goes on reading.
    return (news_.head && !news_.piece.empty()) || news_.ended || news_.head.has_value() != seen.head.has_value() ||
           news_.connected != seen.connected;
  });
  seen = news_;
  return came;
}

void CpprestCall::take_piece() {
  std::optional<pplx::task_completion_event<std::size_t>> taken;
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = std::exchange(news_.piece, {}).size();
    taken = std::exchange(taken_, std::nullopt);
  }
  if (taken) taken->set(count);
}

void CpprestCall::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  take_piece();  // untaken, it would keep the connection for ever
}

void configure_cpprest_tls(SSL_CTX& context, const TlsMaterial& material, const std::string& verified_name,
                           CpprestCall& call) {
  const bool configured = configure_tls_context(context, material) &&
                          (material.insecure_skip_verify || expect_name(context, verified_name));
  SSL_CTX_set_ex_data(&context, call_index(), &call);
  SSL_CTX_set_info_callback(&context, note_progress);
  SSL_CTX_set_cert_verify_callback(&context, configured ? verify : refuse, &call);
}

concurrency::streams::ostream make_cpprest_body(std::shared_ptr<CpprestCall> call) {
  return concurrency::streams::streambuf<Byte>(std::make_shared<BodyBuffer>(std::move(call))).create_ostream();
}

}  // namespace dhc::k8s
