#include "trace/join/pickle.h"

#include <algorithm>
#include <bit>

namespace daydream {

using Kind = PickleValue::Kind;

namespace {

// Opcodes, by the names that pickletools.py gives them.
enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kAppend = 'a',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// What imports, calls or builds an object.
constexpr std::string_view kCode = "cRbioPQ\x81\x82\x83\x84\x92\x93";

constexpr size_t kMostValues = size_t{1} << 28;  // 4 GiB

PickleValue IntValue(int64_t number, Kind kind = Kind::kInt) {
  PickleValue value{.kind = kind};
  value.number = number;
  return value;
}

}  // namespace

class PickleReader {
 public:
  PickleReader(Pickle& to, std::string_view bytes) : to_(to), rest_(bytes) {}

  std::string Read() {
    while (why_.empty() && !done_) {
      const auto op = static_cast<uint8_t>(Number(1));
      if (!why_.empty()) break;
      if (kCode.find(static_cast<char>(op)) != std::string_view::npos) return "it holds code";
      Step(op);
      if (values_ > kMostValues) return "it holds too much";
    }
    return std::move(why_);
  }

 private:
  void Fail(const char* why) {
    if (why_.empty()) why_ = why;
  }

  std::string_view Take(uint64_t n) {
    if (n > rest_.size()) {
      Fail("it ends early");
      return {};
    }
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  uint64_t Number(size_t bytes) {
    const std::string_view taken = Take(bytes);
    uint64_t value = 0;
    for (size_t i = taken.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return value;
  }

  void Push(const PickleValue& value) {
    stack_.push_back(value);
    ++values_;
  }

  PickleValue Pop() {
    if (stack_.size() <= bottom()) {
      Fail("it takes from an empty stack");
      return {};
    }
    const PickleValue value = stack_.back();
    stack_.pop_back();
    return value;
  }

  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }

  void PushText(uint64_t size, Kind kind) {
    const std::string_view text = Take(size);
    if (text.size() > UINT32_MAX) return Fail("a text is too long");
    PickleValue value{.kind = kind, .size = static_cast<uint32_t>(text.size())};
    value.text = text.data();
    Push(value);
  }

  // Whole numbers of any length, two's complement; those beyond 64 bits are cut (addresses of 64
  // bits come with a ninth byte for the sign).
  void PushLong(uint64_t size) {
    const std::string_view bytes = Take(size);
    uint64_t value = bytes.empty() || static_cast<int8_t>(bytes.back()) >= 0 ? 0 : UINT64_MAX;
    for (size_t i = std::min<size_t>(bytes.size(), 8); i-- > 0;) {
      value = value << 8 | static_cast<uint8_t>(bytes[i]);
    }
    Push(IntValue(static_cast<int64_t>(value)));
  }

  void PushContainer(Kind kind, std::vector<PickleValue> items) {
    Push({.kind = kind, .size = static_cast<uint32_t>(to_.containers_.size())});
    to_.containers_.push_back(std::move(items));
  }

  void PushTuple(size_t size) {
    std::vector<PickleValue> items(size);
    for (size_t i = size; i-- > 0;) items[i] = Pop();
    PushContainer(Kind::kList, std::move(items));
  }

  // What stands behind the last mark.
  std::vector<PickleValue> PopMark() {
    if (marks_.empty()) {
      Fail("it takes from an empty stack");
      return {};
    }
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  // Adds to the container on top of the stack.
  void Extend(Kind kind, const std::vector<PickleValue>& items) {
    if (stack_.size() <= bottom() || stack_.back().kind != kind) {
      return Fail("it adds to what is no container");
    }
    if (kind == Kind::kDict && items.size() % 2 != 0) return Fail("a key has no value");
    std::vector<PickleValue>& to = to_.containers_[stack_.back().size];
    to.insert(to.end(), items.begin(), items.end());
    values_ += items.size();
  }

  void Get(uint64_t place) {
    if (place >= memo_.size()) return Fail("it refers to what is not there");
    Push(memo_[place]);
  }

  void Put(uint64_t place) {
    if (stack_.size() <= bottom()) return Fail("it takes from an empty stack");
    // Writers count up; anything else would make the table as long as the number.
    if (place > memo_.size()) return Fail("it refers to what is not there");
    if (place == memo_.size()) memo_.emplace_back();
    memo_[place] = stack_.back();
  }

  void Finish() {
    done_ = true;
    to_.root_ = Pop();
  }

  void Step(uint8_t op);
  bool StepNumber(uint8_t op);
  bool StepText(uint8_t op);
  bool StepContainer(uint8_t op);

  Pickle& to_;
  std::string_view rest_;
  std::vector<PickleValue> stack_, memo_;
  std::vector<size_t> marks_;  // sizes of the stack
  size_t values_ = 0;
  bool done_ = false;
  std::string why_;
};

bool PickleReader::StepNumber(uint8_t op) {
  switch (op) {
    case kNone:
      Push({});
      return true;
    case kNewTrue:
    case kNewFalse:
      Push(IntValue(op == kNewTrue, Kind::kBool));
      return true;
    case kBinInt:
      Push(IntValue(static_cast<int32_t>(Number(4))));
      return true;
    case kBinInt1:
      Push(IntValue(static_cast<int64_t>(Number(1))));
      return true;
    case kBinInt2:
      Push(IntValue(static_cast<int64_t>(Number(2))));
      return true;
    case kLong1:
      PushLong(Number(1));
      return true;
    case kLong4:
      PushLong(Number(4));
      return true;
    case kBinFloat: {  // the only number with the highest byte first
      uint64_t bits = 0;
      for (char c : Take(8)) bits = bits << 8 | static_cast<uint8_t>(c);
      PickleValue value{.kind = Kind::kFloat};
      value.real = std::bit_cast<double>(bits);
      Push(value);
      return true;
    }
    default:
      return false;
  }
}

bool PickleReader::StepText(uint8_t op) {
  switch (op) {
    case kShortBinUnicode:
      PushText(Number(1), Kind::kText);
      return true;
    case kBinUnicode:
      PushText(Number(4), Kind::kText);
      return true;
    case kBinUnicode8:
      PushText(Number(8), Kind::kText);
      return true;
    case kShortBinBytes:
      PushText(Number(1), Kind::kBytes);
      return true;
    case kBinBytes:
      PushText(Number(4), Kind::kBytes);
      return true;
    case kBinBytes8:
      PushText(Number(8), Kind::kBytes);
      return true;
    default:
      return false;
  }
}

bool PickleReader::StepContainer(uint8_t op) {
  switch (op) {
    case kEmptyList:
    case kEmptyTuple:
      PushContainer(Kind::kList, {});
      return true;
    case kEmptyDict:
      PushContainer(Kind::kDict, {});
      return true;
    case kTuple1:
    case kTuple2:
    case kTuple3:
      PushTuple(size_t{op} - kTuple1 + 1);
      return true;
    case kTuple:
      PushContainer(Kind::kList, PopMark());
      return true;
    case kMark:
      marks_.push_back(stack_.size());
      ++values_;
      return true;
    case kAppend:
      Extend(Kind::kList, {Pop()});
      return true;
    case kAppends:
      Extend(Kind::kList, PopMark());
      return true;
    case kSetItem: {
      const PickleValue value = Pop(), key = Pop();
      Extend(Kind::kDict, {key, value});
      return true;
    }
    case kSetItems:
      Extend(Kind::kDict, PopMark());
      return true;
    default:
      return false;
  }
}

void PickleReader::Step(uint8_t op) {
  if (StepNumber(op) || StepText(op) || StepContainer(op)) return;
  switch (op) {
    case kProto:
      if (Number(1) > 5) Fail("it is of a newer protocol");
      return;
    case kFrame:
      Number(8);  // lengths of pieces, for readers of pipes
      return;
    case kMemoize:
      return Put(memo_.size());
    case kBinPut:
      return Put(Number(1));
    case kLongBinPut:
      return Put(Number(4));
    case kBinGet:
      return Get(Number(1));
    case kLongBinGet:
      return Get(Number(4));
    case kPop:
      Pop();
      return;
    case kStop:
      return Finish();
    default:
      return Fail("it is damaged, or no pickle");
  }
}

std::string Pickle::Read(std::string_view bytes) { return PickleReader(*this, bytes).Read(); }

std::span<const PickleValue> Pickle::Items(const PickleValue& value) const {
  if (value.kind != Kind::kList && value.kind != Kind::kDict) return {};
  return containers_[value.size];
}

const PickleValue* Pickle::Find(const PickleValue& dict, std::string_view key) const {
  if (dict.kind != Kind::kDict) return nullptr;
  const std::span<const PickleValue> items = Items(dict);
  for (size_t i = items.size(); i >= 2; i -= 2) {
    if (Text(items[i - 2]) == key) return &items[i - 1];
  }
  return nullptr;
}

std::string_view Pickle::Text(const PickleValue& value) {
  return value.kind == Kind::kText ? std::string_view(value.text, value.size) : std::string_view();
}

}  // namespace daydream
