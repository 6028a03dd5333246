#include "transforms/core/strict_yaml.h"

#include <algorithm>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace daydream {
namespace {

constexpr size_t kDeepestNode = 32;
constexpr size_t kMostValues = 10000;

Place PlaceOf(const YAML::Mark& mark) {
  return {static_cast<size_t>(std::max(mark.line, 0)) + 1,
          static_cast<size_t>(std::max(mark.column, 0)) + 1};
}

// What leaves yaml-cpp's parser when the handler below refuses something. Caught in this file.
struct Refused {
  absl::Status status;
};

// Builds the tree from yaml-cpp's events. Refuses before anything grows.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const SourceText& source) : source_(source) {}

  YamlNode Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Add({.place = PlaceOf(mark)}); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    Refuse("E0403", PlaceOf(mark), "anchors are not accepted", "write the value again");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse("E0403", PlaceOf(mark), "aliases are not accepted", "write the value again");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckMarks(mark, tag, anchor);
    // Escapes such as "\e" make what the bytes of the file may not be.
    if (FindNonText(value) != std::string_view::npos) {
      Refuse("E0403", PlaceOf(mark), "control characters are not accepted",
             "leave the escape sequences away; texts are shown in terminals");
    }
    // yaml-cpp tags what is not plain text with "!".
    Add({.kind = YamlNode::Kind::kText,
         .place = PlaceOf(mark),
         .text = value,
         .quoted = tag == "!"});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckMarks(mark, tag, anchor);
    Open({.kind = YamlNode::Kind::kList, .place = PlaceOf(mark)});
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckMarks(mark, tag, anchor);
    Open({.kind = YamlNode::Kind::kMap, .place = PlaceOf(mark)});
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  [[noreturn]] void Refuse(std::string_view code, Place place, std::string what, std::string fix) {
    throw Refused{
        source_.Error(absl::StatusCode::kInvalidArgument, place, 1,
                      {.code = std::string(code), .what = std::move(what), .fix = std::move(fix)})};
  }

  void CheckMarks(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) OnAnchor(mark, "");
    if (tag.empty() || tag == "?" || tag == "!") return;
    Refuse("E0403", PlaceOf(mark), "tags are not accepted",
           "leave the word behind ! away; every value is read as text");
  }

  YamlNode& Add(YamlNode node) {
    if (++values_ > kMostValues) {
      Refuse("E0403", node.place, fmt::format("more than {} values", kMostValues),
             "split the file");
    }
    if (open_.empty()) return root_ = std::move(node);
    YamlNode& parent = *open_.back();
    if (parent.is_list()) return parent.items.emplace_back(std::move(node));
    if (parent.keys.size() == parent.items.size()) return AddKey(parent, node);
    return parent.items.emplace_back(std::move(node));
  }

  // Keys arrive as values do. The node returned is only for containers, which are no keys.
  YamlNode& AddKey(YamlNode& parent, const YamlNode& node) {
    if (!node.is_text()) {
      Refuse("E0403", node.place, "a key has to be a word", "write it as KEY: VALUE");
    }
    for (const YamlNode::Key& key : parent.keys) {
      if (key.text != node.text) continue;
      Refuse("E0404", node.place, fmt::format("'{}' is given twice", node.text),
             fmt::format("the first is in line {}; keep one of them", key.place.line));
    }
    parent.keys.push_back({node.text, node.place});
    return parent;
  }

  void Open(YamlNode node) {
    if (open_.size() >= kDeepestNode) {
      Refuse("E0403", node.place, fmt::format("nested more than {} deep", kDeepestNode),
             "daydream opt new NAME prints a file to start from");
    }
    open_.push_back(&Add(std::move(node)));
  }

  const SourceText& source_;
  YamlNode root_;
  std::vector<YamlNode*> open_;  // from the root down; parents do not grow while a child is open
  size_t values_ = 0;
};

absl::Status NoYaml(const SourceText& source, Place place, std::string_view why) {
  return source.Error(absl::StatusCode::kInvalidArgument, place, 1,
                      {.code = "E0402",
                       .what = "this is not YAML",
                       .fix = "quote texts that hold : # { } [ ] , & * ! | > ' \" % @ `"},
                      why);
}

absl::StatusOr<YamlNode> Parse(const SourceText& source) {
  // yaml-cpp reports what it cannot read with exceptions; they end here.
  try {
    std::istringstream in{std::string(source.text())};
    YAML::Parser parser(in);
    TreeBuilder builder(source);
    if (!parser.HandleNextDocument(builder)) {
      return NoYaml(source, {}, "the file holds nothing");
    }
    YamlNode root = builder.Take();
    TreeBuilder more(source);
    if (parser.HandleNextDocument(more)) {
      return source.Error(absl::StatusCode::kInvalidArgument, more.Take().place, 1,
                          {.code = "E0403",
                           .what = "a second document in the file",
                           .fix = "one file holds one optimization"});
    }
    return root;
  } catch (const Refused& refused) {
    return refused.status;
  } catch (const YAML::Exception& e) {
    return NoYaml(source, PlaceOf(e.mark), e.msg);
  } catch (const std::exception& e) {
    return NoYaml(source, {}, e.what());
  }
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  for (size_t i = 0; i < keys.size() && i < items.size(); ++i) {
    if (keys[i].text == key) return &items[i];
  }
  return nullptr;
}

absl::StatusOr<YamlNode> ReadStrictYaml(const SourceText& source) {
  std::string_view text = source.text();
  if (text.size() > kMostYamlBytes) {
    return source.Error(absl::StatusCode::kInvalidArgument, {}, 1,
                        {.code = "E0401",
                         .what = fmt::format("an optimization file has at most {} bytes, this one "
                                             "more",
                                             kMostYamlBytes),
                         .fix = "split the file"});
  }
  if (size_t at = FindNonText(text); at != std::string_view::npos) {
    std::string_view before = text.substr(0, at);
    Place place{static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
                at - (before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1) + 1};
    return source.Error(absl::StatusCode::kInvalidArgument, place, 1,
                        {.code = "E0401",
                         .what = "this is not a text file",
                         .why = fmt::format("byte {:#04x} is no text in UTF-8",
                                            static_cast<unsigned char>(text[at])),
                         .fix = "save it as UTF-8"});
  }
  return Parse(source);
}

Place PlaceInside(const SourceText& source, const YamlNode& scalar, size_t offset) {
  Place place = scalar.place;
  std::string_view there = source.From(place);
  if (scalar.quoted && (there.starts_with('\'') || there.starts_with('"'))) {
    there.remove_prefix(1);
    ++place.column;
  }
  if (!there.starts_with(scalar.text)) return scalar.place;
  place.column += std::min(offset, scalar.text.size());
  return place;
}

}  // namespace daydream
