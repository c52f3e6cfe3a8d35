/* SPDX-License-Identifier: BSD-2-Clause */
/* What HotSpot's memory says, of memory that is forged: as it should be, and as it should not. */
#include "unit.h"
#include "hotspot_image.h"
#include "runtimes/hotspot/answers.h"
#include "runtimes/hotspot/bytecodes.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/known.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/hotspot/names.h"
#include "runtimes/hotspot/scopes.h"

#define COMPILED     image_code_of(IMAGE_COMPILED)
#define COMPILED_AT  ((uint32_t)(COMPILED - IMAGE_HEADER - IMAGE_BASE)) /* its blob, in the image */
#define BYTES	     (image.bytes + (COMPILED - IMAGE_BASE))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Of the running test: a JVM's memory, and what is read of it. */
static struct hotspot_image image, whole;
static struct target_memory memory;
static struct hotspot_layout layout;
static struct hotspot_code code;
static struct hotspot_blob compiled;
static struct hotspot_chain chain;
static struct hotspot_changes changes;
static struct hotspot_blobs blobs;
static struct hotspot_table table;

static int tear_down(void **state)
{
	(void)state;
	hotspot_layout__fini(&layout);
	hotspot_table__fini(&table);
	hotspot_blobs__fini(&blobs);
	hotspot_changes__fini(&changes);
	layout = (struct hotspot_layout){};
	table = (struct hotspot_table){};
	blobs = (struct hotspot_blobs){};
	changes = (struct hotspot_changes){};
	return 0;
}

static void given_image(bool is_moved)
{
	tear_down(NULL);
	image_init(&image, is_moved);
	memory = image_memory(&image);
	code = (struct hotspot_code){};
}

static int read_layout(void)
{
	return hotspot_layout__read(&layout, &memory, image.exports);
}

/* What has been read of it, and of its compiled method. */
static void given_jvm(bool is_moved)
{
	given_image(is_moved);
	assert_int_equal(read_layout(), 0);
	assert_int_equal(hotspot_code__read(&code, &layout, &memory), 0);
	assert_int_equal(hotspot_code__blob(&code, &memory, COMPILED - IMAGE_HEADER, &compiled), 0);
}

static uint64_t word_at(uint64_t address)
{
	return image_word(&image, address - IMAGE_BASE);
}

static void put(uint64_t at, uint64_t value, size_t size)
{
	image_put(&image, at, value, size);
}

/* Writes `to` over every string `from` of the image's tables; it is not longer. */
static void rename_strings(const char *from, const char *to)
{
	for (char *at = (char *)image.bytes + IMAGE_STRINGS;
	     at < (char *)image.bytes + image.next_string; at += strlen(at) + 1)
		if (!strcmp(at, from))
			strcpy(at, to);
}

struct forged {
	uint32_t at, size;
	uint64_t value;
};

/* ---- layout ---------------------------------------------------------------------------------- */

TEST(supported_layouts_are_read_completely)
{
	for (int is_moved = 0; is_moved < 2; is_moved++) {
		given_jvm(is_moved);
		for (int i = 0; i < HOTSPOT_PARTS; i++)
			assert_true(layout.can[i]);
		assert_int_equal(layout.major, is_moved ? 25 : 17);
		assert_int_equal(layout.at[HOTSPOT_COMPILE_ID], 72);
		assert_int_equal(layout.stub_entries.count, 1);
		assert_true(image.reads < 60);
	}
}

TEST(missing_fields_disable_the_parts_that_need_them)
{
	given_image(false);
	rename_strings("_body", "x");
	rename_strings("_top", "x");
	assert_int_equal(read_layout(), 0);
	assert_true(layout.can[HOTSPOT_CAN_UNWIND]);
	assert_false(layout.can[HOTSPOT_CAN_NAME]);
	assert_false(layout.can[HOTSPOT_CAN_LINE]);
	assert_false(layout.can[HOTSPOT_CAN_COUNT]);
}

static enum hotspot_flag read_flag(void)
{
	tear_down(NULL);
	memory = image_memory(&image);
	assert_int_equal(read_layout(), 0);
	assert_true(layout.can[HOTSPOT_CAN_UNWIND]);
	return layout.frame_pointers;
}

TEST(frame_pointer_flags_of_both_types_are_read)
{
	for (int is_old = 0; is_old < 2; is_old++) {
		given_image(false);
		if (is_old)
			rename_strings("JVMFlag", "Flag");
		assert_int_equal(read_flag(), HOTSPOT_FLAG_OFF);
		image.bytes[IMAGE_FLAG] = 1;
		assert_int_equal(read_flag(), HOTSPOT_FLAG_ON);
	}
}

