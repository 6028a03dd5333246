// Asks of a recording what some optimizations would bring.
#include <cstdio>

#include <daydream/daydream.h>

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: ask TRACE OPTIMIZATIONS\n"), 2;
  absl::StatusOr<daydream::Run> run = daydream::Load(argv[1]);
  if (!run.ok()) {
    return std::fprintf(stderr, "%s\n", daydream::DiagnosticOf(run.status()).what.c_str()), 1;
  }
  absl::StatusOr<daydream::WhatIf> answer = daydream::Ask(*run, {argv[2]});
  if (!answer.ok()) {
    return std::fprintf(stderr, "%s\n", daydream::DiagnosticOf(answer.status()).what.c_str()), 1;
  }
  for (const daydream::Prediction& p : answer->predictions) {
    std::printf("%-12s %6.1f ms  %.2fx\n", p.name.c_str(), p.step.us() / 1000, p.speedup);
  }
}
