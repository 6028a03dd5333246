// The real NVTX headers call into our functions, as they do from any module of a program.
#include "tracer/nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tracer/daydream_mark.h"
#include "tracer/marks.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "kind name value" of every mark.
std::vector<std::string>& Seen() {
  static auto& seen = *new std::vector<std::string>;
  return seen;
}

void See(uint32_t kind, uint32_t name, int64_t value) {
  std::string text;
  switch (kind & ~kMarkBytes) {
    case DAYDREAM_RANGE_BEGIN:
      text = "begin";
      break;
    case DAYDREAM_RANGE_END:
      text = "end";
      break;
    case DAYDREAM_STEP:
      text = "step";
      break;
    case DAYDREAM_POINT:
      text = "point";
      break;
    case DAYDREAM_COLLECTIVE:
      text = "collective";
      break;
    default:
      text = "?";
      break;
  }
  if (name != 0) text.append(" ").append(MarkText(name));
  if ((kind & kMarkBytes) != 0) text.append(" bytes");
  if (value != 0) text.append(" ").append(std::to_string(value));
  Seen().push_back(text);
}

std::vector<std::string> TakeSeen() { return std::exchange(Seen(), {}); }

int attached = 0;
bool takes = true;

int Inject(NvtxGetExportTableFunc_t get_export_table) {
  ++attached;
  return AttachNvtx(get_export_table, {.mark = See, .takes = [](uint32_t) { return takes; }});
}

class NvtxTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    unsetenv("NVTX_INJECTION64_PATH");
    InitializeInjectionNvtx2_fnptr = Inject;  // how NVTX is injected into one module
    InitializeInjectionNvtxExtension_fnptr = AttachNvtxExtension;
  }
  void SetUp() override { Seen().clear(); }
};

nvtxEventAttributes_t Event() {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return event;
}

nvtxEventAttributes_t Event(const char* text) {
  nvtxEventAttributes_t event = Event();
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text;
  return event;
}

TEST_F(NvtxTest, RangesAndPointsOfTheDefaultDomain) {
  EXPECT_EQ(nvtxRangePushA("forward"), NVTX_NO_PUSH_POP_TRACKING);
  const nvtxEventAttributes_t event = Event("conv1");
  nvtxRangePushEx(&event);
  nvtxRangePop();
  nvtxMarkA("here");
  nvtxMarkEx(&event);
  nvtxDomainRangePushEx(nullptr, &event);
  nvtxDomainRangePop(nullptr);
  EXPECT_EQ(nvtxRangePop(), NVTX_NO_PUSH_POP_TRACKING);
  EXPECT_THAT(TakeSeen(), ElementsAre("begin forward", "begin conv1", "end", "point here",
                                      "point conv1", "begin conv1", "end", "end"));
  EXPECT_EQ(attached, 1);
}

TEST_F(NvtxTest, WideTextsBecomeUtf8) {
  nvtxRangePushW(L"Gr\u00f6\u00dfe \u6f22 \U0001F600");
  nvtxRangePop();
  nvtxMarkW(L"");
  EXPECT_THAT(TakeSeen(), ElementsAre("begin Gr\u00f6\u00dfe \u6f22 \U0001F600", "end", "point"));
}

TEST_F(NvtxTest, RegisteredTextsAreKnownByTheirHandle) {
  for (const nvtxDomainHandle_t domain : {nvtxDomainHandle_t(), nvtxDomainCreateA("daydream")}) {
    const nvtxStringHandle_t handle = nvtxDomainRegisterStringA(domain, "attention");
    ASSERT_NE(handle, nullptr);
    const nvtxStringHandle_t wide = nvtxDomainRegisterStringW(domain, L"mlp");
    nvtxEventAttributes_t event = Event();
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = handle;
    nvtxDomainRangePushEx(domain, &event);
    event.message.registered = wide;
    nvtxDomainMarkEx(domain, &event);
    nvtxDomainRangePop(domain);
    EXPECT_THAT(TakeSeen(), ElementsAre("begin attention", "point mlp", "end"));
  }
}

TEST_F(NvtxTest, OtherDomainsAreIgnored) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("cudnn");
  const nvtxDomainHandle_t wide = nvtxDomainCreateW(L"cublas");
  const nvtxStringHandle_t handle = nvtxDomainRegisterStringA(domain, "x");
  nvtxEventAttributes_t event = Event();
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = handle;
  nvtxDomainRangePushEx(domain, &event);
  nvtxDomainRangePop(domain);
  nvtxDomainRangePushEx(wide, &event);
  nvtxDomainMarkEx(wide, &event);
  nvtxDomainRangePop(wide);
  nvtxDomainDestroy(domain);
  EXPECT_THAT(TakeSeen(), IsEmpty());
}

