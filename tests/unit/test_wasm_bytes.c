/* SPDX-License-Identifier: BSD-2-Clause */
/* Modules of WebAssembly: what they have, what their functions are called, and modules that are none. */
#include "unit.h"
#include "base/cleanup.h"
#include "runtimes/v8/wasm.h"
#include "runtimes/v8/wasm_bytes.h"
#include "unit/forge_wasm.h"

#define BASE 0x5000000u

static unsigned char bytes[1 << 20];
static size_t size;

static int read_bytes(void *context, void *to, size_t count, uint64_t address)
{
	if (address < BASE || address - BASE > size || count > size - (address - BASE))
		return -ENODATA;
	memcpy(to, bytes + (address - BASE), count);
	return 0;
}

static struct target_memory memory(void)
{
	return (struct target_memory){
		.read = read_bytes, .bytes_left = 64 << 20, .reads_left = 10000};
}

static int open_module(struct wasm_bytes *w)
{
	struct target_memory m = memory();

	return wasm_bytes__open(w, &m, BASE, size);
}

static const char *name_of(const struct wasm_bytes *w, uint32_t function)
{
	static char name[128];
	struct target_memory m = memory();
	int err = wasm_bytes__name(w, &m, function, name, sizeof(name));

	assert_true((err == 0) == (name[0] != '\0'));
	return name;
}

TEST(functions_have_the_names_of_the_name_section)
{
	_cleanup_(wasm_bytes__fini) struct wasm_bytes w = {};

	size = forge_module(bytes, WASM_NAMES);
	assert_int_equal(open_module(&w), 0);
	assert_int_equal(w.imported, WASM_IMPORTED);
	assert_int_equal(w.own, WASM_OWN);
	assert_string_equal(name_of(&w, 0), "f");
	assert_string_equal(name_of(&w, 1), "");
	assert_string_equal(name_of(&w, 2), "two");
	assert_string_equal(name_of(&w, 4), "\xc3\xa4\\x1b.");
	assert_string_equal(name_of(&w, 5), "");
	assert_string_equal(name_of(&w, UINT32_MAX), "");
}

TEST(a_module_without_a_name_section_has_no_names)
{
	_cleanup_(wasm_bytes__fini) struct wasm_bytes w = {};

	size = forge_module(bytes, NULL, 0);
	assert_int_equal(open_module(&w), 0);
	assert_int_equal(w.own, WASM_OWN);
	assert_string_equal(name_of(&w, 2), "");
}

/* Wherever it is cut, it is another module or none; and its size must be the right one. */
TEST(a_module_cut_within_a_section_is_an_error)
{
	struct wasm_bytes w;
	size_t whole;

	whole = forge_module(bytes, WASM_NAMES);
	for (size = 0; size < whole; size++) {
		int err = open_module(&w);

		bool is_behind_section = size == 8 || size == 14 || size == 59 || size == 66;

		assert_int_equal(err, is_behind_section ? 0 : -EINVAL);
		if (is_behind_section)
			wasm_bytes__fini(&w);
	}
	size = whole;
	bytes[size++] = 1;
	assert_int_equal(open_module(&w), -EINVAL);
}

TEST(reading_a_module_with_a_changed_byte_ends)
{
	struct wasm_bytes w;
	size_t whole;

	whole = size = forge_module(bytes, WASM_NAMES);
	for (size_t at = 0; at < whole; at++)
		for (unsigned int to = 0; to < 256; to++) {
			unsigned char was = bytes[at];

			bytes[at] = (unsigned char)to;
			if (!open_module(&w)) {
				for (uint32_t i = 0; i < 6; i++)
					name_of(&w, i);
				wasm_bytes__fini(&w);
			}
			bytes[at] = was;
		}
}

static size_t put_leb(size_t at, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		bytes[at++] = value | 0x80;
	bytes[at++] = value;
	return at;
}

/* The header of the only part of a name section, whose sizes have 5 bytes each. */
static size_t begin_names(size_t part)
{
	size_t at = wasm_put(bytes, 0, "\0asm\1\0\0\0", 8);

	bytes[at++] = 0;
	at = put_leb(at, (uint32_t)(part + 6 + (part < 128 ? 1 : part < 16384 ? 2 : 3)));
	at = wasm_put(bytes, at, "\4name\1", 6);
	return put_leb(at, (uint32_t)part);
}

/* Many names: those between two marks as well, and those of functions that are not there. */
TEST(names_between_two_marks_are_found)
{
	_cleanup_(wasm_bytes__fini) struct wasm_bytes w = {};
	size_t at;

	/* function 300 + 2i is "ab" */
	at = begin_names(2 + 1000 * 5);
	at = put_leb(at, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		at = put_leb(at, 300 + 2 * i);
		at = wasm_put(bytes, at, "\2ab", 3);
	}
	size = at;
	assert_int_equal(open_module(&w), 0);
	assert_int_equal(w.marks.count, (1000 + WASM_MARK_NAMES - 1) / WASM_MARK_NAMES);
	assert_string_equal(name_of(&w, 299), "");
	for (uint32_t i = 0; i < 2000; i++)
		assert_string_equal(name_of(&w, 300 + i), i % 2 ? "" : "ab");
}

/* Functions that do not ascend, counts and lengths that are larger than the section. */
TEST(names_behind_a_damaged_one_are_left_out)
{
	struct wasm_bytes w;

	size = forge_module(bytes, "\1\x0b\3\2\1a\2\1b\7\1c", 12);
	assert_int_equal(open_module(&w), 0); /* the part is cut: no names, but a module */
	assert_string_equal(name_of(&w, 2), "");
	wasm_bytes__fini(&w);
	size = forge_module(bytes, "\1\x0a\3\2\1a\2\1b\7\1c", 12);
	assert_int_equal(open_module(&w), 0);
	assert_string_equal(name_of(&w, 2), "a");
	assert_string_equal(name_of(&w, 7), "");
	wasm_bytes__fini(&w);
	size = forge_module(bytes, "\1\x0a\xff\xff\xff\xff\x0f\2\1a\3\xff", 12);
	assert_int_equal(open_module(&w), 0);
	assert_string_equal(name_of(&w, 2), "a");
	assert_string_equal(name_of(&w, 3), "");
	wasm_bytes__fini(&w);
	/* a name of 1000 bytes in a buffer of 128 */
	memset(bytes + 1000, 'x', 2000);
	size = begin_names(1004);
	size = wasm_put(bytes, size, "\1\5\xe8\7", 4);
	memset(bytes + size, 'x', 1000);
	size += 1000;
	assert_int_equal(open_module(&w), 0);
	assert_int_equal(strlen(name_of(&w, 5)), 127);
	wasm_bytes__fini(&w);
}

/* A million sections, and imports that are said to be more than there are: the limit of reads is kept. */
TEST(a_module_beyond_the_limits_is_an_error)
{
	struct target_memory m = memory();
	struct wasm_bytes w;

	wasm_put(bytes, 0, "\0asm\1\0\0\0", 8);
	memset(bytes + 8, 0, sizeof(bytes) - 8);
	for (size = 8; size + 3 <= sizeof(bytes); size += 3)
		bytes[size + 1] = 1;
	assert_int_equal(open_module(&w), -EFBIG);
	assert_int_equal(wasm_bytes__open(&w, &m, BASE, UINT64_MAX), -EINVAL);
	assert_int_equal(wasm_bytes__open(&w, &m, UINT64_MAX - 9, 16), -EINVAL);
	size = forge_module(bytes, WASM_NAMES);
	m.reads_left = 2;
	assert_int_equal(wasm_bytes__open(&w, &m, BASE, size), -EDQUOT);
}
