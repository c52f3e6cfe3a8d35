/* SPDX-License-Identifier: BSD-2-Clause */
/* perf_ring and perf_events: records that wrap, that lie about their size, and what they become. */
#include "unit.h"
#include "live/capture/perf_events.h"
#include "base/clocks.h"
#include "stream/event_decode.h"

#define DATA_SIZE 8192u

/* A ring as the kernel would fill it, in memory of our own, and its data. */
static struct perf_ring ring;
static char *data;

static int forge(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE);

	ring = (struct perf_ring){.data_size = DATA_SIZE};
	ring.page = mmap(NULL, page + DATA_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ring.page, MAP_FAILED);
	data = (char *)ring.page + page;
	return 0;
}

static int unforge(void **state)
{
	perf_ring__unmap(&ring);
	return 0;
}

/* Put bytes at the head, wrapping. */
static void put(const void *bytes, size_t size)
{
	struct perf_event_mmap_page *page = ring.page;

	for (size_t i = 0; i < size; i++)
		data[(page->data_head + i) % DATA_SIZE] = ((const char *)bytes)[i];
	page->data_head += size;
}

static void put_record(uint32_t type, uint16_t size, unsigned char fill)
{
	char record[UINT16_MAX + 1];

	memset(record, fill, sizeof(record));
	*(struct perf_event_header *)record = (struct perf_event_header){.type = type,
									 .size = size};
	put(record, size);
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

TEST(records_come_whole_and_in_order)
{
	struct seen seen = {.whole = true};
	int expected = 0;

	/* sizes that meet the edge at every 8-byte offset, several times around */
	for (int round = 0; round < 500; round++) {
		int batch = 1 + round % 5;

		for (int i = 0; i < batch; i++)
			put_record(expected + i, 8 + 8 * ((round * 7 + i * 13) % 150),
				   expected + i);
		assert_int_equal(perf_ring__drain(&ring, see, &seen), 0);
		assert_int_equal(perf_ring__used(&ring), 0);
		expected += batch;
	}
	assert_int_equal(seen.count, expected);
	assert_true(seen.whole);
	for (int i = 0; i < expected; i++)
		assert_int_equal(seen.types[i], i);
	assert_int_equal(ring.damaged, 0);
	assert_true(ring.page->data_tail > 10 * DATA_SIZE);
}

TEST(a_receiver_can_stop_and_continue)
{
	struct seen seen = {.stop_at = 2, .whole = true};

	for (int i = 0; i < 3; i++)
		put_record(i, 64, i);
	assert_int_equal(perf_ring__drain(&ring, see, &seen), 7);
	assert_int_equal(perf_ring__used(&ring), 64);
	seen.stop_at = 0;
	assert_int_equal(perf_ring__drain(&ring, see, &seen), 0);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.types[2], 2);
}

TEST(a_bad_size_discards_what_is_in_the_ring)
{
	static const uint16_t sizes[] = {0, 4, 12, 72, UINT16_MAX};
	struct seen seen = {.whole = true};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perf_event_header bad = {.type = 1, .size = sizes[i]};
		char rest[56] = {};

		seen.count = 0;
		put_record(5, 16, 5);
		put(&bad, sizeof(bad));
		put(rest, sizeof(rest));
		assert_int_equal(perf_ring__drain(&ring, see, &seen), 0);
		assert_int_equal(seen.count, 1);
		assert_int_equal(ring.damaged, i + 1);
		assert_int_equal(perf_ring__used(&ring), 0);
	}
	/* a head that ran away */
	ring.page->data_head += 3 * DATA_SIZE;
	assert_int_equal(perf_ring__drain(&ring, see, &seen), 0);
	assert_int_equal(ring.damaged, 6);
	put_record(9, 8, 9);
	seen.count = 0;
	assert_int_equal(perf_ring__drain(&ring, see, &seen), 0);
	assert_int_equal(seen.types[0], 9);
}

