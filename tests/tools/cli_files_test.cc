// Every file that the program writes: whatever fails while it is written, the file is what it was
// before or what it should become, and nothing else is left. tests/faults makes calls fail.
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/small_trace.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;

struct Writer {
  const char* name;     // for messages
  const char* command;  // %T is the trace, %F the file
  bool whole;           // replaced as a whole; otherwise lines are added
};

// As nccl-tests prints it, made up but for its form.
constexpr char kNcclTests[] = R"(#  Rank  0 Group  0 Pid  1 on a device  0 [0x00] NVIDIA H100
#  Rank  1 Group  0 Pid  2 on a device  1 [0x00] NVIDIA H100
#       size     count   type redop root    time  algbw busbw #wrong  time  algbw busbw #wrong
        1024       256  float   sum   -1   30.00   0.03  0.03     0  29.00  0.04  0.04     0
    33554432   8388608  float   sum   -1   400.0  83.89 83.89     0  401.0 83.68 83.68     0
)";

constexpr Writer kWriters[] = {
    {"result", "summary %T -f -o %F", true},
    {"info", "info %T --try -f --format json -o %F", true},
    {"advice", "advise %T -f -o %F", true},
    {"advice page", "advise %T --html -f -o %F", true},
    {"causal", "causal %T -f -o %F", true},
    {"kernels", "kernels --gpu A100 --gemm 512x512x512 -f -o %F", true},
    {"difference", "diff %T %M -f -o %F", true},
    {"scale", "scale %T --ranks 1,2 --fabric nvlink4 -f -o %F", true},
    {"colocation", "colocate %T %M -f -o %F", true},
    {"fabrics", "fabric list -f -o %F", true},
    {"sweep result", "sweep %T --no-interval --opt 'prefetch(1..3)' -f --format csv -o %F", true},
    {"timeline", "whatif %T --no-interval --opt free-gpu -f --timeline %F.json", true},
    {"page", "report %T --opt free-gpu -f -o %F", true},
    {"import", "import %T -f -o %F", true},
    {"export", "export %T --to csv -f -o %F", true},
    {"chrome export", "export %T --to chrome -f -o %F", true},
    {"perfetto export", "export %T --to perfetto -f -o %F", true},
    {"dot export", "export %T --to dot -f -o %F", true},
    {"folded export", "export %T --folded -f -o %F", true},
    {"Chakra export", "export %T --to chakra -f -o %F", true},
    {"picture", "export %T --opt free-gpu --to svg -f -o %F", true},
    {"option file", "opt new mine -f -o %F", true},
    {"merged sweep", "sweep merge %J -f --format csv -o %F", true},
    {"fabric", "fabric fit %S --collective all_reduce --ranks 2 --nodes 1 -f --save %F", true},
    {"GPU", "calibrate %C --gpu L4 -f -o %F.textproto", true},
    {"journal", "sweep %T --no-interval --opt 'prefetch(1..3)' --journal %F -j1", false},
    {"learned", "whatif %T --no-interval --opt 'speedup(kind:gpu,2)' --measured %M --learn %F",
     false},
};

constexpr char kFaults[] = DAYDREAM_BINARY_DIR "/tests/faults/faults.so";

