/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of perf about processes, mappings and code of the kernel, as events: of the side-band of a
 * live session, and of a perf.data file.
 */
#ifndef STREAM_PERF_SIDEBAND_H
#define STREAM_PERF_SIDEBAND_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "stream/event_queue.h" /* event_push_fn */

#define SIDEBAND_RECORD_MAX (8u * 1024) /* a mapping, with its path */

struct sideband_lost {
	struct perf_event_header header;
	uint64_t id, lost;
};

/* Room for the events of variable size. */
union sideband_space {
	struct mmap_event mmap;
	struct group_made_event group;
	struct kallsyms_event kallsyms;
	char space[sizeof(struct mmap_event) + EVENT_PATH_MAX + EVENT_ALIGN];
};

/* Bytes of a record of this type before its text or its sample_id; 0: a type that is not read. */
size_t sideband_fixed_size(uint32_t type);

/*
 * A record as an event of `time`, to `sink`. It is aligned to 8 bytes, has its fixed size, and behind
 * it `text_size` bytes of text. Types that are none (PERF_RECORD_LOST too, which is for the caller to
 * judge), mappings that are not executable and tasks that have no number here give nothing: 0.
 * -EBADMSG: the record contradicts itself.
 */
int sideband_event(const struct perf_event_header *record, size_t text_size, uint64_t time,
		   union sideband_space *out, event_push_fn sink, void *context);

#endif
