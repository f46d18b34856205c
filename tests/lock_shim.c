/* A file system whose locks fail: every attempt to lock a byte range is refused with ENOLCK, or granted to everybody.
   Built by a test and put before the C library with LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int answer(const char *real, int fd, int command, void *argument) {
    const char *kind = getenv("LOCKS");
    if (kind && (command == F_SETLK || command == F_SETLKW)) {
        if (strcmp(kind, "granted") == 0) return 0;
        errno = ENOLCK;
        return -1;
    }
    int (*next)(int, int, ...) = (int (*)(int, int, ...)) dlsym(RTLD_NEXT, real);
    return next(fd, command, argument);
}

#define WITH_LOCKS(name) \
    int name(int fd, int command, ...) { \
        va_list rest; \
        va_start(rest, command); \
        void *argument = va_arg(rest, void *); \
        va_end(rest); \
        return answer(#name, fd, command, argument); \
    }

WITH_LOCKS(fcntl)
WITH_LOCKS(fcntl64)
