#include "tracer/name_table.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>

namespace daydream::tracer {

constinit NameTable names;

struct NameTable::Entry {
  size_t hash;
  uint32_t id;
  uint32_t length;
  const char* text() const { return reinterpret_cast<const char*>(this + 1); }
};

// An open-addressed table, at most half full.
struct NameTable::Slots {
  size_t capacity;     // a power of two
  const Slots* older;  // the smaller table that this one replaced, which may still be read
  std::atomic<const Entry*>* begin() const {
    return reinterpret_cast<std::atomic<const Entry*>*>(const_cast<Slots*>(this) + 1);
  }
};

std::string_view NameTable::Text(uint32_t id) const {
  if (id == 0 || id > size()) return {};
  const Page* page = pages_[id / kPage].load(std::memory_order_acquire);
  const Entry* entry = page[id % kPage].load(std::memory_order_acquire);
  return {entry->text(), entry->length};
}

const NameTable::Entry* NameTable::Find(const Slots* slots, size_t hash,
                                        std::string_view text) const {
  if (slots == nullptr) return nullptr;
  for (size_t i = hash;; ++i) {
    const Entry* entry = slots->begin()[i & (slots->capacity - 1)].load(std::memory_order_acquire);
    if (entry == nullptr) return nullptr;
    if (entry->hash == hash && entry->length == text.size() &&
        std::memcmp(entry->text(), text.data(), text.size()) == 0) {
      return entry;
    }
  }
}

NameTable::Slots* NameTable::Grow(const Slots* old) {
  const size_t capacity = old == nullptr ? 1024 : old->capacity * 2;
  // Zero bytes are null pointers.
  void* memory = std::calloc(1, sizeof(Slots) + capacity * sizeof(std::atomic<const Entry*>));
  if (memory == nullptr) return nullptr;
  auto* grown = new (memory) Slots{capacity, old};
  for (size_t i = 0; old != nullptr && i < old->capacity; ++i) {
    const Entry* entry = old->begin()[i].load(std::memory_order_relaxed);
    if (entry == nullptr) continue;
    size_t at = entry->hash;
    while (grown->begin()[at & (capacity - 1)].load(std::memory_order_relaxed) != nullptr) ++at;
    grown->begin()[at & (capacity - 1)].store(entry, std::memory_order_relaxed);
  }
  slots_.store(grown, std::memory_order_release);
  return grown;
}

bool NameTable::Publish(Slots* slots, Entry* entry) {
  std::atomic<Page*>& page = pages_[entry->id / kPage];
  if (page.load(std::memory_order_relaxed) == nullptr) {
    void* memory = std::calloc(kPage, sizeof(Page));
    if (memory == nullptr) return false;
    page.store(static_cast<Page*>(memory), std::memory_order_release);
  }
  page.load(std::memory_order_relaxed)[entry->id % kPage].store(entry, std::memory_order_release);
  size_.store(entry->id, std::memory_order_release);
  size_t at = entry->hash;
  while (slots->begin()[at & (slots->capacity - 1)].load(std::memory_order_relaxed) != nullptr) {
    ++at;
  }
  slots->begin()[at & (slots->capacity - 1)].store(entry, std::memory_order_release);
  return true;
}

bool NameTable::HasRoom(size_t bytes, NameUse use) const {
  Used all;
  for (const Used& used : used_) {
    all.names += used.names;
    all.bytes += used.bytes;
  }
  if (all.names >= kMaxNames || all.bytes + bytes > kMaxBytes) return false;
  if (use == NameUse::kRecorder) return true;
  const Used& used = used_[static_cast<size_t>(use)];
  return used.names < kMaxNames / kShare && used.bytes + bytes <= kMaxBytes / kShare;
}

uint32_t NameTable::Intern(std::string_view text, NameUse use) {
  if (text.empty()) return 0;
  text = text.substr(0, kMaxLength);
  const size_t hash = std::hash<std::string_view>()(text);
  if (const Entry* known = Find(slots_.load(std::memory_order_acquire), hash, text)) {
    return known->id;
  }
  const std::lock_guard lock(mutex_);
  Slots* slots = slots_.load(std::memory_order_relaxed);
  if (const Entry* known = Find(slots, hash, text)) return known->id;
  const uint32_t id = size_.load(std::memory_order_relaxed) + 1;
  const bool fits = HasRoom(text.size(), use);
  if (fits && (slots == nullptr || id > slots->capacity / 2)) slots = Grow(slots);
  void* memory = fits && slots != nullptr ? std::malloc(sizeof(Entry) + text.size()) : nullptr;
  if (memory != nullptr) {
    auto* entry = new (memory) Entry{hash, id, static_cast<uint32_t>(text.size())};
    std::memcpy(entry + 1, text.data(), text.size());
    if (Publish(slots, entry)) {
      Used& used = used_[static_cast<size_t>(use)];
      ++used.names;
      used.bytes += text.size();
      return id;
    }
    std::free(memory);
  }
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

}  // namespace daydream::tracer
