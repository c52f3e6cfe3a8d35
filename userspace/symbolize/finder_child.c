/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The child's side: a loop that answers one question after the other.
 *
 * It stays what its parent is but for privileges, signals and descriptors: it has no sandbox, since it opens files by
 * name. Of files that it opens it reads headers, names of sections, and CRCs.
 */
#include "symbolize/file_finder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file_system.h"
#include "base/tenant_open.h"
#include "helpers/child.h"
#include "helpers/message.h"

/* One question being worked on. */
struct work {
	enum finder_question question;
	const struct finder_request *request;
	struct debug_file_counts *counts;
	int elf_fd, root_fd; /* -1: none */
};

/* If the parent does not wait, it kills this process. */
static int report_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
	const struct finder_progress progress = {.done = done, .total = total};

	(void)context;
	(void)what;
	return message__send(
		CHILD_SOCKET,
		&(struct message){.frame = {.flags = MESSAGE_PROGRESS, .size = sizeof(progress)},
				  .bytes = &progress},
		0);
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static int open_root(void)
{
	return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The package has its place beside the module. */
static uint64_t package_size(const struct work *w)
{
	_cleanup_close_ int host = w->root_fd < 0 ? open_root() : -1, fd = -1;
	char path[PATH_MAX + 8];
	struct stat st;

	snprintf(path, sizeof(path), "%s.dwp", w->request->path);
	fd = tenant_open(w->root_fd < 0 ? host : w->root_fd, path, 0, UINT64_MAX, &st);
	return fd >= 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static void find_files(const struct work *w, struct finder_answer *answer, int fds[FINDER_FDS])
{
	const struct finder_request *r = w->request;
	const struct debug_file_request request = {
		.elf_fd = w->elf_fd,
		.elf_base = r->elf_base,
		.copied_for = r->copied_for,
		.root_fd = w->root_fd,
		.path = r->has_path ? r->path : NULL,
		.release = r->has_release ? r->release : NULL,
		.build_id_size = r->build_id_size,
		.build_id = r->build_id,
		.debuginfod = r->debuginfod,
		.progress = r->wants_progress ? report_progress : NULL,
	};

	answer->err = debug_file_find(&request, &fds[0], &fds[1], w->counts);
	answer->total_size = size_of(w->elf_fd) + size_of(fds[0]) + size_of(fds[1]);
	answer->identity = debug_file_identity(w->elf_fd, r->elf_base, fds[0], fds[1]);
	if (r->package && r->has_path)
		answer->package_size = package_size(w);
}

static int open_below(int root_fd, const struct finder_request *r)
{
	struct stat st;

	return root_fd < 0 ? -ENOENT : tenant_open(root_fd, r->path, 0, r->size_limit, &st);
}

/* In the process's root, then in our own. */
static int open_named(const struct work *w)
{
	int fd = open_below(w->root_fd, w->request);
	_cleanup_close_ int own = fd < 0 ? open_root() : -1;

	return fd >= 0 ? fd : open_below(own, w->request);
}

/*
 * A descriptor that the parent gets cannot block it, not even in close(). A file that is too big for a copy counts as
 * missing.
 */
static void keep_safe_files(int fds[FINDER_FDS], uint64_t copy_max, struct finder_answer *answer)
{
	for (size_t i = 0; i < FINDER_FDS; i++) {
		uint64_t copied = 0;
		int err = fds[i] < 0 ? 0
				     : file_system__make_safe(&fds[i], getpid(),
							      copy_max - answer->copied, &copied);

		answer->copied += copied;
		answer->copies_left += err == -EFBIG;
		if (!err)
			continue;
		close(fds[i]);
		fds[i] = -1;
	}
}

static int answer_question(const struct work *w)
{
	struct finder_answer answer = {};
	int fds[FINDER_FDS] = {-1, -1}, err;

	if (w->question == FINDER_OPEN) {
		fds[0] = open_named(w);
		answer.err = fds[0] < 0 ? fds[0] : 0;
	} else {
		find_files(w, &answer, fds);
	}
	keep_safe_files(fds, w->request->copy_max, &answer);
	if (w->question == FINDER_OPEN && !answer.err && fds[0] < 0)
		answer.err = -EFBIG;
	answer.has_debug = fds[0] >= 0;
	answer.has_alt = fds[1] >= 0;
	err = message__send(
		CHILD_SOCKET,
		&(struct message){.frame = {.flags = MESSAGE_DONE, .size = sizeof(answer)},
				  .bytes = &answer,
				  .fds = fds + !answer.has_debug,
				  .fd_count = answer.has_debug + answer.has_alt},
		0);
	message__close_fds(fds, FINDER_FDS);
	return err;
}

static int run_finder(const struct child_self *self)
{
	static struct message_buffer buffer;
	const struct finder_request *request = (const void *)buffer.bytes;
	int err = 0;

	while (!err && message__receive(CHILD_SOCKET, &buffer, 0) == 1) {
		const struct work w = {.question = buffer.frame.service,
				       .request = request,
				       .counts = *(struct debug_file_counts *const *)self->data,
				       .elf_fd = request->has_elf ? buffer.fds[0] : -1,
				       .root_fd = request->has_root ? buffer.fds[request->has_elf]
								    : -1};

		err = answer_question(&w);
		message__close_fds(buffer.fds, buffer.fd_count);
	}
	return EXIT_FAILURE;
}

pid_t finder_child__start(struct debug_file_counts *shared_counts, bool debuginfod, int *socket)
{
	const struct child_plan plan = {
		.class = debuginfod ? HELPER_DOWNLOADER : HELPER_FINDER,
		.run = run_finder,
		.type = SOCK_SEQPACKET,
		.data = &shared_counts,
	};

	return child__start(&plan, socket);
}
