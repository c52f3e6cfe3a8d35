/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/proc/process_facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/kernel_build_id.h"
#include "base/proc_task.h"
#include "stream/meta.h"

static int fatal_or_nothing(ssize_t err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE ? (int)err : 0;
}

static int finish_event(struct event_header *event, event_push_fn push, void *context)
{
	return push(context, event) ?: 1;
}

int process_facts__cgroup(int dir, const char *path, pid_t pid, uint64_t time, event_push_fn push,
			  void *context)
{
	char text[CGROUP_TEXT_MAX];
	union {
		struct cgroup_event event;
		char bytes[sizeof(struct cgroup_event) + EVENT_PATH_MAX + EVENT_ALIGN];
	} e;
	ssize_t size = proc_read_small(dir, path, text, sizeof(text));
	size_t length = 0, event_size;
	const char *group = size > 0 ? proc_parse_cgroup(text, size, &length) : NULL;

	if (!group || length >= EVENT_PATH_MAX || memchr(group, '\0', length))
		return size < 0 ? fatal_or_nothing(size) : 0;
	event_size = event_aligned(offsetof(struct cgroup_event, path) + length + 1);
	memset(&e, 0, event_size);
	e.event.header = (struct event_header){
		.size = event_size,
		.type = EVENT_CGROUP,
		.flags = EVENT_FROM_PROC,
		.time = time,
	};
	e.event.pid = pid;
	memcpy(e.event.path, group, length);
	return finish_event(&e.event.header, push, context);
}

int process_facts__push(pid_t pid, uint64_t since, enum facts_state state,
			const struct fact_text *facts, event_push_fn push, void *context)
{
	union {
		struct facts_event event;
		char bytes[sizeof(struct facts_event) + PROCESS_FACTS_SIZE];
	} e;
	size_t size = event_aligned(sizeof(e.event) + facts->size);

	memset(&e, 0, size);
	e.event = (struct facts_event){
		.header = {.size = (uint32_t)size,
			   .type = EVENT_FACTS,
			   .flags = EVENT_FROM_PROC,
			   .time = monotonic_ns()},
		.pid = (uint32_t)pid,
		.state = (uint8_t)state,
		.since = since,
		.count = facts->count,
		.size = (uint32_t)facts->size,
	};
	memcpy(e.event.text, facts->text, facts->size);
	return push(context, &e.event.header);
}

/* "size resident shared …", in pages */
static bool parse_statm(const char *text, size_t size, uint64_t *resident)
{
	const char *space = memchr(text, ' ', size);

	return space && !proc_parse_number(space + 1, text + size - space - 1, resident);
}

int process_facts__memory(int dir, const char *path, pid_t pid, uint16_t flags, uint64_t time,
			  event_push_fn push, void *context)
{
	struct memory_event e = {
		.header =
			{
				.size = sizeof(e),
				.type = EVENT_MEMORY,
				.flags = EVENT_FROM_PROC | flags,
				.time = time,
			},
		.pid = pid,
	};
	char text[128];
	ssize_t size = proc_read_small(dir, path, text, sizeof(text));
	uint64_t pages, bytes;

	if (size < 0)
		return fatal_or_nothing(size);
	if (!parse_statm(text, size, &pages) || !pages ||
	    __builtin_mul_overflow(pages, (uint64_t)sysconf(_SC_PAGESIZE), &bytes))
		return 0;
	e.resident = bytes;
	return finish_event(&e.header, push, context);
}

#define CPU_INFO_LINES 200 /* the first CPU's are enough */

/* The CPU's name from /proc/cpuinfo, if the architecture has one there. */
static int read_cpu_name(char *name, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/cpuinfo", "re");
	char line[512];

	if (!file)
		return -errno;
	for (int i = 0; i < CPU_INFO_LINES && fgets(line, sizeof(line), file); i++) {
		const char *colon = strchr(line, ':');

		if (!colon || strncmp(line, "model name", strlen("model name")))
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		snprintf(name, size, "%.*s", (int)strcspn(colon, "\n"), colon);
		return 0;
	}
	return -ENOENT;
}

int machine_facts__emit(event_push_fn push, void *context, uint64_t time)
{
	struct utsname machine = {};
	char text[512];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int err;

	uname(&machine);
	err = meta_event__emit(push, context, time, META_PRODUCT, "sysprof " SYSPROF_VERSION)
		      ?: meta_event__emit(push, context, time, META_HOSTNAME, machine.nodename)
		      ?: meta_event__emit(push, context, time, META_KERNEL_RELEASE, machine.release);
	if (!err && !kernel_build_id__read(text, sizeof(text)))
		err = meta_event__emit(push, context, time, META_KERNEL_BUILD_ID, text);
	if (!err && !read_line("/proc/sys/kernel/random/boot_id", text, sizeof(text)))
		err = meta_event__emit(push, context, time, META_BOOT_ID, text);
	if (!err)
		err = meta_event__emit(push, context, time, META_ARCHITECTURE, machine.machine);
	if (!err && !read_cpu_name(text, sizeof(text)))
		err = meta_event__emit(push, context, time, META_CPU, text);
	if (!err && cpus > 0) {
		snprintf(text, sizeof(text), "%ld", cpus);
		err = meta_event__emit(push, context, time, META_CPU_COUNT, text);
	}
	return err;
}
