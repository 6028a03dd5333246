// The detail tables in the text form: kernels, copies, collectives, devices. Internal to graph/.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "graph/text_line.h"

namespace daydream {

// grid=8,1,1 block=256,1,1 registers=32 shared=1024 node=7
absl::Status ParseKernelValue(const TextLine& line, const KeyValue& kv, KernelDetail& kernel);
// bytes=4096 from=pinned to=device
absl::Status ParseCopyValue(const TextLine& line, const KeyValue& kv, CopyDetail& copy);
// "allreduce" dtype="Float" group="default" in=1024 out=1024 size=8
absl::Status ParseCollectiveDetail(TextLine& line, GraphTables& tables);
// 0 "NVIDIA V100" memory=17179869184 capability=7.0 multiprocessors=80 warp=32 threads=2048
// registers=65536 shared=98304
absl::Status ParseDevice(TextLine& line, GraphTables& tables);

// The inverses, each with a leading space, without values that are as in an empty detail.
std::string FormatKernel(const KernelDetail& kernel);
std::string FormatCopy(const CopyDetail& copy);
std::string FormatCollective(const CollectiveDetail& collective, const Graph& graph);
std::string FormatDevice(const Device& device);

// Row of `value` in `table`; the last row is used again where it is equal.
template <class T>
uint32_t AddRow(std::vector<T>& table, const T& value) {
  if (table.empty() || !(table.back() == value)) table.push_back(value);
  return static_cast<uint32_t>(table.size() - 1);
}

}  // namespace daydream
