/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of kernel code in perf.data: those of the running kernel, if it is the one that was recorded.
 */
#ifndef STREAM_PERF_PERF_KERNEL_H
#define STREAM_PERF_PERF_KERNEL_H

#include <sys/utsname.h>

#include "stream/event_queue.h"
#include "stream/perf/perf_data.h"
#include "stream/perf/perf_file.h"

#define PERF_KERNEL_RANGES_MAX 65536u

struct perf_range {
	uint64_t start, end;
	char module[64];
	bool is_here; /* the module is loaded at the same address now */
};

struct perf_kernel {
	bool is_sampled;
	char symbol[64];  /* of the kernel's image, which was at … */
	uint64_t address; /* … when it was recorded; 0: unknown */
	VEC(struct perf_range) modules;
	uint8_t build_id_size;
	uint8_t build_id[BUILD_ID_SIZE];
};

void perf_kernel__fini(struct perf_kernel *kernel);

/* What shows whether the running kernel is the one that was recorded, and its names. */
struct running_kernel {
	int kallsyms, modules; /* descriptors of these files in /proc, read once; -1: none */
	char build_id[2 * BUILD_ID_SIZE + 1]; /* hexadecimal digits; "": unknown */
	struct utsname name;
};

void running_kernel__open(struct running_kernel *kernel);
void running_kernel__close(struct running_kernel *kernel);

/* A mapping of the kernel or of a module; others have no effect. 0 or -ENOMEM. */
int perf_kernel__map(struct perf_kernel *kernel, const struct perf_event_header *record,
		     struct cursor body);
/* The build-id of the kernel, from the features if no mapping had it. */
void perf_kernel__settle(struct perf_kernel *kernel, const struct perf_file *file);

/* "/lib/modules/6.1.0/kernel/net/ip-tables.ko.xz" and "[ip_tables]" are "ip_tables", as in kallsyms. */
void perf_kernel__module_name(const char *path, char *name, size_t size);

/* As hexadecimal digits; "": unknown. */
const char *perf_kernel__build_id(const struct perf_kernel *kernel, char *text, size_t size);

/*
 * /proc/kallsyms as events of time 0, if the running kernel (`here`) is that of the recording. Addresses
 * are those of the recording. Modules are left out where they cannot be at the same place: the kernel was
 * started again, or no module of that name begins there. 0, -ENOMEM, or what `push` returned.
 */
int perf_kernel__emit_names(const struct perf_kernel *kernel, const struct running_kernel *here,
			    const struct perf_facts *facts, event_push_fn push, void *context,
			    enum perf_kernel_names *names);

#endif