TEST(an_unmapped_ring_is_empty)
{
	struct perf_ring none = {};

	assert_int_equal(perf_ring__drain(&none, see, NULL), 0);
	assert_int_equal(perf_ring__used(&none), 0);
	perf_ring__unmap(&none);
	perf_ring__unmap(NULL);
}

/* ---- records to events ----------------------------------------------------------------------- */

/* The latest event. */
static struct {
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
} caught;

static int catch (void *context, struct event_header *event)
{
	assert_true(event->size <= sizeof(caught.event));
	assert_int_equal(event->size % EVENT_ALIGN, 0);
	memcpy(&caught.event, event, event->size);
	caught.count++;
	return 0;
}

/* A record in memory of exactly its size, so that a sanitizer sees every step beyond. */
static struct {
	struct perf_event_header *header;
	size_t size;
} record;

static void begin(uint32_t type, uint16_t misc)
{
	record.header = malloc(sizeof(*record.header));
	record.size = sizeof(*record.header);
	*record.header = (struct perf_event_header){.type = type, .misc = misc};
}

static void add(const void *bytes, size_t size)
{
	record.header = realloc(record.header, record.size + size);
	memcpy((char *)record.header + record.size, bytes, size);
	record.size += size;
	record.header->size = record.size;
}

static void add_u64(uint64_t number)
{
	add(&number, sizeof(number));
}

static void add_words(int count, ...)
{
	va_list args;

	va_start(args, count);
	for (int i = 0; i < count; i++) {
		uint32_t word = va_arg(args, uint32_t);

		add(&word, sizeof(word));
	}
	va_end(args);
}

static void end(uint64_t time)
{
	add_words(2, 1u, 1u);
	add_u64(time);
	add_words(2, 0u, 0u);
}

static int decode(void)
{
	static struct sideband_decoder decoder = {.cpu = 3};
	int err;

	caught.count = 0;
	err = sideband_decode(&decoder, record.header, catch, NULL);
	free(record.header);
	return err;
}

static void begin_mmap(uint16_t misc, const void *identity, uint32_t protection)
{
	begin(PERF_RECORD_MMAP2, misc);
	add_words(2, 12u, 13u);
	add_u64(0x400000);
	add_u64(0x2000);
	add_u64(0x1000);
	add(identity, 24);
	add_words(2, protection, (uint32_t)MAP_PRIVATE);
}

static int decode_mmap(uint16_t misc, const void *identity, uint32_t protection, const char *path,
		       size_t size, uint64_t time)
{
	begin_mmap(misc, identity, protection);
	add(path, size);
	end(time);
	return decode();
}

static void begin_ksymbol(uint32_t type, const char *name, size_t size, uint64_t time)
{
	begin(PERF_RECORD_KSYMBOL, 0);
	add_u64(0xffffffffc0001000);
	add_words(2, 64u, type);
	add(name, size);
	end(time);
}

static int decode_ksymbol(uint32_t type, const char *name, size_t size, uint64_t time)
{
	begin_ksymbol(type, name, size, time);
	return decode();
}

static int decode_group(const char *path, size_t size, uint64_t time)
{
	begin(PERF_RECORD_CGROUP, 0);
	add_u64(4711);
	add(path, size);
	end(time);
	return decode();
}

TEST(mmap_records_become_events_of_executable_mappings)
{
	static const char path[16] = "/usr/bin/a b";
	static const char anonymous[8] = "//anon", cut[16] = "[uprobes-trampo";
	unsigned char by_id[24] = {20, 0, 0, 0, 1, 2, 3}, by_inode[24] = {8, 0, 0, 0, 1};

	assert_int_equal(decode_mmap(PERF_RECORD_MISC_MMAP_BUILD_ID, by_id, PROT_READ | PROT_EXEC,
				     path, sizeof(path), 77),
			 0);
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

	assert_int_equal(decode_mmap(0, by_inode, PROT_EXEC, anonymous, sizeof(anonymous), 78), 0);
	assert_int_equal(caught.event.header.flags, 0);
	assert_int_equal(caught.event.mmap.build_id_size, 0);
	assert_int_equal(caught.event.mmap.major, 8);
	assert_int_equal(caught.event.mmap.minor, 1);
	assert_int_equal(caught.event.mmap.file_state, FILE_STATE_NONE);

	assert_int_equal(decode_mmap(0, by_inode, PROT_READ | PROT_EXEC, cut, sizeof(cut), 79), 0);
	assert_string_equal(caught.event.mmap.path, "[uprobes-trampoline]");

	assert_int_equal(decode_mmap(0, by_inode, PROT_READ | PROT_WRITE, path, sizeof(path), 79),
			 0);
	assert_int_equal(caught.count, 0);
}

