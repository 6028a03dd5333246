// Lines of the recorder on stderr: "daydream: ...". Each is one write(), so that lines of several
// processes do not mix.
#pragma once

#include <string_view>

namespace daydream::tracer {

// `speak`: print at all; `quiet`: warnings only.
void SetMessages(bool speak, bool quiet);
void Warn(std::string_view text);
void Note(std::string_view text);

}  // namespace daydream::tracer
