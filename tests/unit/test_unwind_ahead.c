/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that is followed up to its return: against the decoder of base/ and against .eh_frame, on
 * the code of real libraries; then forged JIT code, one function after the other.
 */
#include "unit.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_sections.h"
#include "elf/x86_code.h"
#include "unwind/cfi.h"

#include "unwind/unwind.c" /* its steps, one at a time */

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const LIBRARIES[] = {
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
};

/* ---- one library ----------------------------------------------------------------------------- */

struct text {
	unsigned char *bytes;
	uint64_t start, size;
};

static int read_text(void *context, void *to, size_t size, uint64_t address)
{
	const struct text *t = context;

	if (address < t->start || address - t->start > t->size ||
	    size > t->size - (address - t->start))
		return -1;
	memcpy(to, t->bytes + (address - t->start), size);
	return 0;
}

static bool open_text(const char *path, struct elf_file **file, struct text *t, int *fd)
{
	struct elf_section section;
	void *bytes;
	size_t size;

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return false;
	assert_int_equal(elf_file__open(*fd, file), 0);
	assert_int_equal(elf_file__find_section(*file, ".text", &section), 0);
	assert_int_equal(elf_file__section_data(*file, ".text", 1 << 30, &bytes, &size), 0);
	*t = (struct text){bytes, section.address, size};
	return true;
}

static void begin(struct walk *w, uint64_t ip, uint64_t sp, uint64_t fp)
{
	unwind_begin(&w->state, false);
	w->state.ip = ip;
	w->state.sp = sp;
	w->state.fp = fp;
	unwind_ahead_begin(&w->state);
}

/* Instructions have the length that the other decoder finds, but for data among them. */
static size_t compare_lengths(const struct text *t, size_t *followed, size_t *different)
{
	const struct unwind_space space = {.read = read_text, .context = (void *)t};
	struct walk w = {.space = &space};
	size_t count = 0;

	for (uint64_t at = 0; at < t->size;) {
		struct x86_instruction i;

		if (!x86_decode(t->bytes + at, t->size - at, &i)) {
			at++;
			continue;
		}
		begin(&w, t->start + at, 0, 0);
		if (unwind_ahead_read(&w.state) && unwind_ahead_decode(&w.state)) {
			++*followed;
			if (w.state.ahead.at != t->start + at + i.size)
				++*different;
		}
		count++;
		at += i.size;
	}
	return count;
}

TEST(nearly_all_lengths_match_those_of_the_decoder)
{
	size_t count = 0, followed = 0, different = 0;

	for (size_t i = 0; i < COUNT(LIBRARIES); i++) {
		struct elf_file *file;
		struct text t;
		int fd;

		if (!open_text(LIBRARIES[i], &file, &t, &fd))
			continue;
		count += compare_lengths(&t, &followed, &different);
		free(t.bytes);
		elf_file__free(file);
		close(fd);
	}
	printf("%zu instructions, %zu followed, %zu different\n", count, followed, different);
	assert_true(count > 100000 && followed > 0.99 * count && different < 0.0002 * count);
}

#define SP UINT64_C(0x700000001000)
#define FP UINT64_C(0x700000002000)

struct comparison {
	const struct text *text;
	size_t rows, returns, right, wrong;
};

/* From the first instruction of a row to a return; the row has where its address is. */
static int compare_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct comparison *c = context;
	const struct unwind_space space = {.read = read_text, .context = (void *)c->text};
	struct walk w = {.space = &space};
	bool by_fp = rule->cfa_register == UNWIND_X86_RBP;
	int end = UNWIND_AHEAD_ON;

	if ((rule->cfa != UNWIND_CFA_SP && rule->cfa != UNWIND_CFA_FP) ||
	    rule->ra != UNWIND_RA_AT_CFA || rule->ra_offset != -8 ||
	    (!by_fp && rule->cfa_register != UNWIND_X86_RSP))
		return 0;
	begin(&w, address, SP, FP);
	for (int i = 0; i < UNWIND_AHEAD_INNERMOST && end == UNWIND_AHEAD_ON; i++)
		end = unwind_ahead_one(&w.state);
	c->rows++;
	if (end != UNWIND_AHEAD_RETURNS)
		return 0;
	c->returns++;
	if (w.state.ahead.sp == (by_fp ? FP : SP) + rule->cfa_offset - 8 &&
	    w.state.ahead.by_fp == by_fp)
		c->right++;
	else
		c->wrong++;
	return 0;
}

