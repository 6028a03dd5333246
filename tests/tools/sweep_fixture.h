// Sweeps of the shipped trace, and their journals.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/tools/cli_fixture.h"

namespace daydream {

inline constexpr char kSpec[] =
    " --opt 'speedup(select=class:gemm,by={1.5,2,3}),speedup(select=kind:host,by=1..2+0.25)'"
    " --opt 'prefetch(1..3)' --opt free-comm";
inline constexpr size_t kRows = 3 * 5 + 3 + 1;

class Sweeping : public CliFixture {
 protected:
  std::string Ask(const std::string& flags) const {
    return std::string("sweep ") + kExampleTrace + kSpec + " --no-interval " + flags;
  }
  std::string Csv(const std::string& flags = "") const {
    CliResult r = Run(Ask("--format csv " + flags));
    EXPECT_EQ(r.exit, 0) << r.err;
    return r.out;
  }
  // Does `change` as soon as there is a journal, seconds before the last row would be there.
  CliResult SweepWhile(const std::string& change) const {
    return Shell("{ ( for i in $(seq 1000); do [ -s " + Path("j") +
                 " ] && break; sleep 0.01; done; " + change + " ) & " DAYDREAM_BINARY " sweep " +
                 kExampleTrace + " --opt 'gpu(to=" + Path("gpu.yaml") +
                 "),speedup(kind:gpu,1..9999)' --no-interval -j1 --journal " + Path("j") +
                 "; e=$?; wait; exit $e; }");
  }
  // First fields of the rows of a journal.
  std::vector<std::string> Journal(const std::string& name) const {
    std::istringstream lines(ReadAll(Path(name)));
    std::vector<std::string> rows;
    bool head = true;
    for (std::string line; std::getline(lines, line);) {
      if (!head) rows.push_back(line.substr(0, line.find('\t')));
      head &= !line.empty();
    }
    return rows;
  }
};

// A description of a GPU with this many GB/s of memory.
inline std::string GpuWith(int memory_gb_per_s) {
  return fmt::format(
      "name: Mine\nvendor: NVIDIA\ncompute_major: 8\ncompute_minor: 0\nmultiprocessors: 108\n"
      "fp32_tflops: 19.5\nfp16_tflops: 312\nbf16_tflops: 312\nmemory_gb_per_s: {}\nmemory_gb: 40\n",
      memory_gb_per_s);
}

}  // namespace daydream