class Files : public CliFixture {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    if (IsSkipped()) return;
    Write("trace.json", SmallTrace());
    Write("after.json", SmallTrace(7));
    Write("sweep.txt", kNcclTests);
    Write("ops.csv", "op,b,m,k,n,h,bytes,dtype,us\nmemory,0,0,0,0,0,268435456,fp16,1200\n");
    Run("sweep " + Path("trace.json") + " --no-interval --opt 'prefetch(1..3)' -o " + Path("rows") +
        " --journal " + Path("journal"));
    fs::create_directory(Path("results"));
  }
  std::string Command(const Writer& w, const std::string& file) const {
    std::string command = w.command;
    for (const auto& [mark, text] : {std::pair<std::string, std::string>{"%T", Path("trace.json")},
                                     {"%M", Path("after.json")},
                                     {"%J", Path("journal")},
                                     {"%S", Path("sweep.txt")},
                                     {"%C", Path("ops.csv")},
                                     {"%F", file}}) {
      for (size_t at; (at = command.find(mark)) != std::string::npos;) {
        command.replace(at, mark.size(), text);
      }
    }
    return command;
  }
  // The file itself: some have an ending.
  static std::string Target(const Writer& w, const std::string& file) {
    const std::string_view command = w.command;
    const size_t at = command.find("%F.");
    if (at == std::string_view::npos) return file;
    const std::string_view rest = command.substr(at + 2);
    return file + std::string(rest.substr(0, rest.find(' ')));
  }
  std::set<std::string> In(const std::string& folder) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  // Each call that touches a file fails in turn, or ends the program. Lines are added to a file
  // that is not there, and then to one that is.
  void ExpectNothingHalf(const Writer& w, const std::string& environment) {
    ExpectNothingHalf(w, environment, w.whole ? "what was there before\n" : "");
    if (w.whole || HasFatalFailure()) return;
    const std::string all = ReadAll(Target(w, Path("results/result")));
    ExpectNothingHalf(w, environment, Earlier(all));
  }
  // What an earlier run has left in a file that lines are added to: half of the lines, or the one.
  static std::string Earlier(const std::string& all) {
    size_t end = all.find('\n', all.size() / 2);
    return all.substr(0, end + 1);
  }
  void ExpectNothingHalf(const Writer& w, const std::string& environment,
                         const std::string& before) {
    const std::string file = Path("results/result"), target = Target(w, file);
    auto run = [&](const std::string& fault) {
      return Run(
          Command(w, file),
          environment + fmt::format("LD_PRELOAD={} DAYDREAM_FAULT_COUNT={} DAYDREAM_FAULT={}",
                                    kFaults, Path("count"), fault));
    };
    auto clean = [&] {
      fs::remove_all(Path("results"));
      fs::create_directory(Path("results"));
      if (!before.empty()) std::ofstream(target) << before;
    };
    clean();
    const CliResult good = run("0");
    ASSERT_THAT(good.exit, AnyOf(0, 4)) << w.name << good.err;
    const std::string whole = ReadAll(target);
    ASSERT_FALSE(whole.empty()) << w.name;
    const int calls = std::atoi(ReadAll(Path("count")).c_str());
    ASSERT_GE(calls, 2) << w.name << ": nothing is counted";
    for (int call = 1; call <= calls; ++call) {
      for (const std::string what : {"ENOSPC", "EIO", "EACCES", "short", "kill", "term"}) {
        clean();
        const CliResult r = run(fmt::format("{}:{}", call, what));
        const std::string place = fmt::format("{}, call {} of {}: {}\n", w.name, call, calls, what);
        const std::string after = fs::exists(target) ? ReadAll(target) : "";
        if (w.whole) {
          EXPECT_THAT(after, AnyOf(before, whole)) << place << r.err;
        } else {
          EXPECT_TRUE(whole.starts_with(after)) << place << r.err;
          EXPECT_TRUE(after.starts_with(before)) << place << r.err;
        }
        // A file that a kill left between two names is the only thing that may be there, too.
        const size_t most = what == "kill" ? 2 : 1;
        EXPECT_LE(In(Path("results")).size(), most) << place;
        if (what != "kill" && what != "term") {
          EXPECT_GE(r.exit, 0) << place << r.err;
          EXPECT_TRUE((r.exit != 0 && r.exit != 4) || after == whole) << place << after;
        }
        // And the next time it works.
        if (w.whole) continue;
        EXPECT_THAT(run("0").exit, AnyOf(0, 4)) << place;
        EXPECT_TRUE(ReadAll(target).starts_with(whole)) << place;
      }
    }
  }
};

TEST_F(Files, NothingHalfIsLeftWhereverTheDiskFillsUpOrTheProgramIsKilled) {
  if (access(kFaults, R_OK) != 0) GTEST_SKIP() << "not built: " << kFaults;
  for (const Writer& w : kWriters) ExpectNothingHalf(w, "");
}

TEST_F(Files, NorWhereNoFileCanBeWithoutAName) {
  if (access(kFaults, R_OK) != 0) GTEST_SKIP() << "not built: " << kFaults;
  for (const Writer& w : kWriters) {
    const std::string_view name = w.name;
    if (name == "result" || name == "import") ExpectNothingHalf(w, "DAYDREAM_FAULT_NAMED=1 ");
  }
  fs::remove_all(Path("results"));
  fs::create_directory(Path("results"));
  const CliResult killed = Run(Command(kWriters[0], Path("results/result")),
                               fmt::format("LD_PRELOAD={} DAYDREAM_FAULT_NAMED=1 "
                                           "DAYDREAM_FAULT=3:kill",
                                           kFaults));
  // It is this way of writing that was tested: a kill leaves the name that nobody has.
  const std::set<std::string> names = In(Path("results"));
  EXPECT_TRUE(std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find(".part") != std::string::npos;
  })) << killed.err;
}

