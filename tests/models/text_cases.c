/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/text_cases.h"

#include "base/utf8.h"

enum { TEXT_ROWS = 2000, TEXT_CASES_MAX = 500 };

/* Places in the text of the file: of an input, and of what stands behind it up to the end of the output. */
struct text_row {
	const struct text_verb *verb;
	size_t line, input, input_end, output_end;
	char *got; /* escaped */
};

size_t text_size;

static struct {
	const struct text_table *table;
	char path[256], *text;
	struct text_row rows[TEXT_ROWS];
	size_t row_count, first[TEXT_CASES_MAX + 1], case_count;
	char *names[TEXT_CASES_MAX];
} text_file;

/* Turns, breaks or is not seen. */
static bool text_is_invisible(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202f) || (c >= 0x2060 && c <= 0x206f) ||
	       (c >= 0xe000 && c <= 0xf8ff) || c == 0xfeff || c == 0xffff || c >= 0xe0000;
}

static void text_put_escaped(FILE *out, const char *bytes, size_t size)
{
	for (size_t i = 0, length; i < size; i += length) {
		length = utf8_sequence(bytes + i, size - i);
		if (bytes[i] == '\t' || bytes[i] == '\\')
			fprintf(out, "\\%c", bytes[i] == '\t' ? 't' : '\\');
		else if (length && !text_is_invisible(utf8_code_point(bytes + i, length)) &&
			 (bytes[i] != ' ' || i + 1 < size))
			fwrite(bytes + i, 1, length, out);
		else
			for (size_t k = 0; k < (length ?: 1); k++)
				fprintf(out, "\\x%02x", (unsigned char)bytes[i + k]);
		length += !length;
	}
}

/* Lines, escaped; the last one need not end. */
static char *text_escape(const char *bytes, size_t size)
{
	char *escaped = NULL;
	size_t escaped_size;
	FILE *out = open_memstream(&escaped, &escaped_size);

	for (const char *at = bytes, *end = bytes + size, *eol; at < end; at = eol + 1) {
		eol = memchr(at, '\n', (size_t)(end - at)) ?: end;
		if (at != bytes)
			fputc('\n', out);
		if (eol == at || (eol == at + 1 && *at == '.'))
			fputs(eol == at ? "." : "\\x2e", out);
		text_put_escaped(out, at, (size_t)(eol - at));
	}
	fclose(out);
	return escaped;
}

static char *text_unescape(const char *at, size_t escaped_size, size_t *size)
{
	const char *end = at + escaped_size;
	char *bytes = malloc(escaped_size + 1), *to = bytes;
	bool begins = true; /* a line */

	for (; at < end; at++) {
		if (*at == '.' && begins && (at + 1 == end || at[1] == '\n')) {
			continue;
		} else if (*at != '\\') {
			*to++ = *at;
		} else if (*++at == 'x') {
			*to++ = (char)strtoul((char[]){at[1], at[2], '\0'}, NULL, 16);
			at += 2;
		} else {
			*to++ = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
		}
		begins = to > bytes && at[0] == '\n';
	}
	*to = '\0';
	*size = (size_t)(to - bytes);
	return bytes;
}

char *text_word(char **step)
{
	char *word = *step + strspn(*step, " "), *end = word + strcspn(word, " ");

	*step = end + (*end == ' ');
	*end = '\0';
	return word;
}

uint64_t text_number(char **step, int base)
{
	return strtoull(text_word(step), NULL, base);
}

/* Behind it; NULL: it is not there. */
static const char *text_find_word(const char *words, const char *word)
{
	for (const char *at = words; (at = strstr(at, word)) != NULL; at++)
		if (at == words || at[-1] == ' ')
			return at + strlen(word);
	return NULL;
}

bool text_has(const char *words, const char *word)
{
	const char *end = text_find_word(words, word);

	return end && (!*end || *end == ' ');
}

