/* SPDX-License-Identifier: BSD-2-Clause */
/* perf_ring and perf_events: records that wrap, that lie about their size, and what they become. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"
#include "live/capture/perf_events.h"
#include "base/clocks.h"
#include "stream/event_decode.h"

#define DATA_SIZE 8192u

/* A ring as the kernel would fill it, in memory of our own. */
struct forged {
	struct perf_ring ring;
	char *data;
};

static int forge(void **state)
{
	struct forged *f = calloc(1, sizeof(*f));
	size_t page = sysconf(_SC_PAGESIZE);

	f->ring.page = mmap(NULL, page + DATA_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f->ring.page, MAP_FAILED);
	f->ring.data_size = DATA_SIZE;
	f->data = (char *)f->ring.page + page;
	*state = f;
	return 0;
}

static int unforge(void **state)
{
	struct forged *f = *state;

	perf_ring__unmap(&f->ring);
	free(f);
	return 0;
}

/* Put bytes at the head, wrapping. */
static void put(struct forged *f, const void *bytes, size_t size)
{
	struct perf_event_mmap_page *page = f->ring.page;

	for (size_t i = 0; i < size; i++)
		f->data[(page->data_head + i) % DATA_SIZE] = ((const char *)bytes)[i];
	page->data_head += size;
}

static void put_record(struct forged *f, uint32_t type, uint16_t size, unsigned char fill)
{
	char record[UINT16_MAX + 1];

	memset(record, fill, sizeof(record));
	*(struct perf_event_header *)record = (struct perf_event_header){.type = type,
									 .size = size};
	put(f, record, size);
}

struct seen {
	int count, stop_at;
	uint32_t types[4096];
	bool whole;
};

static int see(void *context, struct perf_event_header *record)
{
	struct seen *seen = context;
	const unsigned char *bytes = (const unsigned char *)(record + 1);
	size_t size = record->size - sizeof(*record);

	assert_int_equal((uintptr_t)record & 7, 0);
	seen->types[seen->count++] = record->type;
	for (size_t i = 0; i < size; i++)
		seen->whole = seen->whole && bytes[i] == (unsigned char)record->type;
	memset(record, 0xee, record->size); /* allowed */
	return seen->count == seen->stop_at ? 7 : 0;
}

TEST_WITH(records_come_whole_and_in_order, forge, unforge)
{
	struct forged *f = *state;
	struct seen seen = {.whole = true};
	int expected = 0;

	/* sizes that meet the edge at every 8-byte offset, several times around */
	for (int round = 0; round < 500; round++) {
		int batch = 1 + round % 5;

		for (int i = 0; i < batch; i++)
			put_record(f, expected + i, 8 + 8 * ((round * 7 + i * 13) % 150),
				   expected + i);
		assert_int_equal(perf_ring__drain(&f->ring, see, &seen), 0);
		assert_int_equal(perf_ring__used(&f->ring), 0);
		expected += batch;
	}
	assert_int_equal(seen.count, expected);
	assert_true(seen.whole);
	for (int i = 0; i < expected; i++)
		assert_int_equal(seen.types[i], i);
	assert_int_equal(f->ring.damaged, 0);
	assert_true(f->ring.page->data_tail > 10 * DATA_SIZE);
}

TEST_WITH(sink_can_stop, forge, unforge)
{
	struct forged *f = *state;
	struct seen seen = {.stop_at = 2, .whole = true};

	for (int i = 0; i < 3; i++)
		put_record(f, i, 64, i);
	assert_int_equal(perf_ring__drain(&f->ring, see, &seen), 7);
	assert_int_equal(perf_ring__used(&f->ring), 64);
	seen.stop_at = 0;
	assert_int_equal(perf_ring__drain(&f->ring, see, &seen), 0);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.types[2], 2);
}

