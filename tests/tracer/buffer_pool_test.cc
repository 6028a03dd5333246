// Buffers that go round between CUPTI and the worker.
#include "tracer/buffer_pool.h"

#include <string.h>

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace daydream::tracer {
namespace {

constexpr size_t kBytes = 64 << 10;

TEST(BufferPool, HandsOutZeroedBuffersAndTakesThemBackInOrder) {
  BufferPool pool;
  pool.Configure(kBytes, 4 * kBytes, true);
  uint8_t* first = pool.Take();
  uint8_t* second = pool.Take();
  memset(first, 1, 1000);
  EXPECT_TRUE(pool.Fill(second, 40));
  EXPECT_TRUE(pool.Fill(first, 1000));
  EXPECT_EQ(pool.Next().buffer, second);
  const BufferPool::Full full = pool.Next();
  EXPECT_EQ(full.buffer, first);
  EXPECT_EQ(full.valid, 1000u);
  EXPECT_EQ(pool.Next().buffer, nullptr);
  pool.Recycle(full);
  EXPECT_EQ(pool.Take(), first);
  EXPECT_EQ(std::count(first, first + kBytes, 0), static_cast<ptrdiff_t>(kBytes));
}

TEST(BufferPool, AnEmptyBufferIsNotQueued) {
  BufferPool pool;
  pool.Configure(kBytes, 4 * kBytes, true);
  uint8_t* buffer = pool.Take();
  EXPECT_FALSE(pool.Fill(buffer, 0));
  EXPECT_EQ(pool.Take(), buffer);
}

TEST(BufferPool, RefusesWhenAllAreFull) {
  BufferPool pool;
  pool.Configure(kBytes, 4 * kBytes, true);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(pool.Fill(pool.Take(), 40));
  EXPECT_EQ(pool.Take(), nullptr);
  EXPECT_EQ(pool.TakeRefused(), 1u);
  EXPECT_EQ(pool.TakeRefused(), 0u);
  pool.Recycle(pool.Next());
  EXPECT_NE(pool.Take(), nullptr);
}

TEST(BufferPool, OverwritesTheOldestWhenItMayNotRefuse) {
  BufferPool pool;
  pool.Configure(kBytes, 2 * kBytes, false);
  uint8_t* oldest = pool.Take();
  uint8_t* newer = pool.Take();
  memset(oldest, 1, 400);
  pool.Fill(oldest, 400);
  pool.Fill(newer, 40);
  EXPECT_EQ(pool.Take(), oldest);
  EXPECT_EQ(std::count(oldest, oldest + kBytes, 0), static_cast<ptrdiff_t>(kBytes));
  EXPECT_EQ(pool.TakeOverwritten(), 10u) << "400 bytes are ten records at most";
  EXPECT_EQ(pool.Next().buffer, newer);
  // Both are in use by CUPTI: it has to get another.
  EXPECT_NE(pool.Take(), nullptr);
}

TEST(BufferPool, QueuesNothingAfterTheEnd) {
  BufferPool pool;
  pool.Configure(kBytes, 2 * kBytes, true);
  uint8_t* buffer = pool.Take();
  pool.Close();
  EXPECT_FALSE(pool.Fill(buffer, 40));
  EXPECT_EQ(pool.Next().buffer, nullptr);
}

}  // namespace
}  // namespace daydream::tracer
