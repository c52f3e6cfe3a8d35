/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sealed child keeps four descriptors, gives up everything else and resolves one module. It is a fork of its parent
 * or of a keeper, not a program of its own, so nothing has to be found on disk. Without a keeper it starts with a copy of the
 * parent's memory, which it can send to no process but the parent.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"
#include "elf/elf_file.h"
#include "helpers/filter.h"
#include "helpers/keeper.h"
#include "helpers/message.h"
#include "symbolize/sealed_private.h"

#define MEMORY_BASE (256ull << 20)

/* The only message that carries a descriptor, and the last that may. */
static int greet_parent(int listener)
{
	return message__send(SEALED_SOCKET,
			     &(struct message){.frame = {.flags = MESSAGE_PROGRESS},
					       .fds = &listener,
					       .fd_count = listener >= 0},
			     0);
}

/* 0, or negative errno where something could not be given up. */
static int seal(const struct child_self *self, const struct module_files *files)
{
	_cleanup_close_ int listener = -1;
	int sent;

	if (!self->confined && filter__notify_opens(&listener))
		listener = -1;
	sent = greet_parent(listener);
	if (sent)
		_exit(EXIT_FAILURE);
	if (self->confined)
		return self->confined;
	if (self->filter && listener >= 0 && !files->package_size)
		return filter__enter(self->filter);
	return filter__seal(listener >= 0, files->package_size > 0);
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
	confine__lower_memory(memory > size ? memory - size : 0);
}

/* What resolving returned goes out with the report. */
static int answer(const struct sealed_child_request *request, struct module *module, bool sealed)
{
	struct module_report report = {};
	struct sealed_writer writer = {};
	int err;

	if (module)
		err = module__resolve(module, request->addresses, request->count,
				      sealed_writer__result, &writer, &report);
	else
		err = request->resolve(&request->files, request->addresses, request->count,
				       sealed_writer__result, &writer, &report);
	if (!sealed)
		report.dwarf = DWARF_STATE_UNSEALED;
	return sealed_writer__end(&writer, err, &report);
}

/* False: the parent has gone. */
static bool next_question(struct sealed_child_request *request, uint64_t *addresses)
{
	struct message_buffer part;
	size_t count = 0;

	do {
		if (message__read(SEALED_SOCKET, &part) <= 0 ||
		    part.frame.size / sizeof(*addresses) > SEALED_QUESTION_MAX - count)
			return false;
		memcpy(addresses + count, part.bytes, part.frame.size);
		count += part.frame.size / sizeof(*addresses);
	} while (part.frame.ticket);
	request->addresses = addresses;
	request->count = count;
	request->wants_index = part.frame.flags == MESSAGE_DONE;
	return true;
}

static int send_index(const struct sealed_child_request *request, struct module *module)
{
	struct sealed_writer writer = {};
	size_t size = 0;
	void *data = NULL;

	if (module__index(module, request->addresses, request->count, &data, &size))
		size = 0;
	return sealed_writer__index(&writer, data, size);
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
	while (!err && !request->wants_index && next_question(request, addresses));
	return err || !request->wants_index ? err : send_index(request, module);
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

/* Before it is sealed. */
static const uint64_t *read_addresses(const struct sealed_child_request *request)
{
	uint64_t *addresses = calloc(request->count + 1, sizeof(*addresses));
	size_t size = request->count * sizeof(*addresses);

	if (!addresses || pread_full(request->addresses_fd, addresses, size, 0) != (ssize_t)size)
		_exit(EXIT_FAILURE);
	close(request->addresses_fd);
	return addresses;
}

static int run_sealed(const struct child_self *self)
{
	struct sealed_child_request request = *(const struct sealed_child_request *)self->data;
	bool sealed;

	request.addresses = read_addresses(&request);
	sealed = !seal(self, &request.files);
	return work_on_module(&request, sealed);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static const struct child_plan PLAN = {
	.class = HELPER_SYMBOLS, .run = run_sealed, .type = SOCK_SEQPACKET};

int sealed_child__start_keeper(pid_t *keeper, int *control)
{
	return keeper__start(HELPER_SEALED_KEEPER, &PLAN, keeper, control);
}

/* A file gets the number that it will have in the child. */
static void pass(int *file, int *fds, size_t *count)
{
	if (*file < 0)
		return;
	fds[*count] = *file;
	*file = CHILD_FIRST_FD + (int)(*count)++;
}

/* The ticket: addresses that follow. MESSAGE_DONE: there will be no other request, the index is wanted. */
int sealed_child__request(int socket, const uint64_t *addresses, size_t count, bool wants_index)
{
	uint32_t flags = wants_index ? MESSAGE_DONE : 0;
	int err;

	do {
		size_t part = min_u64(count, MESSAGE_SIZE_MAX / sizeof(*addresses));

		count -= part;
		err = message__send(socket,
				    &(struct message){.frame = {.ticket = count,
								.flags = flags,
								.size = part * sizeof(*addresses)},
						      .bytes = addresses},
				    MSG_DONTWAIT);
		addresses += part;
	} while (count && !err);
	return err;
}

pid_t sealed_child__start(const struct sealed_child_request *wanted, int keeper, int *socket)
{
	_cleanup_close_ int addresses = memory_with("addresses", wanted->addresses,
						    wanted->count * sizeof(*wanted->addresses));
	struct sealed_child_request request = *wanted;
	struct child_plan plan = PLAN;
	int fds[4];

	if (addresses < 0)
		return addresses;
	request.addresses_fd = addresses;
	pass(&request.files.elf_fd, fds, &plan.fd_count);
	pass(&request.files.debug_fd, fds, &plan.fd_count);
	pass(&request.files.alt_fd, fds, &plan.fd_count);
	pass(&request.addresses_fd, fds, &plan.fd_count);
	plan.fds = fds;
	plan.data = &request;
	plan.size = sizeof(request);
	plan.confine = request.limits;
	return keeper < 0 ? child__start(&plan, socket) : keeper__fork(keeper, &plan, true, socket);
}
