/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules from instructions, of the shapes that HotSpot's code has. */
#include "text_cases.h"
#include "models/hotspot_rows.h"

#define RDX 2

struct code {
	uint8_t bytes[512];
	uint32_t size;
};

static const struct hotspot_shape SIX_WORDS = {
	.entry = 8, .entry_ra = -1, .words = 6, .is_nmethod = true};

static struct hotspot_rows decode(const struct code *c, const struct hotspot_shape *shape)
{
	struct hotspot_rows rows = {};

	assert_int_equal(hotspot_decode(c->bytes, c->size, shape, &rows), 0);
	assert_true(rows.list.count && !rows.list.data[0].start);
	for (size_t i = 1; i < rows.list.count; i++)
		assert_true(rows.list.data[i].start > rows.list.data[i - 1].start &&
			    rows.list.data[i].start < c->size);
	return rows;
}

/* Instructions in hexadecimal, a space between them. */
static struct code scan_code(const char *text)
{
	struct code c = {};

	for (unsigned int byte; *(text += strspn(text, " ")); text += 2) {
		assert_true(c.size < sizeof(c.bytes) && sscanf(text, "%2x", &byte) == 1);
		c.bytes[c.size++] = (uint8_t)byte;
	}
	return c;
}

/* "CFA [ra AT] [rbp AT]": the return address is at CFA - 8, and rbp the caller's, unless it says where. */
static void put_rule(FILE *out, const struct hotspot_rule *r)
{
	static const char *const registers[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
						"rsi", "rdi", "r8",  "r9",  "r10", "r11",
						"r12", "r13", "r14", "r15"};
	const char *cfa = r->cfa == HOTSPOT_CFA_SP   ? "sp"
			  : r->cfa == HOTSPOT_CFA_FP ? "fp"
						     : registers[r->cfa_register];

	if (!memcmp(r, &hotspot_interpreted, sizeof(*r))) {
		fputs("interpreted", out);
		return;
	}
	fprintf(out, "%s%+d", cfa, r->cfa_offset);
	if (r->ra == HOTSPOT_RA_REGISTER)
		fprintf(out, " ra %s", registers[r->ra_offset]);
	else if (r->ra != HOTSPOT_RA_AT_CFA)
		fprintf(out, " ra [%s%+d]", r->ra == HOTSPOT_RA_AT_SP ? "sp" : "fp", r->ra_offset);
	if (r->fp == HOTSPOT_FP_AT_CFA)
		fprintf(out, " rbp [cfa%+d]", r->fp_offset);
	else if (r->fp != HOTSPOT_FP_SAME)
		fprintf(out, " rbp [%s]", r->fp == HOTSPOT_FP_AT_SP ? "sp" : "fp");
}

static void put_rows(FILE *out, struct hotspot_rows *rows, uint32_t base)
{
	for (size_t i = 0; i < rows->list.count; i++) {
		const struct hotspot_row *row = &rows->list.data[i];

		fprintf(out, "%s%d ", i ? ", " : "", (int)(row->start - base));
		put_rule(out, &row->rule);
	}
	hotspot_rows__fini(rows);
}

static void put_decoded(FILE *out, const char *text, const struct hotspot_shape *shape)
{
	struct code c = scan_code(text);
	struct hotspot_rows rows = decode(&c, shape);

	put_rows(out, &rows, 0);
}

/* "VERIFIED CODE": its verified entry. */
static void run_nmethod(FILE *out, char *input)
{
	struct hotspot_shape shape = SIX_WORDS;

	shape.verified = (uint32_t)strtoul(text_word(&input), NULL, 10);
	put_decoded(out, input, &shape);
}

static void run_stub(FILE *out, char *input)
{
	put_decoded(out, input, &(struct hotspot_shape){.entry = 8, .entry_ra = -1, .by_fp = true});
}

static void run_jumped_to(FILE *out, char *input)
{
	put_decoded(out, input, &(struct hotspot_shape){.entry = 0, .entry_ra = RDX, .words = 6});
}

static void put_codelet(FILE *out, const char *text, bool is_entry)
{
	struct hotspot_rows rows = {};
	struct code c = scan_code(text);

	assert_int_equal(hotspot_decode_codelet(c.bytes, c.size, 100, is_entry, &rows), 0);
	put_rows(out, &rows, 100);
}

static void run_codelet(FILE *out, char *input)
{
	put_codelet(out, input, false);
}

static void run_entry(FILE *out, char *input)
{
	put_codelet(out, input, true);
}

/* "OFFSET CODE": bytes on the stack at a call that returns there. */
static void run_depth(FILE *out, char *input)
{
	const uint32_t at = (uint32_t)strtoul(text_word(&input), NULL, 10);
	struct code c = scan_code(input);

	fprintf(out, "%d", hotspot_depth_at_call(c.bytes, c.size, at));
}

static const struct text_verb verbs[] = {{"nmethod", run_nmethod},
					 {"stub", run_stub},
					 {"jumped to", run_jumped_to},
					 {"codelet", run_codelet},
					 {"entry", run_entry},
					 {"depth at call", run_depth},
					 {}};

TEXT_TABLE("hotspot_rows", verbs, NULL, NULL);

TEST(random_bytes_give_sorted_rows_within_the_code)
{
	uint32_t seed = 12345;

	for (int round = 0; round < 2000; round++) {
		struct hotspot_shape shape = SIX_WORDS;
		struct hotspot_rows rows;
		struct code c = {.size = sizeof(c.bytes)};

		for (size_t i = 0; i < sizeof(c.bytes); i++)
			c.bytes[i] = (seed = seed * 1103515245 + 12345) >> 16;
		shape.by_fp = round & 1;
		shape.verified = round & 255;
		shape.words = round % 3 * 4;
		rows = decode(&c, &shape);
		assert_true(rows.list.count <= c.size);
		hotspot_rows__fini(&rows);
		assert_int_equal(hotspot_decode_codelet(c.bytes, c.size, 0, round & 2, &rows), 0);
		hotspot_rows__fini(&rows);
	}
}
