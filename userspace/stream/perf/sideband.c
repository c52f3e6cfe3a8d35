/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/perf/sideband.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/minmax.h"
#include "stream/kernel_code.h"

#define SAMPLE_ID_MAX 48u /* six words: linux/perf_event.h, struct sample_id */

/* As in the kernel's documentation of PERF_RECORD_MMAP2. */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, length, page_offset;
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, inode_generation;
		};
		struct {
			uint8_t build_id_size, reserved1;
			uint16_t reserved2;
			uint8_t build_id[BUILD_ID_SIZE];
		};
	};
	uint32_t protection, flags;
	char path[];
};
_Static_assert(sizeof(struct mmap2_record) + EVENT_PATH_MAX + SAMPLE_ID_MAX <= SIDEBAND_RECORD_MAX,
	       "the longest path");

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

struct group_record {
	struct perf_event_header header;
	uint64_t group;
	char path[];
};

struct task_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

/* Of PERF_RECORD_KSYMBOL. */
struct ksymbol_record {
	struct perf_event_header header;
	uint64_t address;
	uint32_t length;
	uint16_t type, flags;
	char name[];
};

static int emit_event(struct event_header *event, uint16_t type, uint16_t flags, size_t size,
		      uint64_t time, event_push_fn sink, void *context)
{
	event->size = size;
	event->type = type;
	event->flags = flags;
	event->time = time;
	return sink(context, event);
}

/* Does our pid namespace show the record's task? Others, and idle, are 0; a dead task can be -1. */
static bool names_task(uint32_t pid, uint32_t tid)
{
	return pid && tid && pid != UINT32_MAX && tid != UINT32_MAX;
}

/* Is there a file behind a mapping of this name? */
static bool names_file(const char *path)
{
	return path[0] == '/' && path[1] != '/';
}

/* Records have 15 bytes of the name of a mapping of the kernel's own, /proc has all of it. */
static const char *whole_name(const char *path, size_t *length)
{
	static const char LONGER[] = "[uprobes-trampoline]"; /* 6.18 */

	if (*length != 15 || memcmp(path, LONGER, *length))
		return path;
	*length = sizeof(LONGER) - 1;
	return LONGER;
}

static int decode_mmap(union sideband_space *out, const struct mmap2_record *r, size_t text_size,
		       uint64_t time, event_push_fn sink, void *context)
{
	struct mmap_event *event = &out->mmap;
	size_t length = strnlen(r->path, text_size), size;
	const char *path;
	uint16_t flags = 0;

	if (!(r->protection & PROT_EXEC) || !names_task(r->pid, r->tid))
		return 0;
	if (length == text_size)
		return -EBADMSG;
	path = whole_name(r->path, &length);
	length = min_u64(length, EVENT_PATH_MAX - 1);
	size = event_aligned(sizeof(*event) + length + 1);
	memset(event, 0, size);
	event->pid = r->pid;
	event->tid = r->tid;
	event->start = r->start;
	event->length = r->length;
	event->page_offset = r->page_offset;
	event->protection = r->protection;
	event->map_flags = r->flags;
	if (r->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		if (r->build_id_size > BUILD_ID_SIZE)
			return -EBADMSG;
		event->build_id_size = r->build_id_size;
		memcpy(event->build_id, r->build_id, r->build_id_size);
		flags = r->build_id_size ? EVENT_BUILD_ID : 0;
	} else {
		event->major = r->major;
		event->minor = r->minor;
		event->inode = r->inode;
		event->inode_generation = r->inode_generation;
	}
	memcpy(event->path, path, length);
	event->file_state = names_file(event->path) ? FILE_STATE_UNOPENED : FILE_STATE_NONE;
	return emit_event(&event->header, EVENT_MMAP, flags, size, time, sink, context);
}

static int decode_comm(const struct comm_record *r, size_t text_size, uint64_t time,
		       event_push_fn sink, void *context)
{
	struct comm_event event = {.pid = r->pid, .tid = r->tid};
	size_t length = strnlen(r->comm, text_size);

	if (!names_task(r->pid, r->tid))
		return 0;
	length = min_u64(length, sizeof(event.comm) - 1);
	memcpy(event.comm, r->comm, length);
	return emit_event(&event.header, EVENT_COMM,
			  r->header.misc & PERF_RECORD_MISC_COMM_EXEC ? EVENT_COMM_EXEC : 0,
			  sizeof(event), time, sink, context);
}

