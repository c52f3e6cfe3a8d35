/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording from its bytes to every format and report: what comes in is replayed, made a profile that keeps all
 * invariants, and written; and neither the time nor the bytes that this takes may grow faster than the recording.
 *
 * An input is a header and events. They are put into sound chunks here, since nothing gets past a checksum by chance.
 * The header says which of the events are repeated, and what is added to which of their fields each time: many
 * processes, falling addresses, rising times. So a small input is a large recording, in which a product shows.
 */
#include <errno.h>
#include <string.h>

#include <sysprof/event.h>

#include "base/clocks.h"
#include "base/gzip.h"
#include "base/vec.h"
#include "formats/out/exporters.h"
#include "formats/out/report.h"
#include "fuzz.h"
#include "fuzz_merge.h"
#include "fuzz_parts.h"
#include "models/profile_dump.h"
#include "profile/anonymize.h"
#include "profile/profile_check.h"
#include "stream/event_decode.h"
#include "stream/recording_file.h"
#include "window/windows.h"

#define STEPS	     3
#define EXPANDED_MAX (3u << 20)
#define CHUNK	     (1u << 20)

/* docs/FORMATS.md, Bounds: 1,024 bytes of text and 8 nodes of a tree for a frame, which has 8 bytes. */
#define BYTES_FREE	(24u << 20)
#define BYTES_FREE_IDLE (24u << 20) /* the idle samples of a .cpuprofile, in addition */
#define BYTES_EACH	400u	    /* for each byte of the recording */

/* CPU time under the sanitizers, some times of what is seen; the same of a .cpuprofile's idle samples. */
#ifdef __OPTIMIZE__
#define SLOWNESS 1
#else
#define SLOWNESS 3
#endif
#define NS_FREE	     (SLOWNESS * 400000000ull)
#define NS_FREE_IDLE (SLOWNESS * 4000000000ull)
#define NS_EACH	     (SLOWNESS * 800ull)
#define NS_REPLAY    (SLOWNESS * 400ull)

struct step {
	uint8_t event; /* number among those that are repeated */
	uint8_t word;  /* of the event, four bytes each */
	int16_t add;   /* each time; shifted by `shift` */
	uint8_t shift;
	uint8_t wide; /* the field has eight bytes */
	uint8_t reserved[2];
};

struct input_header {
	uint8_t first, count; /* events that are repeated; count 0: none */
	uint16_t times;
	uint8_t reports; /* which of them are made */
	uint8_t reserved[3];
	struct step steps[STEPS];
};

_Static_assert(sizeof(struct input_header) == 32, "seeds.sh writes it");

typedef VEC(uint8_t) bytes;

static void add_bytes(bytes *to, const void *from, size_t size)
{
	if (!size)
		return;
	MUST(!vec_reserve(to, to->count + size));
	memcpy(to->data + to->count, from, size);
	to->count += size;
}

/* ---- from an input to a recording ------------------------------------------------------------ */

/* The next event; 0: there is none. */
static size_t event_size(const uint8_t *data, size_t left)
{
	struct event_header header;

	if (left < sizeof(header))
		return 0;
	memcpy(&header, data, sizeof(header));
	if (header.size < sizeof(header) || header.size % EVENT_ALIGN || header.size > left)
		return 0;
	return header.size;
}

static void change_field(uint8_t *event, size_t size, const struct step *step, uint64_t round)
{
	uint64_t value = 0, add = (uint64_t)(int64_t)step->add << (step->shift % 48);
	size_t at = 4 * (size_t)step->word, width = step->wide & 1 ? 8 : 4;

	if (at < 8 || at + width > size) /* not the size and the type */
		return;
	memcpy(&value, event + at, width);
	value += add * round;
	memcpy(event + at, &value, width);
}

/* One of those that are repeated, in its round. */
static void add_event(bytes *to, const struct input_header *h, const uint8_t *event, size_t size,
		      unsigned int number, uint64_t round)
{
	size_t at = to->count;

	add_bytes(to, event, size);
	for (int i = 0; i < STEPS && round; i++)
		if (h->steps[i].event == number)
			change_field(to->data + at, size, &h->steps[i], round);
}

static void expand(const struct input_header *h, const uint8_t *data, size_t size, bytes *events)
{
	size_t at = 0, begin, step, end;
	unsigned int number = 0, count;

	for (; number < h->first && (step = event_size(data + at, size - at)); number++)
		at += step;
	add_bytes(events, data, at);
	begin = end = at;
	for (count = 0; count < h->count && (step = event_size(data + end, size - end)); count++)
		end += step;
	for (uint64_t round = 0; count && round <= h->times && events->count < EXPANDED_MAX;
	     round++) {
		number = 0;
		for (at = begin; at < end; at += step, number++) {
			step = event_size(data + at, end - at);
			add_event(events, h, data + at, step, number, round);
		}
	}
	add_bytes(events, data + end, size - end);
}