TEST_WITH(bad_sizes_cost_what_is_there, forge, unforge)
{
	static const uint16_t sizes[] = {0, 4, 12, 72, UINT16_MAX};
	struct forged *f = *state;
	struct seen seen = {.whole = true};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perf_event_header bad = {.type = 1, .size = sizes[i]};
		char rest[56] = {};

		seen.count = 0;
		put_record(f, 5, 16, 5);
		put(f, &bad, sizeof(bad));
		put(f, rest, sizeof(rest));
		assert_int_equal(perf_ring__drain(&f->ring, see, &seen), 0);
		assert_int_equal(seen.count, 1);
		assert_int_equal(f->ring.damaged, i + 1);
		assert_int_equal(perf_ring__used(&f->ring), 0);
	}
	/* a head that ran away */
	f->ring.page->data_head += 3 * DATA_SIZE;
	assert_int_equal(perf_ring__drain(&f->ring, see, &seen), 0);
	assert_int_equal(f->ring.damaged, 6);
	put_record(f, 9, 8, 9);
	seen.count = 0;
	assert_int_equal(perf_ring__drain(&f->ring, see, &seen), 0);
	assert_int_equal(seen.types[0], 9);
}

TEST(unmapped_is_empty)
{
	struct perf_ring ring = {};

	assert_int_equal(perf_ring__drain(&ring, see, NULL), 0);
	assert_int_equal(perf_ring__used(&ring), 0);
	perf_ring__unmap(&ring);
	perf_ring__unmap(NULL);
}

/* ---- records to events ----------------------------------------------------------------------- */

struct caught {
	int count;
	union {
		struct event_header header;
		struct mmap_event mmap;
		struct kallsyms_event kallsyms;
		struct comm_event comm;
		struct task_event task;
		struct lost_event lost;
		struct group_made_event group;
		char space[8192];
	} event;
};

static int catch (void *context, struct event_header *event)
{
	struct caught *caught = context;

	assert_true(event->size <= sizeof(caught->event));
	assert_int_equal(event->size % EVENT_ALIGN, 0);
	memcpy(&caught->event, event, event->size);
	caught->count++;
	return 0;
}

/* A record in memory of exactly its size, so that a sanitizer sees every step beyond. */
struct record {
	struct perf_event_header *header;
	size_t size;
};

static void record__begin(struct record *r, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};

	r->header = malloc(sizeof(header));
	r->size = sizeof(header);
	*r->header = header;
}

static void record__add(struct record *r, const void *bytes, size_t size)
{
	r->header = realloc(r->header, r->size + size);
	memcpy((char *)r->header + r->size, bytes, size);
	r->size += size;
	r->header->size = r->size;
}

static void record__add_words(struct record *r, int count, ...)
{
	va_list args;

	va_start(args, count);
	for (int i = 0; i < count; i++) {
		uint32_t word = va_arg(args, uint32_t);

		record__add(r, &word, sizeof(word));
	}
	va_end(args);
}

static void record__end(struct record *r, uint64_t time)
{
	record__add_words(r, 2, 1u, 1u);
	record__add(r, &time, sizeof(time));
	record__add_words(r, 2, 0u, 0u);
}

static int decode(struct record *r, struct caught *caught)
{
	static struct sideband_decoder decoder = {.cpu = 3};
	int err;

	caught->count = 0;
	err = sideband_decode(&decoder, r->header, catch, caught);
	free(r->header);
	return err;
}

static void begin_mmap(struct record *r, uint16_t misc, const void *identity, uint32_t protection)
{
	uint64_t numbers[3] = {0x400000, 0x2000, 0x1000};

	record__begin(r, PERF_RECORD_MMAP2, misc);
	record__add_words(r, 2, 12u, 13u);
	record__add(r, numbers, sizeof(numbers));
	record__add(r, identity, 24);
	record__add_words(r, 2, protection, (uint32_t)MAP_PRIVATE);
}