TEST_F(NvtxTest, XlaAndOurOwnDomainAreTaken) {
  const nvtxEventAttributes_t event = Event("fusion.3");
  nvtxDomainRangePushEx(nvtxDomainCreateA("TSL"), &event);
  nvtxDomainRangePushEx(nvtxDomainCreateW(L"daydream"), &event);
  EXPECT_THAT(TakeSeen(), ElementsAre("begin fusion.3", "begin fusion.3"));
}

TEST_F(NvtxTest, EventsWithoutATextAreRanges) {
  nvtxEventAttributes_t event = Event();
  nvtxRangePushEx(&event);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  nvtxRangePushEx(&event);
  event = Event(nullptr);
  nvtxRangePushEx(&event);
  event = Event("too old a struct");
  event.size = 8;
  nvtxRangePushEx(&event);
  nvtxRangePushA(nullptr);
  EXPECT_THAT(TakeSeen(), ElementsAre("begin", "begin", "begin", "begin", "begin"));
}

TEST_F(NvtxTest, RangesCalledStepAreSteps) {
  for (const char* text : {"step 12", "Step_12", "iteration: 12", "Iter#12"}) {
    nvtxRangePushA(text);
    nvtxRangePop();
    EXPECT_THAT(TakeSeen(), ElementsAre("step nvtx 12", std::string("begin ") + text, "end"));
  }
  nvtxRangePushW(L"step 7");
  nvtxRangePop();
  const nvtxStringHandle_t registered = nvtxDomainRegisterStringA(nullptr, "step 8");
  nvtxEventAttributes_t event = Event();
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = registered;
  nvtxRangePushEx(&event);
  nvtxRangePop();
  EXPECT_THAT(TakeSeen(), ElementsAre("step nvtx 7", "begin step 7", "end", "step nvtx 8",
                                      "begin step 8", "end"));
  for (const char* text : {"step", "step12a", "step 12 a", "stepper 3", "step12", "first step 1",
                           "step 99999999999999999999", "stop 12", "s", "iterations 3"}) {
    nvtxRangePushA(text);
    nvtxRangePop();
    EXPECT_THAT(TakeSeen(), ElementsAre(std::string("begin ") + text, "end"));
  }
}

TEST_F(NvtxTest, AnInnerLoopOfIterationsMakesNoSteps) {
  for (int step = 1; step <= 2; ++step) {
    nvtxRangePushA(("step " + std::to_string(step)).c_str());
    for (int i = 0; i < 2; ++i) {
      nvtxRangePushA(("iteration " + std::to_string(i)).c_str());
      nvtxRangePop();
    }
    nvtxRangePop();
  }
  const std::vector<std::string> seen = TakeSeen();
  std::vector<std::string> steps;
  for (const std::string& text : seen) {
    if (text.starts_with("step")) steps.push_back(text);
  }
  EXPECT_THAT(steps, ElementsAre("step nvtx 1", "step nvtx 2"));
}

TEST_F(NvtxTest, WhatIsNotTakenCostsNoName) {
  const uint64_t before = DroppedNames();
  takes = false;
  const uint32_t names = MarkName("a name of its own");
  for (int i = 0; i < 100; ++i) {
    nvtxRangePushA(("unseen " + std::to_string(i)).c_str());
    nvtxMarkA(("unseen point " + std::to_string(i)).c_str());
    nvtxDomainRegisterStringA(nullptr, ("unseen string " + std::to_string(i)).c_str());
    nvtxRangePop();
  }
  takes = true;
  EXPECT_EQ(MarkName("the next name"), names + 1);
  EXPECT_EQ(DroppedNames(), before);
  EXPECT_THAT(TakeSeen(), IsEmpty());
}

// ---- NCCL ----

struct NcclSizes {
  const char* call;
  std::vector<uint64_t> words;
  std::string seen;
};