static int decode_task(const struct task_record *r, uint64_t time, event_push_fn sink,
		       void *context)
{
	struct task_event event = {.pid = r->pid, .ppid = r->ppid, .tid = r->tid, .ptid = r->ptid};

	if (!names_task(r->pid, r->tid))
		return 0;
	return emit_event(&event.header,
			  r->header.type == PERF_RECORD_FORK ? EVENT_FORK : EVENT_EXIT, 0,
			  sizeof(event), time, sink, context);
}

static int decode_group(union sideband_space *out, const struct group_record *r, size_t text_size,
			uint64_t time, event_push_fn sink, void *context)
{
	struct group_made_event *event = &out->group;
	size_t length = strnlen(r->path, text_size), size;

	if (length == text_size)
		return -EBADMSG;
	if (!length || length >= EVENT_PATH_MAX) /* a part of a path would be another group's */
		return 0;
	size = event_aligned(sizeof(*event) + length + 1);
	memset(event, 0, size);
	event->group = r->group;
	memcpy(event->path, r->path, length);
	return emit_event(&event->header, EVENT_GROUP_MADE, 0, size, time, sink, context);
}

#define KSYMBOL_NAME_MAX 512

/* A line as in /proc/kallsyms, and its end. Of hidden code the kernel reports the place alone. */
static int decode_ksymbol(union sideband_space *out, const struct ksymbol_record *r,
			  size_t text_size, uint64_t time, event_push_fn sink, void *context)
{
	struct kallsyms_event *event = &out->kallsyms;
	size_t length = strnlen(r->name, text_size), size;
	const char *module = r->type == PERF_RECORD_KSYMBOL_TYPE_BPF	    ? "bpf"
			     : strncmp(r->name, "kprobe", strlen("kprobe")) ? "__builtin__ftrace"
									    : "__builtin__kprobes";
	bool has_gone = r->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;

	if (!r->address)
		return 0;
	if (length == text_size)
		return -EBADMSG;
	size = sizeof(*event) + KSYMBOL_NAME_MAX + 128;
	memset(event, 0, size);
	event->text_size = snprintf(event->text, size - sizeof(*event),
				    "%llx %c %.*s\t[%s]\n%llx a " KALLSYMS_END "\t[%s]\n",
				    (unsigned long long)r->address, length ? 't' : 'a',
				    (int)min_u64(length ?: 1, KSYMBOL_NAME_MAX),
				    length ? r->name : KERNEL_CODE_HIDDEN, module,
				    (unsigned long long)r->address + r->length, module);
	event->piece = 1;
	return emit_event(&event->header, EVENT_KALLSYMS,
			  EVENT_KALLSYMS_ADDED | (has_gone ? EVENT_KALLSYMS_REMOVED : 0),
			  event_aligned(sizeof(*event) + event->text_size), time, sink, context);
}

size_t sideband_fixed_size(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_MMAP2:
		return sizeof(struct mmap2_record);
	case PERF_RECORD_COMM:
		return sizeof(struct comm_record);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return sizeof(struct task_record);
	case PERF_RECORD_CGROUP:
		return sizeof(struct group_record);
	case PERF_RECORD_KSYMBOL:
		return sizeof(struct ksymbol_record);
	case PERF_RECORD_LOST:
		return sizeof(struct sideband_lost);
	default:
		return 0;
	}
}

int sideband_event(const struct perf_event_header *record, size_t text_size, uint64_t time,
		   union sideband_space *out, event_push_fn sink, void *context)
{
	const void *r = record;

	switch (record->type) {
	case PERF_RECORD_MMAP2:
		return decode_mmap(out, r, text_size, time, sink, context);
	case PERF_RECORD_COMM:
		return decode_comm(r, text_size, time, sink, context);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return decode_task(r, time, sink, context);
	case PERF_RECORD_CGROUP:
		return decode_group(out, r, text_size, time, sink, context);
	case PERF_RECORD_KSYMBOL:
		return decode_ksymbol(out, r, text_size, time, sink, context);
	default:
		return 0;
	}
}
