/* To link against only: what the recorder needs of libdl, as glibc 2.28 had it. */
void dladdr(void) {}
void dlerror(void) {}
void dlinfo(void) {}
void dlopen(void) {}
void dlsym(void) {}
