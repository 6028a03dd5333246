// What needs what, in a .ddtrace file. Rows are counted over the whole file: where some are
// missing, nobody knows which is meant, and nothing is kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "trace/ddtrace/proto.h"
#include "trace/trace_builder.h"

namespace daydream {

class DdtraceDependencies {
 public:
  void Read(const pb::Dependencies& from) {
    uint64_t consumer = 0;
    for (int i = 0; i < std::min(from.consumer_size(), from.producer_size()); ++i) {
      consumer += static_cast<uint64_t>(from.consumer(i));
      const uint64_t producer = consumer + static_cast<uint64_t>(from.producer(i));
      all_.push_back({static_cast<uint32_t>(producer), static_cast<uint32_t>(consumer)});
    }
  }
  void AddTo(TraceBuilder& builder) const {
    for (const DataDependency& d : all_) builder.AddDependency(d.producer, d.consumer);
  }
  uint64_t size() const { return all_.size(); }

 private:
  std::vector<DataDependency> all_;
};

}  // namespace daydream
