/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What HotSpot's memory says, of memory that is forged: as it should be, and as it should not: testdata/hotspot_memory.txt.
 * Here: pure functions, and the walk.
 */
#include <ctype.h>

#include "text_cases.h"
#include "hotspot_image.h"
#include "base/cleanup.h"
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

static void tear_down(void)
{
	hotspot_layout__fini(&layout);
	hotspot_table__fini(&table);
	hotspot_blobs__fini(&blobs);
	hotspot_changes__fini(&changes);
	layout = (struct hotspot_layout){};
	table = (struct hotspot_table){};
	blobs = (struct hotspot_blobs){};
	changes = (struct hotspot_changes){};
}

static void given_image(bool is_moved)
{
	tear_down();
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

/* ---- changes of the memory -------------------------------------------------------------------- */

/* "NAME+OFFSET", hexadecimal: an offset in the image. */
static uint64_t read_place(const char *text)
{
	const struct {
		const char *name;
		uint64_t at;
	} places[] = {
		{"structs", 8 * HOTSPOT_STRUCTS},
		{"struct-stride", 8 * HOTSPOT_STRUCT_STRIDE},
		{"types", 8 * HOTSPOT_TYPES},
		{"type-stride", 8 * HOTSPOT_TYPE_STRIDE},
		{"last-type", IMAGE_TYPES + 16 * (image.next_type - 1)},
		{"statics", IMAGE_STATICS},
		{"flags", IMAGE_FLAGS},
		{"flag", IMAGE_FLAG},
		{"heap", IMAGE_HEAP},
		{"map", IMAGE_MAP},
		{"perf", IMAGE_PERF},
		{"debug", IMAGE_DEBUG},
		{"strings", IMAGE_STRINGS},
		{"segment", IMAGE_CODE},
		{"blob", COMPILED_AT},
		{"code", COMPILED - IMAGE_BASE},
		{"method", IMAGE_METHODS},
		{"inlined", IMAGE_METHODS + 0x200},
		{"bytecode", IMAGE_BYTECODES_OF(IMAGE_METHODS)},
		{"inlined-bytecode", IMAGE_BYTECODES_OF(IMAGE_METHODS + 0x200)},
	};
	const size_t size = strcspn(text, "+");

	for (size_t i = 0; i < COUNT(places); i++)
		if (strlen(places[i].name) == size && !memcmp(text, places[i].name, size))
			return places[i].at + strtoull(text + size, NULL, 16);
	fail_msg("no place '%s'", text);
	return 0;
}

/* "PLACE SIZE VALUE", the value hexadecimal, or @PLACE: its address. */
static void put_value(char *words)
{
	const uint64_t at = read_place(text_word(&words)), size = text_number(&words, 10);
	const char *value = text_word(&words);

	put(at, *value == '@' ? IMAGE_BASE + read_place(value + 1) : strtoull(value, NULL, 16),
	    size);
}

/* "PLACE BYTE …", or "PLACE BYTE *TIMES", hexadecimal. */
static void put_bytes(char *words)
{
	uint64_t at = read_place(text_word(&words));

	for (const char *word; *(word = text_word(&words));) {
		if (*word == '*')
			memset(image.bytes + at, image.bytes[at - 1],
			       strtoull(word + 1, NULL, 16) - 1);
		else
			image.bytes[at++] = (uint8_t)strtoul(word, NULL, 16);
	}
}

/* Places of the compiled method, "OFFSET:RECORD …". How many. */
static uint32_t put_places(uint32_t at, char **words)
{
	uint32_t count = 0;

	for (; isxdigit((unsigned char)**words); count++) {
		char *word = text_word(words), *record = strchr(word, ':') + 1;

		put(at + 16 * count, strtoul(word, NULL, 16), 4);
		put(at + 16 * count + 4, strtoul(record, NULL, 10), 4);
	}
	return count;
}

/* "PLACES records BYTE …": debug data of the compiled method, in its place of this JDK. */
static void put_debug(char *words)
{
	const uint32_t at = image.is_moved ? IMAGE_DEBUG : COMPILED_AT + 0x500;
	const uint32_t count = put_places(at, &words);
	uint8_t *to = image.bytes + at + 64;

	assert_string_equal(text_word(&words), "records");
	*to++ = 0;
	while (*words) /* UNSIGNED5 leaves out 0 since JDK 23 */
		*to++ = (uint8_t)(text_number(&words, 10) + image.is_moved);
	if (image.is_moved) {
		put(COMPILED_AT + 120, 64, 4);
		return;
	}
	put(COMPILED_AT + 100, 0x500, 4);
	put(COMPILED_AT + 104, 0x500 + 16 * count, 4);
	put(COMPILED_AT + 112, IMAGE_BASE + at + 64, 8);
}

/* A trap, which is called at 50 to 5a, and checks of null that lead there. */
static void put_trap(void)
{
	const uint32_t trap = image_blob(&image, 128, 4, "UncommonTrapBlob", 2);
	const uint32_t null_checks[] = {2, 0x28, 0x50, 0xffff, 0x50};
	const uint32_t at = image.is_moved ? IMAGE_DEBUG : COMPILED_AT + 0x500;

	memcpy(image.bytes + at + 0x60, null_checks, sizeof(null_checks));
	put(COMPILED_AT + 140, image.is_moved ? 0x60 : 0x560, image.is_moved ? 2 : 4);
	put(COMPILED - IMAGE_BASE + 0x56, IMAGE_BASE + trap + IMAGE_HEADER - (COMPILED + 0x5a), 4);
}

/* The class's table of calls, with the inlined method at the number of bytes of its first entry. */
static void put_calls(uint32_t at)
{
	const uint32_t cache = IMAGE_METHODS + 0xf00;
	const uint32_t entry = image.is_moved ? cache + 0x40 + 8 + 24 - at : cache + 16 + 24;

	if (image.is_moved)
		put(cache + 8, IMAGE_BASE + cache + 0x40, 8);
	put(IMAGE_METHODS + 0x20 + 24, IMAGE_BASE + cache, 8);
	put(entry + at, image.inlined, 8);
}

/* All offsets of fields. */
static void enlarge_offsets(void)
{
	for (uint32_t k = 0; k < image.next_field; k++)
		if (!image_word(&image, IMAGE_TABLES + 32 * k + 24))
			put(IMAGE_TABLES + 32 * k + 16, 1u << 30, 8);
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

static bool take_change(const char *name, char *words)
{
	const char *from;

	if (!strcmp(name, "put"))
		put_value(words);
	else if (!strcmp(name, "bytes"))
		put_bytes(words);
	else if (!strcmp(name, "rename"))
		from = text_word(&words), rename_strings(from, *words ? words : "x");
	else if (!strcmp(name, "large-offsets"))
		enlarge_offsets();
	else if (!strcmp(name, "endless"))
		memory.read = read_endless, memory.reads_left = 1u << 16;
	else if (!strcmp(name, "reads"))
		memory.reads_left = (uint32_t)text_number(&words, 10);
	else if (!strcmp(name, "places"))
		put_places(IMAGE_DEBUG, &words);
	else if (!strcmp(name, "debug"))
		put_debug(words);
	else if (!strcmp(name, "trap"))
		put_trap();
	else if (!strcmp(name, "calls"))
		put_calls((uint32_t)text_number(&words, 10));
	else if (!strcmp(name, "describes-all"))
		layout.describes_all = HOTSPOT_FLAG_ON;
	else if (!strcmp(name, "keep"))
		whole = image;
	else if (!strcmp(name, "back"))
		image = whole;
	else
		return false;
	return true;
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void put_address(FILE *out, uint64_t address)
{
	if (address == image.method || address == image.inlined)
		fputs(address == image.method ? "run" : "call", out);
	else
		fprintf(out, "code%+" PRId64, (int64_t)(address - COMPILED));
}

static void put_layout(FILE *out)
{
	static const char *const names[HOTSPOT_PARTS] = {" unwind", " name", " line", " count"};
	int err;

	hotspot_layout__fini(&layout);
	layout = (struct hotspot_layout){};
	err = read_layout();
	if (err) {
		text_put_error(out, err);
		assert_null(layout.stub_entries.data);
		return;
	}
	fprintf(out, "JDK %u%s:", layout.major, image.reads < 60 ? "" : ", many reads");
	for (int i = 0; i < HOTSPOT_PARTS; i++)
		fputs(layout.can[i] ? names[i] : "", out);
	fprintf(out, ", compile id at %" PRIu64 ", %zu stubs", layout.at[HOTSPOT_COMPILE_ID],
		layout.stub_entries.count);
}

/* The other facts are known even if flags cannot be read. */
static void put_flag(FILE *out)
{
	static const char *const names[] = {"unknown", "off", "on"};

	tear_down();
	memory = image_memory(&image);
	assert_int_equal(read_layout(), 0);
	assert_true(layout.can[HOTSPOT_CAN_UNWIND]);
	fputs(names[layout.frame_pointers], out);
}

static void put_blob(FILE *out)
{
	fprintf(out, "%s", compiled.kind == HOTSPOT_NMETHOD ? "nmethod " : "other ");
	put_address(out, compiled.method);
	fprintf(out, " at ");
	put_address(out, compiled.code);
	fprintf(out, " from ");
	put_address(out, compiled.verified_entry);
	fprintf(out, ", id %u, frame of %u words after %u bytes", compiled.compile_id,
		compiled.frame_size, compiled.frame_complete);
}

static void put_found(FILE *out, uint64_t address)
{
	int err = hotspot_code__find(&code, &memory, address, &address);

	if (err)
		text_put_error(out, err);
	else
		put_address(out, address);
}

static int refresh_blobs(void)
{
	return hotspot_blobs__refresh(&blobs, &code, &memory, &changes);
}

static void put_refresh(FILE *out)
{
	int err = refresh_blobs();

	if (err)
		text_put_error(out, err);
	fprintf(out, "%s%zu blobs, %" PRIu64 " unreadable", err ? ": " : "", blobs.list.count,
		blobs.unreadable);
	for (size_t i = 0; i < changes.added.count && !err; i++)
		fprintf(out, " +%u", changes.added.data[i]);
	for (size_t i = 0; i < changes.gone.count && !err; i++)
		fprintf(out, " -id %u", changes.gone.data[i].compile_id);
	if (hotspot_blobs__find(&blobs, COMPILED))
		fputs(", code is there", out);
	if (hotspot_blobs__find(&blobs, image_code_of(IMAGE_STUBS)))
		fputs(", stubs are there", out);
}

static void put_counter(FILE *out, const char *name)
{
	uint64_t address;
	int err = hotspot_counter__find(&layout, &memory, name, &address);

	if (err)
		text_put_error(out, err);
	else
		fprintf(out, "%" PRIu64, image_word(&image, address - IMAGE_BASE));
}

static int describe(uint64_t method, struct managed_function *f)
{
	struct hotspot_method m;

	*f = (struct managed_function){};
	assert_int_equal(hotspot_method__read(&layout, &memory, method, &m), 0);
	return hotspot_method__describe(&layout, &memory, &m, f);
}

/* Of method m of class a/C with this signature. */
static void put_name(FILE *out, const char *signature)
{
	_cleanup_(managed_function__fini) struct managed_function f = {};
	uint64_t method = image_method(&image, IMAGE_METHODS + 0x400, "a/C", "m", signature,
				       "C.java");

	assert_int_equal(describe(method, &f), 0);
	fputs(f.name, out);
}

/* "SURE sure: METHOD:BYTECODE …", innermost first. */
static void put_chain(FILE *out, uint64_t offset)
{
	struct hotspot_debug debug = {};

	assert_int_equal(
		hotspot_chain__read(&code, &memory, &compiled, &debug, COMPILED + offset, &chain),
		0);
	hotspot_debug__fini(&debug);
	fprintf(out, "%u sure:", chain.sure);
	for (unsigned int i = 0; i < chain.count; i++) {
		fputc(' ', out);
		put_address(out, chain.scopes[i].method);
		if (chain.scopes[i].index >= 0)
			fprintf(out, ":%d", chain.scopes[i].index);
	}
	fputs(chain.is_cut ? " cut" : "", out);
}

static bool take_step(FILE *out, const char *name, char *words)
{
	if (!strcmp(name, "image"))
		given_image(text_has(words, "moved"));
	else if (!strcmp(name, "jvm"))
		given_jvm(text_has(words, "moved"));
	else if (!strcmp(name, "layout"))
		put_layout(out);
	else if (!strcmp(name, "flag"))
		put_flag(out);
	else if (!strcmp(name, "heaps"))
		text_put_error(out, hotspot_code__read(&code, &layout, &memory));
	else if (!strcmp(name, "blob"))
		put_blob(out);
	else if (!strcmp(name, "find"))
		put_found(out, IMAGE_BASE + read_place(words));
	else if (!strcmp(name, "refresh"))
		put_refresh(out);
	else if (!strcmp(name, "counter"))
		put_counter(out, words);
	else if (!strcmp(name, "name"))
		put_name(out, words);
	else if (!strcmp(name, "chain"))
		put_chain(out, strtoull(words, NULL, 16));
	else
		return take_change(name, words);
	return true;
}

static void run_steps(FILE *out, char *input)
{
	text_run_steps(out, input, take_step);
}

static const struct text_verb verbs[] = {{"jvm", run_steps}, {}};

TEXT_TABLE("hotspot_memory", verbs, NULL, tear_down);

/* ---- names, bytecodes ------------------------------------------------------------------------- */

/* The first line's entry, of three bytes, begins in the last two of a page. */
TEST(a_line_entry_across_pages_is_read)
{
	const uint32_t at = IMAGE_METHODS + 0x1000 - 56;
	uint8_t *lines = image.bytes + at + 32 + 20;
	_cleanup_(managed_function__fini) struct managed_function f = {};
	uint64_t method;

	given_jvm(false);
	method = image_method(&image, at - 0xa0, "a/B", "c", "()V", "B.java");
	put(at + 18, 22, 2); /* bytes of bytecode */
	memmove(lines + 2, lines, 10);
	assert_int_equal(describe(method, &f), 0);
	assert_int_equal(f.rows.count, 3);
	assert_int_equal(managed_function__row(&f, 7)->line, 10);
	assert_int_equal(managed_function__row(&f, 19)->line, 300);
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
	_cleanup_(managed_function__fini) struct managed_function f = {};
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
