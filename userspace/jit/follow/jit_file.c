/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The modification time is the time of the last write, and so of the last line. From Linux 6.13 on
 * it is exact if the file was checked since the write before; older kernels use the last timer
 * tick, which is earlier but not wrong. But a write sets the time before its bytes are visible (up
 * to 50 us measured, longer if it waits for the disk), so it may be the next line's. So a line is
 * held until the next one shows that it has its own time, or until no write can take that long.
 *
 * If the file is as long as before or longer, and has the same bytes before the read position, it
 * was appended to; otherwise it is a new file. It is read until there are no more bytes; the time
 * before the last attempt is the earliest possible time of the next line.
 */
#include "jit/follow/jit_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/proc_task.h"
#include "jit/follow/jit_channel.h"

#define FILE_MAX       (512ull << 20)  /* bytes that are read of one file, */
#define FILE_GROWTH    600000000000ull /* and as many again per this time, ns */
#define SNAPSHOT_MAX   (32u << 20)     /* larger ones are read in pieces */
#define WRITE_PATIENCE 50000000ull     /* ns from a write's time to its bytes */
#define PIECE_MAX      (EVENT_SIZE_MAX - sizeof(struct jit_bytes_event))

union piece {
	struct jit_bytes_event event;
	char room[EVENT_SIZE_MAX];
};

/* CLOCK_REALTIME ns */
static uint64_t mtime_of(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000ull + (uint64_t)st->st_mtim.tv_nsec;
}

static int report_state(const struct jit_file *f, const char *path, uint64_t now)
{
	union jit_file_room e;

	jit_file_room__fill(&e, path,
			    &(struct jit_file_event){.header.time = now,
						     .pid = f->owner.pid,
						     .file = f->number,
						     .process_start = f->owner.start,
						     .kind = f->kind,
						     .state = f->state,
						     .user = f->owner.user});
	return f->sink.push(f->sink.context, &e.event.header);
}

/* Only of a clock that differs. */
static int report_clock(const struct jit_file *f, uint64_t now)
{
	int64_t ahead = 0;
	bool known = !proc_clock_ahead(f->owner.pid, &ahead);
	struct jit_clock_event e = {
		.header = {.size = sizeof(e), .type = EVENT_JIT_CLOCK, .time = now},
		.file = f->number,
		.known = known,
		.ahead = ahead,
	};

	return known && !ahead ? 0 : f->sink.push(f->sink.context, &e.header);
}

int jit_file__begin(struct jit_file *f, uint32_t number, enum jit_file_kind kind,
		    const struct jit_owner *owner, struct jit_found *found, uint64_t now,
		    const struct jit_file_sink *sink)
{
	int err;

	*f = (struct jit_file){
		.number = number,
		.owner = *owner,
		.kind = kind,
		.state = found->state,
		.fd = found->fd,
		.device = found->st.st_dev,
		.inode = found->st.st_ino,
		.found_size = (uint64_t)found->st.st_size,
		.found_mtime = mtime_of(&found->st),
		.is_linked = found->st.st_nlink > 1,
		.named_at = now,
		.began = now,
		.sink = *sink,
	};
	found->fd = -1;
	/* HotSpot may be writing it now */
	if (f->fd >= 0 && f->state == JIT_FILE_STATE_FOLLOWED && kind == JIT_FILE_MAP &&
	    (!found->st.st_size || found->modified + JIT_FILE_REWRITE_PATIENCE > now))
		f->waits_since = now;
	err = report_state(f, found->path, now);
	return err || kind != JIT_FILE_DUMP || f->fd < 0 ? err : report_clock(f, now);
}