TEST(mmap_records)
{
	static const char path[16] = "/usr/bin/a b";
	static const char anonymous[8] = "//anon", cut[16] = "[uprobes-trampo";
	unsigned char by_id[24] = {20, 0, 0, 0, 1, 2, 3}, by_inode[24] = {8, 0, 0, 0, 1};
	struct caught caught;
	struct record r;

	begin_mmap(&r, PERF_RECORD_MISC_MMAP_BUILD_ID, by_id, PROT_READ | PROT_EXEC);
	record__add(&r, path, sizeof(path));
	record__end(&r, 77);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.count, 1);
	assert_int_equal(caught.event.header.type, EVENT_MMAP);
	assert_int_equal(caught.event.header.flags, EVENT_BUILD_ID);
	assert_int_equal(caught.event.header.time, 77);
	assert_int_equal(caught.event.mmap.pid, 12);
	assert_int_equal(caught.event.mmap.tid, 13);
	assert_int_equal(caught.event.mmap.start, 0x400000);
	assert_int_equal(caught.event.mmap.length, 0x2000);
	assert_int_equal(caught.event.mmap.page_offset, 0x1000);
	assert_int_equal(caught.event.mmap.build_id_size, 20);
	assert_memory_equal(caught.event.mmap.build_id, by_id + 4, 20);
	assert_int_equal(caught.event.mmap.inode, 0);
	assert_int_equal(caught.event.mmap.file_state, FILE_STATE_UNOPENED);
	assert_string_equal(caught.event.mmap.path, "/usr/bin/a b");

	begin_mmap(&r, 0, by_inode, PROT_EXEC);
	record__add(&r, anonymous, sizeof(anonymous));
	record__end(&r, 78);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.event.header.flags, 0);
	assert_int_equal(caught.event.mmap.build_id_size, 0);
	assert_int_equal(caught.event.mmap.major, 8);
	assert_int_equal(caught.event.mmap.minor, 1);
	assert_int_equal(caught.event.mmap.file_state, FILE_STATE_NONE);

	begin_mmap(&r, 0, by_inode, PROT_READ | PROT_EXEC);
	record__add(&r, cut, sizeof(cut));
	record__end(&r, 79);
	assert_int_equal(decode(&r, &caught), 0);
	assert_string_equal(caught.event.mmap.path, "[uprobes-trampoline]");

	begin_mmap(&r, 0, by_inode, PROT_READ | PROT_WRITE);
	record__add(&r, path, sizeof(path));
	record__end(&r, 79);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.count, 0);
}

TEST(mmap_records_that_lie)
{
	unsigned char id[24] = {21};
	struct caught caught;
	struct record r;
	char long_path[6000];

	begin_mmap(&r, PERF_RECORD_MISC_MMAP_BUILD_ID, id, PROT_EXEC);
	record__add(&r, "/a\0\0\0\0\0", 8);
	record__end(&r, 1);
	assert_int_equal(decode(&r, &caught), -EBADMSG);

	id[0] = 0;
	begin_mmap(&r, 0, id, PROT_EXEC);
	record__add(&r, "/aaaaaaa", 8); /* no end */
	record__end(&r, 1);
	assert_int_equal(decode(&r, &caught), -EBADMSG);

	begin_mmap(&r, 0, id, PROT_EXEC); /* no name, no time */
	assert_int_equal(decode(&r, &caught), -EBADMSG);

	memset(long_path, 'x', sizeof(long_path));
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	begin_mmap(&r, 0, id, PROT_EXEC);
	record__add(&r, long_path, sizeof(long_path));
	record__end(&r, 1);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(strlen(caught.event.mmap.path), EVENT_PATH_MAX - 1);
}

