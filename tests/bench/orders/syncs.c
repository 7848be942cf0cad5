/* Counts syncs: each fsync and fdatasync adds a byte to the file that VESPER_SYNCS names.
 *
 * Built with `cc -shared -fPIC`, and put before libc with LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void count(void) {
    const char *path = getenv("VESPER_SYNCS");
    if (path == NULL) return;
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || write(file, ".", 1) != 1) abort();
    close(file);
}

int fsync(int file) {
    static int (*real)(int);
    if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    count();
    return real(file);
}

int fdatasync(int file) {
    static int (*real)(int);
    if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    count();
    return real(file);
}
