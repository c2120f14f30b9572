/* Preloaded under a program: fsync and fdatasync fail with EIO while the file named by FAIL_FLUSHES exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int fails(void) {
  const char *path = getenv("FAIL_FLUSHES");
  return path != NULL && access(path, F_OK) == 0;
}

static int pass(const char *name, int file) {
  if (fails()) {
    errno = EIO;
    return -1;
  }
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  return real(file);
}

int fsync(int file) { return pass("fsync", file); }

int fdatasync(int file) { return pass("fdatasync", file); }
