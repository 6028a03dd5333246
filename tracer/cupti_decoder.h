// CUPTI's activity records become rows. Compiled against one version of CUPTI and right for those
// before it: later structs only add fields at the end, which are read when the loaded CUPTI has
// them; where the next record begins is CUPTI's own knowledge.
#pragma once

#include <cupti.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tracer/encoder.h"
#include "tracer/recording.h"

namespace daydream::tracer {

class CuptiDecoder {
 public:
  // Rows go to `encoder`; `full(user)` is called when it has no room for more.
  CuptiDecoder(Encoder& encoder, Losses& losses, int64_t clock_origin_ns, void (*full)(void* user),
               void* user);

  void SetCupti(const CuptiDecoding& cupti) { cupti_ = cupti; }
  void SetOffset(int64_t ns) { offset_ = ns; }
  void Decode(uint8_t* buffer, size_t valid);
  // Start of the row that was added last: that of rows without a time.
  int64_t last_start() const { return last_start_; }

 private:
  struct CachedName {
    const char* text = nullptr;
    uint32_t name = 0;
  };
  struct Times {
    int64_t start = 0;
    uint64_t duration = 0;
    bool known = true;
  };

  void DecodeRecord(const CUpti_Activity& record);
  void DecodeKernel(const CUpti_ActivityKernel10& kernel);
  void DecodeMemcpy(const CUpti_ActivityMemcpy6& copy);
  void DecodePeerMemcpy(const CUpti_ActivityMemcpyPtoP4& copy);
  void DecodeMemset(const CUpti_ActivityMemset4& memset);
  void DecodeCall(const CUpti_ActivityAPI& call);
  void DecodeSync(const CUpti_ActivitySynchronization2& sync);
  void DecodeEvent(const CUpti_ActivityCudaEvent2& event);
  void DecodeGraph(const CUpti_ActivityGraphTrace2& graph);
  void DecodeOverhead(const CUpti_ActivityOverhead3& overhead);
  void DecodeDevice(const CUpti_ActivityDevice5& device);

  Times TimesOf(uint64_t start, uint64_t end);
  void Add(RowGroup group, Signature& signature, Row& row, const Times& times);
  uint32_t KernelName(const char* text);
  uint32_t CallName(uint32_t domain, uint32_t cbid) const;

  Encoder& encoder_;
  Losses& losses_;
  const int64_t origin_;
  void (*const full_)(void* user);
  void* const user_;
  CuptiDecoding cupti_;
  int64_t offset_ = 0;
  int64_t last_start_ = 0;
  // Names of kernels by their address, which holds only within one buffer.
  std::array<CachedName, 256> kernel_names_;
  // Signatures of calls that succeeded, + 1, by domain and cbid.
  std::array<std::vector<uint32_t>, 2> calls_;
};

}  // namespace daydream::tracer
