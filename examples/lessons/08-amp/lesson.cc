// Mixed precision on a program that is bound by launches: more of them.
#include <algorithm>

#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

double KernelsPerStep(const Played& played, const TransformerProgram& program) {
  const auto kernels = std::ranges::count(played.trace->kind, EventKind::kKernel);
  return static_cast<double>(kernels) / program.steps;
}

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  TransformerProgram program;
  program.machine.seed = seed;
  program.size.layers = draw.Between(3, 5);
  program.size.length = 8 * draw.Between(5, 8);
  program.adam = false;
  DD_ASSIGN_OR_RETURN(const Played before, PlayTransformer("lesson8", program));
  program.amp = true;
  program.machine.gpu_percent = 50;
  DD_ASSIGN_OR_RETURN(const Played after, PlayTransformer("lesson8", program));
  Numbers n = {{"step", before.step_ms}, {"gpu", before.gpu_ms}, {"after", after.step_ms}};
  n["speedup"] = before.step_ms / after.step_ms;
  n["slower"] = 100 * (after.step_ms / before.step_ms - 1);
  n["casts"] = KernelsPerStep(after, program) - KernelsPerStep(before, program);
  n["cast_us"] = 1000 * (after.step_ms - before.step_ms) / n["casts"];
  n["twice"] = 2;
  n["same"] = 1;
  n["amdahl"] = before.step_ms / (before.step_ms - before.gpu_ms / 2);
  n["layers"] = static_cast<double>(program.size.layers);
  n["linears"] = static_cast<double>(4 * program.size.layers + 1);
  return LessonPlay{{{"lesson8.ddtrace", before.trace}}, std::move(n)};
}

constexpr Fact kFacts[] = {
    {"answer", "whatif lesson8.ddtrace --opt amp", "scenarios.1.speedup"},
    // A cast is one edge more, and six steps are recorded (TransformerProgram).
    {.name = "counted",
     .command = "whatif lesson8.ddtrace --opt amp",
     .path = "scenarios.1.changed.edges",
     .scale = 1.0 / 6},
    {.name = "daydream_us",
     .command = "whatif lesson8.ddtrace --opt amp",
     .path = "scenarios.1.causes.0.host_ns",
     .scale = 6e-3,
     .over = "scenarios.1.changed.edges"},
};
constexpr WrongThought kThoughts[] = {
    {"twice",
     "The matrix products do get about twice as fast. But nobody waits for them here\n"
     "(lesson 3)."},
    {"same",
     "Nearly: faster kernels gain nothing here, as in lesson 3. But autocast does not only\n"
     "make kernels faster. It adds some."},
    {"amdahl",
     "You subtracted half of the GPU time. But the GPU works while the host prepares the next\n"
     "launch (lesson 3), and autocast gives the host more to launch."},
};
constexpr std::string_view kHints[] = {
    "How much does this program gain from faster kernels? (Lesson 3.)",
    "A linear layer under autocast reads its weight, its bias and its input in 16 bit. Who makes\n"
    "those? In backward the gradients go back to 32 bit. Count the casts of a step.",
};

}  // namespace

const Lesson kAmpLesson = {
    .id = "8",
    .name = "amp",
    .title = "Mixed precision",
    .minutes = 8,
    .play = Play,
    .facts = kFacts,
    .story = R"(
A small transformer with {layers} layers is trained in 32 bit with SGD. A step takes {step} ms, the
GPU works {gpu} ms of it. The model has {linears} linear layers. Somebody wraps the forward pass in
`torch.autocast("cuda", dtype=torch.bfloat16)`; the matrix products then run on tensor cores, the
units of the GPU for products in 16 bit. A cast needs {cast_us} us of the host: a small op and its
launch. Each linear layer casts three tensors in the forward pass, and three gradients in the
backward pass: six casts.
)",
    .question = "How many times as fast is the training with autocast? (Below 1: it gets slower.)",
    .unit = "times as fast",
    .truth = "speedup",
    .answer = "answer",
    .tolerance = 0.08,
    .near = 0.06,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
Autocast casts what a linear layer reads, and autograd casts the gradients back. Each cast is one
more op, one more launch and one more kernel of the shortest kind. In a program that is bound by its
launches that is all one sees:

$ daydream whatif lesson8.ddtrace --opt amp | head -17

`work` in the table also holds the kernels of the casts.

Why daydream's number differs a little from the true one: the generator of this lesson plays the
program with autocast, too. It makes the six casts for each linear layer, {casts} in all, and its
step is {slower} % longer. Daydream knows neither that count nor the {cast_us} us. It goes by the
rules of autocast (no cast of what is in 16 bit already, but one before some other ops), which makes
{counted}, and for each it takes what a small op and its launch usually cost in this trace,
{daydream_us} us.
)",
    .surprise = R"(
An optimization of kernels can make a program slower when the kernels are not what it waits for.
Larger batches, fused optimizers (one kernel for all parameters) or CUDA graphs come first; autocast
pays when the GPU is full. Ask for both at once, since gains do not add: with graphs autocast helps,
without them it hurts.

$ daydream whatif lesson8.ddtrace --opt amp,graphs --no-interval | head -11
)",
};

}  // namespace daydream::examples
