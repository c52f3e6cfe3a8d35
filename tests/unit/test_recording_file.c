/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recording file: what is written comes back; every byte damaged and every length cut; writers
 * that are killed or meet a full disk; files that lie.
 */
#include "unit.h"
#include "stream/recording_file.h" /* its fail() is no macro yet */
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/io.h"
#include "base/vec.h"
#include "unit/tools.h"

/* As docs/FORMATS.md has it. */
#define FILE_HEADER   64
#define CHUNK_HEADER  48
#define CHUNK_TRAILER 8
#define CHUNK_MAGIC                                                                                \
	"\x89"                                                                                     \
	"CHUNK\r\n"

static const char *in_scratch(const char *name)
{
	static char path[256];

	scratch_path(name, path, sizeof(path));
	return path;
}

/* ---- making recordings ----------------------------------------------------------------------- */

static struct recording_writer *open_writer(const char *path)
{
	struct recording_writer *w = NULL;
	struct failure failure;

	assert_int_equal(recording_writer__open(path, &w, &failure), 0);
	return w;
}

static void make_sample(struct sample_event *sample, uint64_t number)
{
	memset(sample, 0, sizeof(*sample));
	sample->header.size = sizeof(*sample);
	sample->header.type = EVENT_SAMPLE;
	sample->header.time = 1000 + number;
	sample->cpu_time = number;
	sample->user_end = STACK_END_ROOT;
}

static int add_sample(struct recording_writer *w, uint64_t number)
{
	struct sample_event sample;

	make_sample(&sample, number);
	return recording_writer__append(w, &sample.header);
}

static int add_anchor(struct recording_writer *w, uint64_t time)
{
	struct clock_anchor_event anchor = {
		.header = {.size = sizeof(anchor), .type = EVENT_CLOCK_ANCHOR, .time = time},
		.tsc = time * 3,
		.monotonic = time,
		.realtime = time + 1000000,
	};

	return recording_writer__append(w, &anchor.header);
}

static int add_end(struct recording_writer *w, uint64_t time)
{
	struct event_header end = {.size = sizeof(end), .type = EVENT_END, .time = time};

	return recording_writer__append(w, &end);
}

/* `chunks` chunks of `each` samples, an anchor in the first and in the one before the last. */
static void write_recording(const char *path, unsigned int chunks, unsigned int each)
{
	struct recording_writer *w = open_writer(path);
	uint64_t number = 0;

	assert_int_equal(add_anchor(w, 900), 0);
	for (unsigned int i = 0; i < chunks; i++) {
		for (unsigned int j = 0; j < each; j++)
			assert_int_equal(add_sample(w, number++), 0);
		if (i == chunks - 2)
			assert_int_equal(add_anchor(w, 1000 + number), 0);
		assert_int_equal(recording_writer__flush(w), 0);
	}
	assert_int_equal(add_end(w, 1000 + number), 0);
	assert_int_equal(recording_writer__close(w, NULL), 0);
}

struct bytes {
	char *data;
	size_t size;
};

static struct bytes file; /* of the running test */

static void load(const char *path)
{
	free(file.data);
	assert_int_equal(read_file_at(AT_FDCWD, path, 64 << 20, &file.data, &file.size), 0);
}

/* Where chunk number `n` starts. */
static size_t chunk_at(unsigned int n)
{
	size_t at = FILE_HEADER;

	while (n-- > 0) {
		uint64_t payload;

		assert_memory_equal(file.data + at, CHUNK_MAGIC, 8);
		memcpy(&payload, file.data + at + 16, sizeof(payload));
		at += CHUNK_HEADER + payload + CHUNK_TRAILER;
	}
	return at;
}

/* ---- reading them ---------------------------------------------------------------------------- */

/* Of the latest reading. */
static struct result {
	int err;
	struct recording_summary summary;
	struct failure failure;
	VEC(uint64_t) samples;
	VEC(struct lost_event) lost;
	unsigned int anchors, ends, others;
	uint64_t last_time;
	bool disordered;
	int answer; /* of the sink, from the third event on */
} r;