/* Where the return is reached, the return address is where .eh_frame has it. */
TEST(most_return_addresses_are_where_eh_frame_has_them)
{
	struct comparison c = {};

	for (size_t i = 0; i < COUNT(LIBRARIES); i++) {
		struct elf_section section;
		struct cfi_section cfi;
		struct cfi_counts counts;
		struct elf_file *file;
		struct text t;
		size_t size;
		void *data;
		int fd;

		if (!open_text(LIBRARIES[i], &file, &t, &fd))
			continue;
		assert_int_equal(elf_file__find_section(file, ".eh_frame", &section), 0);
		assert_int_equal(elf_file__section_data(file, ".eh_frame", 1 << 30, &data, &size),
				 0);
		cfi = (struct cfi_section){.data = data,
					   .size = size,
					   .address = section.address,
					   .is_eh_frame = true};
		c.text = &t;
		assert_int_equal(cfi_each_row(&cfi, compare_row, &c, &counts), 0);
		free(data);
		free(t.bytes);
		elf_file__free(file);
		close(fd);
	}
	printf("%zu rows, of which %zu reach a return: %zu right, %zu wrong\n", c.rows, c.returns,
	       c.right, c.wrong);
	assert_true(c.returns > 1000);
	assert_true(c.wrong < 0.01 * c.returns);
}

/* ---- forged code ----------------------------------------------------------------------------- */

#define JIT	  UINT64_C(0x900000)
#define JIT_SIZE  0x1000u
#define STACK	  UINT64_C(0x7f0000000000)
#define FRAME	  8 /* word of the frame that the frame pointer leads to */
#define READS_MAX 24

static unsigned char jit[JIT_SIZE];
static uint64_t stack[512];
static size_t reads;

static int read_forged(void *context, void *to, size_t size, uint64_t address)
{
	const struct text code = {jit, JIT, sizeof(jit)};
	const struct text words = {(unsigned char *)stack, STACK, sizeof(stack)};

	(void)context;
	reads++;
	return read_text((void *)&code, to, size, address) &&
			       read_text((void *)&words, to, size, address)
		       ? -1
		       : 0;
}

struct walked {
	uint64_t frames[8];
	size_t count;
	enum stack_end end;
};

/* The walk from this offset of the JIT code, with the stack pointer at that word. */
static struct walked walk(size_t at, size_t sp, uint64_t fp)
{
	static const struct unwind_range range = {
		.start = JIT, .end = JIT + JIT_SIZE, .instead = UNWIND_BY_CODE};
	const struct unwind_space space = {.ranges = &range, .count = 1, .read = read_forged};
	uint64_t registers[UNWIND_REGISTERS] = {
		[UNWIND_X86_RA] = JIT + at,
		[UNWIND_X86_RSP] = STACK + sp * 8,
		[UNWIND_X86_RBP] = fp,
	};
	struct walked w;

	reads = 0;
	w.end = unwind_stack(&space, registers, false, w.frames, COUNT(w.frames), &w.count);
	assert_true(reads <= READS_MAX * w.count);
	return w;
}

static void put_code(size_t at, const char *bytes, size_t size)
{
	assert_true(at + size <= sizeof(jit));
	memcpy(jit + at, bytes, size);
}
#define PUT(at, bytes) put_code(at, bytes, sizeof(bytes) - 1)

#define OUTER	       0x800 /* the place to which the outermost function of the tests is returned to */
#define CALLER	       0x700

/* Calls that end at CALLER and OUTER; the frame of CALLER's function is that of FRAME. */
static int forge(void **state)
{
	(void)state;
	memset(jit, 0xf4, sizeof(jit));
	memset(stack, 0, sizeof(stack));
	PUT(CALLER - 2, "\xff\xd0\xc9\xc3"); /* call *%rax; leave; ret */
	PUT(OUTER - 2, "\xff\xd0\xc9\xc3");
	stack[FRAME] = STACK + (FRAME + 4) * 8;
	stack[FRAME + 1] = JIT + OUTER;
	return 0; /* OUTER's own frame is a pair of zeros */
}

