/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc/kallsyms, filtered while it is read: about 8 MB, of which code symbols are two thirds.
 *
 * The kernel returns a page at a time. Lines of code symbols are copied into the current event; a full
 * event is pushed. As long as all addresses are zero, only a few lines are kept: if that does not change,
 * they are sufficient to know that the symbols are hidden.
 */
#include "procfs/kernel_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define READ_STEP  (64u * 1024)
#define ZERO_LINES 16u

_Static_assert(sizeof(struct kallsyms_event) + KALLSYMS_PIECE_MAX + EVENT_ALIGN <= EVENT_SIZE_MAX,
	       "a piece fits an event");

struct kallsyms_copy {
	struct kallsyms_event *event;
	uint64_t time;
	event_push_fn push;
	void *context;
	uint32_t piece;
	uint32_t zero_lines;
	bool seen_address; /* other than zero */
};

static int push_piece(struct kallsyms_copy *copy)
{
	struct kallsyms_event *e = copy->event;
	size_t size = sizeof(*e) + e->text_size;
	size_t aligned = event_aligned(size);
	int err;

	memset((char *)e + size, 0, aligned - size);
	e->header = (struct event_header){
		.size = aligned,
		.type = EVENT_KALLSYMS,
		.flags = EVENT_FROM_PROC,
		.time = copy->time,
	};
	e->piece = copy->piece++;
	err = copy->push(copy->context, &e->header);
	e->text_size = 0;
	return err;
}

/* "address type name": is it code? */
static bool is_code(const char *line, const char *end)
{
	const char *space = memchr(line, ' ', end - line);

	return space && end - space > 3 && space[2] == ' ' && strchr("tTwWi", space[1]);
}

static bool is_zero(const char *line)
{
	while (*line == '0')
		line++;
	return *line == ' ';
}

/* One line with its newline. */
static int take_line(struct kallsyms_copy *copy, const char *line, const char *end)
{
	size_t size = end - line;
	int err;

	if (!is_code(line, end) || size > KALLSYMS_PIECE_MAX)
		return 0;
	if (!copy->seen_address) {
		copy->seen_address = !is_zero(line);
		if (!copy->seen_address && copy->zero_lines++ >= ZERO_LINES)
			return 0;
	}
	if (copy->event->text_size + size > KALLSYMS_PIECE_MAX) {
		err = push_piece(copy);
		if (err)
			return err;
	}
	memcpy(copy->event->text + copy->event->text_size, line, size);
	copy->event->text_size += size;
	return 0;
}

/* Processes the whole lines of the first *used bytes; the rest moves to the front. */
static int take_lines(struct kallsyms_copy *copy, char *text, size_t *used)
{
	char *line = text, *end = text + *used, *newline;
	int err = 0;

	while (!err && (newline = memchr(line, '\n', end - line))) {
		err = take_line(copy, line, newline + 1);
		line = newline + 1;
	}
	*used = end - line;
	memmove(text, line, *used);
	return err;
}

int kernel_snapshot__kallsyms_fd(int fd, uint64_t time, event_push_fn push, void *context)
{
	_cleanup_free_ char *text = malloc(READ_STEP);
	_cleanup_free_ struct kallsyms_event *event = malloc(EVENT_SIZE_MAX);
	struct kallsyms_copy copy = {
		.event = event, .time = time, .push = push, .context = context};
	size_t used = 0;
	int err = 0;

	if (!text || !event)
		return -ENOMEM;
	memset(event, 0, sizeof(*event));
	for (;;) {
		ssize_t got = read(fd, text + used, READ_STEP - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		used += got;
		err = take_lines(&copy, text, &used);
		if (err)
			return err;
		if (used == READ_STEP)
			used = 0; /* no line of ours is that long */
	}
	return event->text_size > 0 ? push_piece(&copy) : 0;
}

int kernel_snapshot__kallsyms(uint64_t time, event_push_fn push, void *context)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : kernel_snapshot__kallsyms_fd(fd, time, push, context);
}
