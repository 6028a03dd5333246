// Shows one page to the browser of the same machine, and to nobody else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace daydream {

// Listens on 127.0.0.1 only, on a port that the system chooses. Other users of the machine can
// reach that, too, so that the address has a random word in it; and pages of the web can make a
// browser ask it under a name of theirs (DNS rebinding), so that a request counts only with the
// Host that was printed. All it can do is hand out this page.
class PageServer {
 public:
  // E0122 when the system gives no socket.
  static absl::StatusOr<PageServer> Listen(std::string page);
  PageServer(PageServer&& other) noexcept;
  PageServer& operator=(PageServer&&) = delete;
  ~PageServer();

  std::string Url() const;  // "http://127.0.0.1:40123/1f0c.../"
  // Answers one request after the other, and does not return unless the socket breaks.
  absl::Status Serve() const;

  // What is answered to the bytes `request` up to the empty line.
  std::string ResponseTo(std::string_view request) const;

 private:
  PageServer(std::string page, std::string word) : page_(std::move(page)), word_(std::move(word)) {}
  int socket_ = -1;
  uint16_t port_ = 0;
  std::string page_, word_;
};

}  // namespace daydream
