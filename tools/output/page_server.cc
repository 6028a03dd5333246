#include "tools/output/page_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace daydream {
namespace {

constexpr size_t kLongestRequest = 16 << 10;
constexpr time_t kClientPatience = 5;  // seconds, for somebody who asks and then says nothing

absl::Status NoSocket(std::string_view what) {
  return MakeStatus(absl::StatusCode::kUnavailable,
                    {.code = "E0122",
                     .what = fmt::format("cannot {}", what),
                     .why = std::strerror(errno),
                     .fix = "daydream report writes the same page to a file"});
}

std::string Response(std::string_view status, std::string_view type, std::string_view body,
                     bool with_body = true) {
  std::string out = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n"
      "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n\r\n",
      status, type, body.size());
  if (with_body) out += body;
  return out;
}

std::string Refusal(std::string_view status) {
  return Response(status, "text/plain", fmt::format("{}\n", status));
}

// The values of a header, in lower case and without the blanks around them: one too many counts.
std::vector<std::string> HeadersCalled(std::string_view name, std::string_view request) {
  std::vector<std::string> values;
  for (size_t at = request.find("\r\n"); at != request.npos;) {
    const size_t begin = at + 2, end = std::min(request.find("\r\n", begin), request.size());
    std::string line(request.substr(begin, end - begin));
    std::transform(line.begin(), line.end(), line.begin(),
                   [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    const size_t colon = line.find(':');
    if (colon != line.npos && line.substr(0, colon) == name) {
      const size_t first = line.find_first_not_of(" \t", colon + 1);
      const size_t last = line.find_last_not_of(" \t");
      values.push_back(first == line.npos ? "" : line.substr(first, last - first + 1));
    }
    at = end < request.size() ? end : request.npos;
  }
  return values;
}

// What a client sends up to the empty line; "" when it does not.
std::string ReadHead(int client) {
  std::string head;
  std::array<char, 4096> buffer;
  while (head.find("\r\n\r\n") == head.npos) {
    if (head.size() > kLongestRequest) return "";
    const ssize_t n = recv(client, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return "";
    head.append(buffer.data(), static_cast<size_t>(n));
  }
  return head.substr(0, head.find("\r\n\r\n") + 2);
}

void SendAll(int client, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

absl::StatusOr<PageServer> PageServer::Listen(std::string page) {
  std::array<unsigned char, 16> random;
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return NoSocket("get random bytes");
  }
  std::string word;
  for (const unsigned char byte : random) word += fmt::format("{:02x}", byte);
  PageServer server(std::move(page), std::move(word));
  server.socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server.socket_ < 0) return NoSocket("open a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(server.socket_, generic, size) != 0 || listen(server.socket_, 16) != 0 ||
      getsockname(server.socket_, generic, &size) != 0) {
    return NoSocket("listen on 127.0.0.1");
  }
  server.port_ = ntohs(address.sin_port);
  return server;
}

PageServer::PageServer(PageServer&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      port_(other.port_),
      page_(std::move(other.page_)),
      word_(std::move(other.word_)) {}

PageServer::~PageServer() {
  if (socket_ >= 0) close(socket_);
}

std::string PageServer::Url() const { return fmt::format("http://127.0.0.1:{}/{}/", port_, word_); }

std::string PageServer::ResponseTo(std::string_view request) const {
  const std::vector<std::string> hosts = HeadersCalled("host", request);
  const bool ours = hosts.size() == 1 && (hosts[0] == fmt::format("127.0.0.1:{}", port_) ||
                                          hosts[0] == fmt::format("localhost:{}", port_));
  if (!ours) return Refusal("403 Forbidden");
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view method = line.substr(0, space);
  if (method != "GET" && method != "HEAD") return Refusal("405 Method Not Allowed");
  const std::string_view rest = line.substr(std::min(space + 1, line.size()));
  if (!rest.starts_with(fmt::format("/{}/ HTTP/1.", word_))) return Refusal("404 Not Found");
  return Response("200 OK", "text/html", page_, method == "GET");
}

absl::Status PageServer::Serve() const {
  while (true) {
    const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return NoSocket("wait for the browser");
    }
    const timeval patience = {.tv_sec = kClientPatience, .tv_usec = 0};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const std::string head = ReadHead(client);
    if (!head.empty()) SendAll(client, ResponseTo(head));
    shutdown(client, SHUT_WR);
    close(client);
  }
}

}  // namespace daydream
