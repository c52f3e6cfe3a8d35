/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sealed process has two filters. The first notifies the parent of each open and allows the rest,
 * because its listener must still be sent to the parent. The second one forbids sending. The kernel
 * applies the strictest verdict of all filters. "Notify" is milder than "refuse" but stricter than
 * "allow", so the second filter allows open.
 *
 * libdw tries paths that it does not need (it reads its file's name from /proc/self/fd), so calls
 * with paths fail. Calls that no library makes by chance (sockets, other programs, other processes'
 * memory, kernel settings) kill the process.
 */
#include "tenants/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- system calls ---------------------------------------------------------------------------- */

/*
 * Both lists of allowed calls have sysinfo: if qsort() of the C library cannot get the memory size,
 * it is a quicksort, and an input can make that quadratic.
 */
static const char ALLOWED[] =
	"read readv pread64 preadv preadv2 fadvise64 write writev pwrite64 lseek close dup fstat "
	"fstat64 brk munmap mremap madvise memfd_create ftruncate ftruncate64 futex exit exit_group "
	"rt_sigreturn rt_sigprocmask rt_sigaction sigaltstack getrandom "
	"clock_gettime clock_getres gettimeofday getpid gettid sched_yield restart_syscall "
	"getuid geteuid getgid getegid getrusage sched_getaffinity membarrier "
	"set_robust_list rseq sysinfo";

static const char PATHS[] =
	"openat2 creat stat lstat stat64 lstat64 statx access faccessat faccessat2 "
	"getcwd chdir fchdir unlink unlinkat rename renameat renameat2 "
	"link linkat symlink symlinkat mkdir mkdirat rmdir mknod mknodat "
	"chmod fchmodat chown lchown fchownat truncate truncate64 "
	"utime utimes utimensat futimesat statfs statfs64 "
	"getxattr lgetxattr setxattr lsetxattr listxattr llistxattr inotify_add_watch";

static const char DEADLY[] =
	"socket socketpair connect bind listen accept accept4 "
	"sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg "
	"execve execveat fork vfork clone clone3 unshare setns "
	"ptrace process_vm_readv process_vm_writev kill tkill "
	"pidfd_open pidfd_getfd pidfd_send_signal "
	"mount umount2 pivot_root chroot open_tree move_mount fsopen "
	"bpf perf_event_open keyctl add_key request_key io_uring_setup io_uring_enter userfaultfd "
	"init_module finit_module delete_module kexec_load reboot swapon open_by_handle_at "
	"setuid setgid setresuid setresgid capset shmget msgget semget "
	"modify_ldt iopl ioperm personality seccomp process_madvise kcmp memfd_secret";

static const char LINKS[] = "readlink readlinkat";

/* The first filter notifies of these. */
static const char OPENS[] = "open openat";

/* Names that this architecture does not have are left out. */
static int add_names(scmp_filter_ctx filter, uint32_t verdict, const char *names)
{
	int length, err = 0;
	char name[32];

	for (; !err && sscanf(names, "%31s%n", name, &length) == 1; names += length) {
		int number = seccomp_syscall_resolve_name(name);

		err = number < 0 ? 0 : seccomp_rule_add(filter, verdict, number, 0);
		err = err == -EEXIST ? 0 : err;
	}
	return err;
}

static int allow_if(scmp_filter_ctx filter, const char *name, struct scmp_arg_cmp condition)
{
	int number = seccomp_syscall_resolve_name(name);

	return number < 0 ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1, condition);
}

/* Allows memory that is not executable. */
static int add_no_code(scmp_filter_ctx filter)
{
	static const char *const NO_CODE[] = {"mmap", "mmap2", "mprotect"};
	int err = 0;

	for (size_t i = 0; i < COUNT_OF(NO_CODE) && !err; i++)
		err = allow_if(filter, NO_CODE[i], SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return err;
}

/* Calls that are harmless only with certain arguments. */
static int add_conditions(scmp_filter_ctx filter)
{
	static const int FCNTLS[] = {F_GETFD,	      F_SETFD,	   F_GETFL,    F_DUPFD,
				     F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS};
	int err = add_no_code(filter);

	for (size_t i = 0; i < COUNT_OF(FCNTLS) && !err; i++) {
		err = allow_if(filter, "fcntl", SCMP_A1(SCMP_CMP_EQ, FCNTLS[i]))
			      ?: allow_if(filter, "fcntl64", SCMP_A1(SCMP_CMP_EQ, FCNTLS[i]));
	}
	/* its own limits, which it can read and lower */
	if (!err)
		err = allow_if(filter, "prlimit64", SCMP_A0(SCMP_CMP_EQ, 0));
	return err;
}

/* For abort(), which signals its own pid and tid. */
static int add_abort(scmp_filter_ctx filter)
{
	return allow_if(filter, "tgkill", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
}

/*
 * fstat() of newer C libraries is newfstatat(fd, "", AT_EMPTY_PATH). A filter cannot read the path,
 * but the root directory is empty.
 */
static int add_stat(scmp_filter_ctx filter, const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number < 0)
		return 0;
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 2, SCMP_A0(SCMP_CMP_LE, INT32_MAX),
				SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH))
		       ?: seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), number, 1,
					   SCMP_A3(SCMP_CMP_NE, AT_EMPTY_PATH));
}

