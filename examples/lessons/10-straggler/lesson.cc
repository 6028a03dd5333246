// Four ranks: the one that waits least holds the others up.
#include <fmt/format.h>

#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

constexpr int kRanks = 4;

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  const int64_t usual = Ms(draw.Between(18, 26));
  const auto late = static_cast<int>(draw.Between(0, kRanks - 1));
  const int64_t late_ns = usual + Ms(draw.Between(5, 9)), transfer = Ms(draw.Between(3, 5));
  LessonPlay out;
  for (int rank = 0; rank < kRanks; ++rank) {
    const int64_t work = rank == late ? late_ns : usual - Us(100 * rank);
    Loop loop;
    loop.machine.rank = rank;
    loop.machine.world = kRanks;
    loop.kernels = {{"aten::mm", "ampere_sgemm_128x128_nn", work / 2},
                    {"aten::mm", "ampere_sgemm_128x128_nt", work - work / 2},
                    {.op = "c10d::allreduce_",
                     .kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
                     .ns = transfer + late_ns - work,
                     .collective = true}};
    DD_ASSIGN_OR_RETURN(const Played played, PlayLoop(fmt::format("lesson10-rank{}", rank), loop));
    out.files.push_back({fmt::format("lesson10/rank{}.ddtrace", rank), played.trace});
    out.numbers[fmt::format("comm{}", rank)] = InMs(loop.kernels.back().ns);
    out.numbers["step"] = played.step_ms;
  }
  Numbers& n = out.numbers;
  n["usual"] = InMs(usual), n["late_ms"] = InMs(late_ns), n["transfer"] = InMs(transfer);
  n["late"] = late + 1;  // the place of the choice
  n["rank"] = late;
  n["extra"] = InMs(late_ns - usual);
  n["waits_most"] = late == kRanks - 1 ? kRanks - 1 : kRanks;
  std::vector<double> others;
  for (double place = 1; place <= kRanks; ++place) {
    if (place != n["late"] && place != n["waits_most"]) others.push_back(place);
  }
  n["waits"] = others[0], n["waits_too"] = others[1];
  return out;
}

constexpr Fact kFacts[] = {
    {"answer", "ranks lesson10", "waits.0.for"},
    {"waited", "ranks lesson10", "waits.0.ms"},
};
constexpr std::string_view kChoices[] = {"rank 0", "rank 1", "rank 2", "rank 3"};
constexpr std::string_view kWaits =
    "The longer all-reduce belongs to the rank that is ready earlier, and waits.";
constexpr WrongThought kThoughts[] = {
    {"waits_most",
     "This rank has the longest all-reduce because it has to wait longest: it was\n"
     "ready first. Its network is no slower than that of the others."},
    {"waits", kWaits},
    {"waits_too", kWaits},
};
constexpr std::string_view kHints[] = {
    "An all-reduce kernel begins when its own rank is ready, and ends when all are.",
    "Who comes last does not wait. Which rank has the shortest all-reduce?",
};

}  // namespace

const Lesson kStragglerLesson = {
    .id = "10",
    .name = "straggler",
    .title = "Waiting in collectives",
    .minutes = 8,
    .play = Play,
    .facts = kFacts,
    .story = R"(
Four GPUs train one model, each with its own part of the batch. A rank is one process with its GPU.
At the end of backward all ranks add up their gradients; that is an all-reduce, one kind of
collective (a call that all ranks make together). A step takes {step} ms on each of them. The
profiles show how long the all-reduce kernel takes in each step:

    rank 0   {comm0} ms
    rank 1   {comm1} ms
    rank 2   {comm2} ms
    rank 3   {comm3} ms
)",
    .question = "Which rank holds the others up?",
    .unit = "",
    .choices = kChoices,
    .truth = "late",
    .answer = "answer",
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
The time of a collective holds two things: the transfer, which is the same for all ({transfer} ms
here), and the wait for whoever comes last. The last one does not wait. So rank {rank}, with the
shortest all-reduce, holds the others up: its own work takes {late_ms} ms instead of {usual} ms. In
the next table, in milliseconds, `own step` is what a step of the rank would take if it waited for
nobody, with the transfer. All other columns are sums over the six recorded steps:

    own cycle   the own steps of all six
    waits       how long it waits for others
    transfers   how long its collectives take once all are there
    exposed     communication during which the rank computes nothing
    compute     what its GPU computes
    host        what the threads of its host work
    last        how many times the others waited for it

$ daydream ranks lesson10 | head -20
)",
    .surprise = R"(
The rank with the most time in communication is the healthy one. If the all-reduce is what you look
at, you buy a faster network, and gain little: only {transfer} ms of a step of {step} ms is
transfer, so one that takes no time at all saves no more than that. Repairing rank {rank} saves
about {extra} ms.
)",
};

}  // namespace daydream::examples
