// Whatever CUPTI answers: the program does not notice, and one line on stderr and the file say
// what is missing.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/process/child.h"

namespace daydream::tracer {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<std::string> kProgram = {"init", "begin=layer", "launch=100",
                                           "end",  "sync",        "exit=5"};

// Every code of cupti_result.h.
std::vector<int> AllCodes() {
  std::vector<int> codes;
  for (int code = 1; code <= 46; ++code) codes.push_back(code);
  codes.push_back(999);
  return codes;
}

// What holds for each fault: the program's exit code, and a whole file with its marks.
WrittenFile CheckRun(const std::string& fault, const Left& left) {
  EXPECT_TRUE(left.exited) << fault;
  EXPECT_EQ(left.code, 5) << fault;
  WrittenFile file = OnlyFile(left);
  EXPECT_TRUE(file.index.has_value()) << fault;
  EXPECT_GE(file.OfKind(pb::KIND_MARK).size(), 2u) << fault;
  return file;
}

WrittenFile RunWith(const std::string& fault, Left& left) {
  Session session("", fault);
  left = session.Run(kProgram);
  return CheckRun(fault, left);
}

// Runs kProgram once for each code that `call` can answer, several at a time.
void ForEachCode(const std::string& call,
                 const std::function<void(const WrittenFile&, const Left&)>& check) {
  constexpr size_t kAtATime = 16;
  const std::vector<int> codes = AllCodes();
  for (size_t begin = 0; begin < codes.size(); begin += kAtATime) {
    std::deque<Session> sessions;
    std::deque<Child> children;
    for (size_t i = begin; i < std::min(begin + kAtATime, codes.size()); ++i) {
      children.emplace_back(sessions.emplace_back("", call + "=" + std::to_string(codes[i])),
                            kProgram);
    }
    for (size_t i = 0; i < children.size(); ++i) {
      const Left left = children[i].Wait();
      SCOPED_TRACE(sessions[i].environment["FAKE_CUPTI"]);
      check(CheckRun(call, left), left);
    }
  }
}

bool HasNote(const WrittenFile& file, const std::string& text) {
  for (const WrittenRow& row : file.rows) {
    if (row.name.find(text) != std::string::npos) return true;
  }
  return false;
}

// Marks are ours, calls CUPTI's: the launches lie in the layer, whatever CUPTI's clock is.
void ExpectCallsInTheLayer(const WrittenFile& file) {
  int64_t begin = 0, end = 0;
  for (const WrittenRow& mark : file.OfKind(pb::KIND_MARK)) {
    if (mark.name == "layer") begin = mark.start;
    if (begin != 0 && mark.name.empty()) end = mark.start;
  }
  ASSERT_LT(begin, end);
  const std::vector<WrittenRow> calls = file.OfKind(pb::KIND_CALL);
  ASSERT_GE(calls.size(), 100u);
  // Two clocks cannot be read in one instant; seconds are what a wrong one differs by.
  constexpr int64_t kBetweenReadings = 500'000'000;
  EXPECT_GT(calls.front().start, begin - kBetweenReadings);
  EXPECT_LT(calls[99].start, end + kBetweenReadings);
}

// Calls without which there is no recording of GPU work.
class NeededCall : public testing::TestWithParam<const char*> {};

TEST_P(NeededCall, AnyErrorLeavesTheMarksAndSaysWhy) {
  ForEachCode(GetParam(), [](const WrittenFile& file, const Left& left) {
    EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), IsEmpty());
    EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("GPU work will be missing")));
    EXPECT_TRUE(HasNote(file, "cupti=absent"));
  });
}
INSTANTIATE_TEST_SUITE_P(Cupti, NeededCall,
                         testing::Values("Subscribe_v2", "ActivityRegisterCallbacks",
                                         "ActivityEnable", "*"));

// Calls whose failure costs a part.
class UsefulCall : public testing::TestWithParam<const char*> {};

