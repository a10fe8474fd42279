/* Stands between a process and the C library, and counts, records or spoils what is done to files below one folder.

   Preload it (LD_PRELOAD), set SHIM_PLAN, then call shim_arm() in the process; until then it does nothing. Processes
   that this one starts then do the same, and all count together. For 64-bit Linux.
   Paths are taken from the kernel at each call, so nothing has to be remembered about descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* What is done to a file; driver.py has the same list. */
enum { OPEN = 1, CREATE = 2, READ = 4, WRITE = 8, RESIZE = 16, SYNC = 32, RENAME = 64, UNLINK = 128, MKDIR = 256 };
enum { FAIL = 1, SHORTEN = 2, KILL = 3 };

static bool armed;
static char folder[PATH_MAX];
static int log_to = -1, kinds, action, error;
static long first, last;
static struct { long chosen, each[9]; } *counts;  /* of the chosen kinds, and of each kind */
static pthread_mutex_t recording = PTHREAD_MUTEX_INITIALIZER;

/* From the n-th call of some kinds to the m-th: fail with an error, do half of the work, or die before it is done.
   With a file to log to, every change that was made is recorded there. Lines of SHIM_PLAN: the watched folder, the file
   of the counts, the file of the log (may be empty), and the numbers. */
__attribute__((constructor)) void shim_arm(void) {
    const char *plan = getenv("SHIM_PLAN");
    if (!plan) return;
    char counts_file[PATH_MAX], log_file[PATH_MAX] = "";
    const char *log = strchr(strchr(plan, '\n') + 1, '\n') + 1;
    sscanf(plan, "%4095[^\n]\n%4095[^\n]", folder, counts_file);
    sscanf(log, "%4095[^\n]", log_file);
    if (*log == '\n') *log_file = 0;
    sscanf(strchr(log, '\n') + 1, "%d %ld %ld %d %d", &kinds, &first, &last, &action, &error);
    int file = syscall(SYS_openat, AT_FDCWD, counts_file, O_RDWR);
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (*log_file) log_to = syscall(SYS_openat, AT_FDCWD, log_file, O_WRONLY | O_APPEND | O_CLOEXEC);
    armed = true;
}

/* Stops, and tells how many calls of each kind there were. */
void shim_disarm(long *told) {
    armed = false;
    unsetenv("SHIM_PLAN");
    if (told && counts) memcpy(told, counts->each, sizeof counts->each);
}

static bool ours(const char *path) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static bool path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return ours(path);
}

static bool path_at(int at, const char *name, char *path) {
    if (!armed) return false;
    char parent[PATH_MAX] = "";
    if (name[0] != '/') {
        if (at == AT_FDCWD) {
            if (!getcwd(parent, sizeof parent)) return false;
        } else {
            path_of(at, parent);
        }
    }
    return snprintf(path, PATH_MAX, "%s%s%s", parent, parent[0] ? "/" : "", name) < PATH_MAX && ours(path);
}

/* Returns what is to happen instead of a call that is going to be made. */
static int fate(int kind) {
    __atomic_add_fetch(&counts->each[__builtin_ctz(kind)], 1, __ATOMIC_RELAXED);
    if (!(kind & kinds)) return 0;
    long n = __atomic_add_fetch(&counts->chosen, 1, __ATOMIC_RELAXED);
    if (n < first || n > last) return 0;
    if (action == KILL) {
        syscall(SYS_kill, getpid(), SIGKILL);
        for (;;) pause();
    }
    if (action == FAIL) errno = error;
    return action;
}

static void record(int kind, const char *path, const char *other, int64_t at, const void *data, uint64_t size) {
    int kept = errno;
    struct { uint32_t kind, path, other, unused; int64_t at; uint64_t size; } head = {
        kind, strlen(path), other ? strlen(other) : 0, 0, at, data ? size : 0};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)path, head.path}, {(void *)other, head.other},
                            {(void *)data, head.size}};
    /* One write: that of another process stands before or after it. */
    ssize_t all = sizeof head + head.path + head.other + head.size;
    if (syscall(SYS_writev, log_to, parts, 4) != all) _exit(99);
    errno = kept;
}

