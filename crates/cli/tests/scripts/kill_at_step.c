// Runs a program, counts the steps by which it and what it starts change files below a directory, and kills all of them
// before one of those steps.
//
//   kill_at_step AT all|own DIRECTORY COUNT PROGRAM ARGS…
//
// `own` leaves the processes that the program starts alone: they die as they do when the program is killed. The number of
// steps goes to the file COUNT. The program's own code knows nothing of it.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILLED = 77 };

static const char *below;

static int is_below(const char *path) {
    size_t length = strlen(below);
    return strncmp(path, below, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int link_is_below(pid_t pid, const char *name) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/%s", pid, name);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static int file_is_below(pid_t pid, uint64_t fd) {
    char name[32];
    snprintf(name, sizeof name, "fd/%d", (int)fd);
    return link_is_below(pid, name);
}

static int path_is_below(pid_t pid, uint64_t directory, uint64_t address) {
    char path[PATH_MAX] = {0};
    size_t length = 0;
    // Byte by byte over the end of a page would fail: a page at a time at most.
    while (length < sizeof path - 1) {
        size_t rest = 4096 - (address + length) % 4096;
        if (rest > sizeof path - 1 - length) rest = sizeof path - 1 - length;
        struct iovec local = {path + length, rest}, remote = {(void *)(address + length), rest};
        ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
        if (got <= 0) break;
        if (memchr(path + length, 0, got)) break;
        length += got;
    }
    // A name in a directory that is open.
    static const char opened[] = "/proc/self/fd/";
    if (strncmp(path, opened, sizeof opened - 1) == 0)
        return file_is_below(pid, strtoul(path + sizeof opened - 1, NULL, 10));
    if (path[0] == '/') return is_below(path);
    return (int)directory == AT_FDCWD ? link_is_below(pid, "cwd") : file_is_below(pid, directory);
}

static int changes(pid_t pid, uint64_t number, const uint64_t *args) {
    const uint64_t here = (uint64_t)AT_FDCWD;
    const int writes = O_CREAT | O_TRUNC;
    switch (number) {
#ifdef SYS_open
    case SYS_open: return (args[1] & writes) && path_is_below(pid, here, args[0]);
    case SYS_creat: case SYS_mkdir: case SYS_rmdir: case SYS_unlink: case SYS_rename: case SYS_chmod:
        return path_is_below(pid, here, args[0]);
    case SYS_link: case SYS_symlink: return path_is_below(pid, here, args[1]);
#endif
    case SYS_openat: return (args[2] & writes) && path_is_below(pid, args[0], args[1]);
    case SYS_openat2: {
        uint64_t flags = 0;
        struct iovec local = {&flags, sizeof flags}, remote = {(void *)args[2], sizeof flags};
        process_vm_readv(pid, &local, 1, &remote, 1, 0);
        return (flags & writes) && path_is_below(pid, args[0], args[1]);
    }
    case SYS_mkdirat: case SYS_unlinkat: case SYS_fchmodat: return path_is_below(pid, args[0], args[1]);
    case SYS_symlinkat: return path_is_below(pid, args[1], args[2]);
    case SYS_linkat: case SYS_renameat2:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
        return path_is_below(pid, args[2], args[3]);
    case SYS_write: case SYS_writev: case SYS_pwrite64: case SYS_ftruncate: case SYS_fchmod: case SYS_sendfile:
        return file_is_below(pid, args[0]);
    case SYS_copy_file_range: return file_is_below(pid, args[2]);
    default: return 0;
    }
}

int main(int count, char **args) {
    if (count < 6) return 2;
    long at = atol(args[1]), steps = 0;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
    if (strcmp(args[2], "all") == 0) options |= PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
    below = args[3];
    pid_t first = fork();
    if (first == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execv(args[5], args + 5);
        _exit(127);
    }
    int status, code = 1;
    waitpid(first, &status, 0);
    if (ptrace(PTRACE_SETOPTIONS, first, 0, options) != 0) return 3;
    ptrace(PTRACE_SYSCALL, first, 0, 0);
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0) break;
        if (!WIFSTOPPED(status)) {
            if (pid == first) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            continue;
        }
        int signal = WSTOPSIG(status), deliver = 0;
        if (signal == (SIGTRAP | 0x80)) {
            struct __ptrace_syscall_info info = {0};
            ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY && changes(pid, info.entry.nr, (const uint64_t *)info.entry.args)
                && ++steps == at) {
                // All that is traced dies with this process.
                code = KILLED;
                break;
            }
        } else if (signal != SIGTRAP && signal != SIGSTOP) {
            deliver = signal;
        }
        ptrace(PTRACE_SYSCALL, pid, 0, deliver);
    }
    FILE *file = fopen(args[4], "w");
    if (file) fprintf(file, "%ld", steps), fclose(file);
    return code;
}
