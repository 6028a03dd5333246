// Any bytes as an option file: reading never crashes or hangs, errors have a place, and what was
// read runs on a small graph, which then replays.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "graph/text.h"
#include "simulator/simulate.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/option_file.h"

namespace {

constexpr std::string_view kGraph = R"text(
lane main   thread
lane gpu0.7 stream
lane gpu0.8 stream
step "1" period 100us
step "2" period 100us
layer a "encoder.attn"
scope mm op main "aten::mm" shapes="[[100, 100], [100, 100]]" types="[\"float\", \"float\"]"
c0 main call 5us "cudaMemcpyAsync"
m0 gpu0.7 memcpy 100us "Memcpy HtoD" after c0 launch bytes=1000000 from=pageable to=device
w0 main wait "cudaMemcpyAsync" until m0 hostwait
c1 main call 5us "cudaLaunchKernel" scope mm
k1 gpu0.7 kernel 40us "sgemm" after c1 launch layer a phase forward scope mm
c2 main call 5us "cudaLaunchKernel" step=1
k2 gpu0.7 kernel 10us "relu" after c2 launch layer a phase forward step=1
k3 gpu0.8 kernel 10us "softmax" after k2 phase backward step=1 grid=8,1,1 block=64,1,1
)text";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace daydream;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = OptionFile::Parse(text, "fuzz.yaml");
  if (!file.ok()) {
    Diagnostic d = DiagnosticOf(file.status());
    DD_CHECK(d.code.substr(0, 3) == "E04" && d.where.substr(0, 10) == "fuzz.yaml:");
    return 0;
  }
  static const Graph recorded = *ParseGraph(kGraph);
  const Transform& transform = (*file)->transform();
  auto params = BindParams(transform.name, transform.params, {});
  DD_CHECK(params.ok());
  Graph graph = recorded;
  auto applied = Apply({&transform, *params, *file}, graph);
  if (!applied.ok()) {
    DD_CHECK(DiagnosticOf(applied.status()).code != "E0901");
    return 0;
  }
  Simulate(graph).status().IgnoreError();
  return 0;
}
