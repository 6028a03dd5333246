#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "tools/pages/topics.h"

namespace daydream {
namespace {

constexpr Term kTerms[] = {
    {"baseline",
     R"(The recorded program, unchanged: what every prediction is compared with. Without one-time
stalls where there are some, and without what recording cost where the recording tells it.)"},
    {"best set",
     R"(In advise: the options that are best together, found by adding one after another while the
low end of what they save grows. They may save less, or more, than in sum: see joint.)"},
    {"bends at",
     R"(In `causal`: how many times as fast one kind of work can get before the step stops getting
shorter, and what one waits for from there on.)"},
    {"bound",
     R"(A limit, not a prediction: what the step would take if something cost nothing at all.
Printed with <= before the speed-up. free-launch, free-comm, free-gpu, free-host,
no-data-wait and roofline are bounds. If a bound promises little, everything it covers
promises less.)"},
    {"bound by",
     R"(What the critical path of the predicted step consists of: GPU work, CPU work and launching,
communication, or waiting for data. To go faster, make the largest of them shorter.)"},
    {"causes",
     R"(Which part of the difference between a prediction and the baseline comes from what. All
causes of all optimizations of a scenario are switched off in the changed graph and then
on again, one after another, with a replay after each: once in the order in which they
were named, once in the opposite order. A cause gets the mean of what the step changed by
when it came. What cannot be switched (the order of work on a lane, launch queues) is
listed as (joint), what earlier measurements taught as (learned). The sum is exact, to the
nanosecond.)"},
    {"ceiling",
     R"(The limit of one kind of change: the step if the host, the GPU, communication or loading
took no time. No optimization of that kind alone gets below it. See also: bound.)"},
    {"checks hold",
     R"(What is printed below the replay check: two harder tests of the same graph. "Each step by
itself" plays every recorded step alone; "with the lags of the others" gives each step the
pauses that the other steps had. They hold within 3 %, are doubtful within 10 %, and fail
above that. "In the mean, not for each step": a single step, which is named, is further
off. Where the mean of single steps is off by more than 3 %, steps in a row are played, too,
and count instead: a host that is ahead in a long step hides a short one behind it, which
neither shows alone. See also: typical lags.)"},
    {"comm not hidden",
     R"(In summary: the part of the step in which the GPU does nothing but communicate. Work on
other streams hides the rest of the communication.)"},
    {"confidence",
     R"(One word for how far off the predicted step is expected to be, on average: what measured
rows of the same kind of prediction were off by for a change of this size (docs/accuracy.md),
with what runs differ by and what the replay is off by (expected_error in JSON, as a share).
  high    up to 5 % of the step; the replay is within 1 %, within 3 % with typical lags, two
          steps or more count, three rows or more of two programs were compared, no more than
          a tenth of the GPU time is in kernels that the model was never checked on, and
          nothing has to hold in the program that the recording cannot show
  medium  up to 15 %
  low     above, or above 5 % where no two programs were compared; or the recording is in doubt,
          or holds no marks of steps, or the replay is off by more than 3 %, or by more than
          10 % with typical lags; or there is a doubt about the optimization, and neither was
          a run with it kept (--learn) nor do rows of two programs tell what it is off by; or
          less than eight in ten rows of its kind lay inside of intervals that did not know
          them; or the interval is longer than the step
The text says which of them decided, and what would raise it (confidence_why,
confidence_raise in JSON). Kinds and rows: docs/accuracy.md.)"},
    {"critical path",
     R"(The chain of work, latencies and waits that made the timeline as long as it is. Making
something shorter helps only while it is on this path, and then the path may move.)"},
    {"CPU work",
     R"(Time of the host on the critical path: operators, the program between them, and calls of
CUDA. daydream summary --by host says which. More of it than GPU work: the step is bound by
the host, and faster kernels do not help.)"},
    {"delay",
     R"(Time in which a GPU stream has work that could run and does not run it, for no reason that
the recording tells. Predictions keep it as it is. More than 5 % of it is a finding.)"},
    {"doubt",
     R"(What weakens one answer: something in the trace that the model of an optimization does not
cover. The confidence is low then. What "needs" says is none: the answer is as good as
others, where that holds in the program.)"},
    {"effort",
     R"(In advise: about how many lines of a program change for it. A guess by the kind of change,
not of your program.)"},
    {"exposed",
     R"(Communication is exposed while nothing else runs on the GPU. Exposed is not the same as
avoidable: hiding it needs other work that is ready.)"},
    {"expected error",
     R"(How far off a predicted step is expected to be, on average: what measured rows of the
same kind were off by for a change of this size, and what runs of one program differ by.
The word of confidence goes by it; nine in ten are within the interval, which is wider.)"},
    {"fabric",
     R"(How GPUs are wired: the GPUs of a node, then nodes, with the measured time of a collective
by its size. daydream fabric list shows the built-in ones.)"},
    {"finding",
     R"(Something about the recording that a prediction cannot mend, printed before everything else,
worst first: what puts the length of the step in doubt, then what puts predictions in doubt,
then what the program itself could do better. In JSON: findings, with kind, about (step,
predictions or program), text, where, ms, share of the step, and fix.)"},
    {"gap",
     R"(Time between two tasks of a lane that belongs to neither: host work outside of any operator,
or dead time between two kernels.)"},
    {"ghost",
     R"(A rank of the run without a file. Where the ends of a collective say that somebody came
later than all who were recorded, it did: its arrival stays as it was, under every what-if.)"},
    {"GPU busy",
     R"(In summary: the part of the step in which at least one stream has work; GPU idle is the
rest of it. Both sum to 100 %. Communication is work of the GPU: see comm not hidden.)"},
    {"guards",
     R"(In compile: what a compiled region checks at each call, shapes and types, before it may
run.)"},
    {"host",
     R"(The CPU and what runs on it: Python, operators, launching calls, the making of batches. In
the table of ranks: what a rank's threads work in the window, without waiting; much of it may be
hidden behind GPU work.)"},
    {"interval",
     R"(Where the step time should lie in nine of ten cases: the middle 90 % of 4096 draws with a
fixed seed. Each draw mixes: the times of recorded steps, picked at random; a value from the range
of every parameter that you did not fix; in a profile of PyTorch, by how much the host is quicker
without it (0 to 4.7 us for each operator and call; --true-step TIME says it); the error of the
replay (the larger of the plain and the typical one); what the same program differs by from run to
run (2.3 % in the two repeated recordings at hand); and what predictions of this optimization were
off by (docs/accuracy.md), as a share of the change; for another GPU of all its work. Where nothing
was measured, we assume errors of up to 45 % of that. The low end is never below the GPU work of
the busiest stream that stays as recorded, nor on another GPU below what its data sheet allows.
Bounds have none.)"},
    {"joint",
     R"(The part of a change that no single cause explains: what two of them gain only together, or
gain twice. Listed as (joint) under the causes.)"},
    {"kernel",
     R"(A function that runs on the GPU. Its time does not include its launch, which is a call on
the CPU that usually happened long before.)"},
    {"lag",
     R"(Latency along an edge: from the return of a launch call to the start of its kernel on an
idle stream, from the end of a kernel to the return of the call that waited for it.)"},
    {"lane",
     "Something that does one thing at a time: a CPU thread, a GPU stream, a communication "
     "channel."},
    {"launch",
     R"(The call on the CPU that asks for GPU work. It takes 3 to 10 us whatever the kernel does, so
many small kernels can make a step launch-bound: the GPU waits for the CPU.)"},
    {"layer",
     R"(A layer of the network: from module names where they were recorded, else from the operators
of the forward pass. Backward kernels belong to the layer of their forward operator.)"},
    {"limit",
     R"(What the step cannot get below if one kind of work took no time (free-gpu, free-host).
Printed with <=; nobody can switch it on. It has no interval and no confidence.)"},
    {"meeting",
     R"(The instant at which the last member of a collective has come. From it on the transfer runs;
what a kernel of the collective took before it was waiting for others.)"},
    {"own cycle",
     R"(What one rank of several takes for the recorded window when it waits for nobody; own step is
a step of that. The rank with the longest own cycle bounds a step that repeats, whoever
arrives last in the recorded one: that may only have begun late, once.)"},
    {"own step",
     "Of one rank of several: what a step takes when it waits for nobody. See also: own cycle."},
    {"peak memory",
     R"(The most GPU memory that is in use at one time in a step. "~": estimated from shapes, for no
memory was recorded; "<=" and ">=": at the most, at the least; "not known": something that
the change keeps or frees has no size in this trace.)"},
    {"phase", "Forward, backward, optimizer, data or communication."},
    {"place",
     R"(Of a step: its number in the recording, counted from 0. Its name is that of its mark, as
ProfilerStep#5, which counts from the start of the program.)"},
    {"ranks changed",
     R"(In whatif of a folder: on how many of the recorded ranks an option finds something to
change.)"},
    {"replay",
     R"(Playing the dependency graph of a trace forward. Replaying it unchanged must give the
measured step time; the difference is the replay error, printed before every prediction.)"},
    {"replay check",
     R"(The line above every answer: what the unchanged trace takes, replayed, against what was
measured. See also: checks hold, typical lags.)"},
    {"replay error",
     "Replayed against measured step time of the unchanged trace. See also: typical lags."},
    {"roofline",
     R"(The least time a kernel can take on a device: its arithmetic at the peak rate or its memory
traffic at the peak bandwidth, whichever is longer.)"},
    {"risk",
     R"(In advise: what may break or change with it, such as numerics, races, fixed shapes.)"},
    {"rule",
     R"(Why one task waits for another. Every edge of the graph carries its rule:
  launch      a call returns, its GPU work may start
  event wait  one stream waits for a point of another (cudaStreamWaitEvent)
  host wait   a blocking call returns after the GPU work it waits for
  hand-off    one CPU thread waits for another: the backward pass, the data loader
  queue       a launch waits until the launch queue of its stream has room
  collective  ranks meet
  transform   added by an optimization
and the order of the lane itself. docs/how-it-works.md has the evidence for each.)"},
    {"saves",
     R"(In advise: the step as it is, less the predicted one. Its low end counts for the order.)"},
    {"scenario", "A list of optimizations applied together. Each --opt is one scenario."},
    {"selectors",
     R"(Which tasks speedup, remove and option files work on. On the command line: KEY:VALUE,
joined with &, each inverted by a leading !; a bare value is kernel:VALUE. In a file:
{KEY: VALUE}.
  kernel, call, name    GPU operations, API calls, any task, by name
  op, scope, layer      inside an op, any named range, a layer (or module)
  lane, stream, thread  by name; streams and threads also by number or range
  device, rank, step    by number or range, 2 or 2-5
  phase                 forward, backward, optimizer, data, comm, none
  kind                  kernel, memcpy, memset, comm, call, host, wait, delay, data, gpu,
                        launch, sync, cpu_op, graph
  class                 gemm, conv, attention, elementwise, norm, ... (or category)
  dtype, shape          format and recorded input shapes of the op
  direction, memory     copies: h2d, d2h, d2d, h2h; pageable, pinned, device, managed
  collective            collectives by the name of the operation
Names are RE2 expressions that match anywhere. Files also have not, any, all, where,
launched_by, inside, before, after, between, first, last (docs/optimization-file-reference.md).)"},
    {"spread",
     R"(How much the recorded steps differ from one another, as a share of the step. Few steps that
differ much make every interval wide: record more of them.)"},
    {"stall",
     R"(Host work that happens once and takes long: a compiler, a module that is loaded, the start
of CUDA. Or work in each step that an allocator with room enough does not have: memory that goes
to the driver and comes back. No saving may contain it. See also: steady step.)"},
    {"steady step",
     R"(The step without its stalls: what a run of many steps takes. Everything is compared with it.
The header says what was recorded, with the stalls.)"},
    {"step",
     R"(One training iteration. Its time is the period from the end of the GPU work of the step
before to the end of its own; the CPU may run ahead, so the CPU's own duration of a step says
little. Reported is the mean over the steps that count, as a stopwatch would show it; warm-up
and cut-off steps are left out. Where steps differ, their median and quartiles stand beside it.)"},
    {"stream", "A queue of GPU work; what is in one stream runs in order."},
    {"throughput",
     R"(Examples a second. Steps that handle more or fewer examples (batch, accumulate) compare by
it only: twice the batch in 1.8 times the time is a gain.)"},
    {"transfer",
     R"(The part of a collective in which data moves: from the moment the last rank arrives
until the end. What ranks wait for one another before that is a wait, not a transfer.)"},
    {"true step",
     R"(What a step takes without the profiler, as --true-step says: the host's work is made
shorter, each piece by the same time, until the replay takes as long.)"},
    {"timeline",
     R"(When every task starts and ends: what a simulation predicts. --timeline writes it for
Perfetto or chrome://tracing.)"},
    {"trust",
     R"(In advise: the word for how sure a prediction is, why, and what would raise it. See also:
confidence.)"},
    {"typical lags",
     R"(The replay with every recorded delay replaced by the average one of its kind. If that still
matches, the model understands the trace and does not only repeat it: the better sign that a
changed graph is predicted well.)"},
    {"window",
     R"(Of several ranks: from the first start to the last end over all that was recorded. A
step that repeats may take less, as recordings do not begin together.)"},
    {"warm-up",
     R"(The first step of a recording, and those right behind it that take clearly longer than all
later ones. Simulated, not counted.)"},
    {"work",
     R"(Of a cause: by how much the time of kernels and host calls changes in a step, whether it is
on the critical path or not. The column beside it is what of that reaches the step.)"},
};

// "critical path", "Critical-Path" and "critical_path" are the same question.
std::string FoldedTerm(std::string_view name) {
  std::string out;
  for (char c : name) {
    bool space = c == '-' || c == '_' || c == ' ';
    out += space ? ' ' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

std::span<const Term> Terms() { return kTerms; }

const Term* FindTerm(std::string_view name) {
  std::string wanted = FoldedTerm(name);
  for (const std::span<const Term> terms : {Terms(), FindingTerms()}) {
    for (const Term& t : terms) {
      const std::string name = FoldedTerm(t.name);
      if (name == wanted || name + "s" == wanted || name == wanted + "s") return &t;
    }
  }
  // "warmup" is warm-up.
  const auto letters = [](std::string text) {
    std::erase(text, ' ');
    return text;
  };
  for (const std::span<const Term> terms : {Terms(), FindingTerms()}) {
    for (const Term& t : terms) {
      if (letters(FoldedTerm(t.name)) == letters(wanted)) return &t;
    }
  }
  // The first word of one term alone.
  const Term* found = nullptr;
  for (const std::span<const Term> terms : {Terms(), FindingTerms()}) {
    for (const Term& t : terms) {
      if (!FoldedTerm(t.name).starts_with(wanted + " ")) continue;
      if (found != nullptr) return nullptr;
      found = &t;
    }
  }
  return found;
}

std::string GlossaryMarkdown() {
  std::string out = "# Glossary\n\nPrinted by `daydream explain WORD`.\n";
  for (const Term& t : kTerms) {
    const bool preformatted = t.text.find("\n  ") != std::string_view::npos;
    out += preformatted ? fmt::format("\n## {}\n\n```\n{}\n```\n", t.name, t.text)
                        : fmt::format("\n## {}\n\n{}\n", t.name, t.text);
  }
  out +=
      "\n## findings\n\nWhat info and other commands say about a recording, by the names in "
      "JSON.\n";
  for (const Term& t : FindingTerms()) out += fmt::format("\n### {}\n\n{}\n", t.name, t.text);
  return out;
}

}  // namespace daydream
