// Helpers that read the tree of an option file: every mistake becomes an error at its place.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "transforms/core/strict_yaml.h"
#include "transforms/scenario/option_steps.h"

namespace daydream {

class OptionWalk {
 public:
  explicit OptionWalk(const SourceText& source) : source_(source) {}

  // What expressions and selectors may name.
  std::map<std::string, Unit, std::less<>> params;
  std::map<std::string, Selector, std::less<>> defined;

  absl::Status Error(std::string_view code, Place place, size_t length, std::string what,
                     std::string_view hint = {}, std::string_view fix = {}) const;
  // E0406 at `node`: "FUSE has to be a map".
  absl::Status WrongForm(const YamlNode& node, std::string what) const;

  // E0406 unless `node` is a map; E0405 for keys that are not in `known`.
  absl::Status CheckMap(const YamlNode& node, std::string_view what,
                        std::span<const std::string_view> known) const;
  // E0406 when the map has no such key.
  absl::StatusOr<const YamlNode*> Require(const YamlNode& map, std::string_view what,
                                          std::string_view key) const;
  absl::StatusOr<std::string> Text(const YamlNode& node, std::string_view what) const;
  absl::StatusOr<size_t> OneOf(const YamlNode& node, std::string_view what,
                               std::span<const std::string_view> words) const;
  absl::StatusOr<int64_t> Whole(const YamlNode& node, std::string_view what, int64_t least,
                                int64_t most) const;
  absl::StatusOr<bool> Bool(const YamlNode& node, std::string_view what) const;
  absl::StatusOr<ExpressionPtr> Expr(const YamlNode& node, std::string_view what, ExpressionUse use,
                                     Dimension wanted, bool may_be_negative = false) const;
  // A selector: a map of keys, a list (all of them), a name from define:, or text as after --opt.
  absl::StatusOr<Selector> Select(const YamlNode& node) const;

  // One item of `steps`.
  absl::StatusOr<OptionStep> Step(const YamlNode& node) const;

  // "mine.yaml:12: ..." errors of other parsers, moved to a place in this file.
  absl::Status Moved(const absl::Status& status, const YamlNode& scalar,
                     std::string_view code) const;

 private:
  // The tasks that a verb with selectors of its own works on become the selection of the step.
  absl::Status OwnSelector(std::string_view verb, const YamlNode& value, OptionStep& step) const;
  // E0424 when `expression`, the text of `node`, has the same meaningless value for any task.
  absl::Status CheckConstant(const YamlNode& node, const Expression& expression,
                             Dimension wanted) const;
  absl::StatusOr<Selector> SelectName(const YamlNode& node) const;
  absl::StatusOr<Selector> SelectKey(std::string_view key, const YamlNode& value) const;
  absl::StatusOr<Selector> SelectTerm(std::string_view key, const YamlNode& value) const;
  absl::StatusOr<std::vector<Selector>> SelectList(const YamlNode& node,
                                                   std::string_view what) const;
  const SourceText& source_;
};

// Reads the verbs of a step; option_actions.cc.
absl::StatusOr<OptionAction> ReadAction(const OptionWalk& walk, const YamlNode::Key& verb,
                                        const YamlNode& value);
// Actions on the tasks of `select`, and those that bring their own.
std::span<const std::string_view> SelectedVerbs();
std::span<const std::string_view> StandaloneVerbs();

}  // namespace daydream
