#include "tracer/cupti_api.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include <array>
#include <string_view>
#include <vector>

namespace daydream::tracer {
namespace {

// The newest first. Versions of the soname are those of the CUDA Toolkit.
constexpr std::array kNames = {"libcupti.so.13", "libcupti.so.12"};

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Folders where the CUPTI that belongs to the program's CUDA runtime may lie: beside it, and where
// PyTorch's wheels put it (nvidia/cuda_runtime/lib and nvidia/cuda_cupti/lib).
std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  std::string runtime = LoadedLibrary("libcudart.so");
  if (!runtime.empty()) {
    std::string folder = runtime.substr(0, runtime.rfind('/'));
    folders.push_back(folder);
    folders.push_back(folder + "/../../cuda_cupti/lib");
    folders.push_back(folder + "/../extras/CUPTI/lib64");
  }
  folders.push_back("/usr/local/cuda/extras/CUPTI/lib64");
  folders.push_back("/usr/local/cuda/lib64");
  return folders;
}

void* Open(const std::string& given, std::string& why) {
  if (!given.empty()) {
    void* library = dlopen(given.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) why = dlerror();
    return library;
  }
  for (const char* name : kNames) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  for (const char* name : kNames) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    if (why.empty()) why = dlerror();
  }
  for (const std::string& folder : Folders()) {
    for (const char* name : kNames) {
      if (void* library = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) {
        return library;
      }
    }
  }
  return nullptr;
}

}  // namespace

std::string LoadedLibrary(const char* prefix) {
  struct Search {
    std::string_view prefix;
    std::string found;
  } search{prefix, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        if (!BaseName(info->dlpi_name).starts_with(s.prefix)) return 0;
        s.found = info->dlpi_name;
        return 1;
      },
      &search);
  return search.found;
}

std::string LoadCupti(const std::string& given, CuptiApi& api) {
  // A second copy of another version beside it would fight with the first.
  if (given.empty() && !LoadedLibrary("libcupti.so.11").empty()) {
    return "the program has loaded " + LoadedLibrary("libcupti.so.11") + "; CUDA 12 is needed";
  }
  std::string why;
  void* library = Open(given, why);
  if (library == nullptr) return why.empty() ? "libcupti.so is not there" : why;
#define DAYDREAM_CUPTI_LOOK_UP(name, needed)                                      \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, "cupti" #name)); \
  if (api.name == nullptr && needed) return "it has no function cupti" #name;
  DAYDREAM_CUPTI_FUNCTIONS(DAYDREAM_CUPTI_LOOK_UP)
#undef DAYDREAM_CUPTI_LOOK_UP
  if (api.GetVersion(&api.version) != CUPTI_SUCCESS) api.version = 0;
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(api.GetVersion), &info) != 0 && info.dli_fname != nullptr) {
    char* real = realpath(info.dli_fname, nullptr);
    api.path = real == nullptr ? info.dli_fname : real;
    free(real);
  }
  if (api.version != 0 && api.version < kOldestCupti) {
    return api.path + " is of CUDA 11 or older (CUPTI API version " + std::to_string(api.version) +
           "); CUDA 12 is needed";
  }
  return "";
}

std::string ResultText(const CuptiApi& api, CUptiResult result) {
  const char* name = nullptr;
  std::string text;
  if (api.GetResultString != nullptr && api.GetResultString(result, &name) == CUPTI_SUCCESS &&
      name != nullptr) {
    text = name;
  } else {
    text = "CUPTI error";
  }
  return text + " (" + std::to_string(result) + ")";
}

}  // namespace daydream::tracer
