// `daydream view` with a plain socket: who gets the page, and who does not.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class View : public CliFixture {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    if (!IsSkipped()) Begin({"--no-open"});
  }
  void TearDown() override {
    if (pid_ > 0) {
      EXPECT_EQ(Interrupt(pid_), 0);
    }
    CliFixture::TearDown();
  }
  void Begin(const std::vector<std::string>& flags) {
    std::vector<std::string> words = {"view",   kExampleTrace,  "--opt",
                                      "graphs", "--max-slices", "2000"};
    words.insert(words.end(), flags.begin(), flags.end());
    pid_ = Start(words);
    const std::string out = Await("http://");
    ASSERT_EQ(std::sscanf(out.c_str(), "http://127.0.0.1:%d/%63[0-9a-f]/\n", &port_, word_), 2)
        << out;
  }
  // What comes back for these bytes, until the other side closes.
  std::string Exchange(const std::string& request) const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "refused";
    std::string got;
    (void)!send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    std::array<char, 65536> buffer;
    for (ssize_t n; (n = recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
      got.append(buffer.data(), static_cast<size_t>(n));
    }
    close(fd);
    return got;
  }
  std::string Ask(const std::string& line, const std::string& headers) const {
    return Exchange(fmt::format("{} HTTP/1.1\r\n{}\r\n", line, headers));
  }
  std::string Host() const { return fmt::format("Host: 127.0.0.1:{}\r\n", port_); }
  std::string Page() const { return fmt::format("/{}/", word_); }

  pid_t pid_ = -1;
  int port_ = 0;
  char word_[64] = "";
};

TEST_F(View, ShowsThePageOfReport) {
  const std::string got = Ask("GET " + Page(), Host() + "Accept: */*\r\n");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"));
  const std::string body = got.substr(got.find("\r\n\r\n") + 4);
  EXPECT_THAT(got, HasSubstr(fmt::format("Content-Length: {}\r\n", body.size())));
  const std::string file = Path("page.html");
  ASSERT_EQ(Shell(fmt::format("{} report {} --opt graphs --max-slices 2000 -o {}", DAYDREAM_BINARY,
                              kExampleTrace, file))
                .exit,
            0);
  // But for the command that the page names.
  std::string page = ReadAll(file);
  const size_t at = page.find("daydream report");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(body, page.replace(at, 15, "daydream view"));
  // The same host by its other name, and only the head of it.
  EXPECT_THAT(Ask("GET " + Page(), fmt::format("hOST:  LocalHost:{} \r\n", port_)),
              StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(Ask("HEAD " + Page(), Host()).ends_with("\r\n\r\n"));
}

TEST_F(View, RefusesOtherHostsPathsAndMethods) {
  for (const std::string& host :
       {std::string(""), std::string("Host: evil.example\r\n"), std::string("Host: 127.0.0.1\r\n"),
        fmt::format("Host: evil.example:{}\r\n", port_), Host() + "Host: evil.example\r\n",
        fmt::format("Host: 127.0.0.1:{}.evil.example\r\n", port_), std::string("Host:\r\n"),
        fmt::format("X-Host: 127.0.0.1:{}\r\n", port_)}) {
    const std::string got = Ask("GET " + Page(), host);
    EXPECT_THAT(got, StartsWith("HTTP/1.1 403 ")) << host;
    EXPECT_THAT(got, Not(HasSubstr("<html"))) << host;
  }
  for (const std::string& path : {std::string("/"), std::string("/favicon.ico"), Page() + "x",
                                  std::string("/../etc/passwd"), Page().substr(0, 20) + "/"}) {
    EXPECT_THAT(Ask("GET " + path, Host()), StartsWith("HTTP/1.1 404 ")) << path;
  }
  for (const char* method : {"POST", "PUT", "OPTIONS", "CONNECT", "get"}) {
    EXPECT_THAT(Ask(std::string(method) + " " + Page(), Host()), StartsWith("HTTP/1.1 405 "));
  }
}

TEST_F(View, WhatIsNoRequestGetsNothingAndEndsNothing) {
  for (const std::string& bytes :
       {std::string(), std::string("\0\xff\r\n\r\n", 6), std::string(100'000, 'A'),
        std::string("GET / HTTP/1.1\r\nHost"), std::string("\r\n\r\n"),
        "GET " + Page() + " HTTP/1.1\n" + Host() + "\n"}) {
    EXPECT_THAT(Exchange(bytes), Not(HasSubstr("200 OK")));
  }
  EXPECT_THAT(Ask("GET " + Page(), Host()), StartsWith("HTTP/1.1 200 "));
}

// As the kernel lists it: 0100007F is 127.0.0.1, 0A is listening.
TEST_F(View, ListensOnTheLoopbackInterfaceOnly) {
  const std::string port = fmt::format(":{:04X} ", port_);
  std::istringstream tcp(ReadAll("/proc/net/tcp"));
  int seen = 0;
  for (std::string line; std::getline(tcp, line);) {
    const size_t at = line.find(port);
    if (at == std::string::npos || line.find(": ") + 2 + 8 != at) continue;
    if (line.find(" 0A ") == std::string::npos) continue;
    ++seen;
    EXPECT_THAT(line, HasSubstr("0100007F" + port));
  }
  if (ReadAll("/proc/net/tcp").empty()) GTEST_SKIP() << "no /proc/net/tcp here";
  EXPECT_EQ(seen, 1);
  EXPECT_THAT(ReadAll("/proc/net/tcp6"), Not(HasSubstr(port)));
}

class Browser : public View {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    if (IsSkipped()) return;
    Write("xdg-open", "#!/bin/sh\necho \"$1\" >" + Path("opened.part") + "\nmv " +
                          Path("opened.part") + " " + Path("opened") + "\n");
    std::filesystem::permissions(Path("xdg-open"), std::filesystem::perms::owner_all);
    setenv("PATH", (folder_ + ":/usr/bin:/bin").c_str(), 1);
  }
  bool Opened() const {
    for (int i = 0; i < 20 && !std::filesystem::exists(Path("opened")); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return std::filesystem::exists(Path("opened"));
  }
};

TEST_F(Browser, IsOpenedWhereThereIsAScreen) {
  setenv("DISPLAY", ":0", 1);
  Begin({});
  EXPECT_TRUE(Opened());
  EXPECT_EQ(ReadAll(Path("opened")), ReadAll(Path("out")));
}

TEST_F(Browser, IsNotOpenedWhereItIsNotWanted) {
  setenv("DISPLAY", ":0", 1);
  Begin({"--no-open"});
  EXPECT_FALSE(Opened());
}

TEST_F(Browser, IsNotOpenedWithoutAScreen) {
  unsetenv("DISPLAY");
  unsetenv("WAYLAND_DISPLAY");
  Begin({});
  EXPECT_FALSE(Opened());
}

}  // namespace
}  // namespace daydream
