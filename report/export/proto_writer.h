// Protobuf wire format (protobuf.dev/programming-guides/encoding), just enough to write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace daydream {

class ProtoWriter {
 public:
  ProtoWriter& Varint(int field, uint64_t value) {
    Raw(static_cast<uint64_t>(field) << 3);
    Raw(value);
    return *this;
  }
  ProtoWriter& Bytes(int field, std::string_view bytes) {
    Raw(static_cast<uint64_t>(field) << 3 | 2);
    Raw(bytes.size());
    out_ += bytes;
    return *this;
  }
  ProtoWriter& Fixed64(int field, uint64_t value) {
    Raw(static_cast<uint64_t>(field) << 3 | 1);
    for (int i = 0; i < 8; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  ProtoWriter& Message(int field, const ProtoWriter& message) { return Bytes(field, message.out_); }
  // A number without its field: in a packed list, or before a message.
  void Raw(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  const std::string& bytes() const { return out_; }
  std::string& bytes() { return out_; }

 private:
  std::string out_;
};

}  // namespace daydream
