/* A disk that forgets, for tests: after every sync of a file below WATCHED its content is kept in SYNCED, under the
 * same name. What is in SYNCED when a process dies is what a loss of power would have left of the file. With LIES set,
 * nothing is kept: a disk that says `synced` and has done nothing.
 *
 * Built with `cc -shared -fPIC`, and put before libc with LD_PRELOAD. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder itself was synced: files that were deleted are gone for good. */
static void forget_deleted(const char *watched, const char *synced) {
    DIR *kept = opendir(synced);
    if (kept == NULL) abort();
    for (struct dirent *each; (each = readdir(kept)) != NULL;) {
        char here[PATH_MAX + 300], there[PATH_MAX + 300];
        snprintf(here, sizeof here, "%s/%s", watched, each->d_name);
        snprintf(there, sizeof there, "%s/%s", synced, each->d_name);
        if (each->d_name[0] != '.' && strstr(each->d_name, ".new") == NULL && access(here, F_OK) != 0) unlink(there);
    }
    closedir(kept);
}

static void keep(int file) {
    const char *watched = getenv("VESPER_WATCHED"), *synced = getenv("VESPER_SYNCED");
    if (watched == NULL || synced == NULL || getenv("VESPER_SYNC_LIES") != NULL) return;
    char link[64], path[PATH_MAX], name[PATH_MAX + 64], scratch[PATH_MAX + 64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    if (strcmp(path, watched) == 0) {
        forget_deleted(watched, synced);
        return;
    }
    size_t below = strlen(watched);
    if (strncmp(path, watched, below) != 0 || path[below] != '/' || strchr(path + below + 1, '/') != NULL) return;
    snprintf(name, sizeof name, "%s/%s", synced, path + below + 1);
    snprintf(scratch, sizeof scratch, "%s.%d.new", name, getpid());
    int from = open(path, O_RDONLY | O_CLOEXEC), to = open(scratch, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (from < 0 || to < 0) abort();
    static __thread char piece[1 << 16];
    ssize_t got;
    while ((got = read(from, piece, sizeof piece)) > 0)
        if (write(to, piece, (size_t)got) != got) abort();
    close(from);
    close(to);
    if (rename(scratch, name) != 0) abort();
}

int fsync(int file) {
    static int (*real)(int);
    if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    int result = real(file);
    if (result == 0) keep(file);
    return result;
}

int fdatasync(int file) {
    static int (*real)(int);
    if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    int result = real(file);
    if (result == 0) keep(file);
    return result;
}
