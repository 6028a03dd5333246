#include "transforms/core/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "transforms/core/select_term.h"

namespace daydream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kGraph = R"text(
lane main   thread
lane gpu0.7 stream
layer block "encoder"
layer fc    "encoder.fc" in=block
scope step  annotation main "ProfilerStep#3"
scope lin   op main "aten::linear" in=step
scope mm    op main "aten::addmm" in=lin
h0 main   host 3us "aten::linear" scope lin
c0 main   call 5us "cudaLaunchKernel" scope mm
k0 gpu0.7 kernel 9us "volta_sgemm_128x64_nn" after c0 launch scope mm phase forward layer fc
c1 main   call 5us "cudaMemcpyAsync" scope step
m0 gpu0.7 memcpy 9us "Memcpy DtoH (Device -> Pinned)" after c1 launch step=1
k1 gpu0.7 kernel 4us "vectorized_elementwise_kernel<a::b&>" phase backward
w0 main   wait "cudaStreamSynchronize" until m0 hostwait
)text";

std::vector<std::string> Selected(std::string_view text) {
  auto graph = ParseGraph(kGraph);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  auto selector = Selector::Compile(text);
  EXPECT_TRUE(selector.ok()) << Message(selector.status());
  constexpr std::string_view kNames[] = {"h0", "c0", "k0", "c1", "m0", "k1", "w0"};
  std::vector<std::string> names;
  if (!graph.ok() || !selector.ok()) return names;
  for (TaskId t : selector->Select(*graph)) names.emplace_back(kNames[t.index()]);
  return names;
}

std::string ErrorOf(std::string_view text) {
  auto selector = Selector::Compile(text);
  EXPECT_FALSE(selector.ok()) << text;
  EXPECT_EQ(DiagnosticOf(selector.status()).code, "E0103");
  return DiagnosticOf(selector.status()).what;
}

TEST(Selector, ABareWordLooksForKernels) {
  EXPECT_THAT(Selected("sgemm"), ElementsAre("k0"));
  EXPECT_THAT(Selected("kernel:DtoH"), ElementsAre("m0"));
  EXPECT_THAT(Selected("."), ElementsAre("k0", "m0", "k1"));
  EXPECT_THAT(Selected("cudaLaunchKernel"), IsEmpty());
}

TEST(Selector, SpacesAroundATermAreNoPartOfIt) {
  EXPECT_THAT(Selected(" kind:kernel & ! phase:backward "), ElementsAre("k0"));
}

TEST(Selector, ABareWordOfAKindIsToldToBeAName) {
  EXPECT_EQ(NoteOnBareWord("gpu"),
            "'gpu' is taken for a part of kernels' names; kind:gpu selects by kind");
  EXPECT_THAT(NoteOnBareWord("backward"), testing::HasSubstr("phase:backward selects by phase"));
  EXPECT_EQ(NoteOnBareWord("sgemm"), "");
  EXPECT_EQ(NoteOnBareWord("kind:gpu"), "");
}

TEST(Selector, OpsAndScopesHoldWhatIsInsideOfThem) {
  EXPECT_THAT(Selected("op:linear"), ElementsAre("h0", "c0", "k0"));
  EXPECT_THAT(Selected("op:addmm"), ElementsAre("c0", "k0"));
  EXPECT_THAT(Selected("op:ProfilerStep"), IsEmpty());
  EXPECT_THAT(Selected("scope:ProfilerStep"), ElementsAre("h0", "c0", "k0", "c1"));
}

TEST(Selector, KnowsEveryKey) {
  EXPECT_THAT(Selected("call:Memcpy"), ElementsAre("c1"));
  EXPECT_THAT(Selected("layer:^encoder$"), ElementsAre("k0"));
  EXPECT_THAT(Selected("lane:main"), ElementsAre("h0", "c0", "c1", "w0"));
  EXPECT_THAT(Selected("phase:backward"), ElementsAre("k1"));
  EXPECT_THAT(Selected("kind:wait"), ElementsAre("w0"));
  EXPECT_THAT(Selected("kind:memcpy"), ElementsAre("m0"));
  EXPECT_THAT(Selected("class:gemm"), ElementsAre("k0"));
  EXPECT_THAT(Selected("step:1"), ElementsAre("m0"));
}

TEST(Selector, TermsCombine) {
  EXPECT_THAT(Selected("op:linear&kind:kernel"), ElementsAre("k0"));
  EXPECT_THAT(Selected("kind:kernel&!sgemm"), ElementsAre("k1"));
  EXPECT_THAT(Selected("a::b[&]>"), ElementsAre("k1"));
}

TEST(Selector, OptionFilesAndTheCommandLineShareTheirKeys) {
  EXPECT_THAT(Selected("name:cuda"), ElementsAre("c0", "c1", "w0"));
  EXPECT_THAT(Selected("module:fc"), ElementsAre("k0"));
  EXPECT_THAT(Selected("category:gemm"), ElementsAre("k0"));
  EXPECT_THAT(Selected("stream:7&phase:backward"), ElementsAre("k1"));
  EXPECT_THAT(Selected("stream:0-6"), IsEmpty());
  EXPECT_THAT(Selected("thread:main&kind:call"), ElementsAre("c0", "c1"));
  EXPECT_THAT(Selected("kind:gpu&step:1-2"), ElementsAre("m0"));
  EXPECT_THAT(Selected("kind:launch"), ElementsAre("c0", "c1"));
  EXPECT_THAT(Selected("kind:sync"), ElementsAre("w0"));
  EXPECT_THAT(Selected("kind:cpu_op"), ElementsAre("h0"));
  EXPECT_THAT(Selected("kind:gap"), IsEmpty());
  EXPECT_THAT(Selected("kind:gpu&phase:other"), ElementsAre("m0"));
}

TEST(Selector, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf("phase:backwards"),
            "selector 'phase:backwards': 'backwards' is not known, did you mean 'backward'?");
  EXPECT_EQ(ErrorOf("kernle:x"),
            "selector 'kernle:x': unknown key 'kernle', did you mean 'kernel'?");
  EXPECT_EQ(ErrorOf("op:"), "selector 'op:': nothing to look for");
  EXPECT_EQ(ErrorOf("step:x"),
            "selector 'step:x': 'x' is not the number of a step, such as 2 or 2-5");
  for (std::string_view text : {"", "&", "a&", "(", "kernel:[", "class:big"}) ErrorOf(text);
}

}  // namespace
}  // namespace daydream
