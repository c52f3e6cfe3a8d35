/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request is a message: the structure, and descriptors of the child's end of its socket, of the addresses in a file in
 * memory, and of the module's files as far as there are any. The answer is the child's pid.
 *
 * CLONE_PARENT makes the child the parent's. Of the keeper's memory it has a copy that is hardly ever written to.
 */
#include "symbolize/sealed_keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd_message.h"
#include "base/io.h"
#include "helpers/filter.h"
#include "helpers/watch.h"

#define FDS_MAX	       5
#define ANSWER_SECONDS 2 /* a fork takes less */

struct sealed_keeper {
	pid_t pid;
	int control; /* -1: it has failed once */
};

/* ---- the keeper ------------------------------------------------------------------------------ */

static int take_fd(const int *fds, size_t *next, int wanted)
{
	return wanted < 0 ? -1 : fds[(*next)++];
}

static uint64_t *read_addresses(int fd, size_t count)
{
	uint64_t *addresses = calloc(count + 1, sizeof(*addresses));
	size_t size = count * sizeof(*addresses);

	if (addresses && pread_full(fd, addresses, size, 0) == (ssize_t)size)
		return addresses;
	free(addresses);
	return NULL;
}

static pid_t fork_child(struct sealed_child_request *request, const int *fds,
			const struct filter *filter)
{
	struct module_files *files = &request->files;
	const struct child_origin origin = {.socket = fds[0], .sibling = true, .filter = filter};
	_cleanup_free_ uint64_t *addresses = read_addresses(fds[1], request->count);
	struct child_plan plan;
	size_t next = 2;
	int placed[3];

	if (!addresses)
		return -ENOMEM;
	request->addresses = addresses;
	files->elf_fd = take_fd(fds, &next, files->elf_fd);
	files->debug_fd = take_fd(fds, &next, files->debug_fd);
	files->alt_fd = take_fd(fds, &next, files->alt_fd);
	plan = sealed_child__plan(request, placed);
	return child__fork(&plan, &origin);
}

static size_t fds_wanted(const struct module_files *files)
{
	return 2 + (files->elf_fd >= 0) + (files->debug_fd >= 0) + (files->alt_fd >= 0);
}

static bool serve(const struct filter *filter)
{
	struct sealed_child_request request;
	int fds[FDS_MAX];
	size_t count = FDS_MAX;
	ssize_t got = fd_message__receive(CHILD_SOCKET, &request, sizeof(request), fds, &count, 0);
	pid_t pid = -EBADMSG;

	if (got <= 0)
		return false;
	if (got == sizeof(request) && count == fds_wanted(&request.files))
		pid = fork_child(&request, fds, filter);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	return write_full(CHILD_SOCKET, &pid, sizeof(pid)) == 0;
}

static int run_keeper(const struct child_self *self)
{
	struct filter *filter = filter__new(HELPER_FILTER_SEALED);

	(void)self;
	while (serve(filter))
		;
	return EXIT_SUCCESS;
}

/* ---- the parent ------------------------------------------------------------------------------ */

struct sealed_keeper *sealed_keeper__new(void)
{
	struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	struct sealed_keeper *k = calloc(1, sizeof(*k));
	const struct child_plan plan = {.class = HELPER_SEALED_KEEPER,
					.name = "sysprof-sealed",
					.run = run_keeper,
					.type = SOCK_SEQPACKET};

	if (!k)
		return NULL;
	k->pid = child__start(&plan, &k->control);
	if (k->pid < 0) {
		free(k);
		return NULL;
	}
	setsockopt(k->control, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(k->control, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return k;
}

static void end_keeper(struct sealed_keeper *k)
{
	int status;

	if (k->control < 0)
		return;
	cleanup_close(&k->control);
	k->control = -1;
	end_process(k->pid, REAP_NS, &status, NULL);
}

void sealed_keeper__free(struct sealed_keeper *k)
{
	if (!k)
		return;
	end_keeper(k);
	free(k);
}

static int file_of_addresses(const struct sealed_child_request *request)
{
	int fd = memfd_create("addresses", MFD_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = write_full(fd, request->addresses, request->count * sizeof(*request->addresses));
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static pid_t ask(struct sealed_keeper *k, const struct sealed_child_request *request, int end)
{
	_cleanup_close_ int addresses = file_of_addresses(request);
	const struct module_files *files = &request->files;
	int fds[FDS_MAX] = {end, addresses},
	    optional[] = {files->elf_fd, files->debug_fd, files->alt_fd};
	size_t count = 2;
	ssize_t done;
	pid_t pid;

	if (addresses < 0)
		return addresses;
	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
		if (optional[i] >= 0)
			fds[count++] = optional[i];
	done = fd_message__send(k->control, request, sizeof(*request), NULL, 0, fds, count, 0);
	if (done < 0)
		return (pid_t)done;
	do
		done = recv(k->control, &pid, sizeof(pid), 0);
	while (done < 0 && errno == EINTR);
	return done == sizeof(pid) ? pid : -EPIPE;
}

pid_t sealed_keeper__start(struct sealed_keeper *k, const struct sealed_child_request *request,
			   int *socket)
{
	int ends[2];
	pid_t pid;

	if (!k || k->control < 0)
		return -EPIPE;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid = ask(k, request, ends[1]);
	close(ends[1]);
	if (pid > 0) {
		*socket = ends[0];
		return pid;
	}
	close(ends[0]);
	if (pid == -EPIPE || pid == -EAGAIN) /* a late answer would be taken for another one's */
		end_keeper(k);
	return pid;
}
