/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/capture/perf_events.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <sysprof/bpf_shared.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "stream/kernel_code.h"

/* ---- opening --------------------------------------------------------------------------------- */

int perf_event_open_attr(struct perf_event_attr *attr, int pid, int cpu)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int output_event_open(int cpu, uint32_t mark)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
		.watermark = 1,
		.wakeup_watermark = mark,
	};

	return perf_event_open_attr(&attr, -1, cpu);
}

/* The words that follow each record of the side-band, in the order of perf's sample_id. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};
#define SAMPLE_ID_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

int sideband_event_open(int cpu, uint32_t mark, bool groups, bool *build_ids)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.mmap = 1, /* executable mappings; mmap_data would be the others */
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.ksymbol = 1, /* code that the kernel makes: BPF programs, trampolines */
		.build_id = 1,
		.cgroup = groups, /* 5.7 */
		.sample_id_all = 1,
		.sample_type = SAMPLE_ID_TYPE,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = mark,
	};
	int fd = perf_event_open_attr(&attr, -1, cpu);

	if (fd == -EINVAL) {
		attr.build_id = 0;
		fd = perf_event_open_attr(&attr, -1, cpu);
	}
	if (fd >= 0)
		*build_ids = attr.build_id;
	return fd;
}

const char *tsc_refused(void)
{
	_cleanup_free_ char *cpuinfo = NULL;
	char clocks[256], *flags;
	size_t size;

	if (read_file_at(AT_FDCWD, "/proc/cpuinfo", 64u << 20, &cpuinfo, &size))
		return "/proc/cpuinfo cannot be read";
	flags = strstr(cpuinfo, "\nflags");
	if (flags)
		flags[1 + strcspn(flags + 1, "\n")] = '\0';
	if (!flags || !strstr(flags, " constant_tsc") || !strstr(flags, " nonstop_tsc"))
		return "the CPU has no invariant TSC (constant_tsc, nonstop_tsc)";
	if (read_line("/sys/devices/system/clocksource/clocksource0/available_clocksource", clocks,
		      sizeof(clocks)) ||
	    !strstr(clocks, "tsc"))
		return "the kernel does not trust the TSC (it is no available clocksource)";
	return NULL;
}

int tsc_event_open(int cpu)
{
	struct perf_event_attr attr = {};
	char text[64];
	const char *digits = text + strlen("event=0x");
	uint64_t value;

	/* the numbers differ from machine to machine */
	if (read_line("/sys/bus/event_source/devices/msr/type", text, sizeof(text)) ||
	    parse_u64(text, 0, UINT32_MAX, &value))
		return -ENOENT;
	attr.type = value;
	if (read_line("/sys/bus/event_source/devices/msr/events/tsc", text, sizeof(text)) ||
	    strncmp(text, "event=0x", strlen("event=0x")) || parse_hex(&digits, &value))
		return -ENOENT;
	attr.config = value;
	return perf_event_open_attr(&attr, -1, cpu);
}

/* ---- records --------------------------------------------------------------------------------- */

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
_Static_assert(sizeof(struct mmap2_record) + EVENT_PATH_MAX + sizeof(struct sample_id) <=
		       SIDEBAND_RECORD_MAX,
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

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
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

static int decode_mmap(struct sideband_decoder *d, const struct mmap2_record *r, size_t text_size,
		       uint64_t time, event_push_fn sink, void *context)
{
	struct mmap_event *event = &d->out.mmap;
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

static int decode_group(struct sideband_decoder *d, const struct group_record *r, size_t text_size,
			uint64_t time, event_push_fn sink, void *context)
{
	struct group_made_event *event = &d->out.group;
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
static int decode_ksymbol(struct sideband_decoder *d, const struct ksymbol_record *r,
			  size_t text_size, uint64_t time, event_push_fn sink, void *context)
{
	struct kallsyms_event *event = &d->out.kallsyms;
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

static int decode_lost(const struct sideband_decoder *d, const struct lost_record *r, uint64_t time,
		       event_push_fn sink, void *context)
{
	struct lost_event event = {
		.source = LOST_SIDEBAND, .cpu = d->cpu, .count = r->lost, .since = d->last_time};

	return emit_event(&event.header, EVENT_LOST, 0, sizeof(event), time, sink, context);
}

/* Bytes of a record of this type before its text or its sample_id; 0: a kind we do not read. */
static size_t fixed_size(uint32_t type)
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
		return sizeof(struct lost_record);
	default:
		return 0;
	}
}

/*
 * The sample_id, which ends the record except for symbols: the kernel hands one record to all
 * listeners of this CPU, and lengthens it by a sample_id for each. The bytes behind ours are old
 * contents of the ring. (perf_event_ksymbol_output() up to 6.18; other records restore the size.)
 */
static const struct sample_id *sample_id_of(const struct perf_event_header *record, size_t fixed,
					    size_t text_size)
{
	const char *text = (const char *)record + fixed;

	if (record->type == PERF_RECORD_KSYMBOL)
		text_size = min_u64(text_size, event_aligned(strnlen(text, text_size) + 1));
	return (const struct sample_id *)(text + text_size);
}

/* Such an event would wait in a queue forever. */
static bool is_in_the_future(struct sideband_decoder *d, uint64_t time)
{
	if (time <= d->now)
		return false;
	d->now = monotonic_ns();
	return time > d->now;
}

int sideband_decode(struct sideband_decoder *d, const struct perf_event_header *record,
		    event_push_fn sink, void *context)
{
	size_t fixed = fixed_size(record->type), text_size;
	uint64_t time;
	int err = 0;

	if (!fixed)
		return 0;
	if (record->size < fixed + sizeof(struct sample_id))
		return -EBADMSG;
	text_size = record->size - fixed - sizeof(struct sample_id);
	time = sample_id_of(record, fixed, text_size)->time;
	if (is_in_the_future(d, time))
		return -EBADMSG;
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		err = decode_mmap(d, (const void *)record, text_size, time, sink, context);
		break;
	case PERF_RECORD_COMM:
		err = decode_comm((const void *)record, text_size, time, sink, context);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		err = decode_task((const void *)record, time, sink, context);
		break;
	case PERF_RECORD_CGROUP:
		err = decode_group(d, (const void *)record, text_size, time, sink, context);
		break;
	case PERF_RECORD_KSYMBOL:
		err = decode_ksymbol(d, (const void *)record, text_size, time, sink, context);
		break;
	case PERF_RECORD_LOST:
		err = decode_lost(d, (const void *)record, time, sink, context);
		break;
	}
	d->last_time = time;
	return err;
}

/* The kernel's PERF_SAMPLE_RAW, and behind it the program's event. */
struct output_record {
	struct perf_event_header header;
	uint32_t raw_size;
	unsigned char lead[OUTPUT_LEAD_SIZE];
	struct event_header event;
};
_Static_assert(offsetof(struct output_record, event) == OUTPUT_OVERHEAD, "what precedes it");
_Static_assert(OUTPUT_OVERHEAD % EVENT_ALIGN == 0, "events are aligned in the ring");

struct event_header *output_decode(struct perf_event_header *record)
{
	struct output_record *r = (struct output_record *)record;
	size_t available;

	if (record->type != PERF_RECORD_SAMPLE || record->size < sizeof(*r))
		return NULL;
	available = record->size - offsetof(struct output_record, event);
	if (r->event.size < sizeof(r->event) || r->event.size > available ||
	    r->event.size % EVENT_ALIGN)
		return NULL;
	return &r->event;
}
