/* To link against only: what the recorder needs of libpthread, as glibc 2.28 had it. */
void pthread_create(void) {}
void pthread_sigmask(void) {}
void pthread_key_create(void) {}
void __pthread_key_create(void) {}
void pthread_mutex_timedlock(void) {}
void pthread_mutex_trylock(void) {}
void pthread_once(void) {}
void pthread_getspecific(void) {}
void pthread_setspecific(void) {}