TEST_F(Files, ALinkIsNeverWrittenThrough) {
  for (const Writer& w : kWriters) {
    const std::string file = Path("results/result"), target = Target(w, file);
    fs::remove_all(Path("results"));
    fs::create_directory(Path("results"));
    Write("precious", "precious\n");
    fs::create_symlink(Path("precious"), target);
    const CliResult r = Run(Command(w, file));
    EXPECT_EQ(ReadAll(Path("precious")), "precious\n") << w.name;
    if (w.whole) {
      EXPECT_THAT(r.exit, AnyOf(0, 4)) << w.name << r.err;
      EXPECT_FALSE(fs::is_symlink(target)) << w.name;
    } else {
      EXPECT_NE(r.exit, 0) << w.name;
      EXPECT_THAT(r.err, HasSubstr("is a link")) << w.name;
    }
  }
}

TEST_F(Files, AFolderThatCannotBeWrittenIsAnError) {
  // /proc is read-only for everybody, root included.
  for (const Writer& w : kWriters) {
    const CliResult r = Run(Command(w, "/proc/daydream"));
    EXPECT_THAT(r.exit, AnyOf(1, 2)) << w.name << r.err;
    EXPECT_THAT(r.err, HasSubstr("error[E0")) << w.name;
  }
}

TEST_F(Files, WhatIsReplacedKeepsItsPermissions) {
  const std::string file = Path("results/result");
  Run("summary " + Path("trace.json") + " -o " + file);
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(Run("summary " + Path("trace.json") + " -f -o " + file).exit, 0);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// Cut before each time that it is read from: an error, or it was read as a whole before; never a
// part of it, and never a signal.
TEST_F(Files, AFileThatShrinksWhileItIsReadIsRefused) {
  if (access(kFaults, R_OK) != 0) GTEST_SKIP() << "not built: " << kFaults;
  std::string events;
  for (int i = 0; i < 4000; ++i) events += StepEvents(i);
  Write("large.json", SmallTrace(1, events));
  const std::string corpus = DAYDREAM_SOURCE_DIR "/tests/fuzz/corpus/";
  for (const std::string& trace : {Path("large.json"), std::string(kExampleTrace),
                                   corpus + "import_chakra_fuzz/chakra-small.0.et",
                                   corpus + "import_nsys_fuzz/nsys-small.sqlite",
                                   corpus + "import_rocpd_fuzz/rocpd-schema3-small.db",
                                   corpus + "import_rocpd_fuzz/rocpd-schema4-small.db",
                                   corpus + "import_rpd_fuzz/rpd-small.rpd",
                                   corpus + "import_rocprof_fuzz/rocprofv3-small.json",
                                   corpus + "import_xplane_fuzz/jax-small.xplane.pb"}) {
    const std::string file = Path("results") + "/" + fs::path(trace).filename().string();
    const auto info = [&](int read) {
      fs::remove(file);
      Write("results/" + fs::path(trace).filename().string(), ReadAll(trace));
      return Run("info " + file, fmt::format("LD_PRELOAD={} DAYDREAM_FAULT_COUNT={} "
                                             "DAYDREAM_FAULT_CUT={}:{}",
                                             kFaults, Path("count"), read, file));
    };
    const CliResult good = info(0);
    ASSERT_EQ(good.exit, 0) << trace << good.err;
    const int reads = std::atoi(ReadAll(Path("count")).c_str());
    ASSERT_GE(reads, 2) << trace << ": nothing is counted";
    EXPECT_EQ(info(1).exit, 3) << trace;
    for (int read = 1; read <= reads; ++read) {
      const CliResult r = info(read);
      EXPECT_THAT(r.exit, AnyOf(0, 3)) << trace << ", read " << read << "\n" << r.err;
      if (r.exit == 0) {
        EXPECT_EQ(r.out, good.out) << trace << ", read " << read;
      } else {
        EXPECT_THAT(r.err, AnyOf(HasSubstr("E0213"), HasSubstr("E0230"))) << trace;
      }
    }
  }
}

// Under any name that leads there, and whatever -f says.
TEST_F(Files, WhatACommandReadsIsNeverReplaced) {
  const std::string trace = Path("trace.json"), after = Path("after.json");
  fs::create_symlink(trace, Path("link.json"));
  fs::create_directory(Path("ranks"));
  Write("ranks/0.json", ReadAll(trace));
  Write("kept", "kept\n");
  const auto refused = [&](const std::string& args, const std::string& file) {
    const std::string before = ReadAll(file);
    const CliResult r = Run(args);
    EXPECT_EQ(r.exit, 1) << args << r.err;
    EXPECT_THAT(r.err, HasSubstr("error[E0105]")) << args;
    EXPECT_THAT(r.err, HasSubstr("would replace what this command uses")) << args;
    EXPECT_EQ(ReadAll(file), before) << args;
  };
  const std::string whatif = "whatif " + trace + " --opt 'speedup(kind:gpu,2)' -f ";
  refused(whatif + "-o " + trace, trace);
  refused(whatif + "-o " + Path("results/../trace.json"), trace);
  refused("whatif " + Path("link.json") + " -f -o " + trace, trace);
  refused("whatif " + trace + " -f -o " + Path("link.json"), trace);
  refused("summary " + Path("ranks") + " -f -o " + Path("ranks/0.json"), Path("ranks/0.json"));
  refused("export " + trace + " --to csv -f -o " + trace, trace);
  refused(whatif + "--measured " + after + " -o " + after, after);
  refused(whatif + "--measured " + after + " --learn " + Path("kept") + " -o " + Path("kept"),
          Path("kept"));
  refused(whatif + "--timeline " + trace, trace);
  refused("whatif " + trace + " --opt 'fuse, " + Path("kept") + "' -f -o " + Path("kept"),
          Path("kept"));
  refused(whatif + "--opt 'gpu(to=" + Path("kept") + ")' -o " + Path("kept"), Path("kept"));
  refused(whatif + "--timeline " + Path("new.json") + " -o " + Path("new.json"), Path("new.json"));
  refused("sweep " + trace + " --opt amp -f --journal " + Path("kept") + " -o " + Path("kept"),
          Path("kept"));
  EXPECT_FALSE(fs::exists(Path("new.json")));
  fs::create_hard_link(trace, Path("hard.json"));
  for (const char* name : {"trace.json", "link.json", "hard.json"}) {
    refused("import " + trace + " -f -o " + Path(name), trace);
  }
  refused("import " + Path("ranks") + " -f -o " + Path("ranks/0.json"), Path("ranks/0.json"));
  // It could be one rank of several that is kept.
  EXPECT_EQ(Run("import " + trace + " -o " + Path("same.ddtrace")).exit, 0);
  refused("import " + Path("same.ddtrace") + " -f -o " + Path("same.ddtrace"),
          Path("same.ddtrace"));
  EXPECT_EQ(Run("summary " + trace + " -f -o /dev/null").exit, 0);
}

TEST_F(Files, AHalfLineOfALearnedFileIsLeftOutAndRemoved) {
  const std::string learn = "whatif " + Path("trace.json") +
                            " --opt 'speedup(kind:gpu,2)' --measured " + Path("after.json") +
                            " --learn " + Path("results/learned");
  const std::string use = "whatif " + Path("trace.json") + " --opt free-gpu --learned ";
  ASSERT_THAT(Run(learn).exit, AnyOf(0, 4));
  const std::string whole = ReadAll(Path("results/learned"));
  for (size_t cut = 1; cut < whole.size(); cut += 7) {
    Write("results/learned", whole.substr(0, cut));
    const CliResult r = Run(learn);
    EXPECT_THAT(r.exit, AnyOf(0, 4)) << cut << r.err;
    // Nor is what has lost the end of its last name, or only the newline, a second measurement.
    EXPECT_EQ(ReadAll(Path("results/learned")), whole) << cut;
    EXPECT_THAT(Run(use + Path("results/learned")).exit, AnyOf(0, 4));
  }
  for (const size_t lost : {1, 2, 4}) {
    Write("results/learned", whole.substr(0, whole.size() - lost));
    const std::string told = Run(use + Path("results/learned")).err;
    EXPECT_THAT(told, HasSubstr("warning[W0110]")) << lost;
    ASSERT_THAT(Run(learn).exit, AnyOf(0, 4));
    EXPECT_EQ(ReadAll(Path("results/learned")), whole) << lost;
  }
  // A comment is no measurement, whole or not.
  Write("results/learned", whole + "# of the new cluster");
  ASSERT_THAT(Run(learn).exit, AnyOf(0, 4));
  EXPECT_THAT(ReadAll(Path("results/learned")), HasSubstr("# of the new cluster\n"));
  // In the middle a half line is damage.
  Write("results/learned", whole + "fuse\tA100\n" + whole.substr(whole.find('\n') + 1));
  const CliResult r = Run(learn);
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("error[E0110]"));
}

}  // namespace
}  // namespace daydream
