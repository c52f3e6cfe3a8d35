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

/*
 * Without build_id: the kernel hands one record to all listeners, and does not take the mark of a
 * build-id back (up to 6.18). Others would have it in records with an inode, and perf 6.1 crashes.
 */
int sideband_event_open(int cpu, uint32_t mark, bool groups)
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
		.ksymbol = 1,	  /* code that the kernel makes: BPF programs, trampolines */
		.cgroup = groups, /* 5.7 */
		.sample_id_all = 1,
		.sample_type = SAMPLE_ID_TYPE,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = mark,
	};

	return perf_event_open_attr(&attr, -1, cpu);
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

static int decode_lost(const struct sideband_decoder *d, const struct sideband_lost *r,
		       uint64_t time, event_push_fn sink, void *context)
{
	struct lost_event event = {
		.source = LOST_SIDEBAND, .cpu = d->cpu, .count = r->lost, .since = d->last_time};

	event.header =
		(struct event_header){.size = sizeof(event), .type = EVENT_LOST, .time = time};
	return sink(context, &event.header);
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

int sideband_decode(struct sideband_decoder *d, struct perf_event_header *record,
		    event_push_fn sink, void *context)
{
	size_t fixed = sideband_fixed_size(record->type), text_size;
	uint64_t time;
	int err;

	if (!fixed)
		return 0;
	if (record->size < fixed + sizeof(struct sample_id))
		return -EBADMSG;
	text_size = record->size - fixed - sizeof(struct sample_id);
	time = sample_id_of(record, fixed, text_size)->time;
	if (is_in_the_future(d, time))
		return -EBADMSG;
	if (record->type == PERF_RECORD_MMAP2) /* what another listener requested */
		record->misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
	err = record->type == PERF_RECORD_LOST
		      ? decode_lost(d, (const void *)record, time, sink, context)
		      : sideband_event(record, text_size, time, &d->out, sink, context);
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
