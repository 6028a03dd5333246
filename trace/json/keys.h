// What follows what in objects that are written alike. A recorder writes the same keys in the same
// order with the same blanks between them, a million times: instead of finding where a key begins
// and ends, and which it is, its text is compared with what stood there the last time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
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

  JsonKeys() : texts_(kContexts + 1), contexts_(kContexts + 1) {}

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
      auto& next = keys_.texts_[at_].next;
      for (size_t i = 0; i < next.size() && next[i] != 0; ++i) {
        const uint16_t guess = next[i];
        const Text& text = keys_.texts_[guess];
        if (end_ - p <= text.size || !text.Is(p)) continue;
        if (i > 0) std::swap(next[i], next[0]);  // the next objects are most like this one
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
  static constexpr size_t kLongest = 48;  // bytes of a text; longer ones are read each time
  static constexpr size_t kMost = 1024;   // texts; more are read each time

  // In one line of the cache.
  struct alignas(64) Text {
    std::array<char, kLongest> bytes{};
    std::array<uint16_t, kLongest / 16> same{};  // bits that are set where 16 bytes are the text's
    std::array<uint16_t, 4> next{};  // what followed, the last one of them first; 0: nothing
    uint8_t size = 0;
    Key key = 0;

    bool Is(const char* p) const {
      return Is(p, 0) && (size <= 16 || (Is(p, 1) && (size <= 32 || Is(p, 2))));
    }
    bool Is(const char* p, size_t block) const {
      return (same[block] & ~JsonBlock(p + 16 * block).EqualTo(bytes.data() + 16 * block)) == 0;
    }
  };
  static_assert(sizeof(Text) == 64);

  // Of what was read behind `at`: where it is among the texts, 0 where it is not.
  size_t Learn(size_t at, size_t context, std::string_view text, Key key);

  // 0 is what is not among them, then where objects begin, by context.
  std::vector<Text> texts_;
  std::vector<uint8_t> contexts_;  // of each text
};

}  // namespace daydream
