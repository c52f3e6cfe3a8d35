/* SPDX-License-Identifier: BSD-2-Clause */
/* Which code a mapping of a file has: elf_file__code_at() of segments that share pages, or are wrong. */
#include <elf.h>

#include "text_cases.h"
#include "elf/elf_file.h"

#include "unit/forge_elf.h"

static struct elf_file *file; /* of the running case */
static int fd;

static void end(void)
{
	if (file)
		close_image(file, fd);
	file = NULL;
}

/* "FLAGS OFFSET ADDRESS SIZE, …": segments of a file. */
static void step_segments(char *input)
{
	unsigned int count = 0;
	struct cursor c;
	struct image im;

	end();
	forge(&im, true, false);
	c = (struct cursor){&im, im.program_headers};
	for (; *input; count++) {
		const char *flags = text_word(&input);
		uint64_t offset = text_number(&input, 16), address = text_number(&input, 16),
			 size = text_number(&input, 16);

		segment(&c, PT_LOAD,
			PF_R | (strchr(flags, 'x') ? PF_X : 0) | (strchr(flags, 'w') ? PF_W : 0),
			offset, address, size, 0x1000);
	}
	assert_true(c.at <= im.notes);
	header(&im, count, 6);
	file = open_image(&im, &fd);
}

/* "OFFSET END": the run of code at that offset of a mapping up to END. */
static void step_run(FILE *out, char *input)
{
	struct elf_code code = {.address = 4711, .end = 4711};
	uint64_t offset = text_number(&input, 16), end = text_number(&input, 16);
	int err = elf_file__code_at(file, offset, end, &code);

	if (!err) {
		fprintf(out, "%" PRIx64 " up to %" PRIx64, code.address, code.end);
		return;
	}
	assert_true(code.address == 4711 && code.end == 4711);
	text_put_error(out, err);
}

/* "OFFSET SIZE END": symbols see the same code at the same addresses. */
static void step_symbols(char *input)
{
	uint64_t offset = text_number(&input, 16), size = text_number(&input, 16),
		 end = text_number(&input, 16), address;

	for (uint64_t at = offset; at < offset + size; at += 0x10) {
		struct elf_code code;

		assert_int_equal(elf_file__code_at(file, at, end, &code), 0);
		assert_int_equal(elf_file__address_of_offset(file, at, &address), 0);
		assert_int_equal(code.address, address);
		assert_int_equal(code.end, end);
	}
}

static bool take_step(FILE *out, const char *name, char *words)
{
	if (!strcmp(name, "segments"))
		step_segments(words);
	else if (!strcmp(name, "run"))
		step_run(out, words);
	else if (!strcmp(name, "symbols"))
		step_symbols(words);
	else
		return false;
	return true;
}

static void run_steps(FILE *out, char *input)
{
	text_run_steps(out, input, take_step);
}

static const struct text_verb verbs[] = {{"steps", run_steps}, {}};

TEXT_TABLE("elf_code", verbs, NULL, end);
