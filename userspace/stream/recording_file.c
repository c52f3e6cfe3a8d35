/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunks of events on disk.
 *
 *   file header (64) | chunk header (48) | events | trailer (8) | chunk header | events | …
 *
 * A chunk is written with one write(2) when it is full or flushed. If the writer is killed, at most
 * the last chunk is broken. A chunk is self-contained: it has checksums, a sequence number and
 * first a clock anchor. If that is a copy of the last anchor, the reader does not pass it on again.
 *
 * Each chunk header repeats a random number of the file header: after damage the reader searches
 * for a chunk header, and a process could plant one in a recorded name.
 *
 * The reader trusts nothing: sizes are bounded before memory is allocated, headers and payloads
 * have checksums, and events are checked even in a sound chunk. A gap is reported as an EVENT_LOST
 * before the first event behind it.
 */
#include "stream/recording_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/gzip.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/output_file.h"
#include "base/vec.h"
#include "stream/event_decode.h"
#include "stream/event_widen.h"

#define FORMAT_VERSION	   2u
#define BYTE_ORDER_MARK	   0x01020304u
#define BYTE_ORDER_SWAPPED 0x04030201u
#define END_MARK	   0x444e4543u /* "CEND" on a little-endian machine */
#define CHUNK_FULL	   (1u << 20)  /* bytes at which a chunk ends */
#define PAYLOAD_MAX	   (16u << 20)
#define SEARCH_STEP	   (64u * 1024)
#define SEARCH_FIRST                                                                               \
	1024u /* then twice as much each time: the next chunk is often near, or many are */

static const char FILE_MAGIC[8] = {'S', 'Y', 'S', 'P', 'R', 'O', 'F', '\n'};
static const char CHUNK_MAGIC[8] = {'\x89', 'C', 'H', 'U', 'N', 'K', '\r', '\n'};

struct file_header {
	char magic[8];
	uint32_t byte_order;
	uint32_t version;
	uint32_t size; /* of this header; the first chunk follows */
	uint32_t flags;
	uint64_t start_realtime, start_monotonic;
	uint32_t file_id;
	uint32_t reserved[4];
	uint32_t crc; /* of the bytes before */
};

struct chunk_header {
	char magic[8];
	uint32_t sequence; /* from 0 */
	uint32_t event_count;
	uint64_t payload_size;
	uint64_t first_time, last_time;
	uint32_t file_id;
	uint32_t crc; /* of the bytes before */
};

struct chunk_trailer {
	uint32_t payload_crc;
	uint32_t end_mark;
};

_Static_assert(sizeof(struct file_header) == 64, "on disk");
_Static_assert(sizeof(struct chunk_header) == 48, "on disk");
_Static_assert(sizeof(struct chunk_trailer) == 8, "on disk");

/* ---- writing --------------------------------------------------------------------------------- */

/* The buffer has one chunk, after the file header if it is the first. */
#define BUFFER_SIZE                                                                                \
	(sizeof(struct file_header) + sizeof(struct chunk_header) + CHUNK_FULL + EVENT_SIZE_MAX +  \
	 sizeof(struct clock_anchor_event) + sizeof(struct chunk_trailer))

struct recording_writer {
	struct output_file *file;
	int fd;		/* of `file` */
	bool may_cut;	/* not standard output, where others may write */
	bool published; /* it has its name */
	bool stopped;	/* after an error */
	int error;	/* the first one */
	uint64_t bytes; /* in whole chunks on disk */
	uint32_t file_id;
	uint32_t sequence;

	char *buffer;
	size_t chunk;	 /* offset of the chunk's header */
	size_t used;	 /* end of the last event */
	uint32_t events; /* of the current chunk */
	uint64_t last_time;
	bool have_anchor;
	struct clock_anchor_event anchor; /* the latest */
};

static uint32_t random_id(void)
{
	uint32_t id;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		id = (uint32_t)realtime_ns();
	return id;
}

static void begin_chunk(struct recording_writer *w, size_t at)
{
	w->chunk = at;
	w->used = at + sizeof(struct chunk_header);
	w->events = 0;
}

static void begin_file(struct recording_writer *w)
{
	struct file_header header = {
		.byte_order = BYTE_ORDER_MARK,
		.version = FORMAT_VERSION,
		.size = sizeof(header),
		.start_realtime = realtime_ns(),
		.start_monotonic = monotonic_ns(),
		.file_id = w->file_id = random_id(),
	};

	memcpy(header.magic, FILE_MAGIC, sizeof(header.magic));
	header.crc = crc32_update(0, &header, offsetof(struct file_header, crc));
	memcpy(w->buffer, &header, sizeof(header));
	begin_chunk(w, sizeof(header));
}

