// loss.item() shows the time of the GPU, not its own.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  Loop loop;
  loop.load_ns = Ms(draw.Between(4, 7));
  constexpr int kKernels = 8;
  const int64_t gpu = Ms(draw.Between(20, 32));
  const int64_t host = Us(draw.Between(350, 600));
  loop.kernels = EqualKernels(kKernels, {"aten::mm", "ampere_sgemm_128x128_nn", gpu, 0, host});
  DD_ASSIGN_OR_RETURN(const Played before, PlayLoop("lesson7", loop));
  loop.item = false;
  DD_ASSIGN_OR_RETURN(const Played after, PlayLoop("lesson7", loop));
  Numbers n = {{"gpu", InMs(gpu)}, {"step", before.step_ms}, {"after", after.step_ms}};
  n["host"] = after.host_ms;
  n["item"] = before.step_ms - after.host_ms;
  n["saved"] = before.step_ms - after.step_ms;
  n["kernels"] = kKernels;
  n["load"] = InMs(loop.load_ns);
  return LessonPlay{{{"lesson7.ddtrace", before.trace}}, std::move(n)};
}

constexpr Fact kFacts[] = {
    {"answer", "whatif lesson7.ddtrace --opt no-sync", "scenarios.1.step_ms"},
};
constexpr WrongThought kThoughts[] = {
    {"host",
     "You took off all the time that the profiler shows in `item()`. But that is the GPU\n"
     "working; without `item()` something else waits for it."},
    {"step",
     "Something is gained: between `item()` and the first kernel of the next step the GPU has\n"
     "nothing to do."},
};
constexpr std::string_view kHints[] = {
    "What does the GPU do while the host is in `item()`?",
    "And what does it do from the end of `item()` to the next kernel, while the host makes a "
    "batch?",
};

}  // namespace

const Lesson kHiddenSyncLesson = {
    .id = "7",
    .name = "hidden-sync",
    .title = "Hidden synchronization",
    .minutes = 6,
    .play = Play,
    .facts = kFacts,
    .story = R"(
In this loop a step takes {step} ms. A profiler of Python shows where: {item} ms of it is
`loss.item()`, which is there only to print the loss. Before it the host makes a batch ({load} ms)
and launches {kernels} kernels; both together take {host} ms. The kernels need {gpu} ms of the GPU.
)",
    .question = "How many milliseconds does a step take without `loss.item()`?",
    .unit = "ms",
    .truth = "after",
    .answer = "answer",
    .tolerance = 0.02,
    .slack = 0.2,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
`item()` copies four bytes, but only after all kernels before it are done. Its {item} ms are kernels
that run, and they do not go away. What does go away is a gap: when `item()` returns the GPU is
empty, and it stays so until the host has made a batch and launched the next kernel.

$ daydream whatif lesson7.ddtrace --opt no-sync --no-interval | head -14

{saved} ms are saved, of the {item} ms that the profiler showed.
)",
    .surprise = R"(
A wait moves when you remove the call that shows it: to the next `item()`, `print`, `.cpu()` or
`torch.cuda.synchronize()`. The gap after the wait is what you can gain. The gap is as long as the
host needs from `item()` to its next launch: here {load} ms for the batch, and a little for the
first op and its launch. A program bound by its launches gains nothing: its `item()` hardly waits.
And do check that nothing depends on the value, such as a loop that stops when the loss is small
enough. No trace tells that, so `whatif` reminds you of it with a warning, W0603, which names each
place that reads a value.
)",
};

}  // namespace daydream::examples