TEST_P(UsefulCall, AnyErrorLeavesTheKernels) {
  ForEachCode(GetParam(), [](const WrittenFile& file, const Left& left) {
    EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(100));
    EXPECT_LE(Messages(left).size(), 1u) << left.err;
  });
}
INSTANTIATE_TEST_SUITE_P(Cupti, UsefulCall,
                         testing::Values("SetThreadIdType", "ActivityRegisterTimestampCallback",
                                         "ActivitySetAttribute", "ActivityEnableAllSyncRecords",
                                         "ActivityEnableRuntimeApi", "ActivityEnableDriverApi",
                                         "EnableCallback", "GetTimestamp", "GetCallbackName",
                                         "ActivityGetNumDroppedRecords", "GetVersion",
                                         "ActivityEnable:36", "ActivityDisable"));

TEST(RecorderErrors, AKindThatIsRefusedIsNamedAndTheRestIsRecorded) {
  for (int code : {14, 21, 27, 38}) {
    Left left;
    const WrittenFile file = RunWith("ActivityEnable:10=" + std::to_string(code), left);
    EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), IsEmpty());
    EXPECT_THAT(file.OfKind(pb::KIND_CALL), SizeIs(101));
    EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("refused to record CONCURRENT_KERNEL")));
    EXPECT_THAT(file.header.recording().enabled_kinds(), Not(Contains("CONCURRENT_KERNEL")));
  }
}

TEST(RecorderErrors, AnotherProfilerIsNamed) {
  Left left;
  RunWith("subscriber=Nsight Systems", left);
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("in use by Nsight Systems")));
}

TEST(RecorderErrors, AMismatchNamesBothSides) {
  for (int code : {15, 999}) {
    Left left;
    RunWith("*=" + std::to_string(code), left);
    EXPECT_THAT(left.err, HasSubstr("libcupti.so.13"));
    EXPECT_THAT(left.err, HasSubstr("libcuda.so.1"));
  }
}

TEST(RecorderErrors, MissingPrivilegesPointToThePage) {
  for (int code : {35, 40}) {
    Left left;
    RunWith("Subscribe_v2=" + std::to_string(code), left);
    EXPECT_THAT(left.err, HasSubstr("https://developer.nvidia.com/ERR_NVGPUCTRPERM"));
  }
}

TEST(RecorderErrors, NoMemoryForDeviceBuffersMeansSmallerOnes) {
  Left left;
  const WrittenFile file = RunWith("ActivityEnable:10#1=8", left);
  EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(100));
  EXPECT_THAT(Messages(left), IsEmpty());
}

TEST(RecorderErrors, NoCuptiAtAll) {
  Session session;
  session.environment["DAYDREAM_CUPTI"] = "/nowhere/libcupti.so.13";
  const Left left = session.Run(kProgram);
  EXPECT_EQ(left.code, 5);
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("cannot load CUPTI (/nowhere")));
  EXPECT_TRUE(HasNote(OnlyFile(left), "cupti=absent"));
}

TEST(RecorderErrors, FlushErrorsAreSurvivedUntilTheEnd) {
  for (int code : {7, 18}) {
    Left left;
    const WrittenFile file = RunWith("ActivityFlushAll:0=" + std::to_string(code), left);
    EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(100));
  }
}

TEST(RecorderErrors, RecordsOfAnUnknownKindAreCountedAndPassedOver) {
  Left left;
  const WrittenFile file = RunWith("foreign_record=10", left);
  EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(100));
  EXPECT_GE(file.loss.unknown_kind(), 20u);
}