/* Code that the kernel has made: a line as of /proc/kallsyms, and its end. That code goes is no event. */
TEST(ksymbol_records)
{
	static const char name[32] = "bpf_prog_0123456789abcdef_f", end[8] = "ool";
	uint64_t address = 0xffffffffc0001000;
	uint32_t length = 64, bpf = PERF_RECORD_KSYMBOL_TYPE_BPF;
	uint32_t gone = bpf | PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER << 16;
	struct caught caught;
	struct record r;

	record__begin(&r, PERF_RECORD_KSYMBOL, 0);
	record__add(&r, &address, sizeof(address));
	record__add_words(&r, 2, length, bpf);
	record__add(&r, name, sizeof(name));
	record__end(&r, 55);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.count, 1);
	assert_int_equal(caught.event.header.type, EVENT_KALLSYMS);
	assert_int_equal(caught.event.header.flags, EVENT_KALLSYMS_ADDED);
	assert_int_equal(caught.event.header.time, 55);
	assert_int_equal(event_check(&caught.event.header, caught.event.header.size), 0);
	assert_string_equal(caught.event.kallsyms.text,
			    "ffffffffc0001000 t bpf_prog_0123456789abcdef_f\t[bpf]\n"
			    "ffffffffc0001040 a end\t[bpf]\n");
	assert_int_equal(caught.event.kallsyms.text_size, strlen(caught.event.kallsyms.text));

	record__begin(&r, PERF_RECORD_KSYMBOL, 0);
	record__add(&r, &address, sizeof(address));
	record__add_words(&r, 2, length, (uint32_t)PERF_RECORD_KSYMBOL_TYPE_OOL);
	record__add(&r, end, sizeof(end));
	record__end(&r, 56);
	assert_int_equal(decode(&r, &caught), 0);
	assert_string_equal(caught.event.kallsyms.text,
			    "ffffffffc0001000 t ool\t[__builtin__ftrace]\n"
			    "ffffffffc0001040 a end\t[__builtin__ftrace]\n");

	/* another one listens: behind what is for us is what was there before */
	record__begin(&r, PERF_RECORD_KSYMBOL, 0);
	record__add(&r, &address, sizeof(address));
	record__add_words(&r, 2, length, bpf);
	record__add(&r, name, sizeof(name));
	record__end(&r, 59);
	record__add(&r, "what was in the ring so far", 24);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.event.header.time, 59);
	assert_string_equal(caught.event.kallsyms.text,
			    "ffffffffc0001000 t bpf_prog_0123456789abcdef_f\t[bpf]\n"
			    "ffffffffc0001040 a end\t[bpf]\n");

	record__begin(&r, PERF_RECORD_KSYMBOL, 0);
	record__add(&r, &address, sizeof(address));
	record__add_words(&r, 2, length, gone);
	record__add(&r, name, sizeof(name));
	record__end(&r, 57);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.count, 0);

	record__begin(&r, PERF_RECORD_KSYMBOL, 0);
	record__add(&r, &address, sizeof(address));
	record__add_words(&r, 2, length, bpf);
	record__add(&r, "unending", 8);
	record__end(&r, 58);
	assert_int_equal(decode(&r, &caught), -EBADMSG);
}

/* Nothing happens later than now. */
TEST(records_of_the_future)
{
	static const char comm[8] = "comm";
	struct caught caught;
	struct record r;

	for (int i = 0; i < 2; i++) {
		record__begin(&r, PERF_RECORD_COMM, 0);
		record__add_words(&r, 2, 5u, 6u);
		record__add(&r, comm, sizeof(comm));
		record__end(&r, i ? monotonic_ns() : monotonic_ns() + 1000000000);
		assert_int_equal(decode(&r, &caught), i ? 0 : -EBADMSG);
		assert_int_equal(caught.count, i);
	}
}

