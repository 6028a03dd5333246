// The pieces that read JSON text: scanning, numbers, strings.
#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "trace/json/reader.h"
#include "trace/json/window.h"

namespace daydream {
namespace {

std::string Padded(std::string_view text) {
  return std::string(text) + std::string(kJsonPadding, '\0');
}

// Microseconds as text to nanoseconds.
std::pair<NumberState, int64_t> Micros(std::string_view text) {
  std::string padded = Padded(text);
  NumberState state = NumberState::kMissing;
  int64_t ns = 0;
  ParseMicroseconds(padded.data(), &state, &ns);
  return {state, ns};
}

std::string Clean(std::string_view text, bool unescape = true) {
  std::string out;
  CleanText(text, unescape, &out);
  return out;
}

TEST(JsonText, MicrosecondsAreExact) {
  // As a double this would be off by 190 ns.
  EXPECT_EQ(Micros("1712195495519689.047").second, 1712195495519689047);
  EXPECT_EQ(Micros("1610366662254362").second, 1610366662254362000);
  EXPECT_EQ(Micros("4").second, 4000);
  EXPECT_EQ(Micros("0.5").second, 500);
  EXPECT_EQ(Micros("-2.25").second, -2250);
  EXPECT_EQ(Micros("1.0004").second, 1000);
  EXPECT_EQ(Micros("1.0005").second, 1001);
  EXPECT_EQ(Micros("1.5e3").second, 1500000);
  EXPECT_EQ(Micros("1712195495.519689047E+6").second, 1712195495519689047);
  EXPECT_EQ(Micros("125e-3").second, 125);
  EXPECT_EQ(Micros("0.00000000000000000000000000000000000001").second, 0);
}

// One digit after the other.
std::pair<bool, int64_t> SlowInteger(std::string_view text, size_t* length) {
  const bool negative = text.starts_with('-');
  unsigned __int128 value = 0;
  size_t i = negative ? 1 : 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    value = std::min<unsigned __int128>(value * 10 + static_cast<unsigned>(text[i] - '0'),
                                        static_cast<unsigned __int128>(1) << 100);
  }
  *length = i;
  const bool any = i > (negative ? 1U : 0U);
  const bool ok = any && value <= static_cast<unsigned __int128>(INT64_MAX);
  if (!ok) *length = 0;
  return {ok, ok ? (negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value)) : 0};
}

