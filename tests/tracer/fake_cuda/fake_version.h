// Which CUPTI a library is a fake of. There is one library for each version in which something
// changed that the recorder has to know; all are linked from the same objects. Of 13.1 there are
// only the sizes, for corpus_test.
//
// Sizes and versions are those of the real libraries (12.1.105, 12.4.127, 12.6.80, 12.8.90,
// 13.0.85, 13.1.115), 13.4's of its headers. Fields keep their places; new ones come at the end, so
// a record of an older version is the newest one cut off.
#pragma once

#include <cstddef>
#include <cstdint>

namespace daydream {

struct FakeCuptiVersion {
  uint32_t cuda = 0;   // 1201
  uint32_t cupti = 0;  // what cuptiGetVersion says
  size_t kernel = 0, copy = 0, set = 0, sync = 0, event = 0, graph = 0, overhead = 0, device = 0,
         context = 0;  // sizes of records
};
inline constexpr FakeCuptiVersion kFakeCuptiVersions[] = {
    {1201, 18, 208, 88, 88, 40, 24, 48, 40, 176, 16},
    {1204, 22, 208, 88, 88, 40, 24, 56, 56, 184, 24},
    {1206, 24, 208, 88, 88, 40, 24, 56, 56, 184, 32},
    {1208, 26, 208, 96, 88, 56, 56, 56, 56, 184, 32},
    {1300, 130001, 216, 96, 88, 56, 56, 56, 56, 184, 32},
    {1301, 130100, 224, 96, 88, 56, 56, 56, 56, 184, 40},
    {1304, 130400, 248, 112, 104, 56, 56, 56, 56, 192, 40},
};

// The one of this library (fake_version.cc).
const FakeCuptiVersion& TheFakeCupti();

}  // namespace daydream