static int add_rules(scmp_filter_ctx filter, bool files, bool no_links)
{
	return add_stat(filter, "newfstatat")
			?: add_stat(filter, "fstatat64")
			?: add_conditions(filter)
			?: add_names(filter, SCMP_ACT_ALLOW, ALLOWED)
			?: add_names(filter, files ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EACCES), OPENS)
			?: add_names(filter, SCMP_ACT_ERRNO(EACCES), PATHS)
			?: add_names(filter, SCMP_ACT_ERRNO(no_links ? EINVAL : EACCES), LINKS)
			?: add_names(filter, SCMP_ACT_KILL_PROCESS, DEADLY);
}

/* ---- a filter for many processes ------------------------------------------------------------- */

/* To read an open file and write an answer to another one. */
static const char WORKERS[] =
	"read pread64 write pwrite64 lseek close fstat fstat64 brk munmap mremap madvise futex "
	"exit exit_group rt_sigreturn getrandom clock_gettime rt_sigprocmask sigaltstack "
	"restart_syscall sched_yield getpid gettid sysinfo";

struct filter {
	struct sock_fprog program;
	struct sock_fprog opens; /* the first filter of a sealed process */
};

static int add_worker_rules(scmp_filter_ctx filter)
{
	static const int FCNTLS[] = {F_ADD_SEALS, F_GET_SEALS};
	int err = add_stat(filter, "newfstatat") ?: add_no_code(filter);

	for (size_t i = 0; i < COUNT_OF(FCNTLS) && !err; i++)
		err = allow_if(filter, "fcntl", SCMP_A1(SCMP_CMP_EQ, FCNTLS[i]));
	if (!err)
		err = add_names(filter, SCMP_ACT_ALLOW, WORKERS)
			      ?: add_names(filter, SCMP_ACT_KILL_PROCESS, DEADLY);
	return err;
}

/* libseccomp exports programs only to files. */
static int take_program(scmp_filter_ctx filter, struct sock_fprog *program)
{
	_cleanup_close_ int fd = memfd_create("filter", MFD_CLOEXEC);
	off_t size;
	int err;

	if (fd < 0)
		return -errno;
	err = seccomp_export_bpf(filter, fd);
	if (err)
		return err;
	size = lseek(fd, 0, SEEK_END);
	if (size <= 0 || size / sizeof(*program->filter) > UINT16_MAX)
		return -EFBIG;
	program->filter = malloc(size);
	if (!program->filter)
		return -ENOMEM;
	program->len = size / sizeof(*program->filter);
	return pread_full(fd, program->filter, size, 0) == size ? 0 : -EIO;
}

static int add_sealed_rules(scmp_filter_ctx filter)
{
	return add_rules(filter, true, false);
}

static int add_notified_opens(scmp_filter_ctx filter)
{
	return add_names(filter, SCMP_ACT_NOTIFY, OPENS);
}

static int make_program(uint32_t otherwise, int (*add)(scmp_filter_ctx filter),
			struct sock_fprog *program)
{
	scmp_filter_ctx filter = seccomp_init(otherwise);
	int err = (filter ? 0 : -ENOMEM) ?: add(filter) ?: take_program(filter, program);

	seccomp_release(filter);
	return err;
}

struct filter *filter__new(enum helper_filter kind)
{
	bool worker = kind == HELPER_FILTER_WORKER;
	struct filter *f = calloc(1, sizeof(*f));

	if (!f || make_program(SCMP_ACT_ERRNO(EPERM), worker ? add_worker_rules : add_sealed_rules,
			       &f->program)) {
		filter__free(f);
		return NULL;
	}
	if (!worker && make_program(SCMP_ACT_ALLOW, add_notified_opens, &f->opens))
		f->opens.len = 0;
	return f;
}

void filter__free(struct filter *f)
{
	if (!f)
		return;
	free(f->program.filter);
	free(f->opens.filter);
	free(f);
}

int filter__enter(const struct filter *f)
{
	if (!f)
		return -EINVAL;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f->program) ? -errno : 0;
}

/* ---- a filter for this process --------------------------------------------------------------- */

static int make_listener(int *listener)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err = (filter ? 0 : -ENOMEM) ?: add_notified_opens(filter) ?: seccomp_load(filter);

	if (!err) {
		*listener = seccomp_notify_fd(filter);
		err = *listener < 0 ? -ENOTSUP : 0;
	}
	seccomp_release(filter);
	return err;
}

int filter__notify_opens(const struct filter *made, int *listener)
{
	if (!made || !made->opens.len)
		return make_listener(listener);
	*listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				 SECCOMP_FILTER_FLAG_NEW_LISTENER, &made->opens);
	return *listener < 0 ? -errno : 0;
}

int filter__seal(bool files, bool no_links)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = (filter ? 0 : -ENOMEM)
			?: add_rules(filter, files, no_links)
			?: add_abort(filter)
			?: seccomp_load(filter);

	seccomp_release(filter);
	return err;
}
