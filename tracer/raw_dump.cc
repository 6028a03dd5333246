#include "tracer/raw_dump.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <memory>

#include "tracer/cupti_api.h"

namespace daydream::tracer {
namespace {

constexpr std::string_view kMagic = "DDCUPTI1";
constexpr size_t kMostBytes = 10'000'000;
constexpr uint32_t kTexts = 1, kBuffer = 2;

template <class T>
void Append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// False at the end of `from`.
template <class T>
bool Take(std::string_view& from, T& value) {
  if (from.size() < sizeof value) return false;
  memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return true;
}

bool TakeBytes(std::string_view& from, uint64_t size, std::string_view& bytes) {
  if (from.size() < size) return false;
  bytes = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

void AppendBlock(std::string& to, uint32_t type, std::string_view payload) {
  Append(to, type);
  Append(to, uint32_t{0});
  Append(to, static_cast<uint64_t>(payload.size()));
  to += payload;
}

// The field of the record that points to a text, or nullptr.
const char** TextOf(CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return &reinterpret_cast<CUpti_ActivityKernel10&>(record).name;
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return &reinterpret_cast<CUpti_ActivityDevice5&>(record).name;
    default:
      return nullptr;
  }
}

using Texts = std::map<uint64_t, std::string>;

bool ReadTexts(std::string_view payload, Texts& texts) {
  while (!payload.empty()) {
    uint64_t address = 0, size = 0;
    std::string_view text;
    bool whole = Take(payload, address) && Take(payload, size) && TakeBytes(payload, size, text);
    if (!whole) return false;
    texts[address] = text;
  }
  return true;
}

// Points the records of a dumped buffer to `texts`.
void Mend(uint8_t* buffer, size_t valid, const CuptiDecoding& cupti, const Texts& texts) {
  CUpti_Activity* record = nullptr;
  while (cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_OVERHEAD && cupti.version >= kHasOverheadData) {
      reinterpret_cast<CUpti_ActivityOverhead3*>(record)->overheadData = nullptr;
    }
    const char** field = TextOf(*record);
    if (field == nullptr || *field == nullptr) continue;
    auto text = texts.find(reinterpret_cast<uint64_t>(*field));
    *field = text == texts.end() ? nullptr : text->second.c_str();
  }
}

}  // namespace

RawDump::~RawDump() {
  if (file_ >= 0) close(file_);
}

void RawDump::Open(const std::string& path, uint32_t cupti_version) {
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  std::string head(kMagic);
  Append(head, cupti_version);
  Append(head, uint32_t{0});
  Write(head);
}

void RawDump::Write(std::string_view bytes) {
  if (file_ < 0 || write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    written_ += bytes.size();
    return;
  }
  close(file_);  // a full disk: what is there can be replayed up to here
  file_ = -1;
}

void RawDump::Add(uint8_t* buffer, size_t valid, const CuptiDecoding& cupti) {
  if (file_ < 0 || written_ + valid > kMostBytes) return;
  Texts texts;
  CUpti_Activity* record = nullptr;
  while (cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    const char** field = TextOf(*record);
    if (field != nullptr && *field != nullptr) texts[reinterpret_cast<uint64_t>(*field)] = *field;
  }
  std::string payload, blocks;
  for (const auto& [address, text] : texts) {
    Append(payload, address);
    Append(payload, static_cast<uint64_t>(text.size()));
    payload += text;
  }
  AppendBlock(blocks, kTexts, payload);
  AppendBlock(blocks, kBuffer, {reinterpret_cast<const char*>(buffer), valid});
  Write(blocks);
}

bool ReplayRaw(
    std::string_view bytes, CuptiDecoding cupti,
    const std::function<void(const CuptiDecoding&, uint8_t* buffer, size_t valid)>& take) {
  if (!bytes.starts_with(kMagic)) return false;
  bytes.remove_prefix(kMagic.size());
  uint32_t zero = 0;
  if (!Take(bytes, cupti.version) || !Take(bytes, zero)) return false;
  Texts texts;
  while (!bytes.empty()) {
    uint32_t type = 0;
    uint64_t size = 0;
    std::string_view payload;
    bool whole = Take(bytes, type) && Take(bytes, zero) && Take(bytes, size) &&
                 TakeBytes(bytes, size, payload);
    if (!whole) return false;
    if (type == kTexts && !ReadTexts(payload, texts)) return false;
    if (type != kBuffer) continue;
    // Records lie at multiples of 8, as in a buffer of CUPTI's.
    auto buffer = std::make_unique<uint64_t[]>(payload.size() / 8 + 1);
    auto* data = reinterpret_cast<uint8_t*>(buffer.get());
    memcpy(data, payload.data(), payload.size());
    Mend(data, payload.size(), cupti, texts);
    take(cupti, data, payload.size());
    texts.clear();
  }
  return true;
}

}  // namespace daydream::tracer