static int take(void *context, const struct event_header *event)
{
	r.disordered |= event->time < r.last_time;
	r.last_time = event->time;
	switch (event->type) {
	case EVENT_SAMPLE:
		assert_int_equal(
			vec_push(&r.samples, ((const struct sample_event *)event)->cpu_time), 0);
		break;
	case EVENT_LOST:
		assert_int_equal(vec_push(&r.lost, *(const struct lost_event *)event), 0);
		break;
	case EVENT_CLOCK_ANCHOR:
		r.anchors++;
		break;
	case EVENT_END:
		r.ends++;
		break;
	default:
		r.others++;
	}
	return r.summary.events >= 3 ? r.answer : 0;
}

static void tear_down(void)
{
	vec_free(&r.samples);
	vec_free(&r.lost);
	free(file.data);
	file = (struct bytes){};
}

/* `answer`: of the sink, from the third event on. */
static void read_fd_until(int fd, int answer)
{
	vec_free(&r.samples);
	vec_free(&r.lost);
	r = (struct result){.answer = answer};
	r.err = recording_read(fd, take, NULL, &r.summary, &r.failure);
	assert_false(r.disordered);
	assert_int_equal(r.summary.samples, r.samples.count);
	assert_int_equal(r.summary.events,
			 r.samples.count + r.lost.count + r.anchors + r.ends + r.others);
}

static void read_fd(int fd)
{
	read_fd_until(fd, 0);
}

static void read_recording(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	read_fd(fd);
}

/* From memory, by way of a memfd that is used again and again. */
static void read_bytes(const char *data, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("recording", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, data, size, 0), size);
	read_fd(fd);
}

static bool has_all_samples(uint64_t count)
{
	if (r.samples.count != count)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		if (r.samples.data[i] != i)
			return false;
	}
	return true;
}

/* ---- what is written comes back -------------------------------------------------------------- */

