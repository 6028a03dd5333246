// A step with a bit of everything, for targets that edit a graph.
#pragma once

#include <string_view>

namespace daydream {

inline constexpr std::string_view kSmallGraph = R"text(
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

}  // namespace daydream