int recording_writer__open(const char *path, struct recording_writer **writer,
			   struct failure *failure)
{
	struct recording_writer *w = calloc(1, sizeof(*w));
	int err = -ENOMEM;

	if (!w)
		goto err_out;
	w->buffer = malloc(BUFFER_SIZE);
	if (!w->buffer)
		goto err_out;
	err = output_file__open(path, &w->file);
	if (err)
		goto err_out;
	w->fd = output_file__fd(w->file);
	w->may_cut = strcmp(path, "-") != 0;
	begin_file(w);
	*writer = w;
	return 0;
err_out:
	recording_writer__free(w);
	return fail(failure, err, "cannot create the recording %s: %s", path, strerror(-err));
}

void recording_writer__free(struct recording_writer *w)
{
	if (!w)
		return;
	output_file__abort(w->file);
	free(w->buffer);
	free(w);
}

/* Removes a partial chunk. If that fails, the reader skips it. */
static void cut_back(struct recording_writer *w)
{
	if (w->published && w->may_cut && ftruncate(w->fd, w->bytes))
		w->may_cut = false;
}

static int stop_writing(struct recording_writer *w, int err)
{
	log_debug(LOG_STREAM, "recording: cannot write chunk %u: %s", w->sequence, strerror(-err));
	w->stopped = true;
	w->error = err;
	cut_back(w);
	return err;
}

static int write_chunk(struct recording_writer *w)
{
	size_t payload = w->used - w->chunk - sizeof(struct chunk_header);
	char *events = w->buffer + w->chunk + sizeof(struct chunk_header);
	struct chunk_header header = {
		.sequence = w->sequence,
		.event_count = w->events,
		.payload_size = payload,
		.first_time = ((const struct event_header *)events)->time,
		.last_time = w->last_time,
		.file_id = w->file_id,
	};
	struct chunk_trailer trailer = {crc32_update(0, events, payload), END_MARK};
	int err;

	memcpy(header.magic, CHUNK_MAGIC, sizeof(header.magic));
	header.crc = crc32_update(0, &header, offsetof(struct chunk_header, crc));
	memcpy(w->buffer + w->chunk, &header, sizeof(header));
	memcpy(w->buffer + w->used, &trailer, sizeof(trailer));

	err = write_full(w->fd, w->buffer, w->used + sizeof(trailer));
	if (err)
		return stop_writing(w, err);
	w->bytes += w->used + sizeof(trailer);
	log_debug(LOG_STREAM, "recording: chunk %u: %u events, %zu bytes; file %llu bytes",
		  w->sequence, w->events, payload, (unsigned long long)w->bytes);
	w->sequence++;
	begin_chunk(w, 0);
	return 0;
}

static void put_event(struct recording_writer *w, const struct event_header *event)
{
	w->used += event_narrow(event, w->buffer + w->used);
	w->events++;
	w->last_time = event->time;
}

int recording_writer__append(struct recording_writer *w, const struct event_header *event)
{
	if (event->size < sizeof(*event) || event->size > EVENT_SIZE_MAX ||
	    event->size % EVENT_ALIGN)
		return -EBADMSG;
	if (w->stopped)
		return 0;
	if (event->type == EVENT_CLOCK_ANCHOR && event->size == sizeof(w->anchor)) {
		memcpy(&w->anchor, event, sizeof(w->anchor));
		w->have_anchor = true;
	} else if (w->events == 0 && w->have_anchor) {
		put_event(w, &w->anchor.header);
	}
	put_event(w, event);
	if (w->used - w->chunk < CHUNK_FULL)
		return 0;
	return write_chunk(w);
}

static int publish(struct recording_writer *w)
{
	int err = w->published || !w->bytes ? 0 : output_file__publish(w->file);

	if (err)
		return stop_writing(w, err);
	w->published = w->bytes != 0;
	return 0;
}

int recording_writer__flush(struct recording_writer *w)
{
	if (w->stopped)
		return 0;
	return (w->events ? write_chunk(w) : 0) ?: publish(w);
}

/* The file is whole, or cut after a chunk, or there is none. */
static int close_file(struct recording_writer *w)
{
	if (!w->published) {
		output_file__abort(steal_ptr(w->file));
		return 0;
	}
	return output_file__commit(steal_ptr(w->file));
}