/* Makes a system call on a watched file, and records it; the order of calls in the record is that on the disk. */
#define MAKE(watched, call, ...)                                       \
    ({                                                                 \
        bool recorded = (watched) && log_to >= 0;                      \
        if (recorded) pthread_mutex_lock(&recording);                  \
        long done = (call);                                            \
        if (recorded && done >= 0) record(__VA_ARGS__);                \
        if (recorded) pthread_mutex_unlock(&recording);                \
        done;                                                          \
    })

static ssize_t do_write(int fd, const void *data, size_t size, off_t at) {
    char path[PATH_MAX];
    bool watched = armed && path_of(fd, path);
    if (watched) {
        int what = fate(WRITE);
        if (what == FAIL) return -1;
        if (what == SHORTEN && size > 1) size /= 2;
    }
    return MAKE(watched, at < 0 ? syscall(SYS_write, fd, data, size) : syscall(SYS_pwrite64, fd, data, size, at),
                WRITE, path, NULL, at < 0 ? lseek(fd, 0, SEEK_CUR) - done : at, data, done);
}

static ssize_t do_read(int fd, void *data, size_t size, off_t at) {
    char path[PATH_MAX];
    if (armed && path_of(fd, path)) {
        int what = fate(READ);
        if (what == FAIL) return -1;
        if (what == SHORTEN && size > 1) size /= 2;
    }
    return at < 0 ? syscall(SYS_read, fd, data, size) : syscall(SYS_pread64, fd, data, size, at);
}

static int do_open(int at, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    bool watched = path_at(at, name, path);
    bool changes = flags & (O_CREAT | O_TRUNC) || (flags & O_ACCMODE) != O_RDONLY;
    if (watched && fate(changes ? CREATE : OPEN) == FAIL) return -1;
    if (!(flags & (O_CREAT | O_TRUNC))) watched = false;
    return MAKE(watched, syscall(SYS_openat, at, name, flags, mode), CREATE, path, NULL, flags & O_TRUNC ? 0 : -1, NULL, 0);
}

static int do_resize(int fd, off_t size) {
    char path[PATH_MAX];
    bool watched = armed && path_of(fd, path);
    if (watched && fate(RESIZE) == FAIL) return -1;
    return MAKE(watched, syscall(SYS_ftruncate, fd, size), RESIZE, path, NULL, size, NULL, 0);
}

static int do_sync(int fd, int call) {
    char path[PATH_MAX];
    bool watched = armed && path_of(fd, path);
    if (watched && fate(SYNC) == FAIL) return -1;
    return MAKE(watched, syscall(call, fd), SYNC, path, NULL, 0, NULL, 0);
}

static int do_unlink(int at, const char *name, int flags) {
    char path[PATH_MAX];
    bool watched = path_at(at, name, path);
    if (watched && fate(UNLINK) == FAIL) return -1;
    return MAKE(watched, syscall(SYS_unlinkat, at, name, flags), UNLINK, path, NULL, 0, NULL, 0);
}

static int do_mkdir(int at, const char *name, mode_t mode) {
    char path[PATH_MAX];
    bool watched = path_at(at, name, path);
    if (watched && fate(MKDIR) == FAIL) return -1;
    return MAKE(watched, syscall(SYS_mkdirat, at, name, mode), MKDIR, path, NULL, 0, NULL, 0);
}

static int do_rename(int from_at, const char *from, int to_at, const char *to) {
    char path[PATH_MAX], other[PATH_MAX];
    bool watched = path_at(from_at, from, path) && path_at(to_at, to, other);
    if (watched && fate(RENAME) == FAIL) return -1;
    return MAKE(watched, syscall(SYS_renameat2, from_at, from, to_at, to, 0), RENAME, path, other, 0, NULL, 0);
}

/* What the C library reads and writes for its streams passes nobody by: they are given ours to do it with. */
static ssize_t stream_read(void *fd, char *data, size_t size) { return do_read((intptr_t)fd, data, size, -1); }
static ssize_t stream_write(void *fd, const char *data, size_t size) {
    ssize_t done = do_write((intptr_t)fd, data, size, -1);
    return done < 0 ? 0 : done;
}
static int stream_seek(void *fd, off64_t *at, int from) {
    off64_t found = lseek((intptr_t)fd, *at, from);
    if (found >= 0) *at = found;
    return found < 0 ? -1 : 0;
}
static int stream_close(void *fd) { return close((intptr_t)fd); }

