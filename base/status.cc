#include "base/status.h"

#include <array>

#include "absl/strings/cord.h"

namespace daydream {
namespace {

constexpr char kPayload[] = "daydream.Diagnostic";
constexpr char kSeparator = '\x1f';  // ASCII unit separator: never in our texts

std::array<std::string Diagnostic::*, 6> Fields() {
  return {&Diagnostic::code, &Diagnostic::what,   &Diagnostic::where,
          &Diagnostic::why,  &Diagnostic::effect, &Diagnostic::fix};
}

}  // namespace

absl::Status MakeStatus(absl::StatusCode code, Diagnostic d) {
  std::string message = d.where.empty() ? d.what : fmt::format("{} ({})", d.what, d.where);
  absl::Status status(code, message);
  std::string packed;
  for (auto field : Fields()) {
    for (char c : d.*field) packed += c == kSeparator ? ' ' : c;
    packed += kSeparator;
  }
  status.SetPayload(kPayload, absl::Cord(packed));
  return status;
}

Diagnostic DiagnosticOf(const absl::Status& status) {
  Diagnostic d;
  auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) {
    d.what = std::string(Message(status));
    return d;
  }
  std::string packed(*payload);
  size_t begin = 0;
  for (auto field : Fields()) {
    size_t end = packed.find(kSeparator, begin);
    if (end == std::string::npos) break;
    d.*field = packed.substr(begin, end - begin);
    begin = end + 1;
  }
  return d;
}

absl::Status ErrorOf(std::string_view whom, const absl::Status& error) {
  Diagnostic d = DiagnosticOf(error);
  d.what = fmt::format("{}: {}", whom, d.what);
  return MakeStatus(error.code(), std::move(d));
}

}  // namespace daydream
