// What the static libraries of GCC take from a glibc that is newer than 2.28, for this library
// alone: the names are hidden.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>

#define HIDDEN extern "C" __attribute__((visibility("hidden")))

// glibc 2.32. 0: there may be threads, so counts of shared objects are atomic.
HIDDEN char __libc_single_threaded;
char __libc_single_threaded = 0;

// glibc 2.35. How exceptions find their tables: as the unwinder did before.
#ifdef DLFO_STRUCT_HAS_EH_DBASE
HIDDEN int _dl_find_object(void* address, struct dl_find_object* found) noexcept {
  struct Search {
    uintptr_t address;
    struct dl_find_object* found;
  } search{reinterpret_cast<uintptr_t>(address), found};
  const auto look = [](dl_phdr_info* info, size_t, void* data) {
    auto& s = *static_cast<Search*>(data);
    uintptr_t begin = 0, end = 0, frame = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      const uintptr_t at = info->dlpi_addr + part.p_vaddr;
      if (part.p_type == PT_LOAD && s.address >= at && s.address < at + part.p_memsz) {
        begin = at;
        end = at + part.p_memsz;
      }
      if (part.p_type == PT_GNU_EH_FRAME) frame = at;
    }
    if (begin == 0 || frame == 0) return 0;
    *s.found = {};
    s.found->dlfo_map_start = reinterpret_cast<void*>(begin);
    s.found->dlfo_map_end = reinterpret_cast<void*>(end);
    s.found->dlfo_eh_frame = reinterpret_cast<void*>(frame);
    return 1;
  };
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
#endif