static FILE *do_fopen(const char *name, const char *mode) {
    char path[PATH_MAX];
    int flags = mode[0] == 'r' ? 0 : O_CREAT | (mode[0] == 'w' ? O_TRUNC : O_APPEND);
    int access = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    int fd = do_open(AT_FDCWD, name, flags | access | (strchr(mode, 'e') ? O_CLOEXEC : 0), 0666);
    if (fd < 0) return NULL;
    if (!path_at(AT_FDCWD, name, path)) return fdopen(fd, mode);
    return fopencookie((void *)(intptr_t)fd, mode,
                       (cookie_io_functions_t){stream_read, stream_write, stream_seek, stream_close});
}

#define OPENS(name)                                                         \
    int name(const char *path, int flags, ...) {                            \
        va_list rest;                                                       \
        va_start(rest, flags);                                              \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;           \
        va_end(rest);                                                       \
        return do_open(AT_FDCWD, path, flags, mode);                        \
    }
#define OPENS_AT(name)                                                      \
    int name(int at, const char *path, int flags, ...) {                    \
        va_list rest;                                                       \
        va_start(rest, flags);                                              \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;           \
        va_end(rest);                                                       \
        return do_open(at, path, flags, mode);                              \
    }
#define FOPENS(name) \
    FILE *name(const char *path, const char *mode) { return do_fopen(path, mode); }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
FOPENS(fopen)
FOPENS(fopen64)

ssize_t read(int fd, void *data, size_t size) { return do_read(fd, data, size, -1); }
ssize_t pread(int fd, void *data, size_t size, off_t at) { return do_read(fd, data, size, at); }
ssize_t pread64(int fd, void *data, size_t size, off64_t at) { return do_read(fd, data, size, at); }
ssize_t write(int fd, const void *data, size_t size) { return do_write(fd, data, size, -1); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return do_write(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return do_write(fd, data, size, at); }

/* Of several buffers only the first is done in one call, as the system may do it, too. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (!armed || !path_of(fd, path)) return syscall(SYS_writev, fd, parts, count);
    while (count > 1 && parts->iov_len == 0) parts++, count--;
    return do_write(fd, parts->iov_base, parts->iov_len, -1);
}
ssize_t readv(int fd, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (!armed || !path_of(fd, path)) return syscall(SYS_readv, fd, parts, count);
    while (count > 1 && parts->iov_len == 0) parts++, count--;
    return do_read(fd, parts->iov_base, parts->iov_len, -1);
}

/* Copies within the kernel are refused: whoever asks for one then reads and writes. */
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
    if (!armed) return syscall(SYS_sendfile, to, from, at, size);
    errno = EINVAL;
    return -1;
}
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned flags) {
    if (!armed) return syscall(SYS_copy_file_range, from, from_at, to, to_at, size, flags);
    errno = ENOSYS;
    return -1;
}

int ftruncate(int fd, off_t size) { return do_resize(fd, size); }
int ftruncate64(int fd, off64_t size) { return do_resize(fd, size); }
int fsync(int fd) { return do_sync(fd, SYS_fsync); }
int fdatasync(int fd) { return do_sync(fd, SYS_fdatasync); }
int rename(const char *from, const char *to) { return do_rename(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int from_at, const char *from, int to_at, const char *to) { return do_rename(from_at, from, to_at, to); }
int unlink(const char *name) { return do_unlink(AT_FDCWD, name, 0); }
int unlinkat(int at, const char *name, int flags) { return do_unlink(at, name, flags); }
int rmdir(const char *name) { return do_unlink(AT_FDCWD, name, AT_REMOVEDIR); }
int mkdir(const char *name, mode_t mode) { return do_mkdir(AT_FDCWD, name, mode); }
int mkdirat(int at, const char *name, mode_t mode) { return do_mkdir(at, name, mode); }
