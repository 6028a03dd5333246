// Links between pages and to files lead somewhere.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include "tests/source_tree.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

// The name by which a heading is linked, as the common hosts make it: lower case, spaces to
// hyphens, punctuation dropped.
std::string Anchor(std::string_view heading) {
  std::string anchor;
  for (unsigned char c : heading) {
    if (isalnum(c) || c == '_' || c >= 0x80) anchor += static_cast<char>(tolower(c));
    if (c == ' ' || c == '-') anchor += '-';
  }
  return anchor;
}

std::set<std::string> AnchorsOf(const std::vector<std::string>& lines) {
  std::set<std::string> anchors;
  bool in_block = false;
  for (const std::string& line : lines) {
    if (line.starts_with("```")) in_block = !in_block;
    size_t hashes = line.find_first_not_of('#');
    if (!in_block && hashes != 0 && hashes != std::string::npos && line[hashes] == ' ') {
      anchors.insert(Anchor(std::string_view(line).substr(hashes + 1)));
    }
  }
  return anchors;
}

TEST(DocsLinks, LeadSomewhere) {
  static const RE2 link(R"re(\]\(([^)\s]+)\))re");
  std::vector<std::string> broken;
  for (const SourceFile& page : SourceFiles({".md"})) {
    const fs::path folder = (fs::path(DAYDREAM_SOURCE_DIR) / page.path).parent_path();
    bool in_block = false;
    for (size_t i = 0; i < page.lines.size(); ++i) {
      const std::string& line = page.lines[i];
      if (line.starts_with("```")) in_block = !in_block;
      if (in_block) continue;
      re2::StringPiece rest = line;
      for (std::string target; RE2::FindAndConsume(&rest, link, &target);) {
        if (target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
        size_t hash = target.find('#');
        std::string file = target.substr(0, hash);
        fs::path path = file.empty() ? fs::path(DAYDREAM_SOURCE_DIR) / page.path : folder / file;
        bool ok = fs::exists(path);
        if (ok && hash != std::string::npos && path.extension() == ".md") {
          ok = AnchorsOf(SplitLines(ReadText(path))).contains(target.substr(hash + 1));
        }
        if (!ok) broken.push_back(fmt::format("{}:{}: {}", page.path, i + 1, target));
      }
    }
  }
  EXPECT_THAT(broken, ::testing::IsEmpty());
}

// A page that no other page leads to is not found.
TEST(DocsLinks, LeadToEachPage) {
  static const RE2 link(R"re(\]\(([^)#\s]+)[^)]*\))re");
  std::set<std::string> linked;
  for (const SourceFile& page : SourceFiles({".md"})) {
    const fs::path folder = fs::path(page.path).parent_path();
    for (const std::string& line : page.lines) {
      re2::StringPiece rest = line;
      for (std::string found; RE2::FindAndConsume(&rest, link, &found);) {
        const std::string target = (folder / found).lexically_normal().generic_string();
        if (target != page.path) linked.insert(target);
        // A link to a folder leads to what it lists.
        if (target.ends_with('/')) linked.insert(target + "README.md");
      }
    }
  }
  std::vector<std::string> lost;
  for (const SourceFile& page : SourceFiles({".md"})) {
    if (page.path.starts_with("docs/") && !linked.contains(page.path)) lost.push_back(page.path);
  }
  EXPECT_THAT(lost, ::testing::IsEmpty());
}

// What the navigation of mkdocs.yml names: pages, and folders with a slash behind them.
std::vector<std::string> NavEntries() {
  const std::string text = ReadText(fs::path(DAYDREAM_SOURCE_DIR) / "mkdocs.yml");
  const size_t nav = text.find("\nnav:\n");
  std::vector<std::string> entries;
  if (nav == text.npos) return entries;
  for (const std::string& line : SplitLines(text.substr(nav + 1))) {
    const size_t blank = line.find_last_of(' ');
    const std::string entry = line.substr(blank == line.npos ? 0 : blank + 1);
    if (entry.find_first_of("./") != entry.npos) entries.push_back(entry);
  }
  return entries;
}

// Which folder's entry lists `page`: "examples/lessons/*/" lists what stands in folders of lessons.
bool ListedBy(const std::string& folder, const std::string& page) {
  const size_t star = folder.find("*/");
  if (star == folder.npos) return page.substr(0, page.rfind('/') + 1) == folder;
  const size_t slash = page.find('/', star);
  return page.starts_with(folder.substr(0, star)) && slash != page.npos &&
         page.find('/', slash + 1) == page.npos;
}

TEST(Site, ListsEachPageOnceAndNoOther) {
  std::vector<std::string> pages, wrong;
  for (const SourceFile& page : SourceFiles({".md"})) {
    if (!page.path.starts_with('.')) pages.push_back(page.path);
  }
  const std::vector<std::string> entries = NavEntries();
  for (const std::string& page : pages) {
    const auto lists = [&](const std::string& e) {
      return e == page || (e.ends_with('/') && ListedBy(e, page));
    };
    const auto times = std::count_if(entries.begin(), entries.end(), lists);
    if (times != 1) wrong.push_back(fmt::format("{}: {} times", page, times));
  }
  for (const std::string& entry : entries) {
    const auto is_it = [&](const std::string& page) {
      return entry == page || (entry.ends_with('/') && ListedBy(entry, page));
    };
    // scripts/site makes the report.
    if (entry != "examples/report.html" && std::none_of(pages.begin(), pages.end(), is_it)) {
      wrong.push_back(entry + ": no such page");
    }
  }
  EXPECT_THAT(wrong, ::testing::IsEmpty()) << "mend the nav of mkdocs.yml";
}

TEST(DocsLinks, AnchorsFollowTheirHeadings) {
  EXPECT_EQ(Anchor("What is measured, what is not"), "what-is-measured-what-is-not");
}

}  // namespace
}  // namespace daydream
