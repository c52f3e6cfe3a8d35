/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sealed child is a fork of its parent that keeps four descriptors, gives up everything else and
 * resolves one module.
 *
 * It is not a program of its own: nothing has to be found on disk, and the addresses are in memory
 * already. The price is that it starts with a copy of the parent's memory, of which it can tell
 * nobody but the parent. It never returns from here and ends with _exit(): what the parent wants to do
 * at its own end is none of its business.
 */
#include "symbolize/sealed_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "elf/elf_file.h"
#include "symbolize/sealed_protocol.h"

#define MEMORY_BASE (256ull << 20)
#define ABOVE_ALL   64 /* descriptors are set aside here before they get their places */

static int signal_is_ignored(int number)
{
	/* A terminal's Ctrl-C is for the parent, which knows what it means. SIGXFSZ: write fails. */
	return number == SIGINT || number == SIGHUP || number == SIGQUIT || number == SIGPIPE ||
	       number == SIGXFSZ || number == SIGTSTP;
}

static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, signal_is_ignored(number) ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_from(int first)
{
	struct rlimit limit;

	if (!syscall(SYS_close_range, first, ~0u, 0))
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		_exit(EXIT_FAILURE);
	for (int fd = first; fd < (int)limit.rlim_cur; fd++)
		close(fd);
}

static bool place_descriptor(int from, int to)
{
	return from < 0 ? !close(to) || errno == EBADF : dup2(from, to) == to;
}

/* Exactly what a child may have, at fixed places; everything else is closed. */
static void arrange_descriptors(struct module_files *files, int socket)
{
	int from[] = {socket, files->elf_fd, files->debug_fd, files->alt_fd};
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		if (from[i] >= 0)
			from[i] = fcntl(from[i], F_DUPFD, ABOVE_ALL);
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
#ifdef __SANITIZE_ADDRESS__
		if (fd == STDERR_FILENO) /* where the sanitizer reports */
			continue;
#endif
		if (!place_descriptor(nothing, fd))
			_exit(EXIT_FAILURE);
	}
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		if (!place_descriptor(from[i], SEALED_SOCKET + i))
			_exit(EXIT_FAILURE);
	close_from(SEALED_FIRST_FREE);
	files->elf_fd = files->elf_fd < 0 ? -1 : SEALED_ELF;
	files->debug_fd = files->debug_fd < 0 ? -1 : SEALED_DEBUG;
	files->alt_fd = files->alt_fd < 0 ? -1 : SEALED_ALT;
}

/* If memory runs out, it is we who take too much. */
static void offer_to_be_killed(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		write_full(fd, "1000", 4);
}

/* The only message that carries a descriptor, and the last that may. */
static int greet_parent(int listener)
{
	char greeting = listener < 0 ? SEALED_GREETING_ALONE : SEALED_GREETING_FILES;
	struct iovec data = {.iov_base = &greeting, .iov_len = 1};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

	if (listener >= 0) {
		control.header = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.header), &listener, sizeof(listener));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return sendmsg(SEALED_SOCKET, &message, 0) == 1 ? 0 : -errno;
}

/* 0, or negative errno where something could not be given up. */
static int enter_sandbox(const struct sealed_child_request *request, pid_t parent)
{
	_cleanup_close_ int listener = -1;
	int err, sent;

	offer_to_be_killed();
	err = sandbox__limit(&request->limits);
	if (!err)
		err = sandbox__drop_privileges();
	/* a change of uid forgets it, so not before; the parent may have died in the meantime */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(EXIT_FAILURE);
	if (!err && sandbox__ask_for_files(&listener))
		listener = -1;
	sent = greet_parent(listener);
	if (sent)
		_exit(EXIT_FAILURE);
	return err ? err : sandbox__seal(listener >= 0, request->files.package_size > 0);
}

static uint64_t debug_size(int fd, uint64_t base)
{
	struct elf_file *file;
	uint64_t size;

	if (fd < 0 || elf_file__open_at(fd, base, &file))
		return 0;
	size = elf_file__debug_size(file);
	elf_file__free(file);
	return size;
}

/* Twice what there is to inflate, and something to live on. */
static void tighten_memory(const struct module_files *files, uint64_t memory)
{
	uint64_t size = 0, parts[] = {debug_size(files->elf_fd, files->elf_base),
				      debug_size(files->debug_fd, 0), debug_size(files->alt_fd, 0),
				      files->package_size};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		size = parts[i] > UINT64_MAX / 4 - size ? UINT64_MAX / 4 : size + parts[i];
	size = 2 * size + MEMORY_BASE;
	sandbox__lower_memory(memory > size ? memory - size : 0);
}

static int work_on_module(const struct sealed_child_request *request, struct module_files *files,
			  bool sealed)
{
	struct module_report report = {};
	struct sealed_writer *writer = sealed_writer__new(SEALED_SOCKET);
	int err;

	if (!writer)
		return EXIT_FAILURE;
	/* without a seal no foreign library gets to see a stranger's file */
	files->symbols_only |= !sealed;
	tighten_memory(files, request->limits.memory);
	err = request->resolve(files, request->addresses, request->count, sealed_writer__result,
			       writer, &report);
	if (!sealed)
		report.dwarf = DWARF_STATE_UNSEALED;
	err = sealed_writer__report(writer, err, &report);
	sealed_writer__free(writer);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void __attribute__((noreturn))
child_main(const struct sealed_child_request *request, int socket, pid_t parent)
{
	struct module_files files = request->files;
	bool sealed;

	log_set_level(LOG_ERROR); /* it speaks to its parent alone */
	arrange_descriptors(&files, socket);
	reset_signals();
	prctl(PR_SET_NAME, "sysprof-sealed");
	sealed = !enter_sandbox(request, parent);
	_exit(work_on_module(request, &files, sealed));
}

pid_t sealed_child__start(const struct sealed_child_request *request, int *socket)
{
	int ends[2], err;
	sigset_t all, before;
	pid_t parent = getpid(), pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	/* no handler of the parent may run in the child */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	err = errno;
	if (!pid)
		child_main(request, ends[1], parent);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -err;
	}
	*socket = ends[0];
	return pid;
}
