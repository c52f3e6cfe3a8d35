/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of source files, and the memo that keeps them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "symbolize/dwarf_sources.h"
#include "symbolize/memo.h"
#include "symbolize/module_private.h"
#include "symbolize/dwarf_private.h"

static void only_absolute_source_paths_are_normalized(void **state)
{
	static const struct {
		const char *directory, *name, *path;
	} cases[] = {
		{"/a/b", "c.c", "/a/b/c.c"},
		{"/a/b", "../c.c", "/a/c.c"},
		{"/a/b/", "./c//d/../e.c", "/a/b/c/e.c"},
		{"/a/b", "/x/./y/../z.c", "/x/z.c"},
		{NULL, "/a/b/../c", "/a/c"},
		{NULL, "//a///b", "/a/b"},
		{NULL, "/../../a", "/a"},
		{"/a", "../../../b", "/b"},
		{"/", "..", "/"},
		{NULL, "/", "/"},
		{NULL, "a/../b.c", "a/../b.c"},
		{NULL, "./b.c", "./b.c"},
		{"", "b.c", "b.c"},
		{"src", "b.c", "src/b.c"},
		{".", "../b.c", "./../b.c"},
		{"/a/.b", "..c/...", "/a/.b/..c/..."},
		{"/a", "b/", "/a/b"},
		{"/a", "", "/a"},
	};
	char buffer[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
			source_path(cases[i].directory, cases[i].name, buffer, sizeof(buffer)), 0);
		assert_string_equal(buffer, cases[i].path);
	}
}

static void a_path_longer_than_the_buffer_is_an_error(void **state)
{
	char buffer[8];

	(void)state;
	assert_int_equal(source_path("/abc", "def", buffer, sizeof(buffer)), -ENAMETOOLONG);
	assert_int_equal(source_path("/abc", "de", buffer, sizeof(buffer)), 0);
	assert_string_equal(buffer, "/abc/de");
	assert_int_equal(source_path("abc", "defg", buffer, sizeof(buffer)), -ENAMETOOLONG);
	assert_int_equal(source_path(NULL, "/abc/../def", buffer, sizeof(buffer)), 0);
	assert_string_equal(buffer, "/def");
}

static void equal_texts_of_different_keys_are_kept_once(void **state)
{
	struct memo *m = memo__new();
	char places[1000];
	const char *first;

	(void)state;
	assert_non_null(m);
	assert_null(memo__get(m, &places[0]));
	first = memo__put(m, &places[0], "text");
	assert_string_equal(first, "text");
	for (size_t i = 1; i < sizeof(places); i++)
		assert_ptr_equal(memo__put(m, &places[i], i % 2 ? "text" : "other") == first,
				 i % 2);
	assert_ptr_equal(memo__get(m, &places[0]), first);
	assert_ptr_equal(memo__get(m, &places[999]), first);
	assert_string_equal(memo__get(m, &places[998]), "other");
	memo__free(m);
	memo__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_absolute_source_paths_are_normalized),
		cmocka_unit_test(a_path_longer_than_the_buffer_is_an_error),
		cmocka_unit_test(equal_texts_of_different_keys_are_kept_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