TEST_F(NvtxTest, NcclRangesSayHowManyBytesTheyMove) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  const NcclSizes cases[] = {
      // Communicator, size, reduction (NCCL 2.26 and newer).
      {"ncclAllReduce", {0xabcdef, 4096, 0}, "begin nccl:AllReduce bytes 4096"},
      {"ncclAllGather", {0xabcdef, 512}, "begin nccl:AllGather bytes 512"},
      {"ncclReduce", {0xabcdef, 8, 0}, "begin nccl:Reduce bytes 8"},
      {"ncclAlltoAll", {0xabcdef, 16}, "begin nccl:AlltoAll bytes 16"},
      // Size, reduction (before).
      {"ncclAllReduce", {4096, 0}, "begin nccl:AllReduce bytes 4096"},
      {"ncclAllGather", {512}, "begin nccl:AllGather bytes 512"},
      {"ncclSend", {100, 1}, "begin nccl:Send bytes 100"},
      // Not a collective, or not a layout that is known.
      {"ncclCommInitRank", {0xabcdef, 8, 3}, "begin nccl:CommInitRank"},
      {"ncclAllReduce", {1, 2, 3, 4, 5}, "begin nccl:AllReduce"},
  };
  for (const NcclSizes& c : cases) {
    nvtxEventAttributes_t event = Event();
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, c.call);
    nvtxPayloadData_t data;
    NVTX_PAYLOAD_EVTATTR_SET_DATA(event, &data, 1, c.words.data(), c.words.size() * 8);
    nvtxDomainRangePushEx(domain, &event);
    nvtxDomainRangePop(domain);
    const std::vector<std::string> seen = TakeSeen();
    EXPECT_EQ(seen.front(), c.seen);
    EXPECT_EQ(seen.back(), "end");
  }
  const nvtxEventAttributes_t event = Event("ncclGroupEnd");
  nvtxDomainRangePushEx(domain, &event);
  EXPECT_THAT(TakeSeen(), ElementsAre("begin nccl:GroupEnd"));
}

// One call of NCCL, as it makes its range; `payload` as it lies in memory.
void CallNccl(const char* function, std::vector<uint64_t> payload) {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  nvtxEventAttributes_t event = Event();
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, function);
  nvtxPayloadData_t data;
  NVTX_PAYLOAD_EVTATTR_SET_DATA(event, &data, 1, payload.data(), payload.size() * 8);
  nvtxDomainRangePushEx(domain, &event);
  nvtxDomainRangePop(domain);
}

// NCCL 2.26 and newer ends such a range with what it made. Words of 32 bits.
void MakeCommunicator(const char* function, std::vector<uint32_t> payload) {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  const nvtxEventAttributes_t event = Event(function);
  nvtxDomainRangePushEx(domain, &event);
  const nvtxPayloadData_t data = {NVTX_PAYLOAD_SCHEMA_ID_STATIC_START, payload.size() * 4,
                                  payload.data()};
  nvtxRangePopPayload(domain, &data, 1);
}

std::vector<std::string> Collectives() {
  std::vector<std::string> found;
  for (const std::string& text : TakeSeen()) {
    if (text.starts_with("collective")) found.push_back(text);
  }
  return found;
}

TEST_F(NvtxTest, CallsOfNcclAreNumberedOnTheirCommunicatorAlsoWhereNothingIsRecorded) {
  CallNccl("ncclAllReduce", {0x51, 4096, 0});
  takes = false;
  CallNccl("ncclAllReduce", {0x51, 4096, 0});
  takes = true;
  CallNccl("ncclAllGather", {0x51, 8});
  CallNccl("ncclAllReduce", {0x52, 4096, 0});
  EXPECT_THAT(Collectives(), ElementsAre("collective 51", "collective 51 2", "collective 52"));
}

TEST_F(NvtxTest, ACommunicatorThatIsMadeTellsItsSize) {
  // Communicator, ranks, own rank, device; of a split the parent comes second.
  MakeCommunicator("ncclCommInitRank", {0x61, 0, 8, 3, 3, 0});
  EXPECT_THAT(TakeSeen(), ElementsAre("begin nccl:CommInitRank", "end"));
  MakeCommunicator("ncclCommSplit", {0x62, 0, 0x61, 0, 2, 1, 3, 0, 0, 0});
  TakeSeen();
  CallNccl("ncclAllReduce", {0x61, 4096, 0});
  CallNccl("ncclBroadcast", {0x62, 4096, 0});
  EXPECT_THAT(Collectives(), ElementsAre("collective 61/8", "collective 62/2"));
}

TEST_F(NvtxTest, SendsAndReceivesAreNumberedBetweenTheirTwoRanks) {
  MakeCommunicator("ncclCommInitRankConfig", {0x71, 0, 4, 1, 1, 0});
  CallNccl("ncclSend", {0x71, 64, 2});
  CallNccl("ncclRecv", {0x71, 64, 2});
  CallNccl("ncclSend", {0x71, 64, 2});
  CallNccl("ncclSend", {0x71, 64, 0});
  CallNccl("ncclAllReduce", {0x71, 64, 0});
  EXPECT_THAT(Collectives(),
              ElementsAre("collective 71/4 1>2", "collective 71/4 2>1", "collective 71/4 1>2 1",
                          "collective 71/4 1>0", "collective 71/4"));
  // Of this one nobody said which rank it is.
  CallNccl("ncclSend", {0x72, 64, 2});
  EXPECT_THAT(Collectives(), IsEmpty());
}