TEST(inconsistent_mmap_records_are_refused)
{
	unsigned char id[24] = {21};
	char long_path[6000];

	assert_int_equal(
		decode_mmap(PERF_RECORD_MISC_MMAP_BUILD_ID, id, PROT_EXEC, "/a\0\0\0\0\0", 8, 1),
		-EBADMSG);

	id[0] = 0;
	assert_int_equal(decode_mmap(0, id, PROT_EXEC, "/aaaaaaa", 8, 1), -EBADMSG);

	begin_mmap(0, id, PROT_EXEC); /* no name, no time */
	assert_int_equal(decode(), -EBADMSG);

	memset(long_path, 'x', sizeof(long_path));
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(decode_mmap(0, id, PROT_EXEC, long_path, sizeof(long_path), 1), 0);
	assert_int_equal(strlen(caught.event.mmap.path), EVENT_PATH_MAX - 1);
}

/* Code that the kernel has made or removed: a line as of /proc/kallsyms, and its end. */
TEST(ksymbol_records_become_lines_of_kallsyms)
{
	static const char name[32] = "bpf_prog_0123456789abcdef_f", end[8] = "ool", hidden[8] = "";
	const uint32_t bpf = PERF_RECORD_KSYMBOL_TYPE_BPF;
	const uint32_t gone = bpf | PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER << 16;

	assert_int_equal(decode_ksymbol(bpf, name, sizeof(name), 55), 0);
	assert_int_equal(caught.count, 1);
	assert_int_equal(caught.event.header.type, EVENT_KALLSYMS);
	assert_int_equal(caught.event.header.flags, EVENT_KALLSYMS_ADDED);
	assert_int_equal(caught.event.header.time, 55);
	assert_int_equal(event_check(&caught.event.header, caught.event.header.size), 0);
	assert_string_equal(caught.event.kallsyms.text,
			    "ffffffffc0001000 t bpf_prog_0123456789abcdef_f\t[bpf]\n"
			    "ffffffffc0001040 a end\t[bpf]\n");
	assert_int_equal(caught.event.kallsyms.text_size, strlen(caught.event.kallsyms.text));

	assert_int_equal(decode_ksymbol(PERF_RECORD_KSYMBOL_TYPE_OOL, end, sizeof(end), 56), 0);
	assert_string_equal(caught.event.kallsyms.text,
			    "ffffffffc0001000 t ool\t[__builtin__ftrace]\n"
			    "ffffffffc0001040 a end\t[__builtin__ftrace]\n");

	/* another one listens: behind what is for us is what was there before */
	begin_ksymbol(bpf, name, sizeof(name), 59);
	add("what was in the ring so far", 24);
	assert_int_equal(decode(), 0);
	assert_int_equal(caught.event.header.time, 59);
	assert_string_equal(caught.event.kallsyms.text,
			    "ffffffffc0001000 t bpf_prog_0123456789abcdef_f\t[bpf]\n"
			    "ffffffffc0001040 a end\t[bpf]\n");

	assert_int_equal(decode_ksymbol(gone, name, sizeof(name), 57), 0);
	assert_int_equal(caught.event.header.flags, EVENT_KALLSYMS_ADDED | EVENT_KALLSYMS_REMOVED);
	assert_int_equal(caught.event.header.time, 57);
	assert_string_equal(caught.event.kallsyms.text,
			    "ffffffffc0001000 t bpf_prog_0123456789abcdef_f\t[bpf]\n"
			    "ffffffffc0001040 a end\t[bpf]\n");
	assert_int_equal(decode_ksymbol(bpf, hidden, sizeof(hidden), 60), 0);
	caught.event.kallsyms.text[caught.event.kallsyms.text_size] = '\0';
	assert_string_equal(caught.event.kallsyms.text,
			    "ffffffffc0001000 a -\t[bpf]\nffffffffc0001040 a end\t[bpf]\n");

	assert_int_equal(decode_ksymbol(bpf, "unending", 8, 58), -EBADMSG);
}