static void add_u32(bytes *to, uint32_t value)
{
	add_bytes(to, &value, sizeof(value));
}

static void add_u64(bytes *to, uint64_t value)
{
	add_bytes(to, &value, sizeof(value));
}

/* As stream/recording_file.c writes them. */
static void add_file_header(bytes *file)
{
	add_bytes(file, "SYSPROF\n", 8);
	add_u32(file, 0x01020304);
	add_u32(file, 1);
	add_u32(file, 64);
	for (int i = 0; i < 5; i++) /* flags, times */
		add_u32(file, 0);
	add_u32(file, 1); /* file_id */
	for (int i = 0; i < 4; i++)
		add_u32(file, 0);
	add_u32(file, crc32_update(0, file->data, file->count));
}

static void add_chunk(bytes *file, uint32_t sequence, const uint8_t *events, size_t size)
{
	size_t header = file->count;

	add_bytes(file,
		  "\x89"
		  "CHUNK\r\n",
		  8);
	add_u32(file, sequence);
	add_u32(file, 0);
	add_u64(file, size);
	add_u64(file, 0);
	add_u64(file, 0);
	add_u32(file, 1);
	add_u32(file, crc32_update(0, file->data + header, file->count - header));
	add_bytes(file, events, size);
	add_u32(file, crc32_update(0, events, size));
	add_bytes(file, "CEND", 4);
}

static void make_recording(const bytes *events, bytes *file)
{
	uint32_t sequence = 0;
	size_t begin = 0, at = 0, step;

	add_file_header(file);
	do {
		step = at < events->count ? event_size(events->data + at, events->count - at) : 0;
		at += step;
		if (at > begin && (!step || at - begin >= CHUNK)) {
			add_chunk(file, sequence++, events->data + begin, at - begin);
			begin = at;
		}
	} while (step);
}

/* ---- what comes of it ------------------------------------------------------------------------ */

static ssize_t count_bytes(void *count, const char *data, size_t size)
{
	fuzz_read(data, size < 64 ? size : 64);
	*(uint64_t *)count += size;
	return (ssize_t)size;
}

static FILE *open_counter(uint64_t *count)
{
	FILE *out = fopencookie(count, "w", (cookie_io_functions_t){.write = count_bytes});

	MUST(out);
	return out;
}

struct budget {
	uint64_t bytes, ns;
};

static void must_fit(const char *what, uint64_t used, uint64_t most, const char *unit)
{
	if (used <= most)
		return;
	fprintf(stderr, "%s: %llu %s, of at most %llu\n", what, (unsigned long long)used, unit,
		(unsigned long long)most);
	abort();
}

static void export_one(const struct exporter *exporter, const struct profile *p, bool merges,
		       struct budget budget)
{
	struct export_left_out left_out = {};
	uint64_t count = 0, begin = thread_cpu_ns();
	FILE *out = open_counter(&count);
	const struct export_request request = {.profile = p,
					       .out = out,
					       .waits = true,
					       .parked = p->thread_count % 2,
					       .merge_threads = merges,
					       .left_out = &left_out};

	MUST(!exporter->write(&request));
	MUST(!fclose(out));
	if (exporter->one_thread) {
		budget.bytes += BYTES_FREE_IDLE;
		budget.ns += NS_FREE_IDLE;
	}
	must_fit(exporter->name, count, budget.bytes, "bytes");
	must_fit(exporter->name, thread_cpu_ns() - begin, budget.ns, "ns");
}

static void report_one(const struct profile *p, const struct report_options *options,
		       struct budget budget)
{
	struct export_left_out left_out = {};
	uint64_t count = 0, begin = thread_cpu_ns();
	FILE *out = open_counter(&count);
	const struct export_request request = {.profile = p, .out = out, .left_out = &left_out};

	MUST(!report_write(&request, options));
	MUST(!fclose(out));
	must_fit("a report", count, budget.bytes, "bytes");
	must_fit("a report", thread_cpu_ns() - begin, budget.ns, "ns");
}

#define REPORTS (REPORT_BY_COUNT * 3 * 2) /* what by, in what shape, as text or JSON */

