/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_cases.h: tests that are inputs and outputs in tests/unit/testdata/NAME.txt. Each case is a test of cmocka, and its
 * sentence the name:
 *
 *   Text before the first '@' is a comment.
 *
 *   @verb                      the function of the test's program that gets the inputs below
 *   # A sentence begins a case
 *   input => output
 *   input of
 *   several lines
 *   	output of
 *   	several lines, a tab before each
 *   input without output
 *
 * Several inputs in a line, with " | " between them, have as many outputs (a dot is an empty one), or one if all are
 * the same. An input ends at its output, an empty line, or a line with an output. A verb holds until the next one, also within a case: what functions keep
 * between their calls lasts as long as the case (text_table.begin, .end). Bytes that are not printable are \n, \t and
 * \xNN, a backslash is \\, an empty line is a dot; \x23 and \x40 are # and @ at the begin of an input.
 *
 * UPDATE=1 writes the outputs of the program into the file, to be read in the difference before they are committed.
 */
#ifndef UNIT_TEXT_CASES_H
#define UNIT_TEXT_CASES_H

#include "unit.h"

/* A case that begins with a verb "…-as-root" is skipped without. */
struct text_verb {
	const char *name;
	/* The input may be changed. It ends with a NUL that its size, text_size, does not count. */
	void (*run)(FILE *out, char *input);
};

struct text_table {
	const char *name;
	const struct text_verb *verbs; /* up to one without a name */
	void (*begin)(void);	       /* of a case, and its end */
	void (*end)(void);
};

/* Of the input that a function has just got. */
extern size_t text_size;

/* Runs all cases of the table's file, then the tests of the program. */
int text_run(const struct text_table *table);

#define TEXT_TABLE(...)                                                                            \
	int main(void)                                                                             \
	{                                                                                          \
		return text_run(&(const struct text_table){__VA_ARGS__});                          \
	}                                                                                          \
	_Static_assert(1, "")

/*
 * An input of steps with "; " between them, or in lines: each is a name and its words, which `take` gets; false: it knows no such
 * step. What they print has ", " between.
 */
void text_run_steps(FILE *out, char *input, bool (*take)(FILE *out, const char *name, char *words));

/* The next word of a step, which it moves behind it; "" at the end. */
char *text_word(char **step);

/* The same as a number; 0 at the end. */
uint64_t text_number(char **step, int base);

/* Is `word` one of the words? And the number of "name=" among them, or `otherwise`. */
bool text_has(const char *words, const char *word);
uint64_t text_option(const char *words, const char *name, uint64_t otherwise);

/* "ok", or the error's name. */
static inline void text_put_error(FILE *out, int err)
{
	fputs(err ? strerrorname_np(-err) ?: "a strange error" : "ok", out);
}

#endif
