/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of ticks: filled as the program fills them, and with what no program writes. */
#include "unit.h"
#include "live/capture/tick_rings.h"

#define RINGS	  3
#define DATA_SIZE 4096u
#define EVENT_MAX 1024u

static struct tick_rings rings;
static int fd;
static uint64_t written, read_back; /* events, in the order of their contents */

/* Memory of our own, which is mapped like that of the kernel's array. */
static void setup(void)
{
	fd = memfd_create("rings", MFD_CLOEXEC);
	written = read_back = 0;
	assert_false(fd < 0 || ftruncate(fd, RINGS * tick_ring_bytes(DATA_SIZE)));
	assert_int_equal(tick_rings__map(&rings, fd, RINGS, DATA_SIZE), 0);
}

static void teardown(void)
{
	tick_rings__unmap(&rings);
	tick_rings__unmap(&rings);
	assert_int_equal(close(fd), 0);
}

static struct tick_ring *ring_number(size_t number)
{
	return (struct tick_ring *)(rings.memory + number * tick_ring_bytes(DATA_SIZE));
}

/* As bpf/tick_ring.bpf.h does it. */
static bool put(struct tick_ring *ring, uint32_t size)
{
	uint64_t used = ring->head + size - ring->tail;
	struct event_header event = {.size = size, .type = EVENT_SAMPLE, .time = written};
	unsigned char *at;

	if (used > DATA_SIZE)
		return false;
	if (used == size)
		ring->origin = ring->head;
	at = (unsigned char *)ring + TICK_RING_DATA +
	     ((ring->head - ring->origin) & (DATA_SIZE - 1));
	memset(at, (int)written, size);
	memcpy(at, &event, sizeof(event));
	ring->head += size;
	written++;
	return true;
}

static int take(void *context, struct event_header *event)
{
	const unsigned char *bytes = (const unsigned char *)event;
	const uint64_t *stop_at = context;

	assert_int_equal(event->time, read_back);
	for (size_t i = sizeof(*event); i < event->size; i++)
		assert_int_equal(bytes[i], (unsigned char)read_back);
	read_back++;
	event->size = 8; /* the receiver may write to it */
	return stop_at && read_back == *stop_at ? -EINTR : 0;
}

/* Whole and in order, through many turns of the ring, whether it runs empty or not. */
TEST(in_order)
{
	struct tick_ring *ring = ring_number(1);
	unsigned int refused = 0;

	srandom(1);
	for (unsigned int i = 0; i < 20000; i++) {
		refused += !put(ring, 24 + (uint32_t)random() % (EVENT_MAX / 8) * 8);
		assert_int_equal(tick_rings__used(&rings, 1), ring->head - ring->tail);
		if (!(random() % 3))
			assert_int_equal(tick_rings__drain(&rings, 1, take, NULL), 0);
	}
	assert_int_equal(tick_rings__drain(&rings, 1, take, NULL), 0);
	assert_int_equal(read_back, written);
	assert_in_range(refused, 1, 10000);
	assert_in_range(ring->head, 100 * DATA_SIZE, UINT64_MAX);
	assert_int_equal(ring_number(0)->head | ring_number(2)->head, 0);
}

/* A receiver that fails has had its event, and the next drain goes on behind it. */
TEST(a_receiver_that_fails)
{
	uint64_t stop_at = 2;

	for (int i = 0; i < 4; i++)
		assert_true(put(ring_number(0), 32));
	assert_int_equal(tick_rings__drain(&rings, 0, take, &stop_at), -EINTR);
	assert_int_equal(tick_rings__used(&rings, 0), 64);
	assert_int_equal(tick_rings__drain(&rings, 0, take, NULL), 0);
	assert_int_equal(read_back, 4);
}

/* What makes no sense costs what is in the ring, and no more. */
TEST(nonsense)
{
	static const uint32_t SIZES[] = {0, 8, 20, 27, 4096, TICK_RING_SLACK + 8, UINT32_MAX};
	struct tick_ring *ring = ring_number(2);

	for (size_t i = 0; i < sizeof(SIZES) / sizeof(*SIZES); i++) {
		struct event_header *event;

		assert_true(put(ring, 64));
		assert_true(put(ring, 64));
		event = (struct event_header *)((unsigned char *)ring + TICK_RING_DATA +
						((ring->head - 64 - ring->origin) &
						 (DATA_SIZE - 1)));
		event->size = SIZES[i];
		assert_int_equal(tick_rings__drain(&rings, 2, take, NULL), 0);
		assert_int_equal(tick_rings__used(&rings, 2), 0);
		assert_int_equal(read_back, written - 1);
		read_back = written;
	}
}

EACH_TEST_WITH(setup, teardown);
