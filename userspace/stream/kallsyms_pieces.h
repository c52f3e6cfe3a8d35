/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of /proc/kallsyms as EVENT_KALLSYMS: code symbols alone, in pieces of whole lines. */
#ifndef STREAM_KALLSYMS_PIECES_H
#define STREAM_KALLSYMS_PIECES_H

#include <stdbool.h>

#include "stream/event_queue.h"

#define KALLSYMS_PIECE_MAX (60u * 1024)

struct kallsyms_pieces {
	struct kallsyms_event *event;
	uint64_t time;
	event_push_fn push;
	void *context;
	uint32_t piece;
	uint32_t zero_lines;
	bool seen_address; /* other than zero */
	bool modules; /* set it: only symbols that are not of the image, and an end that says so */
};

/* Events of `time` go to `push`. 0 or -ENOMEM; _fini in any case. */
int kallsyms_pieces__init(struct kallsyms_pieces *p, uint64_t time, event_push_fn push,
			  void *context);
void kallsyms_pieces__fini(struct kallsyms_pieces *p);

/* A line with its newline. 0 or what `push` returned. */
int kallsyms_pieces__add(struct kallsyms_pieces *p, const char *line, size_t size);
/* The last piece; of `modules` even an empty one. 0 or what `push` returned. */
int kallsyms_pieces__end(struct kallsyms_pieces *p);

/* "address type name [module]": the line ends with a module, or "[bpf]". */
bool kallsyms_line_has_module(const char *line, size_t size);

#endif
