// A recording of the PyTorch profiler as text: steps of one product and one copy each, 100 us long,
// with whatever a test puts beside them.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace daydream {

inline std::string StepEvents(int i, std::string_view kernel = "sgemm") {
  const int at = 100 * i + 1, id = 10 * i + 1;
  auto x = [](std::string_view cat, std::string_view name, int lane, int ts, int us,
              const std::string& args) {
    return fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}},)"
        "\n",
        cat, name, lane == 1 ? 1 : 0, lane, ts, us, args);
  };
  const std::string gpu = R"(,"stream":7,"device":0)";
  return x("user_annotation", fmt::format("ProfilerStep#{}", i), 1, at, 100, "") +
         x("cpu_op", "aten::mm", 1, at + 2, 30, R"("Input Dims":[[64,64],[64,64]])") +
         x("cuda_runtime", "cudaLaunchKernel", 1, at + 5, 5,
           fmt::format(R"("correlation":{})", id)) +
         x("kernel", kernel, 7, at + 12, 40, fmt::format(R"("correlation":{}{})", id, gpu)) +
         x("cuda_runtime", "cudaMemcpyAsync", 1, at + 60, 15,
           fmt::format(R"("correlation":{})", id + 1)) +
         x("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 7, at + 62, 10,
           fmt::format(R"("correlation":{},"bytes":4096{})", id + 1, gpu));
}

// `more`: further events, each with a comma behind it. `kernel` is in JSON's own spelling.
inline std::string SmallTrace(int steps = 6, std::string_view more = "",
                              std::string_view kernel = "sgemm") {
  std::string events(more);
  for (int i = 0; i < steps; ++i) events += StepEvents(i, kernel);
  events.resize(events.find_last_of(','));
  return "{\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA A100-SXM4-40GB\"}],\"traceEvents\":[" +
         events + "]}";
}

// The same without marks of steps: the whole recording is one step.
inline std::string WithoutMarks(std::string trace) {
  for (size_t at; (at = trace.find("ProfilerStep#")) != std::string::npos;) {
    trace.replace(at, 12, "aRange");
  }
  return trace;
}

}  // namespace daydream
