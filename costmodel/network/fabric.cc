#include "costmodel/network/fabric.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/check.h"
#include "costmodel/network/fabric_text.h"
#include "costmodel/network/fabric_texts.h"

namespace daydream {
namespace {

std::string PlainFabricName(std::string_view name) {
  std::string plain;
  for (unsigned char c : name) {
    if (std::isalnum(c) != 0) plain += static_cast<char>(std::tolower(c));
  }
  return plain;
}

// Those with one level first: others may use it.
std::vector<Fabric> ParseFabrics() {
  std::vector<Fabric> fabrics;
  for (const FabricText& file : FabricTexts()) {
    // The texts are part of the program; a test parses each of them.
    auto fabric = FabricOfText(file.text, file.file);
    DD_CHECK(fabric.ok());
    fabrics.push_back(*std::move(fabric));
  }
  std::sort(fabrics.begin(), fabrics.end(),
            [](const Fabric& a, const Fabric& b) { return a.name < b.name; });
  return fabrics;
}

}  // namespace

int Fabric::NodeSize() const { return levels.empty() || levels[0].size < 1 ? 1 : levels[0].size; }

std::span<const Fabric> Fabrics() {
  static const std::vector<Fabric> fabrics = ParseFabrics();
  return fabrics;
}

const Fabric* FindFabric(std::string_view name) {
  const std::string wanted = PlainFabricName(name);
  for (const Fabric& fabric : Fabrics()) {
    if (PlainFabricName(fabric.name) == wanted) return &fabric;
    for (const std::string& alias : fabric.aliases) {
      if (PlainFabricName(alias) == wanted) return &fabric;
    }
  }
  return nullptr;
}

std::optional<Fabric> FabricAsked(std::string_view name) {
  const Fabric* known = FindFabric(name);
  if (known == nullptr) return std::nullopt;
  Fabric fabric = *known;
  if (PlainFabricName(name) != PlainFabricName(fabric.name)) fabric.asked = name;
  return fabric;
}

std::string Fabric::Title() const {
  return asked.empty() ? name : fmt::format("{} ({})", asked, name);
}

}  // namespace daydream
