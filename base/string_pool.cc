#include "base/string_pool.h"

#include <algorithm>
#include <cstring>

namespace daydream {
namespace {

constexpr size_t kBlockBytes = 64 << 10;

// 64 x 64 -> 128 bit multiplication folded to 64 bits; mixes every input bit into every output bit.
uint64_t Mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t Load(const char* p, size_t n) {
  uint64_t v = 0;
  std::memcpy(&v, p, n);
  return v;
}

// The odd constants are digits of pi: numbers without structure.
uint32_t HashText(std::string_view text) {
  constexpr uint64_t kA = 0x243f6a8885a308d3, kB = 0x13198a2e03707345;
  uint64_t h = text.size() * kA;
  const char* p = text.data();
  size_t n = text.size();
  for (; n >= 16; p += 16, n -= 16) {
    h = Mix(Load(p, 8) ^ kA ^ h, Load(p + 8, 8) ^ kB);
  }
  if (n >= 8) {
    h = Mix(Load(p, 8) ^ kA ^ h, Load(p + n - 8, 8) ^ kB);
  } else if (n > 0) {
    h = Mix(Load(p, n) ^ kA ^ h, kB);
  }
  return static_cast<uint32_t>(Mix(h ^ kB, kA));
}

}  // namespace

size_t StringPool::Probe(std::string_view text, uint32_t hash) const {
  size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.id == NameId::kNoneValue) return i;
    if (slot.hash == hash && texts_[slot.id] == text) return i;
  }
}

NameId StringPool::Intern(std::string_view text) {
  if (texts_.size() * 2 >= slots_.size()) Grow();
  uint32_t hash = HashText(text);
  Slot& slot = slots_[Probe(text, hash)];
  if (slot.id == NameId::kNoneValue) {
    slot = {hash, static_cast<uint32_t>(texts_.size())};
    texts_.push_back(Store(text));
  }
  return NameId(slot.id);
}

NameId StringPool::Find(std::string_view text) const {
  return NameId(slots_[Probe(text, HashText(text))].id);
}

std::string_view StringPool::Store(std::string_view text) {
  text_bytes_ += text.size();
  if (text.empty()) return {};
  if (text.size() > block_left_) {
    size_t bytes = std::max(kBlockBytes, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    block_bytes_ += bytes;
    next_ = blocks_.back().get();
    block_left_ = bytes;
  }
  char* to = next_;
  std::memcpy(to, text.data(), text.size());
  next_ += text.size();
  block_left_ -= text.size();
  return {to, text.size()};
}

void StringPool::Grow() {
  std::vector<Slot> old(std::max<size_t>(64, slots_.size() * 2));
  old.swap(slots_);
  size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id == NameId::kNoneValue) continue;
    size_t i = slot.hash & mask;
    while (slots_[i].id != NameId::kNoneValue) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

size_t StringPool::MemoryBytes() const {
  return block_bytes_ + texts_.capacity() * sizeof(std::string_view) +
         slots_.capacity() * sizeof(Slot);
}

}  // namespace daydream
