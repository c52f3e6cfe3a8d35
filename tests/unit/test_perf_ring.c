/* SPDX-License-Identifier: BSD-2-Clause */
/* perf_ring: records that wrap, that lie about their size. What they become: test_sideband.c. */
#include "unit.h"
#include "live/capture/perf_events.h"
#include "stream/event_decode.h"

#define DATA_SIZE 8192u

/* A ring as the kernel would fill it, in memory of our own, and its data. */
static struct perf_ring ring;
static char *data;

static void forge(void)
{
	size_t page = sysconf(_SC_PAGESIZE);

	ring = (struct perf_ring){.data_size = DATA_SIZE};
	ring.page = mmap(NULL, page + DATA_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ring.page, MAP_FAILED);
	data = (char *)ring.page + page;
}

static void unforge(void)
{
	perf_ring__unmap(&ring);
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

/* ---- events of the program --------------------------------------------------------------------- */

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
