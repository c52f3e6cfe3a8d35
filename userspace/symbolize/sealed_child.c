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

#include "base/child_process.h"
#include "base/cleanup.h"
#include "base/fd_message.h"
#include "base/io.h"
#include "base/log.h"
#include "elf/elf_file.h"
#include "symbolize/sealed_protocol.h"

#define MEMORY_BASE (256ull << 20)
#define ABOVE_ALL   64 /* descriptors are set aside here before they get their places */

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
	child__close_from(SEALED_FIRST_FREE);
	files->elf_fd = files->elf_fd < 0 ? -1 : SEALED_ELF;
	files->debug_fd = files->debug_fd < 0 ? -1 : SEALED_DEBUG;
	files->alt_fd = files->alt_fd < 0 ? -1 : SEALED_ALT;
}

/* The only message that carries a descriptor, and the last that may. */
static int greet_parent(int listener)
{
	char greeting = listener < 0 ? SEALED_GREETING_ALONE : SEALED_GREETING_FILES;
	ssize_t sent = fd_message__send(SEALED_SOCKET, &greeting, 1, NULL, 0, &listener,
					listener >= 0, 0);

	return sent < 0 ? (int)sent : 0;
}

/* 0, or negative errno where something could not be given up. */
static int enter_sandbox(const struct sealed_child_request *request, pid_t parent)
{
	_cleanup_close_ int listener = -1;
	int err, sent;

	sandbox__offer_to_be_killed();
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
	if (err)
		return err;
	if (request->filter && listener >= 0 && !request->files.package_size)
		return sandbox_filter__enter(request->filter);
	return sandbox__seal(listener >= 0, request->files.package_size > 0);
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

/* What resolving returned goes out with the report. */
static int answer(const struct sealed_child_request *request, struct module *module, bool sealed)
{
	struct module_report report = {};
	struct sealed_writer *writer = sealed_writer__new(SEALED_SOCKET);
	int err;

	if (!writer)
		return -ENOMEM;
	if (module)
		err = module__resolve(module, request->addresses, request->count,
				      sealed_writer__result, writer, &report);
	else
		err = request->resolve(&request->files, request->addresses, request->count,
				       sealed_writer__result, writer, &report);
	if (!sealed)
		report.dwarf = DWARF_STATE_UNSEALED;
	err = sealed_writer__report(writer, err, &report);
	sealed_writer__free(writer);
	return err;
}

/* False: the parent has gone. */
static bool next_question(uint64_t *addresses, size_t *count)
{
	uint64_t number;

	if (read_full(SEALED_SOCKET, &number, sizeof(number)) != sizeof(number) ||
	    number > SEALED_QUESTION_MAX)
		return false;
	*count = number;
	return read_full(SEALED_SOCKET, addresses, number * sizeof(*addresses)) ==
	       (ssize_t)(number * sizeof(*addresses));
}

static int answer_all(struct sealed_child_request *request)
{
	uint64_t *addresses = calloc(SEALED_QUESTION_MAX, sizeof(*addresses));
	struct module *module;
	int err = addresses ? module__open(&request->files, &module) : -ENOMEM;

	if (err)
		return err;
	do
		err = answer(request, module, true);
	while (!err && next_question(addresses, &request->count) &&
	       (request->addresses = addresses));
	return err;
}

static int work_on_module(struct sealed_child_request *request, bool sealed)
{
	int err;

	/* without a seal no foreign library gets to see a stranger's file */
	request->files.symbols_only |= !sealed;
	tighten_memory(&request->files, request->limits.memory);
	err = request->keeps && sealed ? answer_all(request) : answer(request, NULL, sealed);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int sealed_child__ask(int socket, const uint64_t *addresses, size_t count)
{
	uint64_t number = count;
	ssize_t sent, size = (ssize_t)(sizeof(number) + count * sizeof(*addresses));

	sent = fd_message__send(socket, &number, sizeof(number), addresses,
				count * sizeof(*addresses), NULL, 0, MSG_DONTWAIT);
	if (sent < 0)
		return (int)sent;
	return sent == size ? 0 : -EAGAIN;
}

void sealed_child__main(const struct sealed_child_request *request, int socket, pid_t parent)
{
	struct sealed_child_request own = *request;
	bool sealed;

	log_set_level(LOG_ERROR); /* it speaks to its parent alone */
	arrange_descriptors(&own.files, socket);
	child__reset_signals();
	prctl(PR_SET_NAME, "sysprof-sealed");
	sealed = !enter_sandbox(request, parent);
	_exit(work_on_module(&own, sealed));
}

pid_t sealed_child__start(const struct sealed_child_request *request, int *socket)
{
	pid_t parent = getpid(), pid = child__fork(SOCK_STREAM, socket);

	if (!pid)
		sealed_child__main(request, *socket, parent);
	return pid;
}