static const uint64_t FRAME_AT = STACK + FRAME * 8;

static void expect(const struct walked *w, enum frame_kind kind)
{
	assert_int_equal(w->count, 3);
	assert_int_equal(frame_address(w->frames[1]), JIT + CALLER);
	assert_int_equal(frame_kind(w->frames[1]), kind);
	assert_int_equal(frame_address(w->frames[2]), JIT + OUTER);
	assert_int_equal(frame_kind(w->frames[2]), FRAME_POINTER);
	assert_int_equal(w->end, STACK_END_ROOT);
}

/* push %rax; dec %ecx; inc %rax; add $8,%rsp; ret: at each of its instructions. */
TEST_WITH(code_without_a_frame_is_followed_to_its_return, forge, NULL)
{
	static const struct {
		size_t at, sp;
	} PLACES[] = {{0, 3}, {1, 2}, {3, 2}, {6, 2}, {10, 3}};

	PUT(0, "\x50\xff\xc9\x48\xff\xc0\x48\x83\xc4\x08\xc3");
	stack[3] = JIT + CALLER;
	for (size_t i = 0; i < COUNT(PLACES); i++) {
		struct walked w = walk(PLACES[i].at, PLACES[i].sp, FRAME_AT);

		expect(&w, jit[PLACES[i].at] == 0xc3 ? FRAME_LEAF_PEEK : FRAME_INSTRUCTIONS);
	}
}

/* dec %ecx; lea 0(%rbp),%rbp, of both lengths, which is padding; add $8,%rsp; ret: the frame pointer is the caller's. */
TEST_WITH(padding_keeps_the_frame_pointer_of_the_caller, forge, NULL)
{
	PUT(0, "\xff\xc9\x48\x8d\x6d\x00\x48\x8d\xad\x00\x00\x00\x00\x48\x83\xc4\x08\xc3");
	stack[3] = JIT + CALLER;
	for (size_t at = 0; at <= 6; at += at ? 4 : 2) {
		struct walked w = walk(at, 2, FRAME_AT);

		expect(&w, FRAME_INSTRUCTIONS);
	}
	/* with a displacement it is another frame */
	jit[5] = 8;
	assert_int_equal(walk(0, 2, FRAME_AT).count, 2);
}

/*
 * push %rbp; push %rbx; sub $16,%rsp; lea 16(%rsp),%rbp …; lea (%rbp),%rsp; pop %rbx; pop %rbp;
 * ret: a frame that the frame pointer does not lead to at any time.
 */
TEST_WITH(an_incomplete_frame_leads_to_the_caller, forge, NULL)
{
	static const struct {
		size_t at, sp;
		bool has_pointer;
	} PLACES[] = {{1, 4, false}, {2, 3, false}, {6, 1, false}, {11, 1, true},
		      {13, 1, true}, {17, 3, true}, {18, 4, true}};

	PUT(0, "\x55\x53\x48\x83\xec\x10\x48\x8d\x6c\x24\x10"
	       "\xff\xc0\x48\x8d\x65\x00\x5b\x5d\xc3");
	stack[5] = JIT + CALLER;
	stack[4] = FRAME_AT;
	for (size_t i = 0; i < COUNT(PLACES); i++) {
		uint64_t fp = PLACES[i].has_pointer ? STACK + 3 * 8 : FRAME_AT;
		struct walked w = walk(PLACES[i].at, PLACES[i].sp, fp);

		assert_int_equal(w.count, 3);
		assert_int_equal(frame_address(w.frames[1]), JIT + CALLER);
		assert_int_equal(w.end, STACK_END_ROOT);
	}
}

/* mov %rbp,%rsp; pop %rbp; ret, after a jump over a call; a return that takes arguments along. */
TEST_WITH(a_frame_is_followed_over_jumps_and_calls, forge, NULL)
{
	struct walked w;

	PUT(0, "\xeb\x0e");
	PUT(0x10, "\xe8\x00\x00\x00\x00\x74\x02\x48\x89\xec\x5d\xc2\x10\x00");
	stack[4] = FRAME_AT;
	stack[5] = JIT + CALLER;
	stack[2] = JIT + OUTER; /* an old one, in the frame */
	w = walk(0, 1, STACK + 4 * 8);
	expect(&w, FRAME_POINTER);
}