TEST(recorded_events_are_read_back)
{
	const char *path = in_scratch("round.sysprof");
	struct stat st;
	_cleanup_close_ int fd = -1;

	write_recording(path, 5, 10);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	load(path);
	for (unsigned int i = 0; i < 6; i++) { /* each chunk starts with an anchor */
		struct event_header first;

		memcpy(&first, file.data + chunk_at(i) + CHUNK_HEADER, sizeof(first));
		assert_int_equal(first.type, EVENT_CLOCK_ANCHOR);
	}
	assert_int_equal(chunk_at(6), file.size);
	read_recording(path);
	assert_int_equal(r.err, 0);
	assert_true(has_all_samples(50));
	assert_int_equal(r.anchors, 2); /* those that were appended, not their copies */
	assert_int_equal(r.ends, 1);
	assert_int_equal(r.summary.chunks, 6);
	assert_int_equal(r.summary.damaged_chunks, 0);
	assert_int_equal(r.summary.bytes, file.size);
	assert_false(r.summary.cut_short);
	assert_false(r.summary.truncated);
	assert_false(r.summary.has_symbols);
	assert_true(r.summary.start_realtime > 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(recording_probe(fd));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
}

static int take_mapping(void *context, const struct event_header *event)
{
	assert_int_equal(event->type, EVENT_MMAP);
	memcpy(context, event, event->size);
	return 0;
}

/* A mapping's file is a number of this run: "struct mmap_event" of the format ends with the path at 104. */
TEST(the_number_of_a_file_is_not_recorded)
{
	const char *path = in_scratch("mapping.sysprof");
	struct mmap_event_space written = {}, read = {};
	struct recording_writer *w = open_writer(path);
	struct mmap_event *e = &written.event;
	struct recording_summary summary;
	struct failure failure;
	size_t at;
	int fd;

	strcpy(e->path, "/usr/lib/libmapped.so");
	e->header = (struct event_header){.size = event_aligned(sizeof(*e) + strlen(e->path) + 1),
					  .type = EVENT_MMAP,
					  .time = 7};
	e->length = 0x1000;
	e->build_id[BUILD_ID_SIZE - 1] = 9;
	e->file = 0x123456789abcdef0;
	assert_int_equal(recording_writer__append(w, &e->header), 0);
	assert_int_equal(recording_writer__close(w, NULL), 0);
	load(path);
	at = chunk_at(0) + CHUNK_HEADER;
	assert_int_equal(*(uint32_t *)(file.data + at), 104 + 24);
	assert_string_equal(file.data + at + 104, e->path);
	assert_null(memmem(file.data, file.size, &e->file, sizeof(e->file)));

	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(recording_read(fd, take_mapping, &read, &summary, &failure), 0);
	close(fd);
	assert_int_equal(summary.events, 1);
	e->file = 0;
	assert_memory_equal(&read, &written, sizeof(written));
}

TEST(long_recordings_are_divided_into_chunks)
{
	enum { COUNT = 60000 };
	const char *path = in_scratch("long.sysprof");
	struct recording_writer *w = open_writer(path);

	assert_int_equal(add_anchor(w, 900), 0);
	for (uint64_t i = 0; i < COUNT; i++)
		assert_int_equal(add_sample(w, i), 0);
	assert_true(recording_writer__bytes(w) > 2u << 20);
	assert_int_equal(recording_writer__flush(w), 0);
	assert_int_equal(recording_writer__flush(w), 0); /* nothing to do */
	uint64_t bytes = recording_writer__bytes(w);
	recording_writer__free(w);
	read_recording(path);
	assert_int_equal(r.err, 0);
	assert_true(has_all_samples(COUNT));
	assert_int_equal(r.summary.bytes, bytes);
	assert_true(r.summary.cut_short);
	assert_true(r.summary.chunks >= COUNT * sizeof(struct sample_event) >> 20);
}

TEST(the_name_appears_with_the_first_flush)
{
	enum { COUNT = 30000 };
	const char *path = in_scratch("old.sysprof");
	FILE *old = fopen(path, "w");
	struct recording_writer *w;

	fputs("precious", old);
	fclose(old);
	w = open_writer(path);
	for (uint64_t n = 0; n < COUNT; n++)
		assert_int_equal(add_sample(w, n), 0);
	assert_true(recording_writer__bytes(w) > 0); /* whole chunks do not do it */
	load(path);
	assert_string_equal(file.data, "precious");
	assert_int_equal(recording_writer__flush(w), 0);
	read_recording(path);
	assert_true(has_all_samples(COUNT));
	recording_writer__free(w);
	read_recording(path); /* kept on failure */
	assert_true(has_all_samples(COUNT));

	/* a writer that was never flushed leaves nothing */
	w = open_writer(in_scratch("never.sysprof"));
	assert_int_equal(recording_writer__close(w, NULL), 0);
	assert_int_equal(access(in_scratch("never.sysprof"), F_OK), -1);
	recording_writer__free(NULL);
	assert_int_equal(recording_writer__close(NULL, NULL), 0);
	struct failure failure = {};
	assert_int_equal(recording_writer__open("/nonexistent/x.sysprof", &w, &failure), -ENOENT);
	assert_non_null(strstr(failure.what, "/nonexistent/x.sysprof"));
}

TEST(a_pipe_can_be_written_but_not_read_back)
{
	const char *fifo = in_scratch("fifo");
	struct recording_writer *w;
	char data[65536];
	ssize_t size;
	int fd;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(fifo, O_RDWR | O_CLOEXEC);
	w = open_writer(fifo);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(add_sample(w, i), 0);
	assert_int_equal(add_end(w, 5000), 0);
	assert_int_equal(recording_writer__close(w, NULL), 0);
	size = read(fd, data, sizeof(data));
	assert_true(size > 0);
	read_fd(fd); /* it cannot be read back from there */
	assert_int_equal(r.err, -ENOTSUP);
	assert_false(recording_probe(fd));
	assert_true(r.failure.remedy[0]);
	close(fd);
	read_bytes(data, size);
	assert_int_equal(r.err, 0);
	assert_true(has_all_samples(10));
}

/* ---- writers that fail ----------------------------------------------------------------------- */

TEST(a_killed_writer_leaves_what_was_flushed)
{
	const char *path = in_scratch("killed.sysprof");
	int status, ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct recording_writer *w = open_writer(path);

		add_anchor(w, 900);
		for (uint64_t i = 0; i < 5000; i++)
			add_sample(w, i);
		recording_writer__flush(w);
		for (uint64_t i = 5000; i < 5100; i++)
			add_sample(w, i);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	read_recording(path);
	assert_int_equal(r.err, 0);
	assert_true(has_all_samples(5000));
	assert_true(r.summary.cut_short);
	assert_false(r.summary.truncated);
	close(ready[0]);
	close(ready[1]);
}

/* A file size limit stands for the full disk: both end a write in its middle. */
static int write_to_limit(const char *path)
{
	struct rlimit limit = {10000, 10000};
	struct recording_writer *w;
	struct failure failure = {};
	unsigned int errors = 0;

	signal(SIGXFSZ, SIG_IGN);
	if (recording_writer__open(path, &w, NULL) || setrlimit(RLIMIT_FSIZE, &limit))
		return 10;
	for (uint64_t i = 0; i < 1000; i++) {
		int err = add_sample(w, i);

		if (!err && i % 50 == 49)
			err = recording_writer__flush(w);
		if (err && err != -EFBIG)
			return 11;
		errors += err != 0;
	}
	if (errors != 1)
		return 12; /* reported once */
	if (recording_writer__close(w, &failure) != -EFBIG || !failure.what[0])
		return 13;
	return 0;
}

TEST(a_full_disk_leaves_whole_chunks)
{
	const char *path = in_scratch("full.sysprof");
	struct recording_writer *w;
	struct failure failure;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(write_to_limit(path));
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	read_recording(path);
	assert_int_equal(r.err, 0);
	assert_true(r.summary.bytes < 10000);
	assert_true(r.samples.count >= 50 && r.samples.count % 50 == 0);
	assert_true(has_all_samples(r.samples.count));
	assert_false(r.summary.truncated); /* it was cut back to its last whole chunk */

	w = open_writer("/dev/full");
	assert_int_equal(add_sample(w, 0), 0);
	assert_int_equal(recording_writer__flush(w), -ENOSPC);
	assert_int_equal(add_sample(w, 1), 0);
	assert_int_equal(recording_writer__flush(w), 0);
	assert_int_equal(recording_writer__close(w, &failure), -ENOSPC);
}

/* ---- damage ---------------------------------------------------------------------------------- */

enum { SMALL_CHUNKS = 4, SMALL_EACH = 3, SMALL_SAMPLES = SMALL_CHUNKS * SMALL_EACH };

static void load_small_recording(void)
{
	write_recording(in_scratch("small.sysprof"), SMALL_CHUNKS, SMALL_EACH);
	load(in_scratch("small.sysprof"));
}

TEST(whole_chunks_of_a_truncated_file_are_read)
{
	load_small_recording();
	for (size_t size = 0; size < file.size; size++) {
		unsigned int whole = 0;

		while (whole <= SMALL_CHUNKS && chunk_at(whole + 1) <= size)
			whole++;
		read_bytes(file.data, size);
		if (whole == 0) {
			assert_int_equal(r.err, size < 8 ? -ENOEXEC : -ENODATA);
			assert_true(r.failure.what[0]);
		} else {
			assert_int_equal(r.err, 0);
			assert_true(has_all_samples(whole * SMALL_EACH));
			assert_int_equal(r.summary.truncated, chunk_at(whole) != size);
			assert_int_equal(r.summary.damaged_chunks, 0);
			assert_true(r.summary.cut_short);
		}
	}
}

TEST(a_damaged_byte_in_a_chunk_costs_that_chunk)
{
	static const char patterns[] = {0x01, (char)0x80, (char)0xff};

	load_small_recording();
	for (size_t i = 0; i < file.size * sizeof(patterns); i++) {
		size_t at = i / sizeof(patterns);
		unsigned int chunk = 0;

		file.data[at] ^= patterns[i % sizeof(patterns)];
		read_bytes(file.data, file.size);
		file.data[at] ^= patterns[i % sizeof(patterns)];
		if (at < 8) {
			assert_int_equal(r.err, -ENOEXEC);
			continue;
		}
		assert_int_equal(r.err, 0);
		if (at < FILE_HEADER) {
			assert_true(r.summary.header_damaged);
			assert_true(has_all_samples(SMALL_SAMPLES));
			continue;
		}
		while (chunk_at(chunk + 1) <= at)
			chunk++;
		assert_int_equal(r.summary.damaged_chunks, 1);
		assert_int_equal(r.lost.count, 1);
		assert_int_equal(r.lost.data[0].source, LOST_RECORDING);
		assert_int_equal(r.lost.data[0].count, 1);
		if (chunk < SMALL_CHUNKS) {
			uint64_t first = chunk * SMALL_EACH; /* of its samples */

			assert_int_equal(r.samples.count, SMALL_SAMPLES - SMALL_EACH);
			/* the last event before: a sample, or the anchor after it */
			assert_int_equal(r.lost.data[0].since, chunk == 0 ? 0
							       : chunk == SMALL_CHUNKS - 1
								       ? 1000 + first
								       : 1000 + first - 1);
			assert_true(r.lost.data[0].header.time >= 1000 + first + SMALL_EACH);
			for (size_t j = 0; j < r.samples.count; j++)
				assert_false(r.samples.data[j] >= first &&
					     r.samples.data[j] < first + SMALL_EACH);
		} else {
			assert_true(r.summary.cut_short); /* the end was in it */
			assert_true(has_all_samples(SMALL_SAMPLES));
		}
	}
}

TEST(missing_or_extra_bytes_cost_one_chunk)
{
	_cleanup_free_ char *other = NULL;

	load_small_recording();
	other = malloc(file.size + 100);
	for (unsigned int chunk = 0; chunk < SMALL_CHUNKS; chunk++) {
		size_t start = chunk_at(chunk), end = chunk_at(chunk + 1);

		for (size_t at = start; at < end; at += 5) {
			size_t gone = end - at < 3 ? end - at : 3;

			memcpy(other, file.data, at);
			memcpy(other + at, file.data + at + gone, file.size - at - gone);
			read_bytes(other, file.size - gone);
			assert_int_equal(r.err, 0);
			assert_int_equal(r.samples.count, SMALL_SAMPLES - SMALL_EACH);
			assert_int_equal(r.lost.count, 1);
			assert_int_equal(r.ends, 1);

			memcpy(other, file.data, at);
			memset(other + at, 'x', 100);
			memcpy(other + at + 100, file.data + at, file.size - at);
			read_bytes(other, file.size + 100);
			assert_int_equal(r.err, 0);
			assert_true(r.samples.count >= SMALL_SAMPLES - SMALL_EACH);
			assert_int_equal(r.lost.count, 1);
			assert_int_equal(r.ends, 1);
		}
		/* the whole chunk gone: its number is missed */

		memcpy(other, file.data, start);
		memcpy(other + start, file.data + end, file.size - end);
		read_bytes(other, file.size - (end - start));
		assert_int_equal(r.err, 0);
		assert_int_equal(r.samples.count, SMALL_SAMPLES - SMALL_EACH);
		assert_int_equal(r.lost.count, 1);
		assert_int_equal(r.summary.damaged_chunks, 1);
	}
}

TEST(reading_random_damage_ends_with_a_defined_result)
{
	_cleanup_free_ char *other = NULL;

	load_small_recording();
	other = malloc(file.size);
	srand(11);
	for (int round = 0; round < 3000; round++) {
		memcpy(other, file.data, file.size);
		for (int i = rand() % 20; i >= 0; i--)
			other[8 + rand() % (file.size - 8)] = rand();
		read_bytes(other, file.size - rand() % 100);
		assert_true(r.err == 0 || r.err == -ENODATA || r.err == -EPROTONOSUPPORT);
	}
}

/* ---- files that lie -------------------------------------------------------------------------- */

static void set_header(size_t at, uint32_t value)
{
	uint32_t crc;

	memcpy(file.data + at, &value, sizeof(value));
	crc = crc32_update(0, file.data, 60);
	memcpy(file.data + 60, &crc, sizeof(crc));
}

TEST(other_versions_and_byte_orders_are_refused)
{
	load_small_recording();
	set_header(12, 7);
	read_bytes(file.data, file.size);
	assert_int_equal(r.err, -EPROTONOSUPPORT);
	assert_non_null(strstr(r.failure.what, "newer sysprof: version 7"));
	set_header(12, 1);
	set_header(8, 0x04030201);
	read_bytes(file.data, file.size);
	assert_int_equal(r.err, -ENOTSUP);
	assert_non_null(strstr(r.failure.what, "byte order"));
	read_bytes("", 0);
	assert_int_equal(r.err, -ENOEXEC);
	read_bytes("{\"meta\": {}}", 12);
	assert_int_equal(r.err, -ENOEXEC);
}

/* A process may give itself names that look like a chunk. */
TEST(a_planted_chunk_is_not_read)
{
	_cleanup_free_ struct kallsyms_event *text = NULL;
	struct recording_writer *w;
	size_t chunk, size, whole;
	const char *path;

	load_small_recording();
	chunk = chunk_at(0);
	size = chunk_at(1) - chunk;
	whole = (sizeof(*text) + size + 7) & ~(size_t)7;
	text = calloc(1, whole);
	text->header = (struct event_header){.size = whole, .type = EVENT_KALLSYMS, .time = 1};
	text->text_size = size;
	memcpy(text->text, file.data + chunk, size);
	path = in_scratch("planted.sysprof");
	w = open_writer(path);
	assert_int_equal(recording_writer__append(w, &text->header), 0);
	assert_int_equal(recording_writer__flush(w), 0);
	assert_int_equal(add_end(w, 5000), 0);
	assert_int_equal(recording_writer__close(w, NULL), 0);
	load(path);
	file.data[FILE_HEADER + 9] ^= 1; /* the header of the chunk that holds the other */
	read_bytes(file.data, file.size);
	assert_int_equal(r.err, 0);
	assert_int_equal(r.samples.count, 0);
	assert_int_equal(r.ends, 1);
	assert_int_equal(r.lost.count, 1);
}

TEST(invalid_events_in_a_sound_chunk_are_skipped)
{
	const char *path = in_scratch("bad.sysprof");
	struct recording_writer *w = open_writer(path);
	struct sample_event bad, old;
	struct event_header impossible = {.size = 20};

	make_sample(&bad, 0);
	make_sample(&old, 1);
	bad.user_frames = 1000;
	old.header.time = 5; /* before its time */
	assert_int_equal(add_sample(w, 0), 0);
	assert_int_equal(recording_writer__append(w, &bad.header), 0);
	assert_int_equal(recording_writer__append(w, &old.header), 0);
	assert_int_equal(add_sample(w, 2), 0);
	assert_int_equal(recording_writer__append(w, &impossible), -EBADMSG);
	assert_int_equal(recording_writer__close(w, NULL), 0);
	read_recording(path);
	assert_int_equal(r.err, 0);
	assert_true(has_all_samples(3));
	assert_int_equal(r.summary.bad_events, 1);
	assert_int_equal(r.summary.disordered, 1);
}

TEST(reading_nested_false_chunks_ends_without_data)
{
	enum { HEADERS = 200000 };
	size_t size = FILE_HEADER + (size_t)HEADERS * CHUNK_HEADER;
	_cleanup_free_ char *lies = malloc(size);

	load_small_recording();
	memcpy(lies, file.data, FILE_HEADER);
	for (size_t i = 0; i < HEADERS; i++) {
		char *header = lies + FILE_HEADER + i * CHUNK_HEADER;
		uint64_t payload = 4 << 20;
		uint32_t crc;

		memcpy(header, file.data + FILE_HEADER, CHUNK_HEADER);
		memcpy(header + 16, &payload, sizeof(payload));
		crc = crc32_update(0, header, CHUNK_HEADER - 4);
		memcpy(header + CHUNK_HEADER - 4, &crc, sizeof(crc));
	}
	read_bytes(lies, size);
	assert_int_equal(r.err, -ENODATA);
}

TEST(an_error_of_the_sink_ends_the_reading)
{
	_cleanup_close_ int fd = -1;

	load_small_recording();
	fd = open(in_scratch("small.sysprof"), O_RDONLY | O_CLOEXEC);
	read_fd_until(fd, -ECANCELED);
	assert_int_equal(r.err, -ECANCELED);
	assert_int_equal(r.summary.events, 3);
	assert_false(r.failure.what[0]);
}

EACH_TEST_WITH(NULL, tear_down);
ALL_TESTS_WITH(make_scratch, remove_scratch);
