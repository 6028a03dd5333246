#include <string>

#include <fmt/format.h>

#include "tools/pages/topics.h"

namespace daydream {
namespace {

constexpr ErrorPage kPages[] = {
    {"E0101", "unknown flag",
     "The command does not know this flag. `daydream COMMAND --help` lists its flags; a flag of\n"
     "another command is not accepted here. After `--` everything is an argument."},
    {"E0102", "unknown optimization",
     "A name in --opt is not among those of `daydream opt list`. Commas separate optimizations,\n"
     "arguments stand in parentheses: --opt 'amp(dtype=bf16),fuse'."},
    {"E0103", "bad parameter of an optimization",
     R"(The list of --opt cannot be read, or a parameter is unknown, missing, out of its range or in
the wrong unit. `daydream opt show NAME` lists the parameters with unit and range. Bits and
bytes differ (100Gbps, 12GB/s); durations need a unit (12us).)"},
    {"E0104", "bad value of a flag",
     "The flag needs a value, takes none, or does not take this one; the message says which."},
    {"E0105", "cannot write the result",
     R"(The file exists and -f was not given, the command reads it (-f does not help then), or the
folder is missing, read-only or full. An old file is never half replaced.)"},
    {"E0106", "unknown command", "`daydream help` lists the commands."},
    {"E0107", "wrong number of arguments",
     "The command needs a trace that was not given, or was given more than it takes. Quote values\n"
     "with spaces or parentheses: --opt 'amp(dtype=bf16)'."},
    {"E0108", "bad --fail-if or --set",
     R"(--fail-if is NAME < VALUE or NAME > VALUE. For whatif the names are speedup, step, saved and
replay_error; for diff they are step and the groups of the table. A time is compared with a
time (step > 120ms) or with a signed share of the baseline (step > +3%).
--set is NAME.PARAM=VALUE for a parameter that some --opt leaves open.)"},
    {"E0109", "nothing to explain under this name",
     R"(`daydream explain` knows the optimizations of `daydream opt list`, error codes like E0301
and the words of docs/glossary.md; `daydream explain` alone lists them.)"},
    {"E0110", "the file of learned residuals cannot be used",
     R"(--learn and --learned work on a text file whose first line is 'daydream-learned 1'. Each
further line has six fields between tabs: optimizations, GPU, and in ns per step the
recorded step, the predicted and the measured one; at last the measured file. The message
names the line that cannot be read. Nothing is appended to a file with such a line. Only a last
line that was cut off, because its writer was killed or the disk was full, is left out with a
warning, and removed when the next one is appended. A link is not written through.)"},
    {"E0111", "these optimizations exclude each other",
     R"(Two optimizations of one --opt say something different about the same work, so that the
result would depend on which came first, or count a gain twice. A switch that is there
twice is refused as well. Some exclude each other in one order only, such as offload,amp:
what offload copies would stay as wide as before. The message has the reason. Turn them
round, or give each an --opt of its own to compare them.)"},
    {"E0112", "the configuration file cannot be used",
     R"(~/.config/daydream/config has lines like `jobs = 4`: flags without their dashes, `yes` for
switches, those of one command below its name in brackets. The message names file and line.)"},
    {"E0120", "there is not enough memory",
     R"(The machine, its control group or `ulimit -v` gives no more memory; the exit code is 7. The
message says what was being done, what is free and about how much is needed. Fewer steps
(--steps), one rank (--rank), fewer threads (-j1) or a larger machine help. As a warning: the
graph needs more than is free now, and the system may end the program without a word.)"},
    {"E0121", "the system gives no more threads",
     R"(Fewer threads than --jobs do the same work; this error comes only when none can be made
where one is needed, or another thing that the system counts is used up. The exit code is 7.
`ulimit -u` shows the limit.)"},
    {"E0122", "the page cannot be shown",
     "The system gives `view` no socket, or no port to listen on."},
    {"E0201", "there is no such file", "There is no file of this name. '-' reads standard input."},
    {"E0202", "this is a directory, not a trace",
     "One trace is one file. Commands that read a trace take a folder for the traces of one run;\n"
     "here one file was needed."},
    {"E0203", "the format of this file is not known",
     R"(The first bytes match none of the formats that daydream reads; `daydream --version -v` lists
them. --from NAME skips the detection.)"},
    {"E0204", "a known format that is not read",
     R"(The file was recognised, but nothing here reads it. The message names a file of the same run
or the command that exports one that is read.)"},
    {"E0205", "the compressed data ends early",
     R"(The file was cut off, often because the program ended while it was written. What was
intact is used where the format allows it, and the loss is counted.)"},
    {"E0206", "the compressed data is damaged",
     R"(A block of the packed file does not unpack. Copy the file again; unpack it with gzip or
zstd to see how far it gets.)"},
    {"E0207", "this file unpacks to more text than is read",
     R"(A small file that unpacks to very much is more often a mistake or an attack than a trace, so
there is a limit. Record fewer steps.)"},
    {"E0208", "this file is empty", "The profiler was stopped too early, or the disk was full."},
    {"E0209", "this file cannot be read", "The message has the reason of the system."},
    {"E0210", "malformed events",
     R"(An event could not be read and --strict was given, or more of them than --max-errors
allows (1 % unless told otherwise). With a higher --max-errors you can look at what is
left, but record again before trusting a prediction.)"},
    {"E0211", "there are no events in this file",
     "It is JSON without \"traceEvents\", or the list is empty. Write the trace with\n"
     "prof.export_chrome_trace(...) after the profiler has stopped."},
    {"E0212", "this trace is too large",
     "A trace holds 2^31 events on 2^16 lanes. Record fewer steps."},
    {"E0213", "the file became shorter while it was read",
     R"(Another program cuts or rewrites the file: a copy that is not done, a profiler that begins
anew. What was read of it is no trace. Wait until the file is whole, and try again.)"},
    {"E0214", "the times do not belong together",
     R"(GPU work lies far from the calls that launched it, or no stretch of the file holds a
tenth of its events: the file is damaged, or times of two clocks are in it. Far is more than a
minute and than ten times the stretch with most events. A few such events (one in a hundred, or one
alone) and whole windows of a recording that was paused are left out and counted instead, with
warning W0203 that names one of them.)"},
    {"E0215", "no prediction can be taken from this file",
     "`diff` compares answers of `whatif --format json` about one trace. Write it once more."},
    {"E0220", "this is not a .ddtrace file",
     "It was to be read as one, but does not begin like one. Leave --from away."},
    {"E0221", "this .ddtrace file has a format that this program cannot read",
     "A newer daydream wrote it. Update, or import the original again."},
    {"E0222", "nothing in this .ddtrace file can be read",
     "It was cut off at its very beginning, or overwritten. Import the original again."},
    {"E0223", "this .ddtrace file is damaged",
     R"(--strict asks for all of it, and a chunk failed its checksum. Without --strict the intact
chunks are read and the loss is counted.)"},
    {"E0224", "too many events of this .ddtrace file are malformed",
     "As E0210, for our own format."},
    {"E0225", "this .ddtrace file holds more than may be read", "As E0207, for our own format."},
    {"E0230", "this SQLite file is damaged or ends early",
     R"(Exports of Nsight Systems and rocprofv3 are SQLite files. This one is shorter than its
header says, or a page of it makes no sense. Nothing is taken from it: which rows are missing
cannot be told. Export or copy it again.)"},
    {"E0231", "nsys could not be run",
     R"(--convert runs `nsys export` on a report. Either nsys is not on the PATH or it refused: a
report is exported by the version that wrote it or a newer one. Export it on a machine that
has that: nsys export --type sqlite --output NAME.sqlite NAME.nsys-rep)"},
    {"E0232", "this execution trace does not belong to this profile",
     R"(--et takes a PyTorch execution trace (torch.profiler.ExecutionTraceObserver) of the program
that was profiled. Its nodes are looked for in the profile by name and order, thread by
thread. With fewer than 95 % of them there, or an op that would read what is written after
it, the files are of different programs, and nothing is taken.)"},
    {"E0233", "no allocations can be taken from this file",
     R"(--memory takes a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot) of the run
that was profiled: its history has to overlap with the trace, by the time of day. A snapshot is a
Python pickle. Only dicts, lists, tuples, texts and numbers are read; one that names a function
or a class is refused, as loading it would run code.)"},
    {"E0300", "the graph cannot be built",
     "The trace was read but no dependency graph could be made of it; the message says why."},
    {"E0301", "this trace has no GPU work",
     "There is not one kernel, copy or memset in the file, so there is nothing to replay. Either\n"
     "the profiler recorded CPU activity only, or another tool held the GPU's profiling interface\n"
     "(CUPTI lets in one at a time). Record with\n"
     "  profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], ...)\n"
     "and look with `daydream info TRACE`."},
    {"E0302", "this trace has GPU work but no CPU calls",
     "Kernels are there, the calls that launched them are not: nothing tells why a kernel started\n"
     "when it did. Record CPU and CUDA activities together."},
    {"E0303", "there is no such step",
     "--steps names a place that the trace does not have, or one whose length nobody knows: the\n"
     "first, within which the recording begins, and the last when nothing follows it. Places\n"
     "count from 0; `daydream info TRACE` says how many there are and which are left out."},
    {"E0304", "the recorded times contradict one another",
     "Dependencies made from the recorded times form cycles: something ends before it begins,\n"
     "seen from elsewhere in the file. A few are dropped and reported; this file has too many.\n"
     "It is damaged, or clocks of host and GPU do not belong together. Record again."},
    {"E0305", "the recorded times cannot be",
     R"(Durations and distances add up to more than 36 years, or a time is negative where none can
be, and no importer could tell which event is wrong. The file is damaged: record again.)"},
    {"E0401", "this optimization file cannot be read",
     R"(It is missing, larger than 256 KiB, or no text in UTF-8. `daydream opt new NAME` prints a
file to start from.)"},
    {"E0402", "this is not YAML",
     R"(The caret shows where reading ended. Most often a text holds : or # or begins with one of
{ [ & * ! | > ' " % @ and needs quotes, or lines that belong together are not indented alike.)"},
    {"E0403", "YAML that is not accepted",
     R"(Option files are maps, lists and texts. Anchors, aliases, tags and several documents are
refused, as is nesting beyond 32 and more than 10,000 values: nobody needs them here, and they
make small files large.)"},
    {"E0404", "a key is given twice", "One of the two would be ignored. Keep one."},
    {"E0405", "unknown key",
     R"(The map at the caret does not have this key; the message says which it has. A key that would
be ignored is more often a slip than meant.)"},
    {"E0406", "a value of the wrong form",
     "Something is missing, or a map, list, text, number or word is expected at the caret.\n"
     "docs/optimization-files.md has the format."},
    {"E0407", "the name is taken",
     "An optimization of daydream, or another file of this command, has the name. Change `name:`."},
    {"E0408", "bad parameter of an option file",
     R"(A parameter needs a default and a source, min <= low <= default <= high <= max, and the same
unit everywhere.)"},
    {"E0411", "bad selector",
     "The selector selects nothing, or a value is not among the words of its key.\n"
     "`daydream explain selectors` lists the keys."},
    {"E0412", "regular expression does not compile",
     R"(Names are matched with RE2 expressions, anywhere in the name. Quote ( ) [ ] . + * ? with \
when they stand for themselves. Expressions have at most 1,000 characters, and those that would
become too large are refused.)"},
    {"E0413", "this expression cannot be read",
     R"(Expressions have numbers with units (12us, 64MiB, 25GB/s, 40%), + - * / ^, comparisons,
and, or, not, if(C, A, B), min and max, sum mean min max count over groups, the fields
time gap bytes in_bytes out_bytes flops grid block regs launches, $parameters, and
gpu.hbm_bw, gpu.sustained_bw, gpu.pcie_bw, gpu.memory, gpu.sms, gpu.peak(FORMAT),
gpu.sustained(FORMAT).)"},
    {"E0414", "units that do not fit",
     R"(Times cannot be added to bytes, and a value has to be what its place asks for: a time for
`time`, a plain number for a factor. bytes / 25GB/s is a time, a bare 0 has any unit.)"},
    {"E0415", "a name that is not defined",
     R"(A selector is called by a name that `define:` does not have above this place. Definitions
use those above them only, so none can hold itself.)"},
    {"E0416", "bad use of another optimization",
     R"(`use:` takes optimizations of `daydream opt list` with their arguments, as --opt does, but
no files, and none that excludes another one of the same file.)"},
    {"E0421", "a check of the option file failed",
     "The file says how much a selector has to match, and in this trace it does not. Look with\n"
     "`daydream opt check FILE --trace TRACE`: it shows what each selector matches."},
    {"E0422", "the trace lacks what the option file needs",
     "`needs:` names something that was not recorded. The message says how to record it."},
    {"E0423", "a task lacks a field",
     R"(The file needs a field (`needs:`), and a selected task does not have it. Without the need,
such tasks stay as they are and are counted in a warning.)"},
    {"E0424", "a value without meaning",
     R"(An expression gave a negative, infinite or absurd value for a task, or gives one for any
task. Limit it with max(A, 0) or choose with if(CONDITION, A, B).)"},
    {"E0425", "work would wait for itself",
     R"(After this action of the file, a task waits for something that waits for the task. Link from
earlier work to later work only.)"},
    {"E0426", "an option file adds too much",
     R"(A selector also matches what earlier steps of the file added, so that steps that insert
beside what they match double it each time. The limit is a million tasks and dependencies,
or four for each task of a larger trace. Exclude what the file adds: {kind: kernel, not:
{kernel: NAME}}.)"},
    {"E0430", "a folder without traces",
     R"(A folder stands for the traces of one run, a rank each. A .ddtrace stands for the file
beside it that it was imported from; others of that kind count, too. This holds no trace.)"},
    {"E0431", "these traces are not of one run",
     R"(Ranks of one run have numbers of their own, agree on how many they are, and run at the same
time. Name the files of one run, or put them in a folder of their own.)"},
    {"E0432", "there is no such rank",
     "--rank takes the number of a rank of the trace; `daydream info` lists them."},
    {"E0433", "a clock that could not be aligned",
     R"(As warning W0433: traces of several machines are put on one time by the machines' wall
clocks and by the ends of equal collectives. A rank without either counts from its own
beginning; what happens on it can not be compared in time with the others.)"},
    {"E0434", "two ranks issue two collectives in opposite order",
     R"(Every member of a process group issues its collectives in the same order, or all would wait
for ever. The message names both and the ranks. Most likely the traces are not of the same
steps of one run, or one of them was changed.)"},
    {"E0435", "no two of these ranks have a collective in common",
     R"(`daydream ranks` and joint what-ifs match collectives of several ranks by process group and
sequence number, or by their order. Here nothing fits: the traces may be of different runs,
or of steps that do not overlap. --rank R looks at one of them.)"},
    {"E0436", "collectives that do not fit together",
     R"(As warning W0436 of `daydream ranks`: a member does another collective than the rest or
lacks one (mismatch), its recording begins later or ends earlier (window_edge), it has no file
(not_recorded), or an end lies before the last arrival (clock). What fits is played together;
what does not takes the time that it took.)"},
    {"E0437", "Python: a question about one rank asked of several, or the reverse",
     R"(load(folder, rank=0) is one rank; load(folder) all, for whatif(), advise() and ranks().)"},
    {"E0438", "Python: a task that cannot be edited so",
     R"(Use numbers of select() and runs(), within the function that was handed the edit.)"},
    {"E0501", "another tool is to record this command already",
     "CUDA lets one profiler into a process at a time, and CUDA_INJECTION64_PATH or\n"
     "NVTX_INJECTION64_PATH names one (Nsight Systems and Compute set them, and so does `daydream\n"
     "trace`). Nothing was run. End the other tool or unset the variable; a trace of the PyTorch\n"
     "profiler can be read directly. A tool that only shows when the program runs (the PyTorch\n"
     "profiler as a daemon) is named by the recorder on standard error, and the program goes on\n"
     "without GPU records."},
    {"E0502", "there is no GPU that a program could use",
     "Recording needs an NVIDIA GPU and its driver; nothing was run. The message tells which part\n"
     "is missing: the driver's library (libcuda.so.1), a driver that starts, or a visible GPU\n"
     "(CUDA_VISIBLE_DEVICES hides them). In a container the GPU must be passed in (--gpus all).\n"
     "`daydream doctor` looks at each. All other commands need no GPU."},
    {"E0503", "this build of daydream has no recorder",
     R"(The recorder is built when the headers of the CUDA Toolkit (with CUPTI) are there; no GPU
and no driver are needed for that. Install the toolkit and configure again. An installed
daydream looks for lib/daydream/libdaydream_inject.so beside its bin folder.)"},
    {"E0504", "there is no such command",
     R"(The command of `daydream trace` is neither a file nor found in the folders of PATH. The exit
code is 127, as in a shell. Flags of daydream stand before the command.)"},
    {"E0505", "the command cannot be executed",
     R"(The file is there but may not or cannot be executed; the message has the system's reason.
The exit code is 126, as in a shell.)"},
    {"E0506", "a folder of driver stubs is in LD_LIBRARY_PATH",
     "As warning W0506: the folder `stubs` of a CUDA Toolkit holds a libcuda.so to link with. A\n"
     "program that loads it instead of the driver finds no GPU, and CUPTI does not work. daydream\n"
     "never changes LD_LIBRARY_PATH."},
    {"E0507", "no GPU work was recorded",
     R"(As warning W0507: the command ended, but there is nothing to look at. Either no process used
CUDA; or the program ended before the steps to record (fewer steps than --warmup); or CUPTI
refused, which the recorder says on standard error; or the recorder did not get in: a program
with special rights (setuid) ignores the variables by which it does. `--capture-range none`
records everything from the start.)"},
    {"E0508", "a recording could not be read or named",
     R"(As warning W0508: a file could not be read back, or not moved to its name because another
file took it meanwhile or the disk refused. Nothing is deleted: the recording stays in the
folder that the message names (NAME.session), and every command reads it there. The same folder
is left when daydream itself was killed.)"},
    {"E0509", "a recording is not complete",
     R"(As warning W0509: the recorder or CUPTI dropped events and counted them, or the process
ended without notice (killed, crashed), which costs what happened since the last write,
0.1 s unless --flush says otherwise. A slow disk, too little memory or very many small
kernels make it drop events. Record fewer steps, or CUDA graphs as a whole (--cuda-graph
graph).)"},
    {"E0601", "the optimization found nothing to change",
     R"(Nothing in this trace matches what the optimization works on, or it has the new values
already, for example `fuse` where every optimizer is fused. That is an answer too; it is
not printed as 1.00x so that a misspelt selection does not look like one. A combination is
predicted without its parts that find nothing, with warning W0601; the exit code is 4
either way, unless --allow-no-effect is given. The other warnings W0601 come from building
the graph and says what weakens every prediction from this trace.)"},
    {"E0602", "the replay check failed",
     R"(Asked of the unchanged graph is whether its replay takes the time that was measured, how
much shorter it is without delays that no rule explains, whether each step takes as long by
itself and with the lags of the other steps, and whether typical lags put it off by half.
Predictions would be off by the worst answer: above --max-replay-error (10 %) there is none,
and no table of summary; above 3 % you get W0602. Causes are steps that differ (choose with
--steps), a recording that lost events, or behaviour that the rules do not cover.)"},
    {"E0603", "the answer is weakened",
     "As warning W0603: an optimization found something in the trace that its model does not\n"
     "cover. The text says what; the confidence is low."},
    {"E0604", "a gate of --fail-if held",
     "The condition that was to fail the command is true. The exit code is 5."},
    {"E0605", "the optimization must be told more",
     "A parameter has no default because the trace cannot tell it, for example how many loader\n"
     "workers the recorded run had. The message says which one to give. Where workers never kept\n"
     "a step waiting, how long they need is not in the trace, and fewer cannot be judged."},
    {"E0606", "there is nothing to learn from this measurement",
     "--learn keeps what a prediction was off by, so that --learned can correct later ones. That\n"
     "makes sense only for a prediction (not a limit) that was measured on the GPU it was\n"
     "predicted for, by the same program, in a recording of its own: three times as long as\n"
     "predicted, or a third of it, is another program."},
    {"E0607", "the recording holds no step",
     R"(CUDA was started inside of the only recorded step, or next to all of it is one-time work: a
compiler, modules that are loaded, memory that is reserved. What remains is no step that comes
again; nor are steps of 0 ns, or GPU work half of which takes 0 ns. So nothing is told. Record
after warm-up: torch.profiler.schedule(wait=5, warmup=3, active=5), or trace --warmup 10.)"},
    {"E0615", "the recorded batch is not known",
     "batch(512) needs to know how many examples a recorded step has. It is told by the shapes of\n"
     "ops (record_shapes=True, or a recording of daydream trace); without them say it:\n"
     "batch(512,recorded=32), or ask for a multiple: batch(x4)."},
    {"E0616", "this is no size",
     R"(A size is a count (512) or a factor on what was recorded (x4, 4x, x0.5). Factors of more
than a million, batches of less than one example, and models without layers, are refused; so is a
second size for layers that the same scenario repeats already.)"},
    {"E0617", "this makes too large a graph",
     R"(Passes and layers that are repeated are played task by task. More than ten million tasks are
refused; the time of one more shows with few repetitions already. So are changes that make the
durations of all tasks add up to more than 36 years.)"},
    {"E0618", "there is no such family of layers",
     "layers repeats layers whose names differ by a number: layers.0, layers.1, or\n"
     "DecoderLayer_0, DecoderLayer_1. The message lists those of this trace."},
    {"E0621", "the step without the profiler cannot be that",
     "--true-step is what the step takes when nobody records it: not longer than recorded, nor\n"
     "much shorter than without any host time. Measure many steps of the same program and GPU."},
    {"E0625", "there is no backward pass",
     R"(Optimizations that trade time for memory act on what the forward pass keeps for the backward
pass. Inference keeps nothing. Record steps of training.)"},
    {"E0626", "forward and backward work cannot be joined",
     R"(To know when the backward pass needs what a layer kept, its kernels must be told to belong
to that layer: by modules (daydream trace) or by autograd's sequence numbers, which the
PyTorch profiler writes with the ops of the CPU (ProfilerActivity.CPU).)"},
    {"E0627", "there are no shapes",
     "What is kept for backward is told from the shapes of ops: profile(record_shapes=True, ...).\n"
     "The peak of memory also follows from allocations (profile_memory=True)."},
    {"E0628", "an optimization makes work wait for itself",
     R"(What it adds has to come behind work that comes behind it. In a recording of one run that
cannot be. The message names the circle: calls, the GPU work that they launch, and what
waits for it. Look them up in a timeline (daydream export TRACE --to perfetto). Where one is on
a thread or stream that the program does not run it on, the recording mixes them up, which
no check of the recording alone can tell. Where all are right, it is our mistake: the
other optimizations can be predicted meanwhile.)"},
    {"E0701", "bad range of a sweep",
     "A value of --opt that is a range or a list cannot be used: it runs backwards, never ends,\n"
     "mixes units, or gives more than 100,000 scenarios. Ranges are 1..8, 1..16*2 and\n"
     "10GB/s..25GB/s+5GB/s, lists {bf16,fp16}."},
    {"E0702", "the journal belongs to another sweep",
     R"(The file of --journal was begun with another trace, other optimizations, flags or values,
with another content of a file that takes part (the description of a GPU, a file of options), or
by another build of the program. Its rows do not answer this question. Name another file, or
remove this one.)"},
    {"E0703", "a journal cannot be used",
     R"(The file is no journal of a sweep, is damaged before its last line (each line ends in a
checksum), cannot be written, or another process is writing it; or the sweep reads a pipe, which
no journal can know again. A last line that was cut off is no damage: it is dropped, and that row
is done again.)"},
    {"E0704", "bad shard",
     "--shard I/N does every N-th scenario, beginning with the I-th; I is between 1 and N."},
    {"E0705", "journals do not make a whole",
     R"(`sweep merge` got journals of different sweeps, or two different values of one row: then
nothing is written. When only rows are missing, the result holds the others and the exit code
is 4: run the missing shards with the same journals and merge again.)"},
    {"E0706", "ranks without MPI",
     R"(The program was started by mpirun or srun as one of several ranks, but does not know MPI, so
every rank would do all the work. Where the MPI headers were there when it was built, there is
a program daydream-mpi beside it; --shard I/N works without.)"},
    {"E0707", "the ranks are not about to do the same",
     R"(Each rank of `mpirun daydream-mpi sweep` reads the files of its own host. Before any work
they compare what their rows hang on: the program with its version, the content of the trace and
of all other files, and the flags. The message names the rank and the host that differs, or that
could not begin, and why. Nothing was written.)"},
    {"E0708", "a file was changed while the sweep ran",
     R"(The description of a GPU or another file that a scenario names is another one than when the
sweep began, so rows before and after it would not belong together. A journal keeps those from
before.)"},
    {"E0710", "bad --budget",
     R"(A budget of `advise` is 'effort<=20 lines', risk=WORD (only options whose risks are this) or
'risk!=WORD' (none whose risks hold this). A word, number, variable or command to change
counts as a line; options that name no number of lines are over every budget of lines. The
members of the best set count together. `daydream advise` shows both columns.)"},
    {"E0711", "options cannot be ranked by this",
     "`advise` ranks by the step, or by the time for as many examples as recorded: --objective\n"
     "throughput, or cost, which is the same on one machine. What a step draws is in no trace and\n"
     "is not modelled, and prices of other GPUs are not known."},
    {"E0712", "bad --pareto",
     "--pareto takes step, memory, or both with a comma: rows that no other one beats in them."},
    {"E0801", "this GPU is not known",
     R"(A GPU is named as in costmodel/devices/ (the message lists the names; letter case, spaces
and dashes do not matter, and the first words are enough: H100), or by the path of a file
that describes one and ends in .yaml, .yml, .json or .textproto. docs/cost-model.md has
the fields of such a file.)"},
    {"E0802", "this is no description of a device",
     "A file that describes a GPU has lines of `field: value` in YAML, JSON or the protobuf text\n"
     "format. The message shows where reading ended."},
    {"E0803", "a field of a device is not right",
     R"(There is no such field, it is given twice, or its value is no plain number within its range.
Units are in the names of the fields: MHz, TFLOPS, 10^9 bytes a second; peaks are dense.)"},
    {"E0804", "the description of a device is not enough",
     "name, multiprocessors, memory_gb_per_s and the fp32 rate (fp32_tflops, or units and clock)\n"
     "have to be there; everything else is filled in by rules that the result lists."},
    {"E0805", "the table of measured operations cannot be read",
     R"(`daydream calibrate` reads a CSV table: a first line with the names of the columns (op and
us have to be there), then a line for each operation. The message shows the place;
`daydream calibrate --help` lists operations and columns.)"},
    {"E0806", "there is nothing to calibrate with",
     R"(No measured operation tells a rate: convolutions have no absolute model, operations of a few
microseconds are not made of their work, and a format that the GPU lacks has no rate.)"},
    {"E0810", "the GPU of the recording is not known, or from= names another",
     R"(Times on another GPU, or on a share of one, are ratios: what the cost model says of the new
situation against the recorded one. So the recorded GPU has to be one of those whose data
sheet is known here. daydream info shows what was recorded; traces without properties of the
device say nothing about it. Then name it: gpu(H100, from=V100-SXM2-32GB).)"},
    {"E0812", "these two programs cannot be put on one GPU",
     "Both have to be recorded on the same kind of GPU, for their kernels keep their times; and\n"
     "both need GPU work whose steps can be repeated. With --opt colocate(OTHER) the trace looked\n"
     "at needs at least two steps; daydream colocate repeats one."},
    {"E0813", "no shapes can be taken from this file",
     R"(--shapes takes a PyTorch execution trace (torch.profiler.ExecutionTraceObserver, the
format that Chakra builds on) of the same program. Ops are matched by name and by their
order. A profile may hold more iterations than the execution trace, or fewer, but then it
holds all ops so many times more often: where less than 80 % of the nodes agree on that
number, the file is of another program, and nothing is taken. W0813 warns where less than
95 % do, or less than half of the profile's ops got shapes. A profile with shapes of its own
takes nothing from it. Two runs of one program with other batch sizes have the same ops: that
the shapes are of this run is up to you.)"},
    {"E0814", "a step cannot be repeated by itself",
     R"(daydream colocate plays the typical step of each program over and over. Where that takes
more than 10 % more or less than the step was recorded to take (work between steps, a
loader that runs ahead, steps that overlap), the repeated program is not the recorded one,
and nothing is predicted from it.)"},
    {"E0815", "the sizes of the gradients are not known",
     R"(Data parallelism exchanges gradients, and how many bytes these have is read from the shapes
of torch::autograd::AccumulateGrad. Record a training step with
torch.profiler.profile(record_shapes=True); an inference trace has no gradients.)"},
    {"E0820", "this fabric is not known",
     R"(A fabric is named as in `daydream fabric list` (letter case and dashes do not matter), or by
the path of a text file that describes one and ends in .textproto, .fabric or .txt.
`daydream fabric show NAME --text` prints one to begin from.)"},
    {"E0821", "the description of a fabric is not right",
     R"(A text file for --fabric holds `fabric { name: ... level { ... } }` in the protobuf text
format, as `daydream fabric show nvlink4 --text` prints it. The message shows the place, or
the number that is missing or out of its range.)"},
    {"E0822", "no row of nccl-tests is in this file",
     R"(`daydream fabric fit` reads what all_reduce_perf and its sisters print: a row has a size, a
count, a type, a time and the bandwidth that follows from them. Two sizes are the least.)"},
    {"E0823", "the fabric has no level for so many ranks",
     R"(A built-in fabric like nvlink4 is one node. More ranks than fit in a node need a fabric with
a level of nodes: `daydream fabric list` shows them, --fabric FILE describes another.)"},
    {"E0824", "no exchange of gradients in this trace",
     R"(fp16-compress, dgc, powersgd, local-sgd, blueconnect and p3 change how ranks exchange
gradients: collectives of a known size that are launched where autograd hands a parameter its
gradient, as DistributedDataParallel does. A trace of one GPU gets them from ddp(RANKS,
fabric=NAME) in the same scenario.)"},
    {"E0825", "the levels of the network are not known",
     R"(blueconnect splits an all-reduce by the levels of the network (the GPUs of a node, then
nodes), so it needs a fabric: blueconnect(fabric=NAME), or ddp(RANKS, fabric=NAME) beside it.
level= of bandwidth and latency names one of these levels.)"},
    {"E0826", "the next step is not in this trace",
     R"(What p3 gains is that the forward pass of the next step begins while gradients of the last
layers are still on their way. A recording of one step has no next one: record two or more.)"},
    {"E0901", "internal error",
     R"(A transform left the graph in a state that is not allowed. This is a mistake in daydream,
not in your trace; please report the command line and, if you may, the trace.)"},
};

}  // namespace

std::span<const ErrorPage> ErrorPages() { return kPages; }

const ErrorPage* FindErrorPage(std::string_view code) {
  if (code.size() != 5 || std::string_view("EeWw").find(code[0]) == code.npos) return nullptr;
  for (const ErrorPage& page : kPages) {
    if (page.code.substr(1) == code.substr(1)) return &page;
  }
  return nullptr;
}

std::string ErrorsMarkdown() {
  std::string out =
      "# Error codes\n\n"
      "Printed by `daydream explain CODE`. The first two digits are the area: 01 command line, 02\n"
      "reading the input, 03 what the input lacks, 04 option files, 05 recording, 06 model and\n"
      "replay, 07 sweeps, 09 our own mistakes. Warnings have the same numbers and begin with W.\n";
  for (const ErrorPage& page : kPages) {
    out += fmt::format("\n## {}: {}\n\n{}\n", page.code, page.title, page.text);
  }
  return out;
}

}  // namespace daydream
