// What follows what in objects that are written alike. A recorder writes the same keys in the same
// order with the same blanks between them, a million times: instead of finding where a key begins
// and ends, and which it is, its text is compared with what stood there the last time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "trace/json/reader.h"

namespace daydream {

// Texts from behind one value to the next value, `, "tid": `, and which key each holds. Reading
// with it finds what reading without it finds: a text that JsonObjectReader once took for a key is
// one wherever a value begins behind it.
class JsonKeys {
 public:
  using Key = uint8_t;                     // as the caller numbers them
  static constexpr Key kClosed = 0xff;     // no key: the object ends
  static constexpr size_t kContexts = 16;  // kinds of objects

  JsonKeys() : texts_(kContexts + 1) {}

  // Walks the members of one object. Several may read in turn, one inside of the other.
  class Reader {
   public:
    // `p` is at the opening brace. Objects of one `context` are guessed to be alike.
    Reader(JsonKeys& keys, size_t context, const char* p, const char* end)
        : keys_(keys), object_(p, end), end_(end), context_(context), at_(context + 1) {}

    // Moves to the next key, of which `find(name)` tells the number. False as
    // JsonObjectReader::NextKey.
    template <class Find>
    [[gnu::always_inline]] bool NextKey(Key* key, Find find) {
      const char* p = object_.position();
      for (const uint16_t guess : keys_.texts_[at_].next) {
        if (guess == 0) break;
        const Text& text = keys_.texts_[guess];
        if (end_ - p <= text.size || !text.Is(p)) continue;
        if (text.key == kClosed) {
          object_.Close(p + text.size);
          return false;
        }
        if (EndsJsonScalar(p[text.size])) break;
        object_.Resume(p + text.size);
        at_ = guess;
        *key = text.key;
        return true;
      }
      return Read(p, key, find);
    }
    const char* value() const { return object_.value(); }
    void Resume(const char* behind) { object_.Resume(behind); }
    bool closed() const { return object_.closed(); }
    const char* position() const { return object_.position(); }

   private:
    template <class Find>
    [[gnu::noinline]] bool Read(const char* p, Key* key, Find find) {
      std::string_view name;
      if (!object_.NextKey(&name)) {
        if (object_.closed() && object_.position() <= end_) Learn(p, kClosed);
        return false;
      }
      *key = find(name);
      Learn(p, *key);
      return true;
    }
    void Learn(const char* p, Key key) {
      at_ = keys_.Learn(at_, context_, {p, static_cast<size_t>(object_.position() - p)}, key);
    }

    JsonKeys& keys_;
    JsonObjectReader object_;
    const char* end_;
    size_t context_;
    size_t at_;  // what was read last
  };

 private:
  static constexpr size_t kLongest = 32;  // bytes of a text; longer ones are read each time
  static constexpr size_t kMost = 1024;   // texts; more are read each time

  // In one line of the cache.
  struct alignas(64) Text {
    std::array<char, kLongest> bytes{};
    std::array<uint16_t, 2> same{};  // bits that are set where 16 bytes are the text's
    std::array<uint16_t, 4> next{};  // what followed, the last first; 0: nothing
    uint8_t size = 0;
    Key key = 0;
    uint8_t context = 0;

    bool Is(const char* p) const {
      if ((same[0] & ~JsonBlock(p).EqualTo(bytes.data())) != 0) return false;
      return size <= 16 || (same[1] & ~JsonBlock(p + 16).EqualTo(bytes.data() + 16)) == 0;
    }
  };

  // Of what was read behind `at`: where it is among the texts, 0 where it is not.
  size_t Learn(size_t at, size_t context, std::string_view text, Key key);

  // 0 is what is not among them, then where objects begin, by context.
  std::vector<Text> texts_;
};

}  // namespace daydream
