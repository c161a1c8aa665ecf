#include "k8s-client/client.h"

#include <algorithm>
#include <utility>

#include "k8s-client/protocol/api_error.h"

namespace dhc::k8s {

namespace {

bool has_header(const Request& request, std::string_view name) {
  const auto same = [&](const Header& header) {
    return std::ranges::equal(header.name, name, {},
                              [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  };
  return std::ranges::any_of(request.headers, same);
}

/// Invalid would mean that the server refuses the request; what helps here is to read the credentials again.
Error unusable_credentials(Error error) {
  if (error.kind == ErrorKind::Invalid) error.kind = ErrorKind::Unauthorized;
  return error;
}

}  // namespace

Client::Client(std::shared_ptr<Transport> transport, std::shared_ptr<Credentials> credentials, std::string user_agent)
    : transport_(std::move(transport)), credentials_(std::move(credentials)), user_agent_(std::move(user_agent)) {}

Client Client::admitted_by(Admission admission) const {
  Client client = *this;
  client.admission_ = std::move(admission);
  return client;
}

Result<Request> Client::signed_request(const Request& request, std::stop_token stop) const {
  auto who = credentials_->headers(std::move(stop));
  if (!who) return std::unexpected(unusable_credentials(std::move(who.error())));
  Request ready = request;
  if (!has_header(ready, "accept")) ready.headers.push_back({"Accept", "application/json"});
  ready.headers.push_back({"User-Agent", user_agent_});
  std::ranges::move(*who, std::back_inserter(ready.headers));
  if (admission_) {
    if (auto admitted = admission_(ready); !admitted) return std::unexpected(std::move(admitted.error()));
  }
  return ready;
}

Result<Response> Client::judged(Result<Response> answer) const {
  if (!answer || (answer->status >= 200 && answer->status < 300)) return answer;
  Error error = error_from_response(*answer);
  if (error.kind == ErrorKind::Unauthorized) {
    credentials_->unauthorized();
    error.message = "the server answered 401: " + error.message;
    if (const std::string remedy = credentials_->remedy(); !remedy.empty()) error.message += "; " + remedy;
  }
  return std::unexpected(std::move(error));
}

Result<Response> Client::call(const Request& request, std::stop_token stop) const {
  const auto ready = signed_request(request, stop);
  if (!ready) return std::unexpected(ready.error());
  auto answer = transport_->send(*ready, std::move(stop));
  // Bytes that cannot be read are no answer: what was asked for may have been done.
  if (!answer && request.method != Method::Get && answer.error().kind == ErrorKind::Malformed)
    answer.error().kind = ErrorKind::Unavailable;
  return judged(std::move(answer));
}

Result<Response> Client::stream(const Request& request, const BodySink& sink, std::stop_token stop) const {
  const auto ready = signed_request(request, stop);
  if (!ready) return std::unexpected(ready.error());
  return judged(transport_->stream(*ready, sink, std::move(stop)));
}

Status send(const Result<Request>& request, const Client& client, std::stop_token stop) {
  if (!request) return std::unexpected(request.error());
  auto answer = client.call(*request, std::move(stop));
  if (!answer) return std::unexpected(std::move(answer.error()));
  return {};
}

}  // namespace dhc::k8s
