// Kernels shorter than their launches: a faster GPU gains nothing.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  TransformerProgram program;
  program.machine.seed = seed;
  program.size.layers = draw.Between(2, 4);
  program.size.length = 8 * draw.Between(6, 9);
  DD_ASSIGN_OR_RETURN(const Played slow, PlayTransformer("lesson3", program));
  program.machine.gpu_percent = 50;
  DD_ASSIGN_OR_RETURN(const Played fast, PlayTransformer("lesson3", program));
  Numbers n;
  n["speedup"] = slow.step_ms / fast.step_ms;
  n["layers"] = static_cast<double>(program.size.layers);
  n["twice"] = 2;
  n["amdahl"] = slow.step_ms / (slow.step_ms - slow.gpu_ms / 2);
  return LessonPlay{{{"lesson3.ddtrace", slow.trace}}, std::move(n)};
}

constexpr Fact kFacts[] = {
    {"answer", "whatif lesson3.ddtrace --opt 'speedup(select=kind:kernel, by=2)'",
     "scenarios.1.speedup"},
    {"graphs", "whatif lesson3.ddtrace --opt graphs", "scenarios.1.speedup"},
    // As the commands below show them.
    {"step", "summary lesson3.ddtrace", "step_ns", {}, 1e-6},
    {"gpu", "summary lesson3.ddtrace", "gpu_busy_ns", {}, 1e-6},
    {.name = "share",
     .command = "summary lesson3.ddtrace",
     .path = "gpu_busy_ns",
     .scale = 100,
     .over = "window_ns"},
    {.name = "idle",
     .command = "summary lesson3.ddtrace",
     .path = "gpu_idle_ns",
     .scale = 100,
     .over = "window_ns"},
    {.name = "waited",
     .command = "summary lesson3.ddtrace",
     .path = "critical_path.gpu_ns",
     .scale = 100,
     .over = "step_ns"},
    {"launches", "info lesson3.ddtrace", "events_by_kind.kernel", {}, 1.0 / 6},
};
constexpr WrongThought kThoughts[] = {
    {"twice",
     "That would be right if the GPU were what one waits for. It is busy {share} % of the\n"
     "step."},
    {"amdahl",
     "You subtracted half of the GPU time. But the GPU works while the host prepares the next\n"
     "launch, so nothing of it is saved."},
};
constexpr std::string_view kHints[] = {
    "The GPU is busy {share} % of the time. What does it do the rest of the time?",
    "Each kernel waits for its launch. Does a launch get faster with a faster GPU?",
};

}  // namespace

const Lesson kLaunchBoundLesson = {
    .id = "3",
    .name = "launch-bound",
    .title = "Bound by launches",
    .minutes = 7,
    .play = Play,
    .facts = kFacts,
    .story = R"(
A small transformer with {layers} layers is trained with Adam. A step takes {step} ms. In it the
host launches {launches} kernels, and the GPU is busy for about {gpu} ms of it, {share} % of the
step. You can have a GPU on which every kernel takes half the time.
)",
    .question = "How many times as fast does the training get? (1 is: as before.)",
    .unit = "times as fast",
    .truth = "speedup",
    .answer = "answer",
    .tolerance = 0.02,
    .near = 0.03,
    .slack = 0.02,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
The host needs longer to launch a kernel than the GPU needs to run it. The GPU is idle for {idle} %
of the step, most of that waiting for the next launch; a faster GPU waits even longer:

$ daydream whatif lesson3.ddtrace --opt 'speedup(select=kind:kernel, by=2)' --opt graphs | head -9

What helps is launching less. A CUDA graph replays all launches with one call: {graphs} times as
fast. Nine times out of ten a measurement should lie in the `90 % interval`. The wide interval and
the word `low` say that the {graphs} is a rough number; the 1.00 is a safe one. (`daydream explain
confidence` tells when it is `low`, `medium` or `high`. Who runs the command without `head` is also
warned, W0603: a graph takes this optimizer only with `capturable=True`, which keeps its counts of
steps on the GPU, and more kernels for that are part of the {graphs}.)
)",
    .surprise = R"(
"GPU utilization" does not tell what a faster GPU would gain. First find out whether one waits for
the GPU or for its launches: `daydream summary` says it in its second line. Here the GPU is busy for
{share} % of the step, but that is waited for in {waited} % only. (`data` is the time to make the
batch.)

$ daydream summary lesson3.ddtrace --top 4 | head -2
)",
};

}  // namespace daydream::examples