/* The other facts are known even if flags cannot be read. */
TEST(an_unreadable_flag_is_unknown_and_unwinding_remains)
{
	static const char *const NAMES[] = {"JVMFlag", "flags", "numFlags", "_addr",
					    "PreserveFramePointer"};
	static const struct forged BAD[] = {
		{IMAGE_STATICS + 48, 8, 0},	     /* no array */
		{IMAGE_STATICS + 48, 8, UINT64_MAX}, /* one that nothing is behind */
		{IMAGE_STATICS + 56, 8, 1},	     /* it ends before the flag */
		{IMAGE_FLAGS + 32, 8, 0},	     /* no value */
		{IMAGE_FLAGS + 8, 8, 5},	     /* no name */
	};

	given_image(true);
	whole = image;
	for (size_t k = 0; k < COUNT(NAMES); k++) {
		image = whole;
		rename_strings(NAMES[k], "x");
		assert_int_equal(read_flag(), HOTSPOT_FLAG_UNKNOWN);
	}
	for (size_t k = 0; k < COUNT(BAD); k++) {
		image = whole;
		put(BAD[k].at, BAD[k].value, BAD[k].size);
		assert_int_equal(read_flag(), HOTSPOT_FLAG_UNKNOWN);
	}
	for (uint64_t size = 0; size <= 4096; size += 4096) {
		image = whole;
		put(IMAGE_TYPES + 16 * (image.next_type - 1) + 8, size, 8);
		assert_int_equal(read_flag(), HOTSPOT_FLAG_UNKNOWN);
	}
}

TEST(implausible_exported_values_are_an_error)
{
	static const struct {
		enum hotspot_export which;
		uint64_t value;
	} BAD[] = {
		{HOTSPOT_STRUCTS, 0},
		{HOTSPOT_STRUCTS, UINT64_MAX - 7},
		{HOTSPOT_STRUCTS, IMAGE_BASE + IMAGE_SIZE - 8},
		{HOTSPOT_STRUCT_STRIDE, 0},
		{HOTSPOT_STRUCT_STRIDE, UINT64_MAX},
		{HOTSPOT_TYPE_STRIDE, 1 << 20},
		{HOTSPOT_TYPES, 7},
	};

	for (size_t k = 0; k < COUNT(BAD); k++) {
		given_image(true);
		put(8 * BAD[k].which, BAD[k].value, 8);
		assert_int_equal(read_layout(), -ENODATA);
		assert_null(layout.stub_entries.data);
	}
}

/* Behind the image the same word follows for ever. */
static int read_endless(void *context, void *to, size_t size, uint64_t address)
{
	const uint64_t word = IMAGE_BASE + IMAGE_STRINGS + 1;

	if (address < IMAGE_BASE + IMAGE_SIZE)
		return image_read(context, to, size, address);
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = (word >> 8 * ((address + i) & 7)) & 255;
	return 0;
}

TEST(a_table_without_an_end_is_an_error)
{
	given_image(false);
	memory.read = read_endless;
	memory.reads_left = 1u << 16;
	put(8 * HOTSPOT_STRUCTS, IMAGE_BASE + (1 << 24), 8);
	assert_int_equal(read_layout(), -ENODATA);
}

TEST(large_offsets_rule_out_unwinding)
{
	given_image(false);
	for (uint32_t k = 0; k < image.next_field; k++)
		if (!image_word(&image, IMAGE_TABLES + 32 * k + 24))
			put(IMAGE_TABLES + 32 * k + 16, 1u << 30, 8);
	assert_int_equal(read_layout(), 0);
	assert_false(layout.can[HOTSPOT_CAN_UNWIND]);
	assert_int_equal(hotspot_code__read(&code, &layout, &memory), -ENODATA);
}

/* ---- heaps ----------------------------------------------------------------------------------- */

TEST(the_blob_of_an_address_is_found_and_read)
{
	for (int is_moved = 0; is_moved < 2; is_moved++) {
		uint64_t address;

		given_jvm(is_moved);
		assert_int_equal(hotspot_code__find(&code, &memory, COMPILED + 0x700, &address), 0);
		assert_int_equal(address, COMPILED - IMAGE_HEADER);
		assert_int_equal(compiled.kind, HOTSPOT_NMETHOD);
		assert_int_equal(compiled.code, COMPILED);
		assert_int_equal(compiled.frame_size, IMAGE_FRAME_WORDS);
		assert_int_equal(compiled.frame_complete, 9);
		assert_int_equal(compiled.compile_id, IMAGE_COMPILE_ID);
		assert_int_equal(compiled.method, image.method);
		assert_int_equal(compiled.verified_entry, COMPILED);
		/* free, and not in it */
		address = IMAGE_BASE + IMAGE_CODE + 400 * 128;
		assert_int_equal(hotspot_code__find(&code, &memory, address, &address), -ENOENT);
		assert_int_equal(hotspot_code__find(&code, &memory, 5, &address), -ENOENT);
	}
}

TEST(a_segment_map_without_a_first_segment_is_refused)
{
	uint64_t blob;

	given_jvm(false);
	memset(image.bytes + IMAGE_MAP, 1, IMAGE_CODE_SIZE / 128);
	assert_int_equal(hotspot_code__find(&code, &memory,
					    IMAGE_BASE + IMAGE_CODE + IMAGE_CODE_SIZE - 1, &blob),
			 -ELOOP);
	image.bytes[IMAGE_MAP + 3] = 9; /* to below the first */
	assert_int_equal(
		hotspot_code__find(&code, &memory, IMAGE_BASE + IMAGE_CODE + 3 * 128, &blob),
		-ELOOP);
}

