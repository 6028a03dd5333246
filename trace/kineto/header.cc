#include "trace/kineto/header.h"

#include <algorithm>
#include <string>

#include "trace/json/text.h"
#include "trace/kineto/event.h"

namespace daydream {
namespace {

constexpr std::string_view kVersionSuffix = "_version";

std::string TextOf(const JsonString& s) {
  std::string text;
  CleanText(s.text, true, &text);
  return text;
}

int32_t ToInt(int64_t v) {
  return static_cast<int32_t>(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX));
}

// Calls f(key, value, end of text) for each member; f returns behind the value or nullptr.
// Returns behind the object, or nullptr.
template <class F>
const char* ForEachMember(const char* p, const char* end, F f) {
  if (*p != '{') return nullptr;
  JsonObjectReader object(p, end);
  std::string_view key;
  while (object.NextKey(&key)) {
    const char* behind = f(key, object.value());
    if (behind == nullptr) return nullptr;
    object.Resume(behind);
  }
  return object.closed() ? object.position() : nullptr;
}

const char* ReadDevice(const char* p, const char* end, Device* device) {
  return ForEachMember(p, end, [&](std::string_view key, const char* value) {
    if (key == "name") {
      JsonString name;
      const char* behind = ReadJsonString(value, end, &name);
      device->name = TextOf(name);
      return behind;
    }
    int64_t v = 0;
    const char* behind = ReadJsonInteger(value, end, &v);
    if (key == "id") device->id = ToInt(v);
    if (key == "totalGlobalMem")
      device->memory_bytes = static_cast<uint64_t>(std::max<int64_t>(v, 0));
    if (key == "computeMajor") device->compute_major = ToInt(v);
    if (key == "computeMinor") device->compute_minor = ToInt(v);
    if (key == "numSms") device->multiprocessors = ToInt(v);
    if (key == "warpSize") device->warp_size = ToInt(v);
    if (key == "maxThreadsPerMultiprocessor") device->max_threads_per_multiprocessor = ToInt(v);
    if (key == "regsPerMultiprocessor") device->registers_per_multiprocessor = v;
    if (key == "sharedMemPerMultiprocessor") device->shared_memory_per_multiprocessor = v;
    return behind;
  });
}

void ReadDevices(std::string_view json, TraceBuilder& builder) {
  const char* p = json.data();
  const char* end = p + json.size();
  if (*p != '[') return;
  constexpr int kMaxDevices = 1024;  // of one machine
  ++p;
  for (int i = 0; i < kMaxDevices; ++i) {
    p = SkipBlanks(p);
    if (*p == ',') p = SkipBlanks(p + 1);
    Device device;
    p = ReadDevice(p, end, &device);
    if (p == nullptr) return;
    builder.AddDevice(std::move(device));
  }
}

// {"rank": 1, "world_size": 2, "nccl_version": "2.17.1", ...}
void ReadDistributed(std::string_view json, TraceBuilder& builder) {
  const char* end = json.data() + json.size();
  int64_t rank = -1, world_size = -1;
  ForEachMember(json.data(), end, [&](std::string_view key, const char* value) {
    if (key == "rank") return ReadJsonInteger(value, end, &rank);
    if (key == "world_size") return ReadJsonInteger(value, end, &world_size);
    if (key == "nccl_version") {
      JsonString version;
      const char* behind = ReadJsonString(value, end, &version);
      if (version.present()) builder.AddSoftware("NCCL", TextOf(version));
      return behind;
    }
    return SkipJsonValue(value, end);
  });
  builder.SetRank(ToInt(rank), ToInt(world_size));
}

std::string SoftwareName(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"cuda_runtime_version", "CUDA runtime"},
      {"cuda_driver_version", "CUDA driver"},
      {"cupti_version", "CUPTI"},
      {"hip_runtime_version", "HIP runtime"},
      {"hip_driver_version", "HIP driver"},
      {"roctracer_version", "ROCtracer"},
      {"pytorch_version", "PyTorch"},
      {"nccl_version", "NCCL"},
  };
  for (const auto& [known, name] : kNames) {
    if (key == known) return std::string(name);
  }
  return std::string(key.substr(0, key.size() - kVersionSuffix.size()));
}

// CUDA packs 12.4 as 12040; HIP packs 6.4.43483 as 60443483. Others stay as they are.
std::string VersionText(std::string_view key, std::string_view json) {
  JsonString text;
  if (ReadJsonString(json.data(), json.data() + json.size(), &text) != nullptr && text.present()) {
    return TextOf(text);
  }
  std::string raw;
  CleanText(json, false, &raw);
  int64_t v = 0;
  const char* p = json.data();
  if (!ParseInteger(&p, &v) || p != json.data() + json.size()) return raw;
  bool cuda = key == "cuda_runtime_version" || key == "cuda_driver_version";
  bool hip = key == "hip_runtime_version" || key == "hip_driver_version";
  if (cuda && v >= 1000) return fmt::format("{}.{}", v / 1000, v % 1000 / 10);
  if (hip && v >= 10000000) {
    return fmt::format("{}.{}.{}", v / 10000000, v / 100000 % 100, v % 100000);
  }
  return raw;
}

}  // namespace

bool IsKinetoHeaderKey(std::string_view key) {
  return key == "deviceProperties" || key == "distributedInfo" || key == "baseTimeNanoseconds" ||
         (key.ends_with(kVersionSuffix) && key.size() <= 64);
}

void ReadKinetoHeader(std::string_view key, std::string_view json, TraceBuilder& builder) {
  if (json.empty()) return;
  if (key == "deviceProperties") {
    ReadDevices(json, builder);
  } else if (key == "distributedInfo" && json[0] == '"') {
    std::string text;  // the object, once more as a string
    CleanText(json.substr(1, json.size() - 2), true, &text);
    size_t size = text.size();
    text.append(kJsonPadding, '\0');
    ReadDistributed(std::string_view(text).substr(0, size), builder);
  } else if (key == "distributedInfo") {
    ReadDistributed(json, builder);
  } else if (key == "baseTimeNanoseconds") {
    constexpr int64_t kMaxNs = int64_t{1} << 61;
    int64_t ns = 0;
    ReadJsonInteger(json.data(), json.data() + json.size(), &ns);
    builder.SetClockBase(std::clamp(ns, -kMaxNs, kMaxNs));
  } else {
    std::string name;
    CleanText(SoftwareName(key), true, &name);
    builder.AddSoftware(std::move(name), VersionText(key, json));
  }
}

}  // namespace daydream
