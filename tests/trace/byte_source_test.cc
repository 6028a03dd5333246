#include "trace/bytes/source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/trace/packed.h"

namespace daydream {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 40;

std::string LongText() {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i * 7919 % 100003) + ",";
  return text;
}

class ByteSourceTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, std::string_view bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("daydream_byte_source_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

 private:
  std::filesystem::path folder_;
};

// Everything that `source` hands out, and how it ended.
std::string TextOf(ByteSource& source, absl::Status* end = nullptr) {
  std::string text;
  for (;;) {
    auto chunk = source.Next();
    if (end != nullptr) *end = chunk.status();
    if (!chunk.ok() || chunk->empty()) return text;
    text += *chunk;
  }
}

std::string CodeOf(const absl::Status& status) { return DiagnosticOf(status).code; }

TEST_F(ByteSourceTest, PlainGzipAndZstdGiveTheSameText) {
  const std::string text = LongText();
  for (const std::string& bytes : {text, Gzip(text), Zstd(text)}) {
    auto source = OpenFile(Write("trace", bytes), kNoLimit);
    ASSERT_TRUE(source.ok());
    EXPECT_EQ((*source)->total(), static_cast<int64_t>(bytes.size()));
    EXPECT_TRUE(TextOf(**source) == text);
    EXPECT_EQ((*source)->consumed(), static_cast<int64_t>(bytes.size()));
    EXPECT_TRUE(TextOf(*OpenBytes(bytes, "trace", kNoLimit)) == text);
  }
}

TEST_F(ByteSourceTest, MembersAndFramesInARowAreOneStream) {
  EXPECT_EQ(TextOf(*OpenBytes(Gzip("abc") + Gzip("def"), "t", kNoLimit)), "abcdef");
  EXPECT_EQ(TextOf(*OpenBytes(Zstd("abc") + Zstd("def"), "t", kNoLimit)), "abcdef");
  const std::string padded = Gzip("abc") + std::string(512, '\0');
  EXPECT_EQ(TextOf(*OpenBytes(padded, "t", kNoLimit)), "abc");
}

TEST_F(ByteSourceTest, PeekShowsTheStartWithoutTakingIt) {
  const std::string text = LongText();
  for (const std::string& bytes : {text, Gzip(text), Zstd(text)}) {
    auto source = OpenBytes(bytes, "trace", kNoLimit);
    auto head = source->Peek();
    ASSERT_TRUE(head.ok());
    EXPECT_GE(head->size(), 4096u);
    EXPECT_EQ(head->substr(0, 100), text.substr(0, 100));
    EXPECT_TRUE(TextOf(*source) == text);
  }
}

TEST_F(ByteSourceTest, APipeIsReadLikeAFile) {
  const std::string text = LongText();
  for (const std::string& bytes : {text, Gzip(text)}) {
    const std::string path = Path("pipe");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    std::thread writer([&] { std::ofstream(path, std::ios::binary) << bytes; });
    auto source = OpenFile(path, kNoLimit);
    ASSERT_TRUE(source.ok());
    EXPECT_EQ((*source)->total(), -1);
    EXPECT_TRUE(TextOf(**source) == text);
    writer.join();
    std::filesystem::remove(path);
  }
}

TEST_F(ByteSourceTest, SaysWhatIsWrongWithAPath) {
  EXPECT_EQ(CodeOf(OpenFile(Path("missing"), kNoLimit).status()), "E0201");
  Write("rank0.ddtrace", "x");
  Write("rank1.ddtrace", "x");
  const auto folder = OpenFile(Path("."), kNoLimit).status();
  EXPECT_EQ(CodeOf(folder), "E0202");
  EXPECT_EQ(DiagnosticOf(folder).why,
            "one file is one process: it holds rank0.ddtrace, rank1.ddtrace");
  EXPECT_EQ(CodeOf(OpenFile(Write("empty", ""), kNoLimit).status()), "E0208");
  if (geteuid() != 0) {  // root may read everything
    const std::string path = Write("secret", "x");
    chmod(path.c_str(), 0);
    EXPECT_EQ(CodeOf(OpenFile(path, kNoLimit).status()), "E0209");
  }
}

TEST_F(ByteSourceTest, TruncationIsReportedBehindTheIntactBytes) {
  const std::string text = LongText();
  for (const std::string& packed : {Gzip(text), Zstd(text)}) {
    auto source = OpenBytes(std::string_view(packed).substr(0, packed.size() / 2), "t", kNoLimit);
    absl::Status end;
    const std::string read = TextOf(*source, &end);
    EXPECT_EQ(CodeOf(end), "E0205");
    EXPECT_TRUE(absl::IsDataLoss(end));
    EXPECT_GT(read.size(), text.size() / 8);
    EXPECT_TRUE(read == text.substr(0, read.size()));
  }
}

TEST_F(ByteSourceTest, DamageIsReported) {
  std::string gzip = Gzip(LongText());
  gzip[gzip.size() - 6] ^= 1;  // the checksum
  absl::Status end;
  TextOf(*OpenBytes(gzip, "t", kNoLimit), &end);
  EXPECT_EQ(CodeOf(end), "E0206");
  TextOf(*OpenBytes("\x1f\x8bnot gzip at all", "t", kNoLimit), &end);
  EXPECT_EQ(CodeOf(end), "E0206");
}

TEST_F(ByteSourceTest, StopsAtTheLimit) {
  absl::Status end;
  TextOf(*OpenBytes(Gzip(std::string(1 << 20, 'x')), "t", 1 << 19), &end);
  EXPECT_EQ(CodeOf(end), "E0207");
  EXPECT_TRUE(absl::IsResourceExhausted(end));
}

TEST_F(ByteSourceTest, ABombIsRefusedLongBeforeItIsUnpacked) {
  const std::string bomb = Gzip(std::string(1 << 20, ' '), 1 << 10);  // one gigabyte
  auto source = OpenBytes(bomb, "t", kNoLimit);
  absl::Status end;
  size_t bytes = 0;
  for (;;) {
    auto chunk = source->Next();
    end = chunk.status();
    if (!chunk.ok() || chunk->empty()) break;
    bytes += chunk->size();
  }
  EXPECT_EQ(CodeOf(end), "E0207");
  EXPECT_LT(bytes, size_t{80} << 20);
}

TEST_F(ByteSourceTest, AFileThatShrinksWhileItIsReadIsAnError) {
  const std::string text = LongText();
  for (const std::string& bytes : {text, Gzip(text)}) {
    const std::string path = Write("shrinks", bytes);
    auto source = OpenFile(path, kNoLimit);
    ASSERT_TRUE(source.ok());
    ASSERT_TRUE((*source)->Next().ok());
    std::filesystem::resize_file(path, 5000);
    absl::Status end;
    TextOf(**source, &end);
    EXPECT_EQ(DiagnosticOf(end).code, "E0213") << end;
  }
}

}  // namespace
}  // namespace daydream
