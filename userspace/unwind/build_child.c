/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A builder gives up what it can before it is told which file to read, so that this is done by the time that one is
 * asked for. What is left to do then is to enter the filter, which forbids to receive descriptors.
 */
#include "unwind/build_child.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd_message.h"
#include "base/io.h"
#include "helpers/child.h"
#include "helpers/filter.h"
#include "unwind/build_pieces.h"

#define BIG_FILE (1 << 20)  /* bytes */
#define BIG_HEAP (96 << 20) /* more than most tables take to be built */

struct keeper {
	build_work_fn work;
	struct filter *filter;
	int signals; /* SIGCHLD */
};

/* ---- a builder ------------------------------------------------------------------------------- */

/*
 * A builder's memory is new, and a large table takes some ten thousand pages of it: as huge ones, where the kernel has
 * them, they are a sixth of the time. All that is allocated then lies in one piece.
 */
static void expect_much(int fd)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct stat st;
	char *heap;

	if (fstat(fd, &st) || st.st_size < BIG_FILE)
		return;
	mallopt(M_MMAP_THRESHOLD, BIG_HEAP);
	mallopt(M_TRIM_THRESHOLD, BIG_HEAP);
	heap = malloc(BIG_HEAP - page);
	if (heap)
		madvise((void *)(((uintptr_t)heap + page) & ~(page - 1)), BIG_HEAP - 3 * page,
			MADV_HUGEPAGE);
	free(heap);
}

static int open_and_build(const struct build_question *q, int fd, struct unwind_table_image *image,
			  enum table_refusal *refusal)
{
	struct elf_file *file;
	int err;

	expect_much(fd);
	err = elf_file__open_at(fd, q->base, &file);
	if (err)
		return err;
	err = unwind_table__build_within(file, q->limit, &BUILD_LIMITS, image, refusal);
	elf_file__free(file);
	return err;
}

void build_child__work(const struct build_question *q, int file, int memory,
		       struct build_reply *reply)
{
	enum table_refusal refusal = TABLE_REFUSAL_NONE;
	struct unwind_table_image image = {};
	int err;

	if (q->kind == BUILD_PIECES)
		err = build_pieces__build(file, q->limit, &image, &refusal);
	else
		err = open_and_build(q, file, &image, &refusal);
	if (!err)
		err = write_full(memory, image.bytes, image.size);
	if (!err && fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE))
		err = -errno;
	reply->err = err;
	reply->refusal = refusal;
	reply->image = image;
	reply->image.bytes = NULL;
	unwind_table_image__fini(&image);
}

static int run_builder(const struct child_self *self)
{
	const build_work_fn *work = self->data;
	struct build_question question;
	struct build_reply reply = {};
	int fds[2];
	size_t count = 2;

	if (fd_message__receive(CHILD_SOCKET, &question, sizeof(question), fds, &count, 0) !=
		    sizeof(question) ||
	    count != 2)
		return EXIT_SUCCESS; /* not needed any more */
	if (filter__enter(self->filter))
		return EXIT_FAILURE;
	reply.ticket = question.ticket;
	(*work)(&question, fds[0], fds[1], &reply);
	return write_full(CHILD_SOCKET, &reply, sizeof(reply)) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- the keeper ------------------------------------------------------------------------------ */

static pid_t fork_builder(const struct keeper *k, int socket)
{
	const struct child_plan plan = {
		.class = HELPER_BUILDER, .run = run_builder, .data = &k->work};

	return child__fork(&plan, &(struct child_origin){.socket = socket, .filter = k->filter});
}

/* False: the other end is closed. */
static bool start_builder(const struct keeper *k)
{
	struct builder_note note = {};
	int socket, pidfd;
	size_t count = 1;
	char byte;

	if (fd_message__receive(CHILD_SOCKET, &byte, 1, &socket, &count, 0) <= 0)
		return false;
	if (!count)
		return true;
	note.pid = fork_builder(k, socket);
	close(socket);
	/* it is not waited for yet, so the number is its own */
	pidfd = note.pid > 0 ? (int)syscall(SYS_pidfd_open, note.pid, 0) : -1;
	fd_message__send(CHILD_SOCKET, &note, sizeof(note), NULL, 0, &pidfd, pidfd >= 0,
			 MSG_DONTWAIT);
	if (pidfd >= 0)
		close(pidfd);
	return true;
}

static uint64_t time_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

static void report_ended(const struct keeper *k)
{
	struct builder_note note = {.ended = 1};
	struct signalfd_siginfo info;
	struct rusage usage;

	while (read(k->signals, &info, sizeof(info)) > 0)
		;
	while ((note.pid = wait4(-1, &note.status, WNOHANG, &usage)) > 0) {
		note.cpu_ns = time_of(&usage.ru_utime) + time_of(&usage.ru_stime);
		fd_message__send(CHILD_SOCKET, &note, sizeof(note), NULL, 0, NULL, 0, MSG_DONTWAIT);
	}
}

static void __attribute__((noreturn)) serve_control(const struct keeper *k)
{
	struct pollfd fds[] = {{.fd = CHILD_SOCKET, .events = POLLIN},
			       {.fd = k->signals, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			_exit(EXIT_FAILURE);
		if (fds[1].revents)
			report_ended(k);
		/* builders end with it: PR_SET_PDEATHSIG */
		if (fds[0].revents && !start_builder(k))
			_exit(EXIT_SUCCESS);
	}
}

static int watch_builders(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &mask, NULL))
		return -1;
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run_keeper(const struct child_self *self)
{
	struct keeper k = {.work = *(const build_work_fn *)self->data};

	k.signals = watch_builders();
	k.filter = filter__new(HELPER_FILTER_WORKER);
	if (k.signals < 0 || !k.filter)
		return EXIT_FAILURE;
	serve_control(&k);
}

int build_keeper__start(build_work_fn work, pid_t *keeper, int *control)
{
	const struct child_plan plan = {.class = HELPER_SEALED_KEEPER,
					.name = "sysprof-builder",
					.run = run_keeper,
					.type = SOCK_SEQPACKET,
					.data = &work};
	pid_t pid = child__start(&plan, control);

	if (pid < 0)
		return pid;
	*keeper = pid;
	return 0;
}
