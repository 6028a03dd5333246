// Commands that go on until somebody ends them.
#pragma once

namespace daydream {

// From now on Ctrl-C is how this command ends: with exit code 0, at once and with nothing half
// written. Whoever started it without Ctrl-C, in the background, keeps that.
void EndWithInterrupt();

}  // namespace daydream
