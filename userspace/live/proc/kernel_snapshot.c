/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc/kallsyms, filtered while it is read: about 8 MB, of which code symbols are two thirds.
 *
 * The kernel returns a page at a time. Lines of code symbols are copied into the current event; a
 * full event is pushed. While all addresses are zero, only a few lines are kept: if that does not
 * change, they show that the symbols are hidden.
 */
#include "live/proc/kernel_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/io.h"
#include "base/log.h"
#include "base/minmax.h"

#define LINE_MAX_READ (64u * 1024) /* no line of ours is that long */
#define ZERO_LINES    16u

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
	bool modules;	   /* only symbols that are not of the image */
};

static int push_piece(struct kallsyms_copy *copy, bool last)
{
	struct kallsyms_event *e = copy->event;
	size_t size = sizeof(*e) + e->text_size;
	size_t aligned = event_aligned(size);
	int err;

	memset((char *)e + size, 0, aligned - size);
	e->header = (struct event_header){
		.size = aligned,
		.type = EVENT_KALLSYMS,
		.flags = EVENT_FROM_PROC | (copy->modules ? EVENT_KALLSYMS_MODULES : 0) |
			 (last ? EVENT_KALLSYMS_LAST : 0),
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

/* "[module]" is the end of the line. */
static bool is_of_module(const char *line, const char *end)
{
	return end - line > 2 && end[-2] == ']';
}

/* A line_fn. */
static int take_line(void *context, char *line, size_t length)
{
	struct kallsyms_copy *copy = context;
	const char *end = line + length + 1; /* with its newline */
	size_t size = end - line;
	int err;

	if (!is_code(line, end) || size > KALLSYMS_PIECE_MAX)
		return 0;
	if (!copy->seen_address) {
		copy->seen_address = !is_zero(line);
		if (!copy->seen_address && copy->zero_lines++ >= ZERO_LINES)
			return 0;
	}
	if (copy->modules && !is_of_module(line, end))
		return 0;
	if (copy->event->text_size + size > KALLSYMS_PIECE_MAX) {
		err = push_piece(copy, false);
		if (err)
			return err;
	}
	memcpy(copy->event->text + copy->event->text_size, line, size);
	copy->event->text_size += size;
	return 0;
}

int kernel_snapshot__kallsyms_fd(int fd, uint64_t time, event_push_fn push, void *context)
{
	_cleanup_free_ struct kallsyms_event *event = calloc(1, EVENT_SIZE_MAX);
	struct kallsyms_copy copy = {
		.event = event, .time = time, .push = push, .context = context};
	int err = event ? read_lines(fd, LINE_MAX_READ, take_line, &copy) : -ENOMEM;

	return !err && event->text_size > 0 ? push_piece(&copy, true) : err;
}

int kernel_snapshot__modules_fd(int fd, uint64_t time, event_push_fn push, void *context)
{
	_cleanup_free_ struct kallsyms_event *event = calloc(1, EVENT_SIZE_MAX);
	struct kallsyms_copy copy = {
		.event = event, .time = time, .push = push, .context = context, .modules = true};
	int err = event ? read_lines(fd, LINE_MAX_READ, take_line, &copy) : -ENOMEM;

	if (!err && !copy.seen_address)
		return 1;
	return err ? err : push_piece(&copy, true);
}

int kernel_snapshot__kallsyms(uint64_t time, event_push_fn push, void *context)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : kernel_snapshot__kallsyms_fd(fd, time, push, context);
}

#define LIST_MAX (4u << 20) /* bytes */

/* "NAME SIZE USERS USED_BY STATE ADDRESS" without USERS, USED_BY, STATE: they change alone. */
static uint64_t hash_line(uint64_t hash, const char *line)
{
	for (int field = 0; *line && *line != '\n'; field++) {
		size_t size = strcspn(line, " \n");

		if (field <= 1 || field == 5)
			hash = hash_combine(hash, hash_bytes(line, size));
		line += size;
		line += *line == ' ';
	}
	return hash;
}

/* 0: there is no list, as in a kernel without modules. */
static uint64_t hash_modules(const struct kernel_modules *m)
{
	_cleanup_free_ char *text = NULL;
	uint64_t hash = 1;
	size_t size;

	if (read_file_at(AT_FDCWD, m->list, LIST_MAX, &text, &size))
		return 0;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		hash = hash_line(hash, line);
	}
	return hash | 1;
}

void kernel_modules__init(struct kernel_modules *m, uint64_t now)
{
	*m = (struct kernel_modules){
		.list = "/proc/modules",
		.symbols = "/proc/kallsyms",
		.interval = KERNEL_MODULES_INTERVAL,
		.next = now + KERNEL_MODULES_INTERVAL,
		.looked = now,
	};
	m->loaded = hash_modules(m);
}

void kernel_modules__want(struct kernel_modules *m)
{
	m->wanted = true;
}

static int read_symbols(struct kernel_modules *m, uint64_t now, event_push_fn push, void *context)
{
	_cleanup_close_ int fd = open(m->symbols, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? 1 : kernel_snapshot__modules_fd(fd, now, push, context);
}

/* Have modules come or gone? */
static bool have_changed(struct kernel_modules *m, uint64_t now)
{
	uint64_t before = m->loaded;

	if (now < m->looked + KERNEL_MODULES_INTERVAL)
		return false;
	m->looked = now;
	m->loaded = hash_modules(m);
	return m->loaded != before;
}

int kernel_modules__look(struct kernel_modules *m, uint64_t now, event_push_fn push, void *context)
{
	bool changed = have_changed(m, now);
	int err;

	if (!changed && !(m->wanted && now >= m->next))
		return 0;
	m->interval = changed ? KERNEL_MODULES_INTERVAL
			      : min_u64(2 * m->interval, KERNEL_MODULES_INTERVAL_MAX);
	m->next = now + m->interval;
	m->wanted = false;
	m->readings++;
	err = read_symbols(m, now, push, context);
	log_debug(LOG_PROCFS, "symbols of the kernel's modules: read again, since %s%s",
		  changed ? "modules have come or gone" : "addresses have no names",
		  err > 0 ? ": they are hidden" : "");
	return err < 0 ? err : 0;
}
