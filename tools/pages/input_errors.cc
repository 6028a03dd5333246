// What is wrong with what was given: the command line, files, option files and folders of ranks.
#include "tools/pages/topics.h"

namespace daydream {
namespace {

constexpr ErrorPage kInputErrors[] = {
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
line without a newline was cut off, because its writer was killed or the disk was full: it is left
out with a warning, and removed when the next one is appended. A link is not written through.)"},
    {"E0111", "these optimizations exclude each other",
     R"(Two optimizations of one --opt say something different about the same work, so that the
result would depend on which came first, or count a gain twice. A switch that is there
twice is refused as well. Those of files may exclude each other in one order only. The message
has the reason. Turn them round, or give each an --opt of its own to compare them.)"},
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
     "first, where no mark says when it begins, and one without any work. Places count from 0;\n"
     "`daydream info TRACE` says how many there are and which are left out."},
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
or of steps that do not overlap. --rank R looks at one of them. One trace
alone has no collective at all.)"},
    {"E0436", "collectives that do not fit together",
     R"(As warning W0436 of `daydream ranks`: a member does another collective than the rest or
lacks one (mismatch), its recording begins later or ends earlier (window_edge), it has no file
(not_recorded), or an end lies before the last arrival (clock). What fits is played together;
what does not takes the time that it took.)"},
    {"E0437", "Python: a question about one rank asked of several, or the reverse",
     R"(load(folder, rank=0) is one rank; load(folder) all, for whatif(), advise() and ranks().)"},
    {"E0438", "Python: a task that cannot be edited so",
     R"(Use numbers of select() and runs(), within the function that was handed the edit.)"},
};

}  // namespace

std::span<const ErrorPage> InputErrorPages() { return kInputErrors; }

}  // namespace daydream
