/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of code as PyPy makes it, in this process's own memory. */
#include "unit.h"
#include "runtimes/runtime.h"
#include "runtimes/table.h"

#define PAGE 4096u

/* mov 0x60(%rsp),%rbp; add $0xb8,%rsp; ret */
#define END	      "\x48\x8b\x6c\x24\x60\x48\x81\xc4\xb8\x00\x00\x00\xc3"
#define OTHER_END     "\x48\x8b\x6c\x24\x28\x48\x83\xc4\x58\xc3"
#define MAKE_ROOM     "\x48\x83\xec\x08"
#define GIVE_BACK     "\x48\x83\xc4\x08"
#define LEA_BACK      "\x48\x8d\x64\x24\x38"
#define TAKE_ARG      "\x48\x8b\x7c\x24\x08"
#define RETURN_ARG    "\xc2\x08\x00"
#define PUT(at, what) memcpy((at), (what), sizeof(what) - 1)

struct code {
	unsigned char *bytes;
	struct made_area area;
	struct made_frame *frames;
	size_t count;
};

static struct code make_code(size_t size)
{
	struct code c = {.bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};

	assert_ptr_not_equal(c.bytes, MAP_FAILED);
	memset(c.bytes, 0x90, size);
	c.area.start = (uint64_t)(uintptr_t)c.bytes;
	c.area.end = c.area.start + size;
	return c;
}

static int find_frames(const struct made_area *areas, size_t area_count, struct made_frame **frames,
		       size_t *count)
{
	struct made_runtime self = {.tgid = getpid()};
	const struct frame_sizes_request request = {&self, NULL, areas, area_count};

	return runtime_of_made_code(MADE_BY_PYPY)->frame_sizes(&request, frames, count);
}

static int request(struct code *c)
{
	free(c->frames);
	return find_frames(&c->area, 1, &c->frames, &c->count);
}

static void free_code(struct code *c)
{
	free(c->frames);
	munmap(c->bytes, c->area.end - c->area.start);
}

static void assert_frame(const struct code *c, size_t i, uint64_t start, uint64_t end,
			 uint32_t size, int32_t ra, int32_t fp)
{
	const struct made_frame *f = &c->frames[i];

	assert_true(i < c->count);
	assert_int_equal(f->start - c->area.start, start);
	assert_int_equal(f->end - c->area.start, end);
	assert_int_equal(f->size, size);
	assert_int_equal(f->ra_offset, ra);
	assert_int_equal(f->fp_offset, fp);
}

TEST(one_frame_size_covers_an_area_of_traces)
{
	struct code c = make_code(4 * PAGE);

	assert_int_equal(request(&c), -ENODATA);
	PUT(c.bytes + 100, END);
	PUT(c.bytes + 4 * PAGE - sizeof(END) + 1, END); /* at the very end */
	PUT(c.bytes + 200, OTHER_END);			/* a constant that looks so */
	assert_int_equal(request(&c), 0);
	assert_int_equal(c.count, 1);
	assert_frame(&c, 0, 0, 4 * PAGE, 0xc0, -8, -0x60);
	free_code(&c);
}

/* A version with a smaller frame has shorter instructions. */
TEST(a_smaller_frame_is_found_by_shorter_instructions)
{
	struct code c = make_code(PAGE);

	PUT(c.bytes + 64, OTHER_END);
	assert_int_equal(request(&c), 0);
	assert_frame(&c, 0, 0, PAGE, 0x60, -8, -0x38);
	free_code(&c);
}

TEST(helpers_have_frames_of_their_own)
{
	struct code c = make_code(PAGE);

	PUT(c.bytes, END);
	PUT(c.bytes + 100, MAKE_ROOM);
	PUT(c.bytes + 150, GIVE_BACK);
	PUT(c.bytes + 200, TAKE_ARG);
	PUT(c.bytes + 240, RETURN_ARG);
	PUT(c.bytes + 300, "\x48\x83\xec\x38");
	PUT(c.bytes + 350, LEA_BACK);
	PUT(c.bytes + 400, "\x48\x83\xec\x10"); /* calls from there would not be aligned */
	PUT(c.bytes + 450, "\x48\x83\xc4\x10");
	PUT(c.bytes + 500, MAKE_ROOM); /* which is not given back near */
	assert_int_equal(request(&c), 0);
	assert_int_equal(c.count, 7);
	assert_frame(&c, 0, 0, 104, 0xc0, -8, -0x60);
	assert_frame(&c, 1, 104, 150, 16, -8, 0);
	assert_frame(&c, 2, 150, 200, 0xc0, -8, -0x60);
	assert_frame(&c, 3, 200, 243, 16, -16, 0);
	assert_frame(&c, 4, 243, 304, 0xc0, -8, -0x60);
	assert_frame(&c, 5, 304, 350, 0x40, -8, 0);
	assert_frame(&c, 6, 350, PAGE, 0xc0, -8, -0x60);
	free_code(&c);
}

/* Behind more helpers than are kept nothing is known: what follows may be one of either kind. */
TEST(code_behind_too_many_helpers_has_no_frame)
{
	struct code c = make_code(16 * PAGE);

	PUT(c.bytes, END);
	for (size_t at = 16; at < 16 * PAGE - 16; at += 16) {
		PUT(c.bytes + at, MAKE_ROOM);
		PUT(c.bytes + at + 8, GIVE_BACK);
	}
	assert_int_equal(request(&c), 0);
	assert_in_range(c.count, 4096, 4097);
	assert_int_equal(c.frames[c.count - 1].size, 16);
	assert_true(c.frames[c.count - 1].end < c.area.end);
	free_code(&c);
}

/* Of memory that is not there, or of another code, nothing is known. */
TEST(areas_that_cannot_be_read_have_no_frames)
{
	static const struct made_area areas[] = {{0, 1u << 20}, {0x7ffffffff000, 0x800000000000}};
	struct made_frame *frames;
	size_t count;

	assert_int_equal(find_frames(areas, 2, &frames, &count), -ENODATA);
	assert_int_equal(find_frames(areas, 0, &frames, &count), -ENODATA);
	assert_null(frames);
}

/* Whatever is there, frames ascend, do not overlap and stay in the area. */
TEST(frames_of_any_bytes_ascend_within_their_area)
{
	static const char *const pieces[] = {END,      OTHER_END, MAKE_ROOM, GIVE_BACK,
					     LEA_BACK, TAKE_ARG,  "\xc2\x08"};
	struct code c = make_code(2 * PAGE);
	unsigned int given = 0;

	srand(1);
	for (int turn = 0; turn < 200; turn++) {
		for (size_t i = 0; i < 2 * PAGE - 16; i += 1 + (unsigned)rand() % 40) {
			const char *piece =
				pieces[(unsigned)rand() % (sizeof(pieces) / sizeof(pieces[0]))];

			memcpy(c.bytes + i, piece, strlen(piece) + 1);
		}
		if (request(&c))
			continue;
		given++;
		assert_true(c.count > 0);
		for (size_t i = 0; i < c.count; i++) {
			assert_true(c.frames[i].start < c.frames[i].end);
			assert_true(c.frames[i].start >= (i ? c.frames[i - 1].end : c.area.start));
			assert_true(c.frames[i].end <= c.area.end);
		}
	}
	assert_true(given > 100);
	free_code(&c);
}
