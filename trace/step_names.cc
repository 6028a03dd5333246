#include "trace/step_names.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"

namespace daydream {

bool IsStepName(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && absl::ascii_isdigit(static_cast<unsigned char>(name[end - 1]))) --end;
  if (end == name.size() || end == 0) return false;
  std::string word = absl::AsciiStrToLower(std::string(name.substr(0, end)));
  while (!word.empty() && std::string_view(" _#:=-").find(word.back()) != std::string_view::npos) {
    word.pop_back();
  }
  for (std::string_view known :
       {"iteration", "iter", "step", "train step", "train_step", "training step", "training_step",
        "trainstep", "profilerstep", "global_step", "global step", "batch", "train_iter"}) {
    if (word == known) return true;
  }
  return false;
}

}  // namespace daydream
