// What a mark meets first: whether it is taken now. One atomic decides about most of them; the rest
// (steps, the mark that starts the recorder, captures) goes the slow way (gate.cc).
#pragma once

#include <cstdint>

namespace daydream::tracer {

// The doors of the exports; none throws.
int OpenNvtxDoor(const void* (*get_export_table)(uint32_t table));
uint32_t RecorderName(const char* text);
void RecorderMark(uint32_t kind, uint32_t name, int64_t value);
// Whether RecorderMark() would take a mark of this kind now.
bool RecorderTakes(uint32_t kind);

// Marks are taken again, from the one on that starts the recorder; no marks are taken any more.
void OpenGate();
void CloseGate();
// The window opened or closed: all marks are taken, or steps and facts only.
void OpenGateForWindow(bool open);
// capture=nvtx: every range is looked at, whatever the window does.
void WatchRanges(bool watch);

// A stream capture began or ended: while one runs, layers are marked although the window is
// closed, for the nodes of the graph.
void CaptureBegan();
void CaptureEnded();
void ForgetCaptures();

}  // namespace daydream::tracer