int recording_writer__close(struct recording_writer *w, struct failure *failure)
{
	int err, close_err;

	if (!w)
		return 0;
	recording_writer__flush(w);
	err = w->error;
	close_err = close_file(w);
	if (!err)
		err = close_err;
	recording_writer__free(w);
	if (err)
		return fail(failure, err, "cannot write the recording: %s", strerror(-err));
	return 0;
}

int recording_writer__temporary(const struct recording_writer *w, char *path, size_t size)
{
	return output_file__temporary(w->file, path, size);
}

char *recording_writer__other_path(const struct recording_writer *w)
{
	return output_file__moved(w->file) ? output_file__path(w->file) : NULL;
}

int recording_writer__error(const struct recording_writer *w)
{
	return w ? w->error : 0;
}

uint64_t recording_writer__bytes(const struct recording_writer *w)
{
	return w->bytes;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct recording_reader {
	int fd;
	uint64_t size, at; /* of the file; offset of the next chunk */
	event_sink_fn sink;
	void *context;
	struct recording_summary *summary;

	uint32_t version; /* of the file */
	VEC(char) buffer;
	VEC(char) widened; /* an event of an older version, as it is now */

	bool have_id; /* false: the file header is damaged, and no chunk was found yet */
	uint32_t file_id;
	uint32_t next_sequence;
	bool failed;	    /* the reader, not the sink */
	bool searched;	    /* bytes were skipped to find the current chunk */
	uint64_t suspect;   /* offset in a damaged chunk, whose length may be wrong; 0: none */
	uint64_t doubted;   /* bytes of such chunks */
	uint64_t gap;	    /* missing chunks not reported yet */
	uint64_t gap_since; /* time of the last event before them */
	uint64_t last_time; /* of the last event passed on */
	bool have_anchor;
	struct clock_anchor_event anchor; /* the last one passed on */
};

static int reader_failed(struct recording_reader *r, int err)
{
	r->failed = true;
	return err;
}

static bool chunk_header_is_sound(const struct recording_reader *r,
				  const struct chunk_header *header)
{
	return !memcmp(header->magic, CHUNK_MAGIC, sizeof(header->magic)) &&
	       header->crc == crc32_update(0, header, offsetof(struct chunk_header, crc)) &&
	       (!r->have_id || header->file_id == r->file_id) &&
	       header->payload_size <= PAYLOAD_MAX && header->payload_size % EVENT_ALIGN == 0;
}

/* The next sound chunk header from `at` on. 1: *found is set; 0: none; negative errno. */
static int search_chunk(const struct recording_reader *r, uint64_t at, uint64_t *found)
{
	_cleanup_free_ char *block = malloc(SEARCH_STEP + sizeof(struct chunk_header));
	size_t step = SEARCH_FIRST, last = 0;

	if (!block)
		return -ENOMEM;
	for (; at < r->size; at += last) {
		ssize_t got = pread_full(r->fd, block, step + sizeof(struct chunk_header), at);
		const char *p = block, *end = block + (got > 0 ? got : 0);

		if (got < 0)
			return got;
		last = step;
		step = min_u64(2 * step, SEARCH_STEP);
		while ((size_t)(end - p) >= sizeof(struct chunk_header) &&
		       (p = memmem(p, end - p, CHUNK_MAGIC, sizeof(CHUNK_MAGIC)))) {
			struct chunk_header header;

			if ((size_t)(end - p) < sizeof(header))
				break;
			memcpy(&header, p, sizeof(header));
			if (chunk_header_is_sound(r, &header)) {
				*found = at + (p - block);
				return 1;
			}
			p++;
		}
	}
	return 0;
}

static int hand_on(struct recording_reader *r, const struct event_header *event)
{
	r->last_time = event->time;
	r->summary->events++;
	if (event->type == EVENT_SAMPLE)
		r->summary->samples++;
	else if (event->type == EVENT_END)
		r->summary->cut_short = false;
	else if (event->type == EVENT_SYMBOLS_END)
		r->summary->has_symbols = true;
	return r->sink(r->context, event);
}

static int report_gap(struct recording_reader *r, uint64_t time)
{
	struct lost_event lost = {
		.header = {.size = sizeof(lost), .type = EVENT_LOST, .time = time},
		.source = LOST_RECORDING,
		.cpu = EVENT_CPU_UNKNOWN,
		.count = r->gap,
		.since = r->gap_since,
	};

	r->gap = 0;
	return hand_on(r, &lost.header);
}

static bool is_repeated_anchor(const struct recording_reader *r, const struct event_header *event)
{
	const struct clock_anchor_event *anchor = (const void *)event;

	return r->have_anchor && anchor->tsc == r->anchor.tsc &&
	       anchor->monotonic == r->anchor.monotonic && anchor->realtime == r->anchor.realtime &&
	       anchor->epoch == r->anchor.epoch;
}

/* `event` is checked and in our buffer. `first`: of its chunk. */
static int take_event(struct recording_reader *r, struct event_header *event, bool first)
{
	bool anchor = event->type == EVENT_CLOCK_ANCHOR;
	int err;

	if (anchor && first && is_repeated_anchor(r, event))
		return 0;
	if (event->time < r->last_time) {
		event->time = r->last_time;
		r->summary->disordered++;
	}
	/* an anchor at the start of a chunk may be older than the gap before it */
	if (r->gap > 0 && !(anchor && first)) {
		err = report_gap(r, event->time);
		if (err)
			return err;
	}
	if (anchor) {
		memcpy(&r->anchor, event, sizeof(r->anchor));
		r->have_anchor = true;
	}
	return hand_on(r, event);
}

static int take_payload(struct recording_reader *r, size_t size)
{
	int err = 0;

	for (size_t at = 0; at < size && !err;) {
		struct event_header *event = (struct event_header *)(r->buffer.data + at), *now;
		size_t left = size - at;
		size_t step = left < sizeof(*event) ? left : event->size;

		now = event_widen(event, left, r->version, r->widened.data);
		if (event_check(now, now == event ? left : now->size))
			r->summary->bad_events++;
		else
			err = take_event(r, now, at == 0);
		if (left < sizeof(*event) || step < sizeof(*event) || step % EVENT_ALIGN)
			break; /* the start of the next one is unknown */
		at += min_u64(step, left);
	}
	return err;
}

static void count_gap(struct recording_reader *r, uint64_t chunks)
{
	if (r->gap == 0)
		r->gap_since = r->last_time;
	r->gap += chunks;
	r->summary->damaged_chunks += chunks;
	log_debug(LOG_STREAM, "recording: %llu chunks damaged or missing before byte %llu",
		  (unsigned long long)chunks, (unsigned long long)r->at);
}

/* Counts chunks missing before this one, by its number or because bytes were skipped. */
static void account_sequence(struct recording_reader *r, const struct chunk_header *header)
{
	if (header->sequence > r->next_sequence)
		count_gap(r, header->sequence - r->next_sequence);
	else if (r->searched)
		count_gap(r, 1);
	r->searched = false;
	r->next_sequence = header->sequence + 1;
}

/* The chunk at r->at has a sound header and is whole. */
static int take_chunk(struct recording_reader *r, const struct chunk_header *header)
{
	size_t payload = header->payload_size;
	struct chunk_trailer trailer;
	uint64_t start;
	ssize_t got;
	int err = vec_reserve(&r->buffer, payload + sizeof(trailer))
			  ?: vec_reserve(&r->widened, EVENT_WIDEN_MAX);

	if (err)
		return reader_failed(r, err);
	got = pread_full(r->fd, r->buffer.data, payload + sizeof(trailer), r->at + sizeof(*header));
	if (got < 0)
		return reader_failed(r, got);
	start = r->at;
	r->at += sizeof(*header) + payload + sizeof(trailer);
	account_sequence(r, header);
	if ((size_t)got == payload + sizeof(trailer))
		memcpy(&trailer, r->buffer.data + payload, sizeof(trailer));
	if ((size_t)got != payload + sizeof(trailer) || trailer.end_mark != END_MARK ||
	    trailer.payload_crc != crc32_update(0, r->buffer.data, payload)) {
		count_gap(r, 1);
		r->doubted += payload;
		if (r->doubted <= r->size) /* bounds the time for chunks within chunks */
			r->suspect = start + 1;
		return 0;
	}
	r->summary->chunks++;
	return take_payload(r, payload);
}

/* No chunk where one should be. Goes to the next one. 1; 0: none; negative errno. */
static int find_next_chunk(struct recording_reader *r)
{
	bool counted = r->suspect > 0; /* the damaged chunk before was counted */
	int found = search_chunk(r, counted ? r->suspect : r->at + 1, &r->at);

	r->suspect = 0;
	r->searched = found == 1 && !counted;
	if (found == 0 && !counted)
		count_gap(r, 1);
	return found < 0 ? reader_failed(r, found) : found;
}

/* A chunk that exceeds the file: the last one, cut off, or one that has lost bytes. */
static int pass_cut_chunk(struct recording_reader *r, const struct chunk_header *header)
{
	int found = search_chunk(r, r->at + 1, &r->at);

	if (found < 0)
		return reader_failed(r, found);
	account_sequence(r, header);
	if (found == 0)
		r->summary->truncated = true;
	else
		count_gap(r, 1);
	return found;
}

/* Reads a chunk, or goes to the next one. 1: go on; 0: the end; negative errno. */
static int read_step(struct recording_reader *r)
{
	uint64_t left = r->size > r->at ? r->size - r->at : 0;
	struct chunk_header header;
	ssize_t got;

	if (left == 0)
		return 0;
	if (left < sizeof(header) && r->suspect == 0) {
		r->summary->truncated = true;
		return 0;
	}
	got = pread_full(r->fd, &header, sizeof(header), r->at);
	if (got < 0)
		return reader_failed(r, got);
	if ((size_t)got < sizeof(header) || !chunk_header_is_sound(r, &header))
		return find_next_chunk(r);
	r->suspect = 0;
	r->have_id = true;
	r->file_id = header.file_id;
	if (header.payload_size + sizeof(struct chunk_trailer) > left - sizeof(header))
		return pass_cut_chunk(r, &header);
	return take_chunk(r, &header) ?: 1;
}

static int check_file_header(struct recording_reader *r, struct failure *failure)
{
	struct file_header header = {};
	ssize_t got = pread_full(r->fd, &header, sizeof(header), 0);

	if (got < 0)
		return fail(failure, got, "cannot read the recording: %s", strerror(-got));
	if ((size_t)got < sizeof(header.magic) ||
	    memcmp(header.magic, FILE_MAGIC, sizeof(header.magic)))
		return fail(failure, -ENOEXEC, "not a sysprof recording");
	if ((size_t)got < sizeof(header))
		return fail(failure, -ENODATA, "the recording ends within its header");
	if (header.byte_order == BYTE_ORDER_SWAPPED)
		return fail(failure, -ENOTSUP, "recorded on a machine with the other byte order");
	r->at = sizeof(header);
	r->version = header.version && header.version < FORMAT_VERSION ? header.version
								       : FORMAT_VERSION;
	if (header.crc != crc32_update(0, &header, offsetof(struct file_header, crc))) {
		r->summary->header_damaged = true; /* the chunks have checksums of their own */
		return 0;
	}
	if (header.version > FORMAT_VERSION)
		return fail(failure, -EPROTONOSUPPORT,
			    "made by a newer sysprof: version %u, this one reads up to %u",
			    header.version, FORMAT_VERSION);
	r->file_id = header.file_id;
	r->have_id = true;
	r->summary->start_realtime = header.start_realtime;
	r->summary->start_monotonic = header.start_monotonic;
	if (header.size > sizeof(header))
		r->at = header.size;
	return 0;
}

static int read_chunks(struct recording_reader *r, struct failure *failure)
{
	int more;

	do
		more = read_step(r);
	while (more > 0);
	if (more < 0 && r->failed)
		return fail(failure, more, "cannot read the recording: %s", strerror(-more));
	if (more < 0)
		return more;
	if (r->summary->chunks == 0)
		return fail(failure, -ENODATA, "the recording has no readable chunk");
	return r->gap > 0 ? report_gap(r, r->last_time) : 0;
}

int recording_read(int fd, event_sink_fn sink, void *context, struct recording_summary *summary,
		   struct failure *failure)
{
	struct recording_reader r = {
		.fd = fd, .sink = sink, .context = context, .summary = summary};
	struct stat st;
	int err;

	*summary = (struct recording_summary){.cut_short = true};
	if (fstat(fd, &st))
		return fail(failure, -errno, "cannot read the recording: %s", strerror(errno));
	if (!S_ISREG(st.st_mode)) {
		fail(failure, -ENOTSUP, "cannot read a recording from a pipe or device");
		return fail_remedy(failure, -ENOTSUP, "save it to a file first");
	}
	r.size = summary->bytes = st.st_size;
	err = check_file_header(&r, failure) ?: read_chunks(&r, failure);
	vec_free(&r.buffer);
	vec_free(&r.widened);
	return err;
}

bool recording_probe(int fd)
{
	char magic[sizeof(FILE_MAGIC)];

	return pread_full(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, FILE_MAGIC, sizeof(magic));
}