TEST(heaps_that_make_no_sense_are_refused)
{
	static const struct forged BAD[] = {
		{IMAGE_HEAP + 0x100, 4, 0},	   /* none */
		{IMAGE_HEAP + 0x100, 4, 1u << 30}, /* too many */
		{IMAGE_HEAP + 8, 8, IMAGE_BASE},   /* ends before it begins */
		{IMAGE_HEAP + 8, 8, UINT64_MAX},   /* all there is */
		{IMAGE_HEAP + 24, 8, UINT64_MAX},  /* has more than it reserved */
		{IMAGE_HEAP + 128, 4, 64},	   /* segments of 2^64 bytes */
		{IMAGE_HEAP + 128, 4, 0},
	};

	for (size_t k = 0; k < COUNT(BAD); k++) {
		given_image(true);
		assert_int_equal(read_layout(), 0);
		put(BAD[k].at, BAD[k].value, BAD[k].size);
		assert_int_equal(hotspot_code__read(&code, &layout, &memory), -ENODATA);
	}
}

static int refresh_blobs(void)
{
	return hotspot_blobs__refresh(&blobs, &code, &memory, &changes);
}

TEST(a_refresh_reports_added_and_gone_blobs)
{
	uint32_t at = IMAGE_CODE + IMAGE_COMPILED * 128 + IMAGE_BLOCK;

	given_jvm(false);
	assert_int_equal(refresh_blobs(), 0);
	assert_int_equal(blobs.list.count, 3);
	assert_int_equal(changes.added.count, 3);
	assert_int_equal(refresh_blobs(), 0);
	assert_int_equal(changes.added.count + changes.gone.count, 0);
	/* another one of the same size in the same place */
	put(at + 72, IMAGE_COMPILE_ID + 1, 4);
	assert_int_equal(refresh_blobs(), 0);
	assert_int_equal(changes.added.count, 1);
	assert_int_equal(changes.added.data[0], 2);
	assert_int_equal(changes.gone.count, 1);
	assert_int_equal(changes.gone.data[0].compile_id, IMAGE_COMPILE_ID);
	/* one that is being made */
	put(at + 8, 0, 4);
	assert_int_equal(refresh_blobs(), 0);
	assert_int_equal(blobs.unreadable, 1);
	assert_int_equal(changes.gone.count, 1);
	assert_null(hotspot_blobs__find(&blobs, COMPILED));
	assert_non_null(hotspot_blobs__find(&blobs, image_code_of(IMAGE_STUBS)));
}

TEST(an_exhausted_read_budget_changes_nothing)
{
	given_jvm(true);
	memory.reads_left = 2;
	assert_int_equal(refresh_blobs(), -EDQUOT);
	assert_int_equal(blobs.list.count, 0);
	hotspot_layout__fini(&layout);
	assert_int_equal(read_layout(), -EDQUOT);
}