static void report_number(const struct profile *p, unsigned int number, struct budget budget)
{
	const struct report_options options = {
		.by = (enum report_by)(number % REPORT_BY_COUNT),
		.shape = (enum report_shape)(number / REPORT_BY_COUNT % 3),
		.json = number / REPORT_BY_COUNT / 3 % 2,
		.utf8 = number & 1,
	};

	report_one(p, &options, budget);
}

/* A letter can be a word, which is WORD_GROWTH letters then. */
#define WORD_GROWTH 13

static void export_anonymous(const struct profile *p, struct budget budget)
{
	const struct anonymous_key key = {{1, 2}};
	struct anonymous_profile *anonymous;
	uint64_t begin = thread_cpu_ns();

	MUST(!anonymous_profile__new(p, key, &anonymous));
	MUST(!profile_check(anonymous_profile__get(anonymous), NULL, 0));
	must_fit("an anonymous profile", thread_cpu_ns() - begin, budget.ns, "ns");
	budget.bytes *= WORD_GROWTH;
	budget.ns *= WORD_GROWTH;
	export_one(&folded_exporter, anonymous_profile__get(anonymous), false, budget);
	anonymous_profile__free(anonymous);
}

/* All formats, and every eighth report: `choice` says which. */
static void write_all(const struct profile *p, unsigned int choice, struct budget budget)
{
	for (const struct exporter *const *e = exporters(); *e; e++)
		export_one(*e, p, false, budget);
	export_one(&cpuprofile_exporter, p, true, budget);
	export_anonymous(p, budget);
	for (unsigned int number = choice % 8; number < REPORTS; number += 8)
		report_number(p, number, budget);
	for (int by = 0; by < REPORT_WALL_BY_COUNT; by++)
		report_one(p,
			   &(struct report_options){.wall = true,
						    .wall_by = (enum report_wall_by)by,
						    .parked = choice & 1,
						    .json = choice & 2},
			   budget);
}

static int replay(const bytes *file, struct windows *windows, const struct profile **profile)
{
	int fd = fuzz_file(file->data, file->count);
	struct recording_summary summary;
	struct failure failure = {};
	int err = recording_read(fd, windows__event, windows, &summary, &failure);

	close(fd);
	if (!err)
		err = windows__close_last(windows);
	if (!err)
		err = finisher__finish(windows__finisher(windows), windows__last(windows), profile,
				       &failure);
	if (err && err != -ENODATA) /* no events at all */
		fprintf(stderr, "%d: %s\n", err, failure.what);
	MUST(!err || err == -ENODATA);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct windows_options options = {};
	const struct profile *profile;
	struct input_header header;
	struct windows *windows;
	bytes events = {}, file = {};
	struct budget budget;
	uint64_t begin;

	if (size < sizeof(header))
		return 0;
	memcpy(&header, data, sizeof(header));
	expand(&header, data + sizeof(header), size - sizeof(header), &events);
	make_recording(&events, &file);
	budget.bytes = BYTES_FREE + BYTES_EACH * (uint64_t)file.count;
	budget.ns = NS_FREE + NS_EACH * (uint64_t)file.count;
	MUST(!windows__new(&options, &windows));
	begin = thread_cpu_ns();
	if (!replay(&file, windows, &profile)) {
		must_fit("the replay", thread_cpu_ns() - begin,
			 NS_FREE + NS_REPLAY * (uint64_t)file.count, "ns");
		write_all(profile, header.reports, budget);
		begin = thread_cpu_ns();
		fuzz_merge(profile);
		must_fit("a merge", thread_cpu_ns() - begin, budget.ns, "ns");
		fuzz_parts(profile);
	}
	windows__free(windows);
	vec_free(&events);
	vec_free(&file);
	return 0;
}

/* ---- mutations ------------------------------------------------------------------------------- */

#define EVENTS_MAX 4096

struct events {
	size_t count;
	size_t start[EVENTS_MAX + 1]; /* in the input; the last is the end */
};

static void find_events(const uint8_t *data, size_t size, struct events *e)
{
	size_t at = sizeof(struct input_header), step;

	e->count = 0;
	e->start[0] = at;
	while (e->count < EVENTS_MAX && (step = event_size(data + at, size - at))) {
		at += step;
		e->start[++e->count] = at;
	}
}

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Which events are repeated, and what is changed. */
static size_t mutate_header(uint8_t *data, size_t size, const struct events *e, uint32_t *random)
{
	struct input_header h;
	struct step *step;

	memcpy(&h, data, sizeof(h));
	h.first = e->count ? next_random(random) % e->count : 0;
	h.count = next_random(random) % 5;
	h.reports = next_random(random);
	h.times = next_random(random) % 4 ? next_random(random) % 64 : next_random(random) % 65536;
	step = &h.steps[next_random(random) % STEPS];
	step->event = next_random(random) % (h.count + 1);
	step->word = 2 + next_random(random) % 24;
	step->add = (int16_t)(next_random(random) % 9) - 4;
	step->shift = next_random(random) % 3 ? 0 : next_random(random) % 40;
	step->wide = next_random(random);
	memcpy(data, &h, sizeof(h));
	return size;
}

