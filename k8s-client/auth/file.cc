#include "k8s-client/auth/file.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace dhc::k8s {

namespace {

std::unexpected<Error> refuse(const std::string& path, int error) {
  const ErrorKind kind = error == ENOENT || error == ENOTDIR ? ErrorKind::NotFound : ErrorKind::Invalid;
  return fail(kind, fmt::format("{}: {}", path, std::generic_category().message(error)));
}

struct Descriptor {
  int number;
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number < 0) return refuse(path, errno);
  struct ::stat status{};
  if (::fstat(file.number, &status) != 0) return refuse(path, errno);
  if (S_ISDIR(status.st_mode)) return refuse(path, EISDIR);
  std::string bytes;
  std::array<char, 16384> piece;
  while (true) {
    const ::ssize_t count = ::read(file.number, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse(path, errno);
    if (count == 0) return bytes;
    bytes.append(piece.data(), static_cast<std::size_t>(count));
    if (bytes.size() > most) {
      return fail(ErrorKind::Invalid, fmt::format("{}: more than {} bytes; is it another file?", path, most));
    }
  }
}

}  // namespace dhc::k8s