TEST(records_of_the_future_are_refused)
{
	static const char comm[8] = "comm";

	for (int i = 0; i < 2; i++) {
		begin(PERF_RECORD_COMM, 0);
		add_words(2, 5u, 6u);
		add(comm, sizeof(comm));
		end(i ? monotonic_ns() : monotonic_ns() + 1000000000);
		assert_int_equal(decode(), i ? 0 : -EBADMSG);
		assert_int_equal(caught.count, i);
	}
}

TEST(records_of_tasks_and_losses_become_events)
{
	static const char comm[24] = "a comm that is too long";
	const uint64_t lost[2] = {1, 42};

	begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	add_words(2, 5u, 6u);
	add(comm, sizeof(comm));
	end(100);
	assert_int_equal(decode(), 0);
	assert_int_equal(caught.event.header.type, EVENT_COMM);
	assert_int_equal(caught.event.header.flags, EVENT_COMM_EXEC);
	assert_string_equal(caught.event.comm.comm, "a comm that is ");

	begin(PERF_RECORD_FORK, 0);
	add_words(4, 9u, 5u, 10u, 6u);
	add_u64(5);
	end(101);
	assert_int_equal(decode(), 0);
	assert_int_equal(caught.event.header.type, EVENT_FORK);
	assert_int_equal(caught.event.task.pid, 9);
	assert_int_equal(caught.event.task.ppid, 5);
	assert_int_equal(caught.event.task.tid, 10);
	assert_int_equal(caught.event.task.ptid, 6);

	/* of another pid namespace */
	begin(PERF_RECORD_EXIT, 0);
	add_words(4, 0u, 0u, 0u, 0u);
	add_u64(5);
	end(101);
	assert_int_equal(decode(), 0);
	assert_int_equal(caught.count, 0);

	begin(PERF_RECORD_LOST, 0);
	add(lost, sizeof(lost));
	end(200);
	assert_int_equal(decode(), 0);
	assert_int_equal(caught.event.header.type, EVENT_LOST);
	assert_int_equal(caught.event.lost.source, LOST_SIDEBAND);
	assert_int_equal(caught.event.lost.count, 42);
	assert_int_equal(caught.event.lost.cpu, 3);
	assert_int_equal(caught.event.lost.since, 101);

	begin(PERF_RECORD_THROTTLE, 0);
	add(lost, sizeof(lost));
	assert_int_equal(decode(), 0);
	assert_int_equal(caught.count, 0);

	begin(PERF_RECORD_EXIT, 0);
	add_words(2, 9u, 5u);
	assert_int_equal(decode(), -EBADMSG);
}

TEST(records_of_control_groups_become_events)
{
	static const char path[24] = "/system.slice/a.service";
	static const char longest[EVENT_PATH_MAX + 8] = {[0 ... EVENT_PATH_MAX] = 'x'};

	assert_int_equal(decode_group(path, sizeof(path), 300), 0);
	assert_int_equal(caught.event.header.type, EVENT_GROUP_MADE);
	assert_int_equal(caught.event.header.time, 300);
	assert_int_equal(caught.event.group.group, 4711);
	assert_string_equal(caught.event.group.path, path);

	/* without its end, and longer than a path is */
	assert_int_equal(decode_group(path, 8, 301), -EBADMSG);
	assert_int_equal(decode_group(longest, sizeof(longest), 302), 0);
	assert_int_equal(caught.count, 0);
}

TEST(only_whole_events_are_taken_from_samples)
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

EACH_TEST_WITH(forge, unforge);