TEST(other_records)
{
	static const char comm[24] = "a comm that is too long";
	uint64_t lost[2] = {1, 42}, time = 5;
	struct caught caught;
	struct record r;

	record__begin(&r, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	record__add_words(&r, 2, 5u, 6u);
	record__add(&r, comm, sizeof(comm));
	record__end(&r, 100);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.event.header.type, EVENT_COMM);
	assert_int_equal(caught.event.header.flags, EVENT_COMM_EXEC);
	assert_string_equal(caught.event.comm.comm, "a comm that is ");

	record__begin(&r, PERF_RECORD_FORK, 0);
	record__add_words(&r, 4, 9u, 5u, 10u, 6u);
	record__add(&r, &time, sizeof(time));
	record__end(&r, 101);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.event.header.type, EVENT_FORK);
	assert_int_equal(caught.event.task.pid, 9);
	assert_int_equal(caught.event.task.ppid, 5);
	assert_int_equal(caught.event.task.tid, 10);
	assert_int_equal(caught.event.task.ptid, 6);

	/* of another pid namespace */
	record__begin(&r, PERF_RECORD_EXIT, 0);
	record__add_words(&r, 4, 0u, 0u, 0u, 0u);
	record__add(&r, &time, sizeof(time));
	record__end(&r, 101);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.count, 0);

	record__begin(&r, PERF_RECORD_LOST, 0);
	record__add(&r, lost, sizeof(lost));
	record__end(&r, 200);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.event.header.type, EVENT_LOST);
	assert_int_equal(caught.event.lost.source, LOST_SIDEBAND);
	assert_int_equal(caught.event.lost.count, 42);
	assert_int_equal(caught.event.lost.cpu, 3);
	assert_int_equal(caught.event.lost.since, 101);

	record__begin(&r, PERF_RECORD_THROTTLE, 0);
	record__add(&r, lost, sizeof(lost));
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.count, 0);

	record__begin(&r, PERF_RECORD_EXIT, 0);
	record__add_words(&r, 2, 9u, 5u);
	assert_int_equal(decode(&r, &caught), -EBADMSG);
}

TEST(group_records)
{
	static const char path[24] = "/system.slice/a.service";
	static const char longest[EVENT_PATH_MAX + 8] = {[0 ... EVENT_PATH_MAX] = 'x'};
	uint64_t id = 4711;
	struct caught caught;
	struct record r;

	record__begin(&r, PERF_RECORD_CGROUP, 0);
	record__add(&r, &id, sizeof(id));
	record__add(&r, path, sizeof(path));
	record__end(&r, 300);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.event.header.type, EVENT_GROUP_MADE);
	assert_int_equal(caught.event.header.time, 300);
	assert_int_equal(caught.event.group.group, 4711);
	assert_string_equal(caught.event.group.path, path);

	/* without its end, and longer than a path is */
	record__begin(&r, PERF_RECORD_CGROUP, 0);
	record__add(&r, &id, sizeof(id));
	record__add(&r, path, 8);
	record__end(&r, 301);
	assert_int_equal(decode(&r, &caught), -EBADMSG);
	record__begin(&r, PERF_RECORD_CGROUP, 0);
	record__add(&r, &id, sizeof(id));
	record__add(&r, longest, sizeof(longest));
	record__end(&r, 302);
	assert_int_equal(decode(&r, &caught), 0);
	assert_int_equal(caught.count, 0);
}

TEST(output_records)
{
	struct {
		struct perf_event_header header;
		uint32_t raw_size, lead;
		struct thread_cpu_event event;
	} r = {
		.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(r)},
		.raw_size = sizeof(r.event) + 4,
		.event.header = {.size = sizeof(r.event), .type = EVENT_THREAD_CPU},
	};

	assert_ptr_equal(output_decode(&r.header), &r.event);
	r.event.header.size += 8;
	assert_null(output_decode(&r.header));
	r.event.header.size = 12;
	assert_null(output_decode(&r.header));
	r.event.header.size = 28;
	assert_null(output_decode(&r.header));
	r.event.header.size = sizeof(r.event);
	r.header.size = 24;
	assert_null(output_decode(&r.header));
	r.header.size = sizeof(r);
	r.header.type = PERF_RECORD_LOST;
	assert_null(output_decode(&r.header));
}
