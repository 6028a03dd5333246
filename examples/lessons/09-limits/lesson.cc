// Amdahl's law: how far making one kind of kernel faster can go.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

constexpr std::string_view kElementwise =
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>";

Loop MakeLoop(int64_t matrix_ns, int64_t other_ns) {
  constexpr int kPieces = 5;
  Loop loop;
  loop.item = false;
  for (int i = 0; i < kPieces; ++i) {
    loop.kernels.push_back({"aten::mm", "ampere_sgemm_128x128_nn", matrix_ns / kPieces});
    loop.kernels.push_back({"aten::gelu", kElementwise, other_ns / kPieces});
  }
  return loop;
}

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  const int64_t matrix = Ms(draw.Between(14, 24)), other = Ms(draw.Between(6, 12));
  DD_ASSIGN_OR_RETURN(const Played before, PlayLoop("lesson9", MakeLoop(matrix, other)));
  DD_ASSIGN_OR_RETURN(const Played eight, PlayLoop("lesson9", MakeLoop(matrix / 8, other)));
  DD_ASSIGN_OR_RETURN(const Played endless, PlayLoop("lesson9", MakeLoop(matrix / 1000, other)));
  Numbers n = {{"matrix", InMs(matrix)}, {"other", InMs(other)}, {"step", before.step_ms}};
  n["share"] = 100 * n["matrix"] / (n["matrix"] + n["other"]);
  n["speedup"] = before.step_ms / eight.step_ms;
  n["limit"] = before.step_ms / endless.step_ms;
  n["endless"] = n["step"] / (n["step"] - n["matrix"]);
  n["half"] = n["matrix"] / 2;
  n["eight"] = 8;
  n["mean"] = (n["share"] * 8 + (100 - n["share"])) / 100;
  return LessonPlay{{{"lesson9.ddtrace", before.trace}}, std::move(n)};
}

constexpr Fact kFacts[] = {
    {"answer", "whatif lesson9.ddtrace --opt 'speedup(select=class:gemm, by=8)'",
     "scenarios.1.speedup"},
    {"limit_answer", "whatif lesson9.ddtrace --opt 'speedup(select=class:gemm, by=1000)'",
     "scenarios.1.speedup"},
};
constexpr WrongThought kThoughts[] = {
    {"eight", "That would be so if nothing but matrix products ran on the GPU."},
    {"mean",
     "You took the mean of 8 and 1, weighted with the shares. Add times, not factors: the\n"
     "step is what is left of the products, plus all of the rest."},
    {"endless",
     "That is the limit, with products that take no time at all. An eighth of them is left."},
};
constexpr std::string_view kHints[] = {
    "How many milliseconds of matrix products are left? How many of the rest?",
    "An eighth of the products is left, and all of the rest. How many times does that fit\n"
    "into the old step?",
};

}  // namespace

const Lesson kLimitsLesson = {
    .id = "9",
    .name = "limits",
    .title = "Limits: what cannot be gained",
    .minutes = 6,
    .play = Play,
    .facts = kFacts,
    .story = R"(
A step of {step} ms is bound by the GPU. {share} % of it is matrix products ({matrix} ms), the rest
elementwise kernels ({other} ms), which do the same to each number, as ReLU does. A data sheet
promises eight times the FLOP/s (arithmetic operations in a second) in 16 bit. The elementwise
kernels stay as they are.
)",
    .question = "How many times as fast does the training get, if the promise holds?",
    .unit = "times as fast",
    .truth = "speedup",
    .answer = "answer",
    .tolerance = 0.02,
    .slack = 0.05,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
{matrix} ms become an eighth, {other} ms stay. With products a thousand times as fast it is
{limit} times, with products that take no time {endless}: that limit is Amdahl's law.

$ daydream whatif lesson9.ddtrace --opt 'speedup(select=class:gemm, by=8)' \
    --opt 'speedup(select=class:gemm, by=1000)' --no-interval | head -9
)",
    .surprise = R"(
The first factor of two saves {half} ms, all further ones together {half} ms more.
Elementwise kernels are bound by memory bandwidth, not by FLOP/s: more FLOP/s never help them.
Fusing them does, since a value that stays on the chip need not be read again. `daydream causal`
prints how far the gain can go for each kind of work:

$ daydream causal lesson9.ddtrace --by kernels --points 4
)",
};

}  // namespace daydream::examples