/* Bytes of a body, in place. */
static size_t mutate_body(uint8_t *data, size_t size, const struct events *e, uint32_t *random)
{
	size_t i = next_random(random) % e->count;
	size_t at = e->start[i] + sizeof(struct event_header), left = e->start[i + 1] - at;

	if (left)
		LLVMFuzzerMutate(data + at, left, left);
	return size;
}

/* A field becomes what another event has there, or a number that matters. */
static size_t mutate_field(uint8_t *data, size_t size, const struct events *e, uint32_t *random)
{
	static const uint64_t numbers[] = {
		0,	    1,		2,	    100,	1000,	 1u << 20,
		UINT32_MAX, 1ull << 40, 1ull << 59, UINT64_MAX, 0x10010,
	};
	size_t i = next_random(random) % e->count, k = next_random(random) % e->count;
	size_t length = e->start[i + 1] - e->start[i], other = e->start[k + 1] - e->start[k];
	size_t at = 8 + 4 * (next_random(random) % (length / 4 - 2));
	size_t width = next_random(random) % 2 && at + 8 <= length ? 8 : 4;

	if (next_random(random) % 2 && at + width <= other)
		memcpy(data + e->start[i] + at, data + e->start[k] + at, width);
	else
		memcpy(data + e->start[i] + at, &numbers[next_random(random) % COUNT(numbers)],
		       width);
	return size;
}

/* A copy of an event, somewhere. */
static size_t copy_event(uint8_t *data, size_t size, size_t max, const struct events *e,
			 uint32_t *random)
{
	size_t i = next_random(random) % e->count,
	       to = e->start[next_random(random) % (e->count + 1)];
	size_t length = e->start[i + 1] - e->start[i];
	uint8_t *copy;

	if (size + length > max)
		return size;
	copy = malloc(length);
	MUST(copy);
	memcpy(copy, data + e->start[i], length);
	memmove(data + to + length, data + to, size - to);
	memcpy(data + to, copy, length);
	free(copy);
	return size + length;
}

static size_t remove_event(uint8_t *data, size_t size, const struct events *e, uint32_t *random)
{
	size_t i = next_random(random) % e->count;

	memmove(data + e->start[i], data + e->start[i + 1], size - e->start[i + 1]);
	return size - (e->start[i + 1] - e->start[i]);
}

/* It gets longer or shorter by some words, which are zero. */
static size_t resize_event(uint8_t *data, size_t size, size_t max, const struct events *e,
			   uint32_t *random)
{
	size_t i = next_random(random) % e->count, words = 1 + next_random(random) % 8;
	size_t length = e->start[i + 1] - e->start[i], change = EVENT_ALIGN * words;
	uint8_t *end = data + e->start[i + 1];
	uint32_t now;

	if (next_random(random) % 2 && length >= sizeof(struct event_header) + change) {
		memmove(end - change, end, size - e->start[i + 1]);
		now = length - change;
		size -= change;
	} else if (size + change <= max && length + change <= EVENT_SIZE_MAX) {
		memmove(end + change, end, size - e->start[i + 1]);
		memset(end, 0, change);
		now = length + change;
		size += change;
	} else {
		return size;
	}
	memcpy(data + e->start[i], &now, sizeof(now));
	return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static struct events e;
	uint32_t random = seed * 2654435761u | 1;

	if (size < sizeof(struct input_header)) {
		memset(data, 0, sizeof(struct input_header));
		return max_size < sizeof(struct input_header) ? 0 : sizeof(struct input_header);
	}
	find_events(data, size, &e);
	if (!e.count)
		return LLVMFuzzerMutate(data, size, max_size);
	switch (next_random(&random) % 10) {
	case 8:
	case 9:
		return mutate_header(data, size, &e, &random);
	case 0:
	case 1:
	case 2:
		return mutate_body(data, size, &e, &random);
	case 3:
	case 4:
		return mutate_field(data, size, &e, &random);
	case 5:
		return remove_event(data, size, &e, &random);
	case 6:
		return resize_event(data, size, max_size, &e, &random);
	default:
		return copy_event(data, size, max_size, &e, &random);
	}
}