TEST(RecorderErrors, ABufferThatCannotBeReadOnLosesItsRestOnly) {
  Session session("flush_ms=20", "bad_record=500");
  const Left left = session.Run({"init", "launch=100", "sleep=100", "launch=100", "sleep=100",
                                 "launch=100", "sync", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  EXPECT_GT(file.OfKind(pb::KIND_KERNEL).size(), 100u);
  EXPECT_GE(file.loss.unknown_kind(), 1u);
}

TEST(RecorderErrors, DroppedRecordsAreCountedExactly) {
  Session session("", "drop=10");
  const Left left = session.Run({"init", "launch=1000", "sync", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  const size_t rows = file.OfKind(pb::KIND_KERNEL).size() + file.OfKind(pb::KIND_CALL).size() +
                      file.OfKind(pb::KIND_SYNC).size();
  // 1000 kernels, 1001 calls and a sync; device, context and two streams are records, too.
  EXPECT_NEAR(rows + file.loss.cupti_dropped(), 2002.0, 4.0);
  EXPECT_GE(file.loss.cupti_dropped(), 200u);
  EXPECT_THAT(left.err, HasSubstr("events were lost"));
}

TEST(RecorderErrors, RecordsWithoutTimesAreKeptAndCounted) {
  Left left;
  const WrittenFile file = RunWith("no_time=7", left);
  EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(100));
  EXPECT_EQ(file.loss.invalid_time(), 14u);
}

// Device buffers have run out: more than ten thousand in a flush period.
TEST(RecorderErrors, WithoutRoomForTimesOnTheGpuRecordingEndsAndSaysWhy) {
  Session session("capture=none;flush_ms=1000", "no_time=1");
  const Left left =
      session.Run({"init", "launch=60000", "sync", "sleep=2500", "launch=500", "exit=5"});
  EXPECT_EQ(left.code, 5);
  EXPECT_THAT(left.err, HasSubstr("CUPTI has no room left on the GPU"));
  EXPECT_LT(OnlyFile(left).OfKind(pb::KIND_CALL).size(), 60'500u) << "recording goes on";
}

TEST(RecorderErrors, ARefusedClockMeansCuptisOwnConverted) {
  Left left;
  const WrittenFile file = RunWith("ActivityRegisterTimestampCallback=15", left);
  EXPECT_THAT(left.err, HasSubstr("refused our clock"));
  ExpectCallsInTheLayer(file);
}

TEST(RecorderErrors, WithoutATimestampTheFirstCallsTellTheClock) {
  Left left;
  // The clock is ours, and cuptiGetTimestamp says another.
  ExpectCallsInTheLayer(RunWith("timestamp=realtime", left));
  EXPECT_THAT(Messages(left), IsEmpty());
  // Our clock was refused, and nobody says which it is instead.
  ExpectCallsInTheLayer(RunWith("ActivityRegisterTimestampCallback=15;GetTimestamp=15", left));
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("refused our clock")));
}

// Before the window a CUDA graph is made, so that GPU work alone is recorded.
TEST(RecorderErrors, WithoutATimestampGpuWorkThatComesFirstTellsTheClock) {
  Session session("capture=cudaProfilerApi",
                  "ActivityRegisterTimestampCallback=15;GetTimestamp=15");
  const Left left = session.Run({"init", "graph=5", "sleep=400", "profiler_start", "begin=layer",
                                 "launch=100", "sync", "end", "profiler_stop", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  ExpectCallsInTheLayer(file);
  const std::vector<WrittenRow> kernels = file.OfKind(pb::KIND_KERNEL);
  ASSERT_THAT(kernels, SizeIs(105));
  const int64_t window = file.OfKind(pb::KIND_MARK).front().start;
  EXPECT_LT(kernels.front().start, window - 300'000'000) << "that of the graph";
  EXPECT_GT(kernels.front().start, window - 5'000'000'000);
}

TEST(RecorderErrors, GpuWorkWithoutTimesLeavesTheClockToTheCalls) {
  Session session("capture=cudaProfilerApi",
                  "ActivityRegisterTimestampCallback=15;GetTimestamp=15;no_time=1");
  ExpectCallsInTheLayer(
      OnlyFile(session.Run({"init", "graph=5", "sleep=400", "profiler_start", "begin=layer",
                            "launch=100", "sync", "end", "profiler_stop", "exit=0"})));
}

TEST(RecorderErrors, TextsBeyondTheRoomCostTheirOwnNamesOnlyAndAreCounted) {
  constexpr int kRoom = 1 << 18, kMore = 40'000;  // NameTable::kMaxNames / kShare
  Session session("capture=none");
  const Left left = session.Run(
      {"init", "texts=" + std::to_string(kRoom + kMore), "launch=10", "sync", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  const std::vector<WrittenRow> kernels = file.OfKind(pb::KIND_KERNEL);
  ASSERT_THAT(kernels, SizeIs(10));
  for (const WrittenRow& kernel : kernels) EXPECT_EQ(kernel.name, "axpy");
  EXPECT_NEAR(static_cast<double>(file.loss.unnamed()), kMore, 10) << "a few are facts of our own";
  EXPECT_THAT(Messages(left),
              ElementsAre(HasSubstr("marks have no name, for there were too many")));
}

TEST(RecorderErrors, AFatalErrorClosesTheFileAsAnError) {
  Session session("", "fatal_after=500");
  const Left left =
      session.Run({"init", "launch=400", "sleep=300", "launch=1000", "sync", "exit=6"});
  EXPECT_EQ(left.code, 6);
  const WrittenFile file = OnlyFile(left);
  EXPECT_GE(file.OfKind(pb::KIND_KERNEL).size(), 400u);
  ASSERT_TRUE(file.index.has_value());
  EXPECT_EQ(file.index->end(), pb::Index::END_ERROR);
  EXPECT_EQ(file.index->end_detail(), 9);  // CUPTI_ERROR_HARDWARE
  // A buffer that CUPTI was writing when it ended may be told of, too.
  EXPECT_THAT(Messages(left), Contains(HasSubstr("fatal error")));
}

TEST(RecorderErrors, OverheadDataIsFreed) {
  Session session("", "command_buffer_full=5");
  session.environment["ASAN_OPTIONS"] = "detect_leaks=1";
  const Left left = session.Run(kProgram);
  EXPECT_GE(CheckRun("command_buffer_full", left).OfKind(pb::KIND_OVERHEAD).size(), 30u);
}

TEST(RecorderErrors, OlderVersionsWork) {
  // CUDA 12.0, 12.8, 12.9, 13.0 before Update 1.
  for (int version : {19, 26, 27, 130000}) {
    Left left;
    const WrittenFile file = RunWith("version=" + std::to_string(version), left);
    EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(100)) << version;
    EXPECT_THAT(Messages(left), SizeIs(version == 130000 ? 1 : 0)) << left.err;
  }
}

TEST(RecorderErrors, Cupti130BeforeUpdate1IsNeverSwitchedOff) {
  // It can hang there (notes of 13.0 Update 1); Wait() fails the test if it does.
  for (const char* record : {"warmup=2;steps=2;labels=0", "capture=cudaProfilerApi"}) {
    Session session(record, "version=130000;hang_disable=1");
    // GPU work is switched off two seconds after the window, the rest a second later.
    const Left left = session.Run({"init", "train=8x10", "sync", "sleep=4500", "exit=5"});
    EXPECT_EQ(left.code, 5) << left.err;
    const WrittenFile file = OnlyFile(left);
    EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(80));
    // A worker that hangs lets the program end without it.
    EXPECT_TRUE(file.has_trailer) << left.err;
  }
}

// Beside what the address sanitizer says, for builds without it: a megabyte each.
TEST(RecorderErrors, OverheadDataTakesNoMemory) {
  Session session("capture=none;flush_ms=5", "command_buffer_full=5;overhead_kb=1024");
  std::vector<std::string> program = {"init"};
  for (int i = 0; i < 10; ++i) program.insert(program.end(), {"launch=500", "sync", "sleep=60"});
  program.insert(program.end(), {"resident", "exit=0"});
  const Left left = session.Run(program);
  const size_t at = left.out.find("resident ");
  ASSERT_NE(at, left.out.npos) << left.err;
  constexpr long kMostKb = 700'000;  // a thousand of them live if they are not freed
  EXPECT_LT(atol(left.out.c_str() + at + 9), kSanitized ? 4 * kMostKb : kMostKb);
}

// As 13.5 without a driver: its soname tells the least that it is.
TEST(RecorderErrors, ACuptiThatDoesNotTellItsVersionIsTheOldestOfItsName) {
  Left left;
  const WrittenFile file = RunWith("GetVersion=999", left);
  EXPECT_EQ(file.header.recording().cupti_version(), 130001u);
  EXPECT_THAT(file.header.recording().lacks(), IsEmpty());
  EXPECT_THAT(Messages(left), IsEmpty());
}

// By its soname: 18 is the version of CUPTI in CUDA 11.8 and in 12.1.
TEST(RecorderErrors, Cuda11IsRefusedWithAClearMessage) {
  Session session;
  const std::string renamed = session.scratch("cupti.so");
  std::filesystem::copy_file(DAYDREAM_FAKE_CUDA "/11.8/libcupti.so.11", renamed);
  session.environment["DAYDREAM_CUPTI"] = renamed;
  const Left left = session.Run(kProgram);
  EXPECT_THAT(CheckRun("11.8", left).OfKind(pb::KIND_KERNEL), IsEmpty());
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("libcupti.so.11 is of CUDA 11 or older; "
                                                    "CUDA 12 is needed")));
}

TEST(RecorderErrors, AProgramThatHasLoadedCuptiOfCuda11IsRefusedWithAClearMessage) {
  Session session;
  const std::string old = session.scratch("libcupti.so.11");
  std::filesystem::copy_file(DAYDREAM_FAKE_CUDA "/libcupti.so.13", old);
  const Left left = session.Run({"load=" + old, "init", "launch=1", "sync", "exit=5"});
  EXPECT_EQ(left.code, 5);
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr(old + "; CUDA 12 is needed")));
}

TEST(RecorderErrors, TheCuptiBesideTheProgramsRuntimeComesBeforeTheSystemsNewest) {
  Session session;
  const std::string runtime = session.scratch("libcudart.so.12");
  const std::string cupti = session.scratch("libcupti.so.12");
  std::filesystem::copy_file(DAYDREAM_BAD_DISK, runtime);  // any library
  std::filesystem::copy_file(DAYDREAM_FAKE_CUDA "/libcupti.so.13", cupti);
  const Left left = session.Run({"load=" + runtime, "init", "launch=3", "sync", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  EXPECT_EQ(file.header.recording().cupti_path(), std::filesystem::canonical(cupti));
  EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(3));
}

// JAX has no CUDA runtime library that would tell where its CUPTI is.
TEST(RecorderErrors, TheCuptiAmongTheProgramsPackagesComesBeforeTheSystemsNewest) {
  Session session;
  const std::filesystem::path site = session.scratch("venv/lib/python3.11/site-packages");
  std::filesystem::create_directories(site / "jaxlib");
  std::filesystem::create_directories(site / "nvidia/cuda_cupti/lib");
  std::filesystem::copy_file(DAYDREAM_BAD_DISK, site / "jaxlib/xla_extension.so");
  const std::filesystem::path cupti = site / "nvidia/cuda_cupti/lib/libcupti.so.12";
  std::filesystem::copy_file(DAYDREAM_FAKE_CUDA "/12.4/libcupti.so.12", cupti);
  const Left left = session.Run({"load=" + (site / "jaxlib/xla_extension.so").string(), "init",
                                 "launch=3", "sync", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  EXPECT_EQ(file.header.recording().cupti_path(), std::filesystem::canonical(cupti));
  EXPECT_EQ(file.header.recording().cupti_version(), 22u);
  EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(3));
}

TEST(RecorderErrors, BuffersAreZeroedAsPromised) {
  Session session("flush_ms=20;buffer_mb=1", "check_zero=1");
  const Left left = session.Run({"init", "threads=4x10000", "sync", "exit=0"});
  EXPECT_EQ(left.code, 0) << left.err;
  EXPECT_EQ(CountRows(left.files.at(0))[pb::KIND_KERNEL], 40'000u);
}

TEST(RecorderErrors, TheDriverMayOpenTheDoorTwice) {
  Session session;
  const Left left = session.Run({"init", "inject", "launch=100", "inject", "sync", "exit=0"});
  EXPECT_THAT(left.err, IsEmpty()) << "the fake CUPTI tells when the clock is registered twice";
  EXPECT_THAT(OnlyFile(left).OfKind(pb::KIND_KERNEL), SizeIs(100));
}

TEST(RecorderErrors, MessagesComeFromTheFirstRankOnlyAndQuietKeepsWarnings) {
  Session other("", "Subscribe_v2=39");
  other.environment["LOCAL_RANK"] = "1";
  EXPECT_THAT(other.Run(kProgram).err, IsEmpty());
  Session first("quiet=1", "Subscribe_v2=39");
  first.environment["LOCAL_RANK"] = "0";
  EXPECT_THAT(Messages(first.Run(kProgram)), SizeIs(1));
}

}  // namespace
}  // namespace daydream::tracer