/* The return is not reached: the frame pointer counts where it cannot skip a frame. */
TEST_WITH(a_frame_pointer_that_may_skip_frames_is_unsure, forge, NULL)
{
	struct walked w;

	PUT(0, "\xff\xc0\xff\xe0"); /* inc %eax; jmp *%rax */
	stack[4] = FRAME_AT;
	stack[5] = JIT + CALLER;
	stack[2] = JIT + CALLER + 1; /* no call ends there */
	w = walk(0, 1, STACK + 4 * 8);
	expect(&w, FRAME_POINTER);
	stack[2] = JIT + OUTER;
	w = walk(0, 1, STACK + 4 * 8);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.end, STACK_END_UNSURE);
	PUT(0, "\x8b\x45\xf8\xff\xe0"); /* mov -8(%rbp),%eax; jmp *%rax */
	w = walk(0, 1, STACK + 4 * 8);
	expect(&w, FRAME_POINTER);
	PUT(0, "\xff\xc0\xff\xe0");
	w = walk(0, 1, 0); /* no sign of a root either */
	assert_int_equal(w.end, STACK_END_UNSURE);
	w = walk(0, 1, 77); /* nor of a frame */
	assert_int_equal(w.end, STACK_END_NO_FRAME);
	PUT(0, "\xeb\xfe"); /* for ever */
	w = walk(0, 1, STACK + 4 * 8);
	assert_int_equal(w.end, STACK_END_UNSURE);
}

/* What should be a return address is none: the code does not return, and another function follows. */
TEST_WITH(a_false_return_address_is_not_taken, forge, NULL)
{
	struct walked w;

	PUT(0, "\x90\x90\xc3");
	stack[1] = JIT + 0x10; /* no call ends there */
	stack[4] = FRAME_AT;
	stack[5] = JIT + CALLER;
	w = walk(0, 1, STACK + 4 * 8);
	expect(&w, FRAME_POINTER);
	stack[2] = JIT + OUTER;
	w = walk(0, 1, STACK + 4 * 8);
	assert_int_equal(w.end, STACK_END_UNSURE);
}

/* The next page is not there. */
TEST_WITH(code_is_not_followed_beyond_its_end, forge, NULL)
{
	struct walked w;

	PUT(JIT_SIZE - 5, "\x48\x83\xc4\x08\xc3");
	stack[2] = JIT + CALLER;
	w = walk(JIT_SIZE - 5, 1, FRAME_AT);
	expect(&w, FRAME_INSTRUCTIONS);
	PUT(JIT_SIZE - 5, "\x90\x90\x90\x90\x90");
	w = walk(JIT_SIZE - 5, 1, FRAME_AT);
	assert_int_equal(w.end, STACK_END_UNSURE);
}

/* The code cannot be read at all, as in a copied stack: nothing is concluded from that. */
TEST_WITH(unreadable_code_ends_the_walk_with_a_fault, forge, NULL)
{
	static const struct unwind_range range = {
		.start = JIT, .end = JIT + 2 * JIT_SIZE, .instead = UNWIND_BY_CODE};
	const struct unwind_space space = {.ranges = &range, .count = 1, .read = read_forged};
	const uint64_t registers[UNWIND_REGISTERS] = {[UNWIND_X86_RA] = JIT + JIT_SIZE,
						      [UNWIND_X86_RSP] = STACK + 8,
						      [UNWIND_X86_RBP] = FRAME_AT};
	uint64_t frames[8];
	size_t count;

	assert_int_equal(unwind_stack(&space, registers, false, frames, 8, &count),
			 STACK_END_FAULT);
	assert_int_equal(count, 1);
}

TEST_WITH(random_code_is_followed_within_bounded_reads, forge, NULL)
{
	struct walked w;

	srandom(1);
	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < 64; i++)
			jit[i] = random();
		for (size_t i = 0; i < FRAME; i++)
			stack[i] = random() % 2 ? JIT + OUTER : (uint64_t)random();
		w = walk(0, 1, FRAME_AT);
		assert_true(w.count >= 1);
	}
}
