#include "tools/output/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "trace/bytes/atomic_file.h"

namespace daydream {
namespace {

extern "C" void OnEnd(int /*signal*/) {
  AtomicFile::UnlinkTemporary();
  _exit(0);
}

}  // namespace

void EndWithInterrupt() {
  if (std::signal(SIGINT, OnEnd) == SIG_IGN) std::signal(SIGINT, SIG_IGN);
}

}  // namespace daydream