TEST(counters_are_found_by_name_in_the_perf_memory)
{
	uint64_t address;

	given_jvm(false);
	assert_int_equal(hotspot_counter__find(&layout, &memory, "sun.ci.totalCompiles", &address),
			 0);
	assert_int_equal(word_at(address), 1234);
	assert_int_equal(hotspot_counter__find(&layout, &memory, "sun.ci.none", &address), -ENOENT);
	put(IMAGE_PERF + 32, 0, 4); /* an entry without a size leads to itself */
	put(IMAGE_PERF + 28, UINT32_MAX, 4);
	assert_int_equal(hotspot_counter__find(&layout, &memory, "sun.ci.totalCompiles", &address),
			 -ENOENT);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int describe(uint64_t method, struct managed_function *f)
{
	struct hotspot_method m;

	*f = (struct managed_function){};
	assert_int_equal(hotspot_method__read(&layout, &memory, method, &m), 0);
	return hotspot_method__describe(&layout, &memory, &m, f);
}

TEST(a_malformed_signature_is_left_out_of_the_name)
{
	static const struct {
		const char *signature, *name;
	} CASES[] = {
		{"(BCDFJSZ[I)La/B;",
		 "a.B a.C.m(byte, char, double, float, long, short, boolean, int[])"},
		{"()[[[Z", "boolean[][][] a.C.m()"},
		{"", "a.C.m"},
		{"()", "a.C.m"},
		{"(", "a.C.m"},
		{"I)V", "a.C.m"},
		{"(Q)V", "a.C.m"},
		{"(La/B)V", "a.C.m"},
		{"([)V", "a.C.m"},
		{"()VV", "a.C.m"},
		{"(I", "a.C.m"},
	};

	for (size_t i = 0; i < COUNT(CASES); i++) {
		struct managed_function f;
		uint64_t method;

		given_jvm(true);
		method = image_method(&image, IMAGE_METHODS + 0x400, "a/C", "m", CASES[i].signature,
				      "C.java");
		assert_int_equal(describe(method, &f), 0);
		assert_string_equal(f.name, CASES[i].name);
		managed_function__fini(&f);
	}
}

/* The first line's entry, of three bytes, begins in the last two of a page. */
TEST(a_line_entry_across_pages_is_read)
{
	const uint32_t at = IMAGE_METHODS + 0x1000 - 56;
	uint8_t *lines = image.bytes + at + 32 + 20;
	struct managed_function f;
	uint64_t method;

	given_jvm(false);
	method = image_method(&image, at - 0xa0, "a/B", "c", "()V", "B.java");
	put(at + 18, 22, 2); /* bytes of bytecode */
	memmove(lines + 2, lines, 10);
	assert_int_equal(describe(method, &f), 0);
	assert_int_equal(f.rows.count, 3);
	assert_int_equal(managed_function__row(&f, 7)->line, 10);
	assert_int_equal(managed_function__row(&f, 19)->line, 300);
	managed_function__fini(&f);
}

static int read_chain(uint64_t offset)
{
	struct hotspot_debug debug = {};
	int err = hotspot_chain__read(&code, &memory, &compiled, &debug, COMPILED + offset, &chain);

	hotspot_debug__fini(&debug);
	return err;
}

static void assert_chain(uint64_t offset, unsigned int count, unsigned int sure)
{
	assert_int_equal(read_chain(offset), 0);
	assert_int_equal(chain.count, count);
	assert_int_equal(chain.sure, sure);
}

/* Places of the compiled method, as offset and record; the last has offset 0x7fffffff. */
static void put_places(uint32_t at, const uint32_t (*places)[2], size_t count)
{
	for (size_t k = 0; k < count; k++) {
		put(at + 16 * k, places[k][0], 4);
		put(at + 16 * k + 4, places[k][1], 4);
	}
}

/* Debug data of the compiled method with these places, records behind them; its offset in the image. */
static uint32_t put_debug(const uint32_t (*places)[2], size_t count, const uint8_t *records,
			  size_t size)
{
	uint32_t at = image.is_moved ? IMAGE_DEBUG : COMPILED_AT + 0x500;

	put_places(at, places, count);
	memcpy(image.bytes + at + 64, records, size);
	if (image.is_moved) {
		put(COMPILED_AT + 120, 64, 4);
		return at;
	}
	put(COMPILED_AT + 100, 0x500, 4);
	put(COMPILED_AT + 104, 0x500 + 16 * count, 4);
	put(COMPILED_AT + 112, IMAGE_BASE + at + 64, 8);
	return at;
}

TEST(a_described_place_has_a_chain_of_inlined_methods)
{
	for (int is_moved = 0; is_moved < 2; is_moved++) {
		given_jvm(is_moved);
		assert_int_equal(read_chain(0x3f), 0);
		assert_int_equal(chain.count, 2);
		assert_false(chain.is_cut);
		assert_int_equal(chain.scopes[0].method, image.inlined);
		assert_int_equal(chain.scopes[0].index, 9);
		assert_int_equal(chain.scopes[1].method, image.method);
		assert_int_equal(chain.scopes[1].index, 3);
		/* of the innermost frame, the place is behind it */
		assert_int_equal(read_chain(0x40), 0);
		assert_int_equal(chain.count, 1);
		assert_int_equal(chain.scopes[0].method, image.method);
		assert_int_equal(chain.scopes[0].index, -1);
	}
}

/* Between two places: what the next that is run has, of which is sure what the one before has as well. */
TEST(code_between_places_has_the_chain_of_the_next)
{
	static const struct {
		uint8_t at, code[2];
		unsigned int count, sure;
	} WAYS[] = {
		{0x30, {0x90, 0x90}, 2, 1}, /* on, to the inlined method's */
		{0x30, {0x75, 0xdc}, 1, 1}, /* jne 0xe: a loop around the outer method's */
		{0x30, {0x75, 0xe6}, 2, 1}, /* jne 0x18: a loop without any */
		{0x30, {0x75, 0x02}, 2, 1}, /* jne 0x34 */
		{0x30, {0xeb, 0xdc}, 1, 1}, /* jmp 0xe */
		{0x30, {0xeb, 0x02}, 2, 1}, /* jmp 0x34 */
		{0x30, {0xeb, 0x20}, 1, 0}, /* jmp 0x52: to nowhere */
		{0x30, {0xc3, 0x90}, 1, 1}, /* ret */
	};

	given_jvm(true);
	put_places(IMAGE_DEBUG, (const uint32_t[][2]){{0x10, 1}, {0x40, 4}}, 2);
	for (size_t i = 0; i < COUNT(WAYS); i++) {
		memset(BYTES + 0x10, 0x90, 0x50);
		memcpy(BYTES + WAYS[i].at, WAYS[i].code, sizeof(WAYS[i].code));
		assert_chain(0x20, WAYS[i].count, WAYS[i].sure);
		assert_int_equal(chain.scopes[chain.count - 1].method, image.method);
	}
}

/*
 * Both places are in the outer method, or the code returns from it: what it calls on the way may be
 * inlined there, unless that call has a place of its own, or there is no code for it.
 */
TEST(a_possibly_inlined_call_makes_the_method_doubtful)
{
	static const struct {
		uint8_t at, code[2], call_at;
		bool has_call_place;
		uint32_t second_place;
		unsigned int sure;
	} WAYS[] = {
		{0x30, {0x75, 0xdc}, 0, false, 0x60, 1},
		{0x30, {0x75, 0xdc}, 6, false, 0x60, 0}, /* in the loop */
		{0x22, {0x75, 0xea}, 6, false, 0x26, 0}, /* however little code there is */
		{0x30, {0x75, 0xdc}, 6, true, 0x60, 1},
		{0x30, {0x75, 0xdc}, 16, false, 0x60, 1}, /* behind the loop */
		{0x30, {0xc3, 0x90}, 16, false, 0x60, 0},
		{0x30, {0xc3, 0x90}, 0, false, 0x60, 1},
	};
	static const uint8_t INVOKE[] = {0xb8, 0, 1}, CALL[] = {0xff, 0xd0};
	uint8_t *bytecodes = image.bytes + IMAGE_BYTECODES_OF(IMAGE_METHODS);
	uint8_t *scopes = image.bytes + IMAGE_DEBUG + 0x40;

	given_jvm(true);
	memmove(scopes, image.bytes + IMAGE_DEBUG + 32, 7);
	memcpy(scopes + 7, (uint8_t[]){1, 2, 7 + 1}, 3); /* the outer method at 6 */
	put(COMPILED_AT + 120, 0x40, 4);
	for (size_t i = 0; i < COUNT(WAYS); i++) {
		const uint32_t places[][2] = {{0x10, 1},
					      {WAYS[i].second_place, 1},
					      {0x70, WAYS[i].has_call_place ? 7 : 1},
					      {0x7fffffff, 0}};

		put_places(IMAGE_DEBUG, places, COUNT(places));
		memset(BYTES + 0x10, 0x90, 0x60);
		memcpy(BYTES + 0x6e, CALL, sizeof(CALL));
		memcpy(BYTES + WAYS[i].at, WAYS[i].code, sizeof(WAYS[i].code));
		memcpy(bytecodes, IMAGE_BYTECODES, sizeof(IMAGE_BYTECODES));
		if (WAYS[i].call_at)
			memcpy(bytecodes + WAYS[i].call_at, INVOKE, sizeof(INVOKE));
		assert_chain(0x20, 1, WAYS[i].sure);
	}
	layout.describes_all = HOTSPOT_FLAG_ON;
	memcpy(bytecodes + 16, INVOKE, sizeof(INVOKE));
	memcpy(BYTES + 0x30, (uint8_t[]){0xc3}, 1);
	assert_int_equal(read_chain(0x20), 0);
	assert_int_equal(chain.sure, 1);
}

/* A poll of the inlined method's loop, which is in one of the outer method's: the inner loop is the inlined one's. */
TEST(an_inner_loop_belongs_to_the_inlined_method)
{
	static const struct {
		uint8_t at;
		unsigned int sure;
		bool has_second_entry;
	} PLACES[] = {{0x32, 2, false}, {0x44, 2, false}, {0x20, 1, false}, {0x32, 1, true}};

	given_jvm(true);
	put_places(IMAGE_DEBUG, (const uint32_t[][2]){{0x10, 1}, {0x40, 4}}, 2);
	memset(BYTES + 0x10, 0x90, 0x50);
	memcpy(BYTES + 0x46, (uint8_t[]){0x75, 0xe8, 0x75, 0xc8, 0xc3}, 5); /* jne 0x30; jne 0x12 */
	for (size_t i = 0; i < COUNT(PLACES); i++) {
		/* jne 0x36: it may begin in its middle, so it is not known which loop it is */
		memcpy(BYTES + 0x16, PLACES[i].has_second_entry ? "\x75\x1e" : "\x90\x90", 2);
		assert_chain(PLACES[i].at, 2, PLACES[i].sure);
		assert_int_equal(chain.scopes[0].method, image.inlined);
	}
}

/* From a place to another one at the same bytecode the caller's loop may have gone round, if it has one, and not the callee. */
TEST(a_chain_is_doubtful_if_only_the_caller_loops)
{
	static const struct {
		uint8_t call_at, ifeq; /* the callee's bytecode that leads back */
		unsigned int sure;
	} LOOPS[] = {{3, 0, 0}, {16, 0, 1}, {3, 0x99, 2}};

	given_jvm(true);
	put_places(IMAGE_DEBUG, (const uint32_t[][2]){{0x10, 4}, {0x40, 4}}, 2);
	memset(BYTES + 0x10, 0x90, 0x50);
	for (size_t i = 0; i < COUNT(LOOPS); i++) {
		put(IMAGE_DEBUG + 32 + 3, LOOPS[i].call_at + 1 + 1, 1);
		put(IMAGE_BYTECODES_OF(IMAGE_METHODS + 0x200) + 13, LOOPS[i].ifeq, 1);
		assert_chain(0x20, 2, LOOPS[i].sure);
	}
}

/* Code in a loop without a place is of the only method that loops there, which the class's table of calls has. */
TEST(loop_code_belongs_to_the_only_callee_that_loops)
{
	static const struct {
		uint8_t invoke[3], at; /* at: of the method in the table's entry */
		uint16_t intrinsic;
		unsigned int count, sure;
	} CALLS[] = {
		{{0xb8, 1, 0}, 8, 0, 2, 2},  /* invokestatic */
		{{0xb6, 1, 0}, 16, 0, 2, 2}, /* invokevirtual, of a final one */
		{{0xb9, 1, 0}, 8, 0, 1, 0},  /* invokeinterface */
		{{0xb8, 2, 0}, 8, 0, 1, 0},  /* not resolved */
		{{0xb8, 1, 0}, 8, 5, 1, 1},  /* the compiler has its own code */
	};

	for (unsigned int k = 0; k < 2 * COUNT(CALLS); k++) {
		bool is_moved = k & 1;
		const uint32_t cache = IMAGE_METHODS + 0xf00, x = is_moved;
		uint32_t entry = is_moved ? cache + 0x40 + 8 + 24 - CALLS[k / 2].at
					  : cache + 16 + 24;
		const uint8_t records[] = {0, 0 + x, 1 + x, 4 + x, 0 + x, 1 + x, 11 + x};
		const uint32_t described[][2] = {{0x10, 1}, {0x40, 4}, {0x7fffffff, 0}};
		uint8_t *bytecodes = image.bytes + IMAGE_BYTECODES_OF(IMAGE_METHODS);

		given_jvm(is_moved);
		put_debug(described, COUNT(described), records, sizeof(records));
		if (is_moved)
			put(cache + 8, IMAGE_BASE + cache + 0x40, 8);
		put(IMAGE_METHODS + 0x20 + 24, IMAGE_BASE + cache, 8);
		put(entry + CALLS[k / 2].at, image.inlined, 8);
		put(image.inlined - IMAGE_BASE + 16, CALLS[k / 2].intrinsic, 2);
		memset(bytecodes, 0, 19);
		memcpy(bytecodes + 6, CALLS[k / 2].invoke, 3);
		memset(BYTES + 0x10, 0x90, 0x50);
		memcpy(BYTES + 0x30, (uint8_t[]){0x75, 0xe6}, 2); /* jne 0x18 */
		assert_chain(0x20, CALLS[k / 2].count, CALLS[k / 2].sure);
		if (chain.count == 2) {
			assert_int_equal(chain.scopes[0].method, image.inlined);
			assert_int_equal(chain.scopes[0].index, 3);
			assert_int_equal(chain.scopes[1].index, 6);
		}
	}
}

/*
 * A check that leads to a call of the trap, and a load that does if it faults, are where that call is described. The load itself may
 * be another one from the same object.
 */
TEST(checks_that_lead_to_a_trap_are_places)
{
	static const struct {
		uint8_t at;
		unsigned int count, sure;
	} PLACES[] = {
		{0x20, 2, 2}, /* je 0x50 */
		{0x28, 1, 0}, /* a load of null, for what runs behind it */
		{0x24, 2, 2}, /* between them */
		{0x18, 2, 1}, /* from the outer method to the check */
		{0x34, 1, 0}, /* jne 0x60: to a return */
		{0x05, 1, 1}, /* the frame is not there yet */
	};
	for (int is_moved = 0; is_moved < 2; is_moved++) {
		const uint32_t x = is_moved;
		const uint8_t records[] = {0, 0 + x, 1 + x, 4 + x, 1 + x, 2 + x, 10 + x};
		const uint32_t described[][2] = {{0x10, 1}, {0x40, 1}, {0x5a, 4}, {0x7fffffff, 0}};
		const uint32_t null_checks[] = {2, 0x28, 0x50, 0xffff, 0x50};
		uint32_t places, trap;

		given_jvm(is_moved);
		trap = image_blob(&image, 128, 4, "UncommonTrapBlob", 2);
		places = put_debug(described, COUNT(described), records, sizeof(records));
		memcpy(image.bytes + places + 0x60, null_checks, sizeof(null_checks));
		put(COMPILED_AT + 140, is_moved ? 0x60 : 0x560, is_moved ? 2 : 4);
		memset(BYTES + 0x10, 0x90, 0x60);
		memcpy(BYTES + 0x20, (uint8_t[]){0x74, 0x2e}, 2);
		memcpy(BYTES + 0x34, (uint8_t[]){0x75, 0x2a}, 2);
		BYTES[0x48] = 0xc3;
		memcpy(BYTES + 0x50, (uint8_t[]){0xbe, 1, 0, 0, 0, 0xe8}, 6);
		put(COMPILED - IMAGE_BASE + 0x56,
		    IMAGE_BASE + trap + IMAGE_HEADER - (COMPILED + 0x5a), 4);
		BYTES[0x62] = 0xc3;
		for (size_t i = 0; i < COUNT(PLACES); i++)
			assert_chain(PLACES[i].at, PLACES[i].count, PLACES[i].sure);
	}
}

/* Ways through bytecodes that javac makes: switches, wide ones, those that the JVM has replaced. */
TEST(ways_lead_through_switches_and_wide_bytecodes)
{
	static const unsigned char SWITCHES[] = {
		0x1b,				     /* 0: iload_1 */
		0xaa, 0,    0,			     /* 1: tableswitch */
		0,    0,    0,	  27,		     /* default: 28 */
		0,    0,    0,	  1,	0, 0, 0, 2,  /* 1 to 2 */
		0,    0,    0,	  23,	0, 0, 0, 27, /* 24, 28 */
		0xb8, 0,    1,	  0xb1,		     /* 24: invokestatic, return */
		0xc4, 0x84, 1,	  1,	0, 1,	     /* 28: wide iinc */
		0xe3, 0,    1,			     /* 34: a fast invokevirtual */
		0xa7, 0xff, 0xdb,		     /* 37: goto 0 */
	};
	struct {
		int32_t from, to;
		bool is_done, is_there, loops;
		unsigned int calls, length;
	} WAYS[] = {
		{0, -1, false, true, true, 2, 7},   {24, -1, true, true, false, 0, 1},
		{28, 34, false, true, false, 0, 2}, {28, 28, true, true, true, 1, 5},
		{24, 34, true, false, false, 0, 0},
	};

	for (size_t i = 0; i < COUNT(WAYS); i++) {
		struct hotspot_way way = {
			.from = WAYS[i].from, .to = WAYS[i].to, .is_done = WAYS[i].is_done};

		assert_int_equal(hotspot_way__find(SWITCHES, sizeof(SWITCHES), &way), 0);
		assert_int_equal(way.is_there, WAYS[i].is_there);
		assert_int_equal(way.call_count, WAYS[i].calls);
		assert_int_equal(way.length, WAYS[i].length);
		assert_int_equal(way.loops, WAYS[i].loops);
	}
	for (size_t size = 0; size < sizeof(SWITCHES); size++) {
		struct hotspot_way way = {.to = -1};

		assert_int_equal(hotspot_way__find(SWITCHES, size, &way), -ENODATA);
	}
	for (unsigned int op = 0; op < 256; op++) {
		const unsigned char code[] = {(unsigned char)op, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
		struct hotspot_way way = {.to = -1};

		int err = hotspot_way__find(code, sizeof(code), &way);

		assert_true(!err || err == -ENODATA);
		assert_true(err || way.length <= sizeof(code));
	}
}

/* A scope that is its own sender, and lengths that are not. */
TEST(a_bad_scope_record_cuts_the_chain)
{
	given_jvm(true);
	image.bytes[IMAGE_DEBUG + 32 + 4] = 4 + 1;
	assert_int_equal(read_chain(0x3f), 0);
	assert_int_equal(chain.count, 1);
	assert_true(chain.is_cut);
	put(COMPILED_AT + 120, 0xfffffff0, 4);
	assert_int_equal(read_chain(0x3f), 0);
	assert_int_equal(chain.scopes[0].method, image.method);
	assert_true(chain.is_cut);
}

TEST(replaced_methods_are_stale)
{
	struct hotspot_method m;

	given_jvm(false);
	assert_int_equal(hotspot_method__read(&layout, &memory, image.method, &m), 0);
	assert_int_equal(m.code_size, 20);
	assert_int_equal(hotspot_method__check(&layout, &memory, &m), CODE_STATE_CONFIRMED);
	put(image.method - IMAGE_BASE + 8, image.inlined + 0xa0, 8);
	assert_int_equal(hotspot_method__check(&layout, &memory, &m), CODE_STATE_STALE);
	memory.reads_left = 0;
	assert_int_equal(hotspot_method__check(&layout, &memory, &m), CODE_STATE_UNKNOWN);
}

TEST(an_unreadable_method_or_name_is_an_error)
{
	struct managed_function f = {};
	struct hotspot_method m;
	uint32_t at = IMAGE_METHODS + 0x100; /* the class's name */

	given_jvm(false);
	assert_int_equal(hotspot_method__read(&layout, &memory, 1, &m), -ENODATA);
	assert_int_equal(hotspot_method__read(&layout, &memory, UINT64_MAX & ~7ull, &m), -ENODATA);
	assert_int_equal(hotspot_method__read(&layout, &memory, image.method, &m), 0);
	put(at, 0xabcd0000, 4); /* nothing refers to it */
	assert_int_equal(hotspot_method__describe(&layout, &memory, &m, &f), -ENODATA);
	put(at, 0xabcd0001, 4);
	put(at + 4, 0xffff, 2); /* with what is behind it */
	assert_int_equal(hotspot_method__describe(&layout, &memory, &m, &f), -ENODATA);
	memset(image.bytes + at + 6, 'x', 0x1800);
	assert_int_equal(hotspot_method__describe(&layout, &memory, &m, &f), 0);
	assert_true(strlen(f.name) < sizeof(f.name));
	managed_function__fini(&f);
}

TEST(an_unsigned5_number_has_at_most_five_bytes)
{
	static const unsigned char NUMBERS[] = {0, 191, 192, 0, 255, 255, 255, 255, 255, 7};
	static const struct {
		uint32_t excluded, number;
		size_t end;
	} READ[] = {{0, 0, 1}, {0, 191, 2}, {0, 192, 4}, {1, 0, 9}, {1, 6, 10}};
	uint32_t number;
	size_t at = 0;

	for (size_t i = 0; i < COUNT(READ); i++) {
		assert_true(hotspot_unsigned5(NUMBERS, sizeof(NUMBERS), &at, READ[i].excluded,
					      &number));
		assert_int_equal(at, READ[i].end);
		if (READ[i].end != 9)
			assert_int_equal(number, READ[i].number);
	}
	assert_false(hotspot_unsigned5(NUMBERS, sizeof(NUMBERS), &at, 1, &number));
	at = 0;
	assert_false(hotspot_unsigned5(NUMBERS, sizeof(NUMBERS), &at, 1, &number));
	at = 4;
	assert_false(hotspot_unsigned5(NUMBERS, 6, &at, 0, &number));
}

/* ---- the walk -------------------------------------------------------------------------------- */

#define SP 4
#define FP 5

static uint64_t stack_at(uint32_t word)
{
	return IMAGE_BASE + IMAGE_STACK + 8 * word;
}

static struct hotspot_frame f;
static struct hotspot_seen seen;

/* Compiled, called by interpreted, called by a stub, called by what is not HotSpot's. */
static void make_stack(void)
{
	uint64_t interpreted = IMAGE_BASE + IMAGE_CODE + 0x180,
		 stub = image_code_of(IMAGE_STUBS) + 5;

	f = (struct hotspot_frame){.ip = COMPILED + 13, .is_innermost = true};
	f.general[SP] = stack_at(8);
	f.general[FP] = 12345;
	put(IMAGE_STACK + 8 * 10, stack_at(40), 8); /* CFA - 16 */
	put(IMAGE_STACK + 8 * 11, interpreted, 8);
	put(IMAGE_STACK + 8 * 37, image.method, 8);
	put(IMAGE_STACK + 8 * 32, image.method + 0xa0 + 32 + 8, 8);
	put(IMAGE_STACK + 8 * 39, stack_at(50), 8); /* the caller's stack pointer */
	put(IMAGE_STACK + 8 * 40, stack_at(60), 8);
	put(IMAGE_STACK + 8 * 41, stub, 8);
	put(IMAGE_STACK + 8 * 60, 999, 8);
	put(IMAGE_STACK + 8 * 61, 0x7f0000001234, 8);
}

static int step(const struct hotspot_table *rows)
{
	return hotspot_walk__step(&code, rows, &memory, &f, &seen);
}

static void walk_it(const struct hotspot_table *table)
{
	make_stack();
	assert_int_equal(step(table), 0);
	assert_int_equal(seen.what, HOTSPOT_FRAME_COMPILED);
	assert_int_equal(seen.by_row, table != NULL);
	assert_int_equal(seen.blob.compile_id, IMAGE_COMPILE_ID);
	assert_int_equal(f.general[SP], stack_at(12));
	assert_int_equal(f.general[FP], stack_at(40));
	assert_int_equal(step(table), 0);
	assert_int_equal(seen.what, HOTSPOT_FRAME_INTERPRETED);
	assert_int_equal(seen.method, image.method);
	assert_int_equal(seen.bytecode, image.method + 0xa0 + 32 + 8);
	assert_int_equal(f.general[SP], stack_at(50));
	assert_int_equal(f.general[FP], stack_at(60));
	assert_int_equal(step(table), 0);
	assert_int_equal(seen.what, HOTSPOT_FRAME_STUB);
	assert_int_equal(f.general[SP], stack_at(62));
	assert_int_equal(f.general[FP], 999);
	assert_int_equal(f.ip, 0x7f0000001234);
	assert_int_equal(step(table), -ENOENT);
}

static void refresh(void)
{
	assert_int_equal(refresh_blobs(), 0);
	assert_int_equal(hotspot_table__refresh(&table, &code, &memory, &blobs, &changes), 0);
}

TEST(a_mixed_stack_is_walked_with_and_without_rows)
{
	for (int is_moved = 0; is_moved < 2; is_moved++) {
		struct runtime_hotspot words;

		given_jvm(is_moved);
		walk_it(NULL);
		refresh();
		walk_it(&table);
		/* no longer entrant: the rows are those of before */
		put(COMPILED - IMAGE_BASE, 0x12345678e9, 5);
		refresh();
		assert_int_equal(table.entries.count, 3);
		walk_it(&table);
		assert_int_equal(hotspot_words__make(&words, &code), 0);
		assert_int_equal(words.frame_size, 12);
		assert_int_equal(words.is_narrow, is_moved);
		assert_int_equal(words.compile_id, 72);
		assert_int_equal(words.const_method, 8);
		assert_int_equal(words.heaps[0].low, IMAGE_BASE + IMAGE_CODE);
		assert_int_equal(words.heaps[1].high, 0);
	}
}

/* At each instruction of a method: rows know, frame sizes know but for its end. */
TEST(rows_unwind_at_every_instruction_of_a_method)
{
	static const struct {
		uint32_t at, depth; /* words from sp to the CFA */
	} PLACES[] = {{0, 1}, {7, 1}, {8, 2}, {12, 4}, {17, 4}, {21, 2}, {22, 1}};

	given_jvm(false);
	refresh();
	for (size_t k = 0; k < COUNT(PLACES); k++) {
		make_stack();

		f.ip = COMPILED + PLACES[k].at;
		f.general[SP] = stack_at(12 - PLACES[k].depth);
		f.general[FP] = PLACES[k].depth == 1 ? stack_at(40) : 1;
		assert_int_equal(step(&table), 0);
		assert_int_equal(f.general[SP], stack_at(12));
		assert_int_equal(f.general[FP], stack_at(40));
	}
}

TEST(a_stack_that_leads_nowhere_is_an_error)
{
	given_jvm(false);
	make_stack();
	f.general[SP] = 8; /* not there */
	assert_int_equal(step(NULL), -EFAULT);
	make_stack();
	f.general[SP] |= 4;
	assert_int_equal(step(NULL), -ENODATA);
	/* an interpreted frame that is its own caller; one below the stack, far away, and askew */
	for (int k = 0; k < 4; k++) {
		static const int64_t FPS[] = {16, -8, 1 << 21, 19};
		uint64_t at;

		make_stack();
		f.ip = IMAGE_BASE + IMAGE_CODE + 0x180;
		f.is_innermost = false;
		f.general[FP] = f.general[SP] + FPS[k];
		at = f.general[FP] - IMAGE_BASE;
		if (at < IMAGE_SIZE - 16) { /* the far one is outside of the image */
			put(at - 8, f.general[SP] + (k ? 64 : 0), 8);
			put(at, f.general[FP], 8);
			put(at + 8, f.ip, 8);
		}
		assert_int_equal(step(NULL), -ENODATA);
	}
	make_stack();
	memory.reads_left = 1;
	assert_int_equal(step(NULL), -EDQUOT);
}

EACH_TEST_WITH(NULL, tear_down);
