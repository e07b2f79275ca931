/* Reads that bring less than was asked for, and are interrupted at every third call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_ulong calls;

static size_t most(size_t len) {
  const char *text = getenv("SHORT_READS_MOST");
  size_t most = text ? strtoul(text, NULL, 10) : len;
  return len < most ? len : most;
}

static int is_interrupted(void) {
  errno = EINTR;
  return atomic_fetch_add(&calls, 1) % 3 == 2;
}

ssize_t pread64(int fd, void *to, size_t len, off64_t offset) {
  ssize_t (*next)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
  return is_interrupted() ? -1 : next(fd, to, most(len), offset);
}

ssize_t read(int fd, void *to, size_t len) {
  ssize_t (*next)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
  return is_interrupted() ? -1 : next(fd, to, most(len));
}
