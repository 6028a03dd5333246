#include "tracer/cupti_api.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

namespace daydream::tracer {
namespace {

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// "/usr/lib/libcudart.so.12.4" after "libcudart.so." -> 12; 0: there is no number.
int NumberAfter(std::string_view path, std::string_view prefix) {
  const std::string name = BaseName(path);
  int number = 0;
  if (name.starts_with(prefix)) {
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  }
  return number;
}

std::string RealPath(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  std::string text = real == nullptr ? path : real;
  free(real);
  return text;
}

// The newest CUDA that the driver can work with, told by the name of its file without calling it:
// libcuda.so.570.86.10. CUDA 13 needs 580 (release notes of the CUDA Toolkit, "CUDA Driver").
int VersionOfDriver() {
  constexpr int kFirstDriver = 400;  // smaller numbers are no version of the driver (WSL, tests)
  const int driver = NumberAfter(RealPath(LoadedLibrary("libcuda.so")), "libcuda.so.");
  return driver >= kFirstDriver && driver < 580 ? 12 : 13;
}

// "libcupti.so.12": what the library calls itself, whatever its file is called. "" if it does not.
std::string SonameOf(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  const char* texts = nullptr;
  size_t at = 0;
  bool has = false;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) texts = std::bit_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) {
      at = entry->d_un.d_val;
      has = true;
    }
  }
  return has && texts != nullptr ? texts + at : "";
}

// Folders in which the wheels of the packages that are loaded keep CUPTI: JAX has no CUDA runtime
// library that would tell. SITE/nvidia/cuda_cupti/lib of CUDA 12, SITE/nvidia/cu13/lib of 13.
std::vector<std::string> FoldersOfPackages() {
  std::vector<std::string> folders;
  const auto add = [](dl_phdr_info* info, size_t, void* data) {
    auto& all = *static_cast<std::vector<std::string>*>(data);
    const std::string_view path = info->dlpi_name;
    for (const std::string_view site : {"/site-packages/", "/dist-packages/"}) {
      const size_t at = path.find(site);
      if (at == path.npos) continue;
      const std::string folder(path.substr(0, at + site.size()));
      for (const char* inside : {"nvidia/cuda_cupti/lib/", "nvidia/cu13/lib/"}) {
        const std::string one = folder + inside;
        if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
      }
    }
    return 0;
  };
  dl_iterate_phdr(add, &folders);
  return folders;
}

// Versions of the soname are those of the CUDA Toolkit. The one that fits best first.
std::vector<std::string> Names(int version) {
  std::vector<std::string> names = {"libcupti.so.13", "libcupti.so.12"};
  if (version == 12) std::swap(names[0], names[1]);
  return names;
}

void* OpenFirst(const std::string& folder, const std::vector<std::string>& names, int flags,
                std::string& why) {
  for (const std::string& name : names) {
    if (void* library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL | flags)) {
      return library;
    }
    const char* error = dlerror();  // none when it is just not loaded
    if (why.empty() && error != nullptr) why = error;
  }
  return nullptr;
}

void* Open(const std::string& given, std::string& why) {
  if (!given.empty()) return OpenFirst("", {given}, 0, why);
  const std::string runtime = LoadedLibrary("libcudart.so");
  const int of_runtime = NumberAfter(runtime, "libcudart.so.");
  const std::vector<std::string> names = Names(of_runtime != 0 ? of_runtime : VersionOfDriver());
  std::string not_loaded;
  if (void* library = OpenFirst("", names, RTLD_NOLOAD, not_loaded)) return library;
  // The CUPTI that belongs to the program's CUDA runtime: beside it, and where PyTorch's wheels put
  // it (nvidia/cuda_runtime/lib and nvidia/cuda_cupti/lib).
  std::vector<std::string> folders;
  if (!runtime.empty()) {
    const std::string folder = runtime.substr(0, runtime.rfind('/') + 1);
    folders = {folder, folder + "../../cuda_cupti/lib/", folder + "../extras/CUPTI/lib64/"};
  }
  for (std::string& folder : FoldersOfPackages()) folders.push_back(std::move(folder));
  // Then the one of the system.
  folders.insert(folders.end(),
                 {"", "/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/lib64/"});
  for (const std::string& folder : folders) {
    std::string not_there;
    if (void* library = OpenFirst(folder, names, 0, folder.empty() ? why : not_there)) {
      return library;
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
  if (const std::string name = SonameOf(library);
      name.starts_with("libcupti.so.") && NumberAfter(name, "libcupti.so.") < 12) {
    return name + " is of CUDA 11 or older; CUDA 12 is needed";
  }
#define DAYDREAM_CUPTI_LOOK_UP(name, needed)                                      \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, "cupti" #name)); \
  if (api.name == nullptr && needed) return "it has no function cupti" #name;
  DAYDREAM_CUPTI_FUNCTIONS(DAYDREAM_CUPTI_LOOK_UP)
#undef DAYDREAM_CUPTI_LOOK_UP
  // Then at least the oldest of its soname: 13.5 does not even tell its version without a driver.
  if (api.GetVersion(&api.version) != CUPTI_SUCCESS) {
    api.version =
        NumberAfter(SonameOf(library), "libcupti.so.") >= 13 ? kCupti130Update1 : kCupti121;
  }
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(api.GetVersion), &info) != 0 && info.dli_fname != nullptr) {
    api.path = RealPath(info.dli_fname);
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
