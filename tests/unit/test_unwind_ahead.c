/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that is followed up to its return: against the decoder of base/ and against .eh_frame, on
 * the code of real libraries; then forged JIT code, one function after the other.
 */
#include "text_cases.h"
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
	/* behind calls that never return: 1 % of gcc 12's rows, 1.8 of gcc 16's */
	assert_true(c.wrong < 0.03 * c.returns);
}

/* ---- forged code ----------------------------------------------------------------------------- */

#define JIT	  UINT64_C(0x7f0000900000)
#define JIT_SIZE  0x1000u
#define STACK	  UINT64_C(0x7f0000000000)
#define FRAME	  8 /* word of the frame that the frame pointer leads to */
#define READS_MAX 24

static unsigned char jit[JIT_SIZE];
static uint64_t stack[512];
static uint64_t general[UNWIND_REGISTERS];
static size_t hidden; /* bytes of the code at its beginning that no mapping has yet */
static size_t reads;

static int read_forged(void *context, void *to, size_t size, uint64_t address)
{
	const struct text code = {jit, JIT, sizeof(jit)};
	const struct text words = {(unsigned char *)stack, STACK, sizeof(stack)};

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
static struct walked walk(__u32 instead, size_t at, size_t sp, uint64_t fp)
{
	const struct unwind_range range = {.start = JIT, .end = JIT + JIT_SIZE, .instead = instead};
	const struct unwind_space space = {.ranges = &range, .count = 1, .read = read_forged};
	uint64_t registers[UNWIND_REGISTERS];
	struct walked w;

	memcpy(registers, general, sizeof(registers));
	registers[UNWIND_X86_RA] = JIT + at;
	registers[UNWIND_X86_RSP] = STACK + sp * 8;
	registers[UNWIND_X86_RBP] = fp;
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
static void forge(void)
{
	memset(jit, 0xf4, sizeof(jit));
	memset(stack, 0, sizeof(stack));
	memset(general, 0, sizeof(general));
	hidden = 0;
	PUT(CALLER - 2, "\xff\xd0\xc9\xc3"); /* call *%rax; leave; ret */
	PUT(OUTER - 2, "\xff\xd0\xc9\xc3");
	stack[FRAME] = STACK + (FRAME + 4) * 8;
	stack[FRAME + 1] = JIT + OUTER;
	/* OUTER's own frame is a pair of zeros */
}

static const uint64_t FRAME_AT = STACK + FRAME * 8;

/* ---- testdata/unwind_ahead.txt --------------------------------------------------------------- */

/* "caller" and "outer" are return addresses, "frame" is that of CALLER's function, "N" the stack's word N. */
static uint64_t value_of(const char *word)
{
	const uint64_t number = strtoull(word, NULL, 0);

	return !strncmp(word, "caller", 6) ? JIT + CALLER + strtoull(word + 6, NULL, 0)
	       : !strcmp(word, "outer")	   ? JIT + OUTER
	       : !strcmp(word, "frame")	   ? FRAME_AT
	       : *word == '#'		   ? STACK + strtoull(word + 1, NULL, 10) * 8
	       : *word == '@'		   ? JIT + strtoull(word + 1, NULL, 16)
					   : number;
}

/* "OFFSET BYTES" */
static void step_code(char *words)
{
	size_t at = strtoul(text_word(&words), NULL, 16);

	for (unsigned int byte; *(words += strspn(words, " ")); words += 2) {
		assert_true(at < sizeof(jit) && sscanf(words, "%2x", &byte) == 1);
		jit[at++] = (unsigned char)byte;
	}
}

/* "OFFSET SP FP": the frames behind the first, with their kinds, and the end. */
static void step_walk(FILE *out, __u32 instead, char *words)
{
	const size_t at = strtoul(text_word(&words), NULL, 16);
	const size_t sp = strtoul(text_word(&words), NULL, 10);
	struct walked w = walk(instead, at, sp, value_of(text_word(&words)));

	for (size_t i = 1; i < w.count; i++) {
		const uint64_t address = frame_address(w.frames[i]);
		const enum frame_kind kind = frame_kind(w.frames[i]);

		fprintf(out, "%s%s ",
			address == JIT + CALLER	 ? "caller"
			: address == JIT + OUTER ? "outer"
						 : "elsewhere",
			kind == FRAME_POINTER	     ? ""
			: kind == FRAME_INSTRUCTIONS ? " by instructions"
			: kind == FRAME_LEAF_PEEK    ? " peeked at"
						     : " otherwise");
	}
	fputs(w.end == STACK_END_ROOT	    ? "root"
	      : w.end == STACK_END_UNSURE   ? "unsure"
	      : w.end == STACK_END_NO_FRAME ? "no frame"
					    : "another end",
	      out);
}

static bool take_step(FILE *out, const char *name, char *words)
{
	const char *word;

	if (!strcmp(name, "code")) {
		step_code(words);
	} else if (!strcmp(name, "stack")) {
		word = text_word(&words);
		stack[strtoul(word, NULL, 10)] = value_of(words);
	} else if (!strcmp(name, "register")) {
		word = text_word(&words);
		general[strtoul(word, NULL, 10) % UNWIND_REGISTERS] = value_of(words);
	} else if (!strcmp(name, "hidden")) {
		hidden = strtoul(words, NULL, 16);
	} else if (!strcmp(name, "walk")) {
		step_walk(out, UNWIND_BY_CODE, words);
	} else if (!strcmp(name, "peek")) {
		step_walk(out, UNWIND_NO_TABLE, words);
	} else {
		return false;
	}
	return true;
}

static void run_steps(FILE *out, char *input)
{
	text_run_steps(out, input, take_step);
}

static const struct text_verb verbs[] = {{"steps", run_steps}, {}};

TEXT_TABLE("unwind_ahead", verbs, forge, NULL);

/* ---- other code ------------------------------------------------------------------------------ */

/* The code cannot be read at all, as in a copied stack: nothing is concluded from that. */
TEST(unreadable_code_ends_the_walk_with_a_fault)
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

TEST(random_code_is_followed_within_bounded_reads)
{
	struct walked w;

	forge();
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < 64; i++)
			jit[i] = random();
		for (size_t i = 0; i < FRAME; i++)
			stack[i] = random() % 2 ? JIT + OUTER : (uint64_t)random();
		w = walk(UNWIND_BY_CODE, 0, 1, FRAME_AT);
		assert_true(w.count >= 1);
	}
}
