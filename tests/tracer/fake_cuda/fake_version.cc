#include "tests/tracer/fake_cuda/fake_version.h"

namespace daydream {

const FakeCuptiVersion& TheFakeCupti() {
  for (const FakeCuptiVersion& version : kFakeCuptiVersions) {
    if (version.cuda == FAKE_CUDA_VERSION) return version;
  }
  __builtin_trap();
}

}  // namespace daydream
