/* Faults for tests: the n-th call that changes a file kills the process, or finds the disk full.

   Loaded before the C library (LD_PRELOAD), so that it sees what Python, libsndfile, HDF5 and Rust write.
   tyto_arm(mode, n) begins to count; what is no regular file (pipes, terminals) does not count.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, COUNT, KILL, TEAR, FULL };
static volatile int mode = OFF;
static volatile long at = 0, count = 0, writes = 0;

void tyto_arm(int new_mode, long new_at) { at = new_at; count = writes = 0; mode = new_mode; }
long tyto_count(void) { return count; }
long tyto_writes(void) { return writes; }

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

static int is_file(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

/* One more call. 0: go on; 1: this is the n-th with the disk full; 2: it was full before. */
static int step(void) {
    if (mode == OFF) return 0;
    long now = __sync_add_and_fetch(&count, 1);
    if (mode == KILL && now == at) die();
    if (mode == FULL && now >= at) return now == at ? 1 : 2;
    return 0;
}

static int no_space(void) { errno = ENOSPC; return -1; }

static int ours(const char *path) {
    if (mode == OFF || !strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5)) return 0;
    return strncmp(path, "/dev/", 5) || !strncmp(path, "/dev/shm/", 9);
}

static int makes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }

/* A full disk gives no new file; one that is there can be opened, also to be cut. */
static int open_step(int folder, const char *path, int flags) {
    if (!ours(path) || !makes(flags)) return 0;
    int full = step();
    int is_new = (flags & O_TMPFILE) == O_TMPFILE || (flags & O_CREAT && faccessat(folder, path, F_OK, 0) != 0);
    return full && is_new;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; va_start(rest, flags); mode_t bits = va_arg(rest, mode_t); va_end(rest); \
        return open_step(AT_FDCWD, path, flags) ? no_space() : real(path, flags, bits); \
    }
#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; va_start(rest, flags); mode_t bits = va_arg(rest, mode_t); va_end(rest); \
        return open_step(folder, path, flags) ? no_space() : real(folder, path, flags, bits); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* TEAR: the n-th write is cut in its middle by death. FULL: it is cut short, later ones write nothing. */
#define WRITE(name, ARGS, CALL, HALF, fd, size) \
    ssize_t name ARGS { \
        REAL(name); \
        if (mode == OFF || !is_file(fd)) return real CALL; \
        int full = step(); \
        long which = __sync_add_and_fetch(&writes, 1); \
        if (mode == TEAR && which == at) { if ((size) > 1) (void)!real HALF; die(); } \
        if (full == 1 && (size) > 1) return real HALF; \
        return full ? no_space() : real CALL; \
    }
WRITE(write, (int fd, const void *data, size_t n), (fd, data, n), (fd, data, n / 2), fd, n)
WRITE(pwrite, (int fd, const void *data, size_t n, off_t to), (fd, data, n, to), (fd, data, n / 2, to), fd, n)
WRITE(pwrite64, (int fd, const void *data, size_t n, off64_t to), (fd, data, n, to), (fd, data, n / 2, to), fd, n)
WRITE(writev, (int fd, const struct iovec *data, int n), (fd, data, n), (fd, data, n / 2), fd, n)
WRITE(copy_file_range, (int from, off64_t *a, int fd, off64_t *b, size_t n, unsigned flags),
      (from, a, fd, b, n, flags), (from, a, fd, b, n / 2, flags), fd, n)
WRITE(sendfile64, (int fd, int from, off64_t *a, size_t n), (fd, from, a, n), (fd, from, a, n / 2), fd, n)

/* A full disk is noticed at the latest when what was written shall reach it. */
#define SYNC(name) \
    int name(int fd) { REAL(name); return mode != OFF && is_file(fd) && step() == 1 ? no_space() : real(fd); }
SYNC(fsync)
SYNC(fdatasync)

#define GROWS(name, ARGS, CALL, path) \
    int name ARGS { REAL(name); return ours(path) && step() ? no_space() : real CALL; }
GROWS(mkdir, (const char *path, mode_t bits), (path, bits), path)
GROWS(mkdirat, (int folder, const char *path, mode_t bits), (folder, path, bits), path)
GROWS(link, (const char *path, const char *to), (path, to), to)
GROWS(linkat, (int a, const char *path, int b, const char *to, int flags), (a, path, b, to, flags), to)
GROWS(symlink, (const char *path, const char *to), (path, to), to)

/* A folder may have to grow for a new name, but rarely twice. */
#define MOVES(name, ARGS, CALL, path) \
    int name ARGS { REAL(name); return ours(path) && step() == 1 ? no_space() : real CALL; }
MOVES(rename, (const char *path, const char *to), (path, to), to)
MOVES(renameat, (int a, const char *path, int b, const char *to), (a, path, b, to), to)
MOVES(renameat2, (int a, const char *path, int b, const char *to, unsigned flags), (a, path, b, to, flags), to)

/* These need no space, and are counted so that a process can be killed before them. */
#define COUNTS(name, ARGS, CALL, is_ours) \
    int name ARGS { REAL(name); if (is_ours) (void)step(); return real CALL; }
COUNTS(unlink, (const char *path), (path), ours(path))
COUNTS(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), ours(path))
COUNTS(rmdir, (const char *path), (path), ours(path))
COUNTS(chmod, (const char *path, mode_t bits), (path, bits), ours(path))
COUNTS(fchmod, (int fd, mode_t bits), (fd, bits), mode != OFF && is_file(fd))
COUNTS(fchmodat, (int folder, const char *path, mode_t bits, int flags), (folder, path, bits, flags), ours(path))
COUNTS(truncate, (const char *path, off_t n), (path, n), ours(path))
COUNTS(ftruncate, (int fd, off_t n), (fd, n), mode != OFF && is_file(fd))
COUNTS(ftruncate64, (int fd, off64_t n), (fd, n), mode != OFF && is_file(fd))