TEST(JsonText, NumbersOfAnyLengthAreReadAsDigitByDigit) {
  std::mt19937 random(11);
  constexpr std::string_view kBehind = ",}] .e:/;x\"\x80\xff";
  for (int i = 0; i < 100'000; ++i) {
    std::string text = random() % 8 == 0 ? "-" : "";
    for (size_t n = random() % 22; n > 0; --n) text += static_cast<char>('0' + random() % 10);
    text += kBehind[random() % kBehind.size()];
    text += std::to_string(random());
    size_t length = 0;
    const auto [ok, value] = SlowInteger(text, &length);
    const std::string padded = Padded(text);
    const char* p = padded.data();
    int64_t read = 0;
    ASSERT_EQ(ParseInteger(&p, &read), ok) << text;
    ASSERT_EQ(read, value) << text;
    ASSERT_EQ(static_cast<size_t>(p - padded.data()), length) << text;
    // As microseconds with any number of decimals.
    const std::string decimal = std::to_string(random() % 1'000'000'000) + "." +
                                std::to_string(random()).substr(random() % 5);
    std::string behind = decimal.substr(decimal.find('.') + 1);
    const bool up = behind.size() > 3 && behind[3] >= '5';
    const std::string digits = (behind + "000").substr(0, 3);
    const int64_t ns = std::stoll(decimal) * 1000 + std::stoll(digits) + (up ? 1 : 0);
    ASSERT_EQ(Micros(decimal), std::make_pair(NumberState::kOk, ns)) << decimal;
  }
}

TEST(JsonText, TimesOutOfRangeAreToldFromNonNumbers) {
  for (const char* text : {"9223372036854775808", "-9223372036854775808", "1e300", "1e99999999",
                           "99999999999999999999999999999999999999999999"}) {
    EXPECT_EQ(Micros(text).first, NumberState::kTooLarge) << text;
  }
  for (const char* text : {"NaN", "N/A", "inf", "-inf", "null", "", "-", "."}) {
    EXPECT_EQ(Micros(text).first, NumberState::kNotANumber) << text;
  }
  EXPECT_EQ(Micros("0e99999999"), std::make_pair(NumberState::kOk, int64_t{0}));
}

TEST(JsonText, NamesCanAlwaysBePrinted) {
  EXPECT_EQ(Clean(R"(a\"b\\c\/d)"), R"(a"b\c/d)");
  EXPECT_EQ(Clean(R"(C:\Users\new)"), "C:\\Users ew");
  EXPECT_EQ(Clean(R"(C:\Users)"), R"(C:\Users)");
  EXPECT_EQ(Clean(R"(\u00e9\u20ac\ud83d\ude00)"), "é€😀");
  EXPECT_EQ(Clean(R"(\ud83d)"), "\xef\xbf\xbd");
  EXPECT_EQ(Clean(R"(\u12)"), R"(\u12)");
  EXPECT_EQ(Clean("a\nb\x1b[2Jc\x7f"), "a b [2Jc ");
  EXPECT_EQ(Clean("é\xff\xc3"), "é\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(Clean("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a lone surrogate
  EXPECT_EQ(Clean(R"(["a\"b"])", false), R"(["a\"b"])");
}

TEST(JsonScan, FindsTheEndOfStrings) {
  for (size_t length : {0, 1, 15, 16, 17, 31, 40, 500}) {
    std::string text = Padded(std::string(length, 'x') + "\", ");
    bool plain = true;
    EXPECT_EQ(FindStringEnd(text.data(), text.data() + length + 3, &plain), text.data() + length);
    EXPECT_TRUE(plain);
    EXPECT_EQ(FindStringEnd(text.data(), text.data() + length, &plain), nullptr);
    std::string escaped = Padded(std::string(length, 'x') + "\\\"\\\\\"");
    EXPECT_EQ(FindStringEnd(escaped.data(), escaped.data() + length + 5, &plain),
              escaped.data() + length + 4);
    EXPECT_FALSE(plain);
  }
}

// Finds the end of a container one character at a time. A backslash takes the meaning away from
// the next character everywhere: outside strings it is damage either way.
size_t SkipSlowly(std::string_view text) {
  int depth = 0;
  bool in_string = false, escaped = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\') {
      escaped = !escaped;
      continue;
    }
    bool plain = !std::exchange(escaped, false);
    if (c == '"' && plain) {
      in_string = !in_string;
    } else if (in_string) {
      continue;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      if (--depth == 0) return i + 1;
    }
  }
  return std::string::npos;
}

TEST(JsonScan, SkipsContainersLikeTheSlowWay) {
  std::mt19937_64 random(1);
  constexpr std::string_view kAlphabet = "[]{}\"\"\\,:1a ";
  for (int round = 0; round < 20000; ++round) {
    std::string text = "[";
    size_t length = random() % 300;
    for (size_t i = 0; i < length; ++i) text += kAlphabet[random() % kAlphabet.size()];
    size_t expected = SkipSlowly(text);
    std::string padded = Padded(text);
    const char* begin = padded.data();
    const char* end = begin + text.size();
    const char* behind = JsonSkipper().Skip(begin, end);
    ASSERT_EQ(behind == nullptr ? std::string::npos : static_cast<size_t>(behind - begin), expected)
        << text;
    // In two pieces: the same.
    size_t cut = 1 + random() % text.size();
    JsonSkipper pieces;
    std::string first = Padded(text.substr(0, cut)), second = Padded(text.substr(cut));
    behind = pieces.Skip(first.data(), first.data() + cut);
    size_t at = std::string::npos;
    if (behind != nullptr) {
      at = static_cast<size_t>(behind - first.data());
    } else {
      behind = pieces.Skip(second.data(), second.data() + text.size() - cut);
      if (behind != nullptr) at = cut + static_cast<size_t>(behind - second.data());
    }
    ASSERT_EQ(at, expected) << text << " cut at " << cut;
  }
}

TEST(JsonScan, BlanksEndAtTheTextAndAtThePadding) {
  for (size_t blanks : {0, 1, 2, 5, 16, 33, 100}) {
    std::string text = Padded(std::string(blanks, ' ') + "x");
    EXPECT_EQ(SkipBlanks(text.data()), text.data() + blanks);
    std::string none = Padded(std::string(blanks, '\n'));
    EXPECT_EQ(SkipBlanks(none.data()), none.data() + blanks);
  }
}