void jit_file__close(struct jit_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/* A rewrite may last until then; 0: there is none. */
static uint64_t rewritten_by(const struct jit_file *f)
{
	return f->waits_since && f->state == JIT_FILE_STATE_FOLLOWED
		       ? f->waits_since + JIT_FILE_REWRITE_PATIENCE
		       : 0;
}

uint64_t jit_file__wakes_at(const struct jit_file *f)
{
	uint64_t rewritten = rewritten_by(f), shown = f->held.size ? f->held.until : 0;

	return rewritten && (!shown || rewritten < shown) ? rewritten : shown;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

struct reading {
	struct jit_file *f;
	uint64_t after;
	bool goes_on;	 /* an earlier reading ended at `after`, so a single line may be timed */
	uint64_t before; /* 0: the time of reading each piece */
	uint32_t flags;	 /* of the next piece */
};

static void keep_tail(struct jit_file *f, const char *bytes, size_t size)
{
	unsigned int kept;

	if (size >= JIT_FILE_TAIL_SIZE) {
		memcpy(f->tail, bytes + size - JIT_FILE_TAIL_SIZE, JIT_FILE_TAIL_SIZE);
		f->tail_size = JIT_FILE_TAIL_SIZE;
		return;
	}
	kept = JIT_FILE_TAIL_SIZE - (unsigned int)size;
	kept = min_u64(kept, f->tail_size);
	memmove(f->tail, f->tail + f->tail_size - kept, kept);
	memcpy(f->tail + kept, bytes, size);
	f->tail_size = kept + (unsigned int)size;
}

static int report_piece(struct reading *r, union piece *piece, size_t size, uint64_t now)
{
	size_t whole = event_aligned(sizeof(piece->event) + size);
	uint64_t before = r->before ? r->before : now;

	memset(piece->event.bytes + size, 0, whole - sizeof(piece->event) - size);
	piece->event = (struct jit_bytes_event){
		.header = {.size = whole, .type = EVENT_JIT_BYTES, .time = now},
		.after = min_u64(r->after, before),
		.before = before,
		.file = r->f->number,
		.size = size,
		.flags = r->flags,
	};
	r->flags = 0;
	return r->f->sink.push(r->f->sink.context, &piece->event.header);
}

static int report_empty(struct reading *r)
{
	union piece piece;

	return report_piece(r, &piece, 0, monotonic_ns());
}

/* From here on all earlier entries are in doubt. */
static int stop_at_limit(struct reading *r, enum jit_file_state why)
{
	int err;

	r->f->state = why;
	r->flags = JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END;
	r->before = UINT64_MAX;
	err = r->f->kind == JIT_FILE_MAP ? report_empty(r) : 0;
	return err ? err : report_state(r->f, "", monotonic_ns());
}

/* A map has no NULs: they are where nothing was written. */
static bool is_hole(const struct jit_file *f, const char *bytes, size_t size)
{
	return f->kind == JIT_FILE_MAP && !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

/* ---- a single new line ----------------------------------------------------------------------- */

static int report_held(struct jit_file *f, bool sure)
{
	struct jit_held *held = &f->held;
	struct reading r = {
		.f = f,
		.after = sure ? held->after : held->doubtful,
		.before = held->before,
	};
	union piece piece;
	size_t size = held->size;

	if (!size)
		return 0;
	held->size = 0;
	memcpy(piece.event.bytes, held->line, size);
	return report_piece(&r, &piece, size, monotonic_ns());
}

/* Exactly one line, and the modification time may be its own. */
static bool is_last_write(const struct jit_file *f, bool whole, const char *bytes, size_t size)
{
	return f->kind == JIT_FILE_MAP && whole && f->last_write.size == f->offset &&
	       f->last_write.time && memchr(bytes, '\n', size) == bytes + size - 1;
}

/* False: not held; the line gets the times of the reading. */
static bool hold_line(struct reading *r, const char *line, size_t size)
{
	struct jit_file *f = r->f;
	uint64_t now = monotonic_ns(), time = f->last_write.time;

	if (time <= r->after || time > now || size > JIT_FILE_LINE_MAX)
		return false; /* users can set times */
	if (now > time + WRITE_PATIENCE) {
		r->after = time;
		return false;
	}
	f->held = (struct jit_held){
		.size = (unsigned int)size,
		.mtime = f->last_write.mtime,
		.after = time,
		.doubtful = r->after,
		.before = now,
		.until = time + WRITE_PATIENCE,
	};
	memcpy(f->held.line, line, size);
	return true;
}

/* No bytes follow it: reports it if it was held long enough. */
static int report_held_alone(struct jit_file *f, uint64_t now, bool settle)
{
	if (now < f->held.until && !settle)
		return 0;
	return report_held(f, now >= f->held.until && f->last_write.size == f->offset);
}

/* Grows with time, for programs that write for weeks. */
static uint64_t most_of(const struct jit_file *f, uint64_t now)
{
	if (f->is_linked)
		return JIT_LINKED_MAX;
	return FILE_MAX + (now - f->began) / 1000000 * (FILE_MAX / (FILE_GROWTH / 1000000));
}

static void note_end(struct jit_file *f)
{
	struct stat st;

	f->end_mtime = fstat(f->fd, &st) ? 0 : mtime_of(&st);
}

/* Reads up to the end, or JIT_READ_MAX bytes. 1: not at the end. */
static int read_on(struct reading *r)
{
	struct jit_file *f = r->f;
	static _Thread_local union piece piece;
	size_t done = 0;
	bool whole, last_write;

	while (done < JIT_READ_MAX) {
		uint64_t began = monotonic_ns();
		ssize_t size = pread(f->fd, piece.event.bytes, PIECE_MAX, (off_t)f->offset);
		int err;

		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0) {
			f->silent = began;
			f->at_end = true;
			note_end(f);
			return 0;
		}
		f->at_end = false;
		f->offset += size;
		f->reported += size;
		done += size;
		whole = !f->tail_size || f->tail[f->tail_size - 1] == '\n';
		keep_tail(f, piece.event.bytes, size);
		last_write = r->goes_on && is_last_write(f, whole, piece.event.bytes, size);
		/* these bytes show whether the time was the held line's */
		err = report_held(f, last_write && f->last_write.mtime != f->held.mtime);
		if (!err && !is_hole(f, piece.event.bytes, size) &&
		    !(last_write && hold_line(r, piece.event.bytes, size)))
			err = report_piece(r, &piece, size, monotonic_ns());
		if (err)
			return err;
		if (f->reported > most_of(f, began))
			return stop_at_limit(r, JIT_FILE_STATE_TOO_BIG);
	}
	return 1;
}

/* ---- what the file is ------------------------------------------------------------------------ */

static bool is_as_it_was(const struct jit_file *f)
{
	char now[JIT_FILE_TAIL_SIZE];
	ssize_t size;

	if (!f->tail_size)
		return true;
	size = pread_full(f->fd, now, f->tail_size, f->offset - f->tail_size);
	return size == (ssize_t)f->tail_size && !memcmp(now, f->tail, f->tail_size);
}

static int begin_anew(struct jit_file *f, uint64_t now)
{
	int err = report_held(f, false);

	f->rewritten |= f->offset > 0;
	if (f->appended)
		f->listed = f->silent;
	f->appended = f->at_end = false;
	f->offset = 0;
	f->tail_size = 0;
	f->waits_since = now;
	return err;
}

#define CLOCK_STEP 100000 /* ns; a larger change: CLOCK_REALTIME was set */

static void note_write(struct jit_file *f, const struct stat *st)
{
	int64_t offset, step, time = 0;
	bool known = jit_clock_offset(&offset);

	f->is_linked |= st->st_nlink > 1;
	step = offset - f->last_write.offset;
	if (known && step < CLOCK_STEP && step > -CLOCK_STEP)
		time = (int64_t)mtime_of(st) - offset;
	f->last_write = (struct jit_write){
		.size = (uint64_t)st->st_size,
		.mtime = mtime_of(st),
		.time = time > 0 ? (uint64_t)time : 0,
		.offset = offset,
	};
}

/* Never grew, was opened and written, has the same length: it was rewritten with the same bytes. */
static bool is_next_snapshot(const struct jit_file *f, const struct jit_signs *signs,
			     const struct stat *st)
{
	return f->listed && !f->appended && f->opened && signs->modified && signs->closed &&
	       (uint64_t)st->st_size == f->offset;
}

static int look_for_rewriting(struct jit_file *f, const struct jit_signs *signs, uint64_t now)
{
	struct stat st;
	int err = 0;

	f->last_write.time = 0;
	if (f->waits_since || fstat(f->fd, &st))
		return 0;
	note_write(f, &st);
	if ((uint64_t)st.st_size < f->offset || (f->opened && !is_as_it_was(f)) ||
	    is_next_snapshot(f, signs, &st))
		err = begin_anew(f, now);
	f->opened = false;
	return err;
}

/* The file was closed, so the snapshot is complete. */
static int read_snapshot(struct jit_file *f)
{
	struct reading r = {
		.f = f,
		.after = f->listed,
		.before = monotonic_ns(),
		.flags = JIT_SNAPSHOT_BEGIN,
	};
	int more;

	f->waits_since = 0;
	f->rewritten = false;
	do
		more = read_on(&r);
	while (more > 0 && f->state == JIT_FILE_STATE_FOLLOWED);
	if (more < 0)
		return more;
	f->listed = r.before;
	r.flags |= JIT_SNAPSHOT_END;
	return report_empty(&r);
}

/*
 * The file was not closed: earlier entries are gone, new ones are reported as they come. If none
 * were reported, the only effect is that overlapping entries are in doubt.
 */
static int give_up_waiting(struct jit_file *f)
{
	struct reading r = {
		.f = f,
		.after = f->listed,
		.before = monotonic_ns(),
		.flags = JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END,
	};
	bool rewritten = f->rewritten;

	f->waits_since = 0;
	f->rewritten = false;
	return rewritten ? report_empty(&r) : 0;
}

/* Reads the new bytes; of a new file all, whose age is unknown. */
static int read_new(struct jit_file *f)
{
	bool first = !f->listed;
	uint64_t offset = f->offset;
	struct reading r = {
		.f = f,
		.after = first ? 0 : f->silent,
		.goes_on = !first,
	};
	int more = read_on(&r);

	if (first && f->at_end)
		f->listed = f->silent;
	else if (!first && f->offset > offset)
		f->appended = true;
	return more;
}

int jit_file__replace(struct jit_file *f, int fd, const struct stat *st, uint64_t now)
{
	int err;

	jit_file__close(f);
	f->fd = fd;
	f->device = st->st_dev;
	f->inode = st->st_ino;
	f->is_linked = st->st_nlink > 1;
	err = begin_anew(f, now);
	/* the new file may have been written since the last check of the name */
	f->silent = min_u64(f->silent, f->named_at);
	f->listed = min_u64(f->listed, f->named_at);
	f->named_at = now;
	return err;
}

int jit_file__give_up(struct jit_file *f, enum jit_file_state why)
{
	struct reading r = {.f = f, .after = f->silent};

	if (f->state != JIT_FILE_STATE_FOLLOWED)
		return 0;
	return report_held(f, false) ?: stop_at_limit(&r, why);
}

static bool has_changed(const struct jit_file *f)
{
	struct stat st;

	return !fstat(f->fd, &st) && mtime_of(&st) != f->found_mtime;
}

/* Something was written to an outdated file. */
static int revive_file(struct jit_file *f, uint64_t now)
{
	int err = begin_anew(f, now);

	f->state = JIT_FILE_STATE_FOLLOWED;
	return err ? err : report_state(f, "", now);
}

static bool is_larger(const struct jit_file *f, uint64_t size)
{
	struct stat st;

	return fstat(f->fd, &st) || (uint64_t)st.st_size > size;
}

void jit_file__glance(struct jit_file *f)
{
	uint64_t now = monotonic_ns();
	struct stat st;

	if (f->fd < 0 || !f->at_end || f->waits_since || fstat(f->fd, &st))
		return;
	if ((uint64_t)st.st_size == f->offset && mtime_of(&st) == f->end_mtime)
		f->silent = now;
}

int jit_file__read(struct jit_file *f, const struct jit_signs *signs, bool settle)
{
	uint64_t now = monotonic_ns();
	int err = 0, more;

	if (f->fd < 0 ||
	    (f->state != JIT_FILE_STATE_FOLLOWED && f->state != JIT_FILE_STATE_OUTDATED))
		return 0;
	f->opened |= signs->opened;
	if (f->state == JIT_FILE_STATE_OUTDATED && (!signs->modified || !has_changed(f)))
		return 0;
	if (f->state == JIT_FILE_STATE_OUTDATED)
		err = revive_file(f, now);
	err = err ? err : look_for_rewriting(f, signs, now);
	if (err)
		return err;
	if (f->waits_since && f->rewritten && signs->closed && !is_larger(f, SNAPSHOT_MAX))
		return read_snapshot(f);
	if (f->waits_since && !settle && !signs->closed && now < rewritten_by(f))
		return 0;
	if (f->waits_since)
		err = give_up_waiting(f);
	more = err ? err : read_new(f);
	err = more < 0 ? more : report_held_alone(f, now, settle);
	return err ? err : more;
}