uint64_t text_option(const char *words, const char *name, uint64_t otherwise)
{
	const char *value = text_find_word(words, name);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

void text_run_steps(FILE *out, char *input, bool (*take)(FILE *out, const char *name, char *words))
{
	bool printed = false;

	for (char *step = input, *next; step; step = next) {
		char *text = NULL, *name;
		size_t size;
		FILE *of_step = open_memstream(&text, &size);

		next = strstr(step, "; ");
		if (next)
			*next = '\0', next += 2;
		name = text_word(&step);
		if (!take(of_step, name, step))
			fprintf(of_step, "no step '%s'", name);
		fclose(of_step);
		fprintf(out, "%s%s", printed && size ? ", " : "", text);
		printed |= size > 0;
		free(text);
	}
}

/* The output that the file has, without its tabs. */
static char *text_expected(const struct text_row *row)
{
	const char *at = text_file.text + row->input_end, *end = text_file.text + row->output_end;
	char *text = calloc(1, (size_t)(end - at) + 1), *to = text;

	if (end - at == 5 && at[4] == '.') /* nothing */
		return text;
	if (at < end && *at == ' ')
		return memcpy(text, at + 4, (size_t)(end - at) - 4);
	for (at += at < end; at < end; at++) /* "\n\t" */
		if (*at != '\t')
			*to++ = *at;
	return text;
}

static char *text_run_input(const struct text_verb *verb, const char *escaped, size_t length)
{
	char *bytes = NULL, *input = text_unescape(escaped, length, &text_size), *got;
	size_t size = 0;
	FILE *out = open_memstream(&bytes, &size);

	verb->run(out, input);
	fclose(out);
	got = text_escape(bytes, size);
	free(bytes);
	free(input);
	return got;
}

/* Those of a line, one after the other: their outputs, or the one that all have. */
static char *text_run_inputs(const struct text_verb *verb, const char *at, size_t length)
{
	const char *end = at + length, *bar = memmem(at, length, " | ", 3);
	char *all = NULL, *first, *got;
	bool alike = true;
	size_t size;
	FILE *out;

	if (!bar || memchr(at, '\n', length))
		return text_run_input(verb, at, length);
	out = open_memstream(&all, &size);
	first = text_run_input(verb, at, (size_t)(bar - at));
	fputs(*first ? first : ".", out);
	while (bar) {
		at = bar + 3;
		bar = memmem(at, (size_t)(end - at), " | ", 3);
		got = text_run_input(verb, at, (size_t)((bar ?: end) - at));
		fprintf(out, " | %s", *got ? got : ".");
		alike &= !strcmp(got, first);
		free(got);
	}
	fclose(out);
	if (alike)
		free(all);
	else
		free(first);
	return alike ? first : all;
}

static bool text_row_passes(struct text_row *row)
{
	size_t length = row->input_end - row->input;
	char *expected = text_expected(row);
	bool same;

	row->got = text_run_inputs(row->verb, text_file.text + row->input, length);
	same = !strcmp(row->got, expected);
	if (!same)
		print_error("%s:%zu: %s\n%.*s\n---- expected:\n%s\n---- got:\n%s\n----\n",
			    text_file.path, row->line, row->verb->name, (int)length,
			    text_file.text + row->input, expected, row->got);
	free(expected);
	return same;
}

/* Where changes are tested, outputs are compared. */
static bool is_update(void)
{
	return getenv("UPDATE") && !getenv("CI");
}

static void text_case_test(void **state)
{
	const size_t *first = *state;
	bool pass = true;

	if (geteuid() && strstr(text_file.rows[first[0]].verb->name, "-as-root")) {
		print_message("needs root\n");
		skip();
	}
	if (text_file.table->begin)
		text_file.table->begin();
	for (size_t i = first[0]; i < first[1]; i++)
		pass &= text_row_passes(&text_file.rows[i]);
	if (text_file.table->end)
		text_file.table->end();
	assert_true(pass || is_update());
}

static bool text_mistake(size_t line, const char *what)
{
	print_error("%s:%zu: %s\n", text_file.path, line, what);
	return false;
}

static const struct text_verb *text_verb_named(const char *name, size_t size)
{
	const struct text_verb *verb = text_file.table->verbs;

	while (verb->name && (strlen(verb->name) != size || memcmp(verb->name, name, size)))
		verb++;
	return verb->name ? verb : NULL;
}

/* A line of an input or output. */
static bool text_take_line(const struct text_verb *verb, size_t line, size_t at, size_t end,
			   bool continues)
{
	struct text_row *row = &text_file.rows[text_file.row_count - continues];
	const char *arrow = memmem(text_file.text + at, end - at, " => ", 4);
	bool output = text_file.text[at] == '\t';

	if (!text_file.case_count || !verb)
		return text_mistake(line, "not in a case of a verb");
	if (output && !continues)
		return text_mistake(line, "an output without an input");
	if (!continues) {
		if (text_file.row_count++ == TEXT_ROWS)
			return text_mistake(line, "too many rows");
		*row = (struct text_row){.verb = verb, .line = line, .input = at};
		text_file.first[text_file.case_count] = text_file.row_count;
	}
	row->output_end = end;
	if (!output)
		row->input_end = arrow ? (size_t)(arrow - text_file.text) : end;
	return true;
}

static bool text_begin_case(size_t line, const char *name, size_t size)
{
	size_t n = text_file.case_count;

	if (n && text_file.first[n] == text_file.first[n - 1])
		return text_mistake(line, "the case before has no row");
	if (n == TEXT_CASES_MAX)
		return text_mistake(line, "too many cases");
	text_file.names[n] = strndup(name, size);
	text_file.first[n] = text_file.row_count;
	text_file.first[++text_file.case_count] = text_file.row_count;
	return true;
}

static bool text_file__parse(void)
{
	const char *text = text_file.text;
	const struct text_verb *verb = NULL;
	bool begun = false, continues = false, good = true;
	size_t line = 1;

	for (size_t at = 0, end; text[at] && good; at = end + 1, line++) {
		const struct text_row *row = &text_file.rows[text_file.row_count - continues];

		end = at + strcspn(text + at, "\n");
		begun |= text[at] == '@';
		/* an input behind an output, or with one in its line, is the next one */
		if (continues && text[at] != '\t' &&
		    (row->output_end > row->input_end || memmem(text + at, end - at, " => ", 4)))
			continues = false;
		if (!text[end]) {
			good = text_mistake(line, "the last line does not end");
		} else if (!begun || at == end) {
			continues = false;
		} else if (text[at] == '@') {
			verb = text_verb_named(text + at + 1, end - at - 1);
			good = verb || text_mistake(line, "no such verb");
			continues = false;
		} else if (text[at] == '#') {
			good = end > at + 2 && text_begin_case(line, text + at + 2, end - at - 2);
			continues = false;
		} else {
			good = text_take_line(verb, line, at, end, continues);
			continues = true;
		}
	}
	if (good && (!text_file.case_count || text_file.first[text_file.case_count] ==
						      text_file.first[text_file.case_count - 1]))
		good = text_mistake(line, "no case, or one without a row");
	return good;
}

static char *text_read(const char *path)
{
	FILE *in = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	if (in && getdelim(&text, &size, '\0', in) < 0)
		*text = '\0';
	if (in)
		fclose(in);
	return text;
}

static void text_put_output(FILE *out, const struct text_row *row)
{
	bool one_line = !memchr(text_file.text + row->input, '\n', row->input_end - row->input) &&
			!strchr(row->got, '\n');

	if (one_line && (*row->got || text_file.text[row->input_end] == ' '))
		fprintf(out, " => %s", *row->got ? row->got : ".");
	for (const char *at = row->got; *at && !one_line; at += strcspn(at, "\n"), at += !!*at)
		fprintf(out, "\n\t%.*s", (int)strcspn(at, "\n"), at);
}

static void text_write_outputs(void)
{
	FILE *out = fopen(text_file.path, "we");
	size_t at = 0;

	assert_non_null(out);
	for (size_t i = 0; i < text_file.row_count; i++) {
		const struct text_row *row = &text_file.rows[i];

		if (!row->got)
			continue;
		fwrite(text_file.text + at, 1, row->input_end - at, out);
		text_put_output(out, row);
		at = row->output_end;
	}
	fputs(text_file.text + at, out);
	fclose(out);
}

static bool text_verb_has_row(const struct text_verb *verb)
{
	for (size_t i = 0; i < text_file.row_count; i++)
		if (text_file.rows[i].verb == verb)
			return true;
	print_error("%s: no row of %s\n", text_file.path, verb->name);
	return false;
}

int text_run(const struct text_table *table)
{
	static struct CMUnitTest tests[TEXT_CASES_MAX];
	int failed;

	text_file.table = table;
	snprintf(text_file.path, sizeof(text_file.path), "tests/unit/testdata/%s.txt", table->name);
	text_file.text = text_read(text_file.path);
	if (!text_file.text || !text_file__parse()) {
		print_error("%s: no tests\n", text_file.path);
		return 1;
	}
	for (size_t i = 0; i < text_file.case_count; i++)
		tests[i] = (struct CMUnitTest){.name = text_file.names[i],
					       .test_func = text_case_test,
					       .initial_state = &text_file.first[i]};
	failed = _cmocka_run_group_tests(table->name, tests, text_file.case_count, NULL, NULL);
	failed += run_unit_tests();
	for (const struct text_verb *verb = table->verbs; verb->name; verb++)
		failed += !text_verb_has_row(verb);
	if (is_update())
		text_write_outputs();
	for (size_t i = 0; i < text_file.row_count; i++)
		free(text_file.rows[i].got);
	for (size_t i = 0; i < text_file.case_count; i++)
		free(text_file.names[i]);
	free(text_file.text);
	return failed != 0;
}