TEST(JsonWindow, KeepsWhatIsNeededWhileItMoves) {
  std::string text;
  for (int i = 0; i < 300000; ++i) text += std::to_string(i) + " ";
  auto source = OpenBytes(text, "t", int64_t{1} << 40);
  JsonWindow window(*source);
  ASSERT_TRUE(window.Refill());
  int expected = 0;
  for (bool more = true;;) {
    const char* blank = window.p;
    while (blank < window.end() && *blank != ' ') ++blank;
    if (blank == window.end()) {
      if (more = window.Refill(); more) continue;
      break;
    }
    ASSERT_EQ(std::string(window.p, blank), std::to_string(expected++));
    ASSERT_EQ(window.Offset(blank) < static_cast<int64_t>(text.size()), true);
    ASSERT_EQ(text[static_cast<size_t>(window.Offset(blank))], ' ');
    window.p = blank + 1;
  }
  EXPECT_EQ(expected, 300000);
}

// Hands out pieces of a text with room in front of them, always from the same place: what was there
// before is gone.
class RoomySource : public ByteSource {
 public:
  RoomySource(std::string_view text, size_t room, std::mt19937& random)
      : rest_(text), room_(room), random_(random), buffer_(room + kPiece + kRoomBehind, '#') {}
  ~RoomySource() override { Check(); }
  absl::StatusOr<std::string_view> Next() override {
    Check();
    std::ranges::fill(buffer_, '#');
    const std::string_view piece = rest_.substr(0, 1 + random_() % kPiece);
    rest_.remove_prefix(std::min(piece.size(), rest_.size()));
    piece.copy(buffer_.data() + room_, piece.size());
    return std::string_view(buffer_.data() + room_, piece.size());
  }
  absl::StatusOr<std::string_view> Peek() override { return std::string_view(); }
  size_t RoomInFront() const override { return room_; }
  int64_t consumed() const override { return 0; }
  int64_t total() const override { return -1; }

 private:
  // Without room nobody writes to it.
  void Check() const {
    if (room_ > 0) return;
    EXPECT_EQ(buffer_.substr(kPiece), std::string(kRoomBehind, '#'));
  }

  static constexpr size_t kPiece = 100;
  std::string_view rest_;
  size_t room_;
  std::mt19937& random_;
  std::string buffer_;
};

TEST(JsonWindow, HoldsTheTextWhateverIsKeptAndWhereverItLies) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t n = random() % 3000; n > 0; --n) text += static_cast<char>('a' + random() % 26);
    RoomySource source(text, round % 4 == 0 ? 0 : random() % 200, random);
    JsonWindow window(source);
    size_t at = 0;  // of the text that lies at window.p
    for (bool more = true; more;) {
      more = window.Refill();
      const auto size = static_cast<size_t>(window.end() - window.p);
      ASSERT_EQ(std::string_view(window.p, size), text.substr(at, size));
      ASSERT_EQ(std::string_view(window.end(), kJsonPadding), std::string(kJsonPadding, '\0'));
      ASSERT_TRUE(more || at + size == text.size()) << "all of it was there";
      const size_t less = random() % 3 == 0 ? 0 : random() % (size + 1);  // now and then it is long
      if (more) window.p += less, at += less;
      ASSERT_EQ(window.Offset(window.p), static_cast<int64_t>(at));
    }
  }
}

TEST(JsonObjectReader, TakesCommasTooManyButNotTooFew) {
  auto keys = [](std::string_view text, bool* closed) {
    std::string padded = Padded(text), found;
    JsonObjectReader object(padded.data(), padded.data() + text.size());
    std::string_view key;
    while (object.NextKey(&key)) {
      found += key;
      const char* behind = SkipJsonValue(object.value(), padded.data() + text.size());
      if (behind == nullptr) break;
      object.Resume(behind);
    }
    *closed = object.closed();
    return found;
  };
  bool closed = false;
  EXPECT_EQ(keys(R"({"a": 1, "b": [2, 3], "c": "x", "d": {"e": N/A}, })", &closed), "abcd");
  EXPECT_TRUE(closed);
  EXPECT_EQ(keys(R"({"a": 1 "b": 2})", &closed), "a");
  EXPECT_FALSE(closed);
  EXPECT_EQ(keys(R"({"a": , "b": 2})", &closed), "");
  EXPECT_FALSE(closed);
}

}  // namespace
}  // namespace daydream