TEST_F(NvtxTest, CallsOfSeveralRanksOfOneProcessHaveNoNumber) {
  MakeCommunicator("ncclCommInitRank", {0x81, 0, 2, 0, 0, 0});
  MakeCommunicator("ncclCommInitRank", {0x81, 0, 2, 1, 1, 0});
  MakeCommunicator("ncclCommInitAll", {0x82, 0, 2, 0});
  CallNccl("ncclAllReduce", {0x81, 4096, 0});
  CallNccl("ncclAllReduce", {0x82, 4096, 0});
  EXPECT_THAT(Collectives(), IsEmpty());
}

TEST_F(NvtxTest, PayloadsOfOthersAreNotRead) {
  nvtxEventAttributes_t event = Event("AllReduce");
  event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  event.reserved0 = 1;
  event.payload.ullValue = 16;  // not an address
  nvtxRangePushEx(&event);
  EXPECT_THAT(TakeSeen(), ElementsAre("begin AllReduce"));
}

// ---- Tables of modules with other headers ----

struct FakeModule {
  static constexpr unsigned int kSlots = 20;
  NvtxFunctionPointer functions[2][kSlots] = {};
  NvtxFunctionPointer* table[2][kSlots + 1] = {};
  unsigned int size[2] = {kSlots, kSlots};
  NvtxExportTableCallbacks callbacks = {sizeof(callbacks), GetTable};

  static FakeModule* current;
  static int GetTable(NvtxCallbackModule module, NvtxFunctionTable* table, unsigned int* size) {
    if (module != NVTX_CB_MODULE_CORE && module != NVTX_CB_MODULE_CORE2) return 0;
    const int which = module == NVTX_CB_MODULE_CORE2;
    for (unsigned int i = 1; i < kSlots; ++i) {
      current->table[which][i] = &current->functions[which][i];
    }
    *table = current->table[which];
    *size = current->size[which];
    return 1;
  }
  static const void* GetExportTable(uint32_t id) {
    return id == NVTX_ETID_CALLBACKS && current != nullptr ? &current->callbacks : nullptr;
  }
};
FakeModule* FakeModule::current = nullptr;

TEST_F(NvtxTest, OnlyTheSlotsThatAreNeededAreFilled) {
  FakeModule module;
  FakeModule::current = &module;
  EXPECT_EQ(AttachNvtx(FakeModule::GetExportTable, {}), 1);
  EXPECT_EQ(AttachNvtx(FakeModule::GetExportTable, {}), 1);  // again does no harm
  EXPECT_NE(module.functions[0][NVTX_CBID_CORE_RangePushA], nullptr);
  EXPECT_NE(module.functions[0][NVTX_CBID_CORE_RangePop], nullptr);
  EXPECT_EQ(module.functions[0][NVTX_CBID_CORE_RangeStartA], nullptr);
  EXPECT_EQ(module.functions[0][NVTX_CBID_CORE_NameOsThreadA], nullptr);
  EXPECT_NE(module.functions[1][NVTX_CBID_CORE2_DomainRangePushEx], nullptr);
  EXPECT_EQ(module.functions[1][NVTX_CBID_CORE2_Initialize], nullptr);
  EXPECT_EQ(module.functions[1][NVTX_CBID_CORE2_DomainResourceCreate], nullptr);
}

TEST_F(NvtxTest, AnOlderHeaderHasFewerSlots) {
  FakeModule module;
  module.size[0] = NVTX_CBID_CORE_RangePop;
  FakeModule::current = &module;
  EXPECT_EQ(AttachNvtx(FakeModule::GetExportTable, {}), 1);
  EXPECT_EQ(module.functions[0][NVTX_CBID_CORE_RangePop], nullptr);
  EXPECT_NE(module.functions[0][NVTX_CBID_CORE_RangePushW], nullptr);
}

TEST_F(NvtxTest, AnUnusableModuleIsRefused) {
  FakeModule::current = nullptr;
  EXPECT_EQ(AttachNvtx(FakeModule::GetExportTable, {}), 0);
  FakeModule module;
  module.callbacks.struct_size = 4;
  FakeModule::current = &module;
  EXPECT_EQ(AttachNvtx(FakeModule::GetExportTable, {}), 0);
}

}  // namespace
}  // namespace daydream::tracer
