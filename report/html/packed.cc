#include "report/html/packed.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"

namespace daydream {

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::string Gzip(std::string_view bytes) {
  constexpr size_t kPiece = size_t{1} << 20;
  auto stream = std::make_unique<isal_zstream>();
  std::vector<uint8_t> work(ISAL_DEF_LVL3_DEFAULT), piece(kPiece);
  isal_deflate_init(stream.get());
  stream->gzip_flag = IGZIP_GZIP;
  stream->level = 3;
  stream->level_buf = work.data();
  stream->level_buf_size = static_cast<uint32_t>(work.size());
  std::string out;
  do {
    if (stream->avail_in == 0) {
      const size_t size = std::min(bytes.size(), kPiece);
      // The library never writes through it.
      stream->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
      stream->avail_in = static_cast<uint32_t>(size);
      bytes.remove_prefix(size);
      stream->end_of_stream = bytes.empty();
    }
    stream->next_out = piece.data();
    stream->avail_out = kPiece;
    DD_CHECK(isal_deflate(stream.get()) == COMP_OK);
    out.append(piece.begin(), piece.end() - stream->avail_out);
  } while (stream->internal_state.state != ZSTATE_END);
  return out;
}

}  // namespace daydream
