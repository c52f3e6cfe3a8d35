/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sealed child keeps its descriptors, gives up all else and resolves one module. It is forked by
 * its parent or a keeper, so no program has to be found on disk. Without a keeper it has a copy of
 * the parent's memory, which it can send to the parent only.
 */

#include "symbolize/sealed_child.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "elf/elf_file.h"
#include "elf/elf_image.h"
#include "symbolize/module_code.h"
#include "symbolize/module_index.h"
#include "symbolize/sealed.h"
#include "symbolize/sealed_protocol.h"
#include "tenants/filter.h"
#include "tenants/helper_process.h"
#include "tenants/keeper.h"
#include "tenants/message.h"

#define MEMORY_BASE (256ull << 20)

struct event_bytes {
	VEC(char) data;
};

/* The only message that carries a descriptor, and the last that may. */
static int greet_parent(int listener)
{
	return message__send(CHILD_SOCKET,
			     &(struct message){.frame = {.flags = MESSAGE_PROGRESS},
					       .fds = &listener,
					       .fd_count = listener >= 0},
			     0);
}

/* 0, or negative errno: the child is not sandboxed. */
static int seal(const struct child_self *self, const struct module_files *files)
{
	_cleanup_close_ int listener = -1;
	int sent;

	if (!self->confined && filter__notify_opens(self->filter, &listener))
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

/* Twice the size of what is to be inflated, and MEMORY_BASE. */
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

/* The result of resolving is sent with the report. */
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

/* An event_push_fn. */
static int keep_event(void *context, struct event_header *event)
{
	struct event_bytes *bytes = context;

	return vec_append(&bytes->data, (const char *)event, event->size);
}

static int send_code(const struct sealed_child_request *request, struct module *module)
{
	struct sealed_writer writer = {};
	struct event_bytes bytes = {};
	int err;

	if (module__code(module, request->code_addresses, request->code_count, request->code_least,
			 keep_event, &bytes))
		bytes.data.count = 0;
	err = sealed_writer__bytes(&writer, bytes.data.data, bytes.data.count);
	vec_free(&bytes.data);
	return err;
}

static int send_index(const struct sealed_child_request *request, struct module *module)
{
	struct sealed_writer writer = {};
	size_t size = 0;
	void *data = NULL;

	if (module__index(module, request->addresses, request->count, &data, &size))
		size = 0;
	return sealed_writer__bytes(&writer, data, size);
}

static int answer_and_more(const struct sealed_child_request *request)
{
	struct module *module;
	int err = module__open(&request->files, &module);

	err = err ?: answer(request, module, true);
	if (!err && request->code_count)
		err = send_code(request, module);
	if (!err && request->wants_index)
		err = send_index(request, module);
	return err;
}

static int work_on_module(struct sealed_child_request *request, bool sealed)
{
	int err;

	/* without a sandbox no foreign library reads another user's file */
	request->files.symbols_only |= !sealed;
	tighten_memory(&request->files, request->limits.memory);
	err = (request->wants_index || request->code_count) && sealed
		      ? answer_and_more(request)
		      : answer(request, NULL, sealed);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Before it is sealed. */
static const void *read_array(int fd, size_t count, size_t size)
{
	void *array = calloc(count + 1, size);

	if (!array || pread_full(fd, array, count * size, 0) != (ssize_t)(count * size))
		_exit(EXIT_FAILURE);
	close(fd);
	return array;
}

static int run_sealed(const struct child_self *self)
{
	struct sealed_child_request request = *(const struct sealed_child_request *)self->data;
	bool sealed;

	request.addresses = read_array(request.addresses_fd, request.count,
				       sizeof(*request.addresses));
	if (request.code_count)
		request.code_addresses = read_array(request.code_fd, request.code_count,
						    sizeof(*request.code_addresses));
	sealed = !seal(self, &request.files);
	return work_on_module(&request, sealed);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static const struct child_plan PLAN = {
	.class = HELPER_SYMBOLS, .run = run_sealed, .type = SOCK_SEQPACKET};

/* A file gets the number that it will have in the child. */
static void pass(int *file, int *fds, size_t *count)
{
	if (*file < 0)
		return;
	fds[*count] = *file;
	*file = CHILD_FIRST_FD + (int)(*count)++;
}

static int start_child(const struct sealed_child_request *wanted,
		       const struct helper_process *keeper, struct helper_process *child)
{
	_cleanup_close_ int addresses = memory_with("addresses", wanted->addresses,
						    wanted->count * sizeof(*wanted->addresses));
	_cleanup_close_ int code = -1;
	struct sealed_child_request request = *wanted;
	struct child_plan plan = PLAN;
	int fds[5];

	if (addresses < 0)
		return addresses;
	if (wanted->code_count)
		code = memory_with("code", wanted->code_addresses,
				   wanted->code_count * sizeof(*wanted->code_addresses));
	if (code < 0)
		request.code_count = 0;
	request.addresses_fd = addresses;
	request.code_fd = code;
	pass(&request.files.elf_fd, fds, &plan.fd_count);
	pass(&request.files.debug_fd, fds, &plan.fd_count);
	pass(&request.files.alt_fd, fds, &plan.fd_count);
	pass(&request.addresses_fd, fds, &plan.fd_count);
	pass(&request.code_fd, fds, &plan.fd_count);
	plan.fds = fds;
	plan.data = &request;
	plan.size = sizeof(request);
	plan.confine = request.limits;
	return helper_process__start(child, keeper, &plan);
}

/* ---- the keeper ------------------------------------------------------------------------------ */

struct sealed_keeper {
	struct helper_process process; /* or none any more */
};

struct sealed_keeper *sealed_keeper__new(void)
{
	struct sealed_keeper *k = calloc(1, sizeof(*k));

	if (k && keeper__start(HELPER_SEALED_KEEPER, &PLAN, &k->process))
		k->process = HELPER_PROCESS_NONE;
	return k;
}

/* Its children continue. */
static void end_keeper(struct sealed_keeper *k)
{
	if (k->process.pid)
		helper_process__end(&k->process, REAP_NS, NULL, NULL);
}

void sealed_keeper__free(struct sealed_keeper *k)
{
	if (!k)
		return;
	end_keeper(k);
	free(k);
}

int sealed_keeper__fork(struct sealed_keeper *k, const struct sealed_child_request *request,
			struct helper_process *child)
{
	bool has_keeper = k && k->process.pid;
	int err = start_child(request, has_keeper ? &k->process : NULL, child);

	if (!err || !has_keeper)
		return err;
	if (err == -EPIPE)
		end_keeper(k);
	return start_child(request, NULL, child);
}
