/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of kernel code that comes and goes, by the time of the sample: testdata/kernel_history.txt. */
#include <sysprof/symbolizer.h>

#include "base/cleanup.h"
#include "symbolize/kallsyms.h"
#include "symbolize/kernel_history.h"
#include "symbolize/symbolize.h"
#include "text_cases.h"

static struct symbolizer *symbolizer;

static void begin(void)
{
	static const char image[] = "ffffffff81000000 T _stext\n"
				    "ffffffff81000000 T first\n"
				    "ffffffff81000200 T _etext\n"
				    "ffffffffc0000000 t old\t[gone]\n"
				    "ffffffffc0100000 t early\t[bpf]\n"
				    "ffffffffc0100100 t near\t[bpf]\n";

	symbolizer = symbolizer__new();
	assert_int_equal(symbolizer__add_kallsyms(symbolizer, image, sizeof(image) - 1), 0);
}

static void end(void)
{
	symbolizer__free(symbolizer);
}

static int put_name(void *context, size_t index, const struct symbol_result *result)
{
	fputs(result->frame_count ? result->frames[0].function : "none", context);
	if (result->frame_count)
		fprintf(context, " %llx+%llx",
			(unsigned long long)result->frames[0].function_address & 0xfffffff,
			(unsigned long long)result->frames[0].function_size);
	return 0;
}

/* "ADDRESS TIME" or "ADDRESS TIME-UNTIL"; addresses without their upper half. */
static void look_up(FILE *out, char *input)
{
	struct kernel_times times;
	uint64_t address = 0xffffffff00000000 | strtoull(input, &input, 16);

	times.from = times.until = strtoull(input, &input, 10);
	if (*input == '-')
		times.until = strtoull(input + 1, NULL, 10);
	assert_int_equal(symbolizer__kernel_function(symbolizer, 0, address, &times, put_name, out),
			 0);
}

/* "TIME lines" */
static void change(char *input, struct kallsyms_piece piece)
{
	piece.time = strtoull(input, &input, 10);
	piece.text = input + (*input == ' ');
	piece.size = strlen(piece.text);
	assert_int_equal(symbolizer__change_kallsyms(symbolizer, &piece), 0);
}

/* "TIME + START END NAME [MODULE]", or with "-". */
static void report_code(FILE *out, char *input)
{
	unsigned int start, end;
	char text[256], sign, name[64], module[64];
	unsigned int time;

	assert_int_equal(
		sscanf(input, "%u %c %x %x %63s %63s", &time, &sign, &start, &end, name, module),
		6);
	snprintf(text, sizeof(text), "%u ffffffff%08x %c %s\t%s\nffffffff%08x a end\t%s\n", time,
		 start, *name == '-' ? 'a' : 't', name, module, end, module);
	change(text, (struct kallsyms_piece){.has_gone = sign == '-'});
}

static void report_text(FILE *out, char *input)
{
	change(input, (struct kallsyms_piece){});
}

static void read_all(FILE *out, char *input)
{
	change(input, (struct kallsyms_piece){.is_reading = true, .begins = true, .ends = true});
}

/* "COUNT STEP": so many programs, each that far behind the one before; STEP 0: where that one was. */
static void report_many(FILE *out, char *input)
{
	unsigned int count = strtoul(input, &input, 10), step = strtoul(input, NULL, 16);
	char line[64];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(line, sizeof(line), "%u + %x %x many [bpf]", i, 0xc0200000 + i * step,
			 0xc0200040 + i * step);
		report_code(out, line);
	}
	fputs(symbolize_kernel_left(symbolizer) ? "left" : "all", out);
}

static void forget(FILE *out, char *input)
{
	symbolizer__end_window(symbolizer, strtoull(input, NULL, 10));
}

static const struct text_verb verbs[] = {{"at", look_up},
					 {"code", report_code},
					 {"text", report_text},
					 {"read", read_all},
					 {"forget", forget},
					 {"many", report_many},
					 {}};

TEXT_TABLE("kernel_history", verbs, begin, end);

TEST(look_ups_over_the_limit_of_searches_give_no_names)
{
	struct kernel_function f = {.name = "wide", .module = "m", .size = 0x4000000};
	_cleanup_(kernel_history__fini) struct kernel_history h = {};
	const struct kernel_span *span = NULL;
	unsigned int count = 0;

	for (f.address = 0x1000; f.address < 0x1000 + 8000 * 16; f.address += 16)
		assert_int_equal(kernel_history__keep(&h, &f, 0, 100), 0);
	do
		span = kernel_history__at(&h, 0x3000000, 50);
	while (span && count++ < 10000);
	assert_null(span);
	assert_int_equal(count, (16u << 20) / 8000);
	assert_true(h.left);
	assert_true(kernel_history__changed(&h, 0x3000000, 10, 20));
	kernel_history__forget(&h, 99);
	assert_false(h.left);
	assert_non_null(kernel_history__at(&h, 0x3000000, 99));
	assert_false(kernel_history__changed(&h, 0x3000000, 10, 20));
}

/* Each one overlaps all that came before. */
TEST(reports_over_the_limit_of_searches_give_no_names)
{
	static const struct kernel_code all = {
		.start = 0x1000, .end = 0x4000000, .name = "all", .name_size = 3};
	_cleanup_(kernel_history__fini) struct kernel_history h = {};
	struct kernel_code code = all;

	for (uint64_t i = 1; i <= 8000; i++) {
		code.start = 0x1000000 - 0x100 * i;
		assert_int_equal(kernel_history__add(&h, &code, i), 0);
	}
	assert_true(h.left);
	assert_non_null(kernel_history__at(&h, 0x1000000 - 0x100, 1));
	assert_null(kernel_history__at(&h, 0x1000000 - 0x100, 8000));
	kernel_history__forget(&h, 8000);
	assert_false(h.left);
	assert_null(kernel_history__at(&h, 0x1000000 - 0x100, 8001));
	assert_int_equal(kernel_history__add(&h, &all, 8002), 0);
	assert_non_null(kernel_history__at(&h, 0x2000, 8002));
}
