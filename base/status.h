// Errors for people. Every failure that a user can cause travels as an absl::Status that carries
// a Diagnostic: what is wrong, where, why, what it means and how to fix it. The command line
// prints it; tests compare its code. Our own mistakes use base/check.h instead.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace daydream {

// Codes are stable and printed as error[E0301]. First two digits: 01 command line, 02 syntax of
// the input, 03 content of the input, 04 option files, 05 recording, 06 model and replay,
// 09 internal. `daydream explain E0301` describes each (docs/errors.md).
struct Diagnostic {
  std::string code;    // "E0301"; empty when none was assigned
  std::string what;    // one line, no full stop: "this trace has no GPU work"
  std::string where;   // "run.json: PyTorch profiler, 41,220 CPU events, 0 kernels"
  std::string why;     // cause
  std::string effect;  // what is lost
  std::string fix;     // a command or a code line to paste
};

// A Status with `d` attached. The message reads "what (where)" for plain logging.
absl::Status MakeStatus(absl::StatusCode code, Diagnostic d);
// The Diagnostic attached to `status`, or one made of its message.
Diagnostic DiagnosticOf(const absl::Status& status);
// `error` with "whom: " in front: one scenario of several, one rank.
absl::Status ErrorOf(std::string_view whom, const absl::Status& error);

template <class... Args>
absl::Status InvalidArgument(fmt::format_string<Args...> f, Args&&... args) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.what = fmt::format(f, std::forward<Args>(args)...)});
}
template <class... Args>
absl::Status DataLoss(fmt::format_string<Args...> f, Args&&... args) {
  return MakeStatus(absl::StatusCode::kDataLoss,
                    {.what = fmt::format(f, std::forward<Args>(args)...)});
}
template <class... Args>
absl::Status FailedPrecondition(fmt::format_string<Args...> f, Args&&... args) {
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    {.what = fmt::format(f, std::forward<Args>(args)...)});
}

// Debian's absl::string_view is not std::string_view; this is the only bridge.
inline std::string_view Message(const absl::Status& s) {
  return {s.message().data(), s.message().size()};
}

#define DD_CONCAT_INNER(a, b) a##b
#define DD_CONCAT(a, b) DD_CONCAT_INNER(a, b)

// Leaves the enclosing function when `expr` is not OK.
#define DD_RETURN_IF_ERROR(expr)           \
  do {                                     \
    absl::Status dd_status = (expr);       \
    if (!dd_status.ok()) return dd_status; \
  } while (0)

// Assigns the value of a StatusOr, or leaves the enclosing function with its status.
#define DD_ASSIGN_OR_RETURN(lhs, expr) \
  DD_ASSIGN_OR_RETURN_INNER(DD_CONCAT(dd_or_, __LINE__), lhs, expr)
#define DD_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                              \
  if (!tmp.ok()) return tmp.status();             \
  lhs = std::move(tmp).value()

}  // namespace daydream
