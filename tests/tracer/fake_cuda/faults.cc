#include "tests/tracer/fake_cuda/faults.h"

#include <stdio.h>
#include <stdlib.h>

#include <mutex>
#include <set>
#include <string_view>
#include <vector>

namespace daydream {
namespace {

struct Item {
  std::string name;
  int64_t number = -1;  // -1: any
  int64_t skip = 0;     // times
  int64_t left = -1;    // times after that; -1: always
  std::string value;
};

std::vector<Item> Parse(std::string_view text) {
  std::vector<Item> items;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
    size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    Item item{.name = std::string(part.substr(0, equals)),
              .value = std::string(part.substr(equals + 1))};
    if (size_t hash = item.name.find('#'); hash != std::string::npos) {
      item.left = atoll(item.name.c_str() + hash + 1);
      item.name.resize(hash);
    }
    if (size_t at = item.name.find('@'); at != std::string::npos) {
      item.skip = atoll(item.name.c_str() + at + 1);
      item.name.resize(at);
    }
    if (size_t colon = item.name.find(':'); colon != std::string::npos) {
      item.number = atoll(item.name.c_str() + colon + 1);
      item.name.resize(colon);
    }
    items.push_back(item);
  }
  return items;
}

std::vector<Item>& Items() {
  static auto& items =
      *new std::vector<Item>(Parse(getenv("FAKE_CUPTI") == nullptr ? "" : getenv("FAKE_CUPTI")));
  return items;
}

const Item* Find(const char* name) {
  for (const Item& item : Items()) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

void Log(const char* function) {
  static const bool log = FaultNumber("log") != 0;
  if (!log) return;
  static auto& mutex = *new std::mutex;
  static auto& seen = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (seen.insert(function).second) fprintf(stderr, "fake CUPTI: %s\n", function);
}

}  // namespace

int FaultCode(const char* function, int64_t number) {
  Log(function);
  for (Item& item : Items()) {
    std::string_view name = item.name;
    bool prefix = name.ends_with('*');
    if (prefix) name.remove_suffix(1);
    bool same = prefix ? std::string_view(function).starts_with(name) : name == function;
    if (!same || (item.number != -1 && item.number != number) || item.left == 0) continue;
    if (item.skip > 0 && item.skip-- > 0) continue;
    if (item.left > 0) --item.left;
    return atoi(item.value.c_str());
  }
  return 0;
}

int64_t FaultNumber(const char* name, int64_t otherwise) {
  const Item* item = Find(name);
  return item == nullptr ? otherwise : atoll(item->value.c_str());
}

std::string FaultText(const char* name) {
  const Item* item = Find(name);
  return item == nullptr ? "" : item->value;
}

}  // namespace daydream
