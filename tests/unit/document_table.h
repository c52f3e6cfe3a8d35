/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of docs/SECURITY.md that a test's program prints with --print (tests/doc-tables.sh), and the test that the document has it.
 */
#ifndef TESTS_UNIT_DOCUMENT_TABLE_H
#define TESTS_UNIT_DOCUMENT_TABLE_H

#include "unit.h"
#include "base/cleanup.h"
#include "base/io.h"

static inline void assert_documented(void (*print)(FILE *out))
{
	_cleanup_free_ char *text = NULL, *table = NULL;
	size_t size, length;
	FILE *out = open_memstream(&table, &length);

	fprintf(out, "<!-- table: build/tests/unit/%s --print -->\n",
		program_invocation_short_name);
	print(out);
	fputs("<!-- end of table -->\n", out);
	fclose(out);
	assert_int_equal(read_file_at(AT_FDCWD, "docs/SECURITY.md", 1 << 20, &text, &size), 0);
	if (!strstr(text, table))
		fail_msg("docs/SECURITY.md has not what %s --print prints: make format",
			 program_invocation_short_name);
}

#define DOCUMENT_TABLE(print)                                                                      \
	TEST(the_document_has_the_table)                                                           \
	{                                                                                          \
		assert_documented(print);                                                          \
	}                                                                                          \
                                                                                                   \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		if (argc != 2 || strcmp(argv[1], "--print"))                                       \
			return run_unit_tests();                                                   \
		print(stdout);                                                                     \
		return 0;                                                                          \
	}                                                                                          \
	_Static_assert(1, "")

#endif
