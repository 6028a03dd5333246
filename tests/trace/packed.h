// Packs bytes for tests of what unpacks them.
#pragma once

#include <string>
#include <string_view>

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include "base/check.h"

namespace daydream {

// One gzip member that holds `text` `times` times over.
inline std::string Gzip(std::string_view text, size_t times = 1) {
  isal_zstream stream;
  isal_deflate_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  std::string level_buffer(ISAL_DEF_LVL1_DEFAULT, '\0');
  stream.level = 1;
  stream.level_buf = reinterpret_cast<uint8_t*>(level_buffer.data());
  stream.level_buf_size = static_cast<uint32_t>(level_buffer.size());
  std::string packed;
  std::string buffer(1 << 16, '\0');
  for (size_t i = 0; i < times; ++i) {
    stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uint32_t>(text.size());
    stream.end_of_stream = i + 1 == times ? 1 : 0;
    do {
      stream.next_out = reinterpret_cast<uint8_t*>(buffer.data());
      stream.avail_out = static_cast<uint32_t>(buffer.size());
      DD_CHECK(isal_deflate(&stream) == COMP_OK);
      packed.append(buffer, 0, buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  return packed;
}

inline std::string Zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3);
  DD_CHECK(!ZSTD_isError(size));
  packed.resize(size);
  return packed;
}

}  // namespace daydream
