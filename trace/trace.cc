#include "trace/trace.h"

namespace daydream {
namespace {

template <class T>
size_t Bytes(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

}  // namespace

const Device* Trace::FindDevice(int32_t id) const {
  for (const Device& device : devices) {
    if (device.id == id) return &device;
  }
  return nullptr;
}

size_t Trace::MemoryBytes() const {
  size_t columns = Bytes(start) + Bytes(duration) + Bytes(lane) + Bytes(name) + Bytes(kind) +
                   Bytes(correlation) + Bytes(detail);
  size_t tables = Bytes(kernels) + Bytes(copies) + Bytes(ops) + Bytes(collectives) + Bytes(syncs) +
                  Bytes(allocations) + Bytes(dependencies);
  return columns + tables + Bytes(lanes) + Bytes(lane_begin) + names->MemoryBytes();
}

}  // namespace daydream
