/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sealed child keeps four descriptors, gives up all else and resolves one module. It is forked by
 * its parent or a keeper, so no program has to be found on disk. Without a keeper it has a copy of
 * the parent's memory, which it can send to the parent only.
 */

#include "symbolize/sealed_child.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "elf/elf_image.h"
#include "symbolize/module_index.h"
#include "symbolize/sealed.h"
#include "symbolize/sealed_protocol.h"
#include "tenants/filter.h"
#include "tenants/keeper.h"
#include "tenants/message.h"
#include "tenants/watch.h"

#define MEMORY_BASE (256ull << 20)
#define KEPT_MAX    16
#define KEPT_TIME   UINT64_C(90000000000) /* ns without a question */

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

/* False: the parent has gone. */
static bool next_question(struct sealed_child_request *request, uint64_t *addresses)
{
	struct message_buffer part;
	size_t count = 0;

	do {
		if (message__read(CHILD_SOCKET, &part) <= 0 ||
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

	/* without a sandbox no foreign library reads another user's file */
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

/* A file gets the number that it will have in the child. */
static void pass(int *file, int *fds, size_t *count)
{
	if (*file < 0)
		return;
	fds[*count] = *file;
	*file = CHILD_FIRST_FD + (int)(*count)++;
}

/* Ticket: number of addresses to follow. MESSAGE_DONE: the last request, an index is wanted. */
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

/* The child's pid; *socket is the caller's. `keeper`: its control, or -1: this process forks. */
static pid_t start_child(const struct sealed_child_request *wanted, int keeper, int *socket)
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

/* ---- children that are kept ------------------------------------------------------------------ */

struct pooled_child {
	struct symbol_key key;
	struct kept_child child;
	size_t bytes;
	uint64_t used_at; /* CLOCK_MONOTONIC ns */
};

struct sealed_pool {
	pid_t keeper;
	int control; /* -1: there is no keeper */
	size_t limit;
	VEC(struct pooled_child) places; /* in the order of their last request */
};

struct sealed_pool *sealed_pool__new(size_t bytes)
{
	struct sealed_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->limit = bytes;
	if (keeper__start(HELPER_SEALED_KEEPER, &PLAN, &p->keeper, &p->control))
		p->control = -1;
	return p;
}

static struct kept_child take_place(struct sealed_pool *p, size_t number)
{
	struct kept_child child = p->places.data[number].child;

	p->places.count--;
	memmove(&p->places.data[number], &p->places.data[number + 1],
		(p->places.count - number) * sizeof(*p->places.data));
	return child;
}

int sealed_pool__end(const struct kept_child *child, int *status, struct rusage *usage)
{
	int ignored, err = end_process(child->pid, REAP_NS, status ? status : &ignored, usage);

	close(child->socket);
	if (child->listener >= 0)
		close(child->listener);
	return err;
}

static void end_place(struct sealed_pool *p, size_t number)
{
	struct kept_child child = take_place(p, number);

	sealed_pool__end(&child, NULL, NULL);
}

/* Its children continue. */
static void end_keeper(struct sealed_pool *p)
{
	int status;

	if (p->control < 0)
		return;
	close(p->control);
	p->control = -1;
	end_process(p->keeper, REAP_NS, &status, NULL);
}

void sealed_pool__make_room(struct sealed_pool *p)
{
	while (p && p->places.count)
		end_place(p, p->places.count - 1);
}

void sealed_pool__free(struct sealed_pool *p)
{
	if (!p)
		return;
	sealed_pool__make_room(p);
	vec_free(&p->places);
	end_keeper(p);
	free(p);
}

pid_t sealed_pool__start(struct sealed_pool *p, const struct sealed_child_request *request,
			 int *socket)
{
	pid_t pid = start_child(request, p ? p->control : -1, socket);

	if (pid > 0 || !p || p->control < 0)
		return pid;
	if (pid == -EPIPE)
		end_keeper(p);
	return start_child(request, -1, socket);
}

bool sealed_pool__take(struct sealed_pool *p, const struct symbol_key *key,
		       struct kept_child *child)
{
	for (size_t i = 0; p && i < p->places.count; i++)
		if (!memcmp(&p->places.data[i].key, key, sizeof(*key))) {
			*child = take_place(p, i);
			return true;
		}
	return false;
}

/* Private pages: not those of its files, nor those that it shares with us. */
static size_t own_bytes(pid_t pid)
{
	char path[64], line[128];
	unsigned long long kilobytes, sum = 0;
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu kB", &kilobytes) == 1 ||
		    sscanf(line, "RssShmem: %llu kB", &kilobytes) == 1)
			sum += kilobytes << 10;
	return sum;
}

static size_t bytes_of_all(const struct sealed_pool *p)
{
	size_t sum = 0;

	for (size_t i = 0; i < p->places.count; i++)
		sum += p->places.data[i].bytes;
	return sum;
}

static bool is_worth_less(const struct pooled_child *a, const struct pooled_child *b)
{
	return (double)a->child.opening * (double)b->bytes <
	       (double)b->child.opening * (double)a->bytes;
}

static size_t least_worth(const struct sealed_pool *p)
{
	size_t least = 0;

	for (size_t i = 1; i < p->places.count; i++)
		if (is_worth_less(&p->places.data[i], &p->places.data[least]))
			least = i;
	return least;
}

bool sealed_pool__keeps(const struct sealed_pool *p)
{
	return p && p->limit;
}

void sealed_pool__limit(struct sealed_pool *p, size_t bytes)
{
	p->limit = bytes;
	while (p->places.count > KEPT_MAX || bytes_of_all(p) > p->limit)
		end_place(p, least_worth(p));
}

void sealed_pool__put(struct sealed_pool *p, const struct symbol_key *key,
		      const struct kept_child *child)
{
	struct pooled_child place = {.key = *key,
				     .child = *child,
				     .bytes = own_bytes(child->pid),
				     .used_at = monotonic_ns()};

	log_debug(LOG_SYMBOLS, "sealed child %d is kept: %.1f MB", child->pid,
		  place.bytes / 1048576.0);
	if (place.bytes > p->limit || vec_push(&p->places, place)) {
		sealed_pool__end(child, NULL, NULL);
		return;
	}
	sealed_pool__limit(p, p->limit);
}

void sealed_pool__tidy(struct sealed_pool *p)
{
	uint64_t now = monotonic_ns();

	while (p && p->places.count && now - p->places.data[0].used_at > KEPT_TIME)
		end_place(p, 0);
}
