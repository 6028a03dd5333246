// Errors, warnings and notes on standard error, in one style.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace daydream {

enum class Severity : uint8_t { kError, kWarning, kNote };

struct DiagnosticStyle {
  bool color = false;
  bool json = false;  // one JSON object a line, for editors and CI
  size_t width = 0;   // where prose goes on in another line, but for what is to be copied; 0: never
};

// The text of one message, ending in a newline:
//
//   error[E0301]: what
//     --> where            (or "   |  text" lines when `where` is an excerpt of several lines)
//      = why: ...
//      = effect: ...
//      = fix: ...
std::string FormatDiagnostic(const Diagnostic& d, Severity severity, const DiagnosticStyle& style);

// Process exit codes; docs/cli.md explains them.
enum class Exit : uint8_t {
  kOk = 0,
  kFailed = 1,           // working failed: I/O, internal errors
  kUsage = 2,            // unknown flag, bad option expression
  kBadInput = 3,         // the input cannot be read or is of no known format
  kCannotAnswer = 4,     // the input lacks what the question needs, or the replay check failed
  kGateFailed = 5,       // --fail-if held
  kNoDevice = 6,         // needs a GPU, driver or recorder that is not there
  kNoRoom = 7,           // the machine has not enough memory, or no more threads
  kNotStarted = 125,     // trace: failed before the command was started
  kNotExecutable = 126,  // trace: the command is there but cannot be executed
  kNotFound = 127,       // trace: no such command
  kInterrupted = 130,    // by Ctrl-C, which left what was done
};

// The exit code of an error: by its code when it has one, else by its status code.
Exit ExitOf(const absl::Status& status);

// `d` with a code, if it had none.
absl::Status WithCode(const absl::Status& status, std::string_view code);

}  // namespace daydream
