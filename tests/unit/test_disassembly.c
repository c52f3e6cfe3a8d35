/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of instructions: testdata/disassembly.txt, and code that is none. */
#include <elf.h>

#include "rule_text.h"
#include "text_cases.h"

#include "elf/disassembly.h"

#define START 0x401000

static void print(FILE *out, char *input, uint16_t machine, enum disassembly_syntax syntax)
{
	uint8_t code[256];
	const struct disassembly_request request = {.code = code,
						    .size = read_bytes(input, code),
						    .address = START,
						    .machine = machine,
						    .syntax = syntax};
	struct disassembly d = {};
	int err = disassemble(&request, &d);

	if (err)
		fputs(disassembly_strerror(err), out);
	for (size_t i = 0; i < d.count; i++) {
		fprintf(out, "%s%" PRIu32 " %s", i ? "; " : "", d.data[i].size,
			disassembly__text(&d, i));
		if (d.data[i].target != DISASSEMBLY_NO_JUMP)
			fprintf(out, " -> %" PRIx64, d.data[i].target);
	}
	disassembly__fini(&d);
}

static void print_intel(FILE *out, char *input)
{
	print(out, input, EM_X86_64, SYNTAX_INTEL);
}

static void print_att(FILE *out, char *input)
{
	print(out, input, EM_X86_64, SYNTAX_ATT);
}

static void print_arm64(FILE *out, char *input)
{
	print(out, input, EM_AARCH64, SYNTAX_INTEL);
}

static void print_other(FILE *out, char *input)
{
	print(out, input, EM_RISCV, SYNTAX_INTEL);
}

static void assert_covered(const struct disassembly *d, size_t size)
{
	size_t end = 0;

	for (size_t i = 0; i < d->count; i++) {
		assert_int_equal(d->data[i].offset, end);
		assert_true(d->data[i].size && *disassembly__text(d, i));
		end += d->data[i].size;
	}
	assert_int_equal(end, size);
}

TEST(random_bytes_are_covered)
{
	static const uint16_t machines[] = {EM_X86_64, EM_AARCH64};
	uint8_t code[4093];
	uint64_t seed = 1;

	for (int i = 0; i < 64; i++) {
		struct disassembly d = {};

		for (size_t k = 0; k < sizeof(code); k++)
			code[k] = (uint8_t)next_random(&seed);
		assert_int_equal(
			disassemble(&(struct disassembly_request){.code = code,
								  .size = sizeof(code),
								  .address = next_random(&seed),
								  .machine = machines[i % 2],
								  .syntax = i / 2 % 2},
				    &d),
			0);
		assert_covered(&d, sizeof(code));
		disassembly__fini(&d);
	}
}

/* capstone 4 takes rax for a vector register: that is worse than no text. */
TEST(a_wrong_index_is_not_shown)
{
	static const uint8_t code[] = {0x62, 0xf3, 0x75, 0x22, 0x1f, 0x4c, 0x06, 0xff, 0x00, 0x90};
	struct disassembly d = {};

	assert_int_equal(disassemble(&(struct disassembly_request){.code = code,
								   .size = sizeof(code),
								   .machine = EM_X86_64},
				     &d),
			 0);
	assert_covered(&d, sizeof(code));
	assert_int_equal(d.count, 2);
	assert_true(strstr(disassembly__text(&d, 0), "rsi + rax - 0x20") ||
		    !strncmp(disassembly__text(&d, 0), ".byte 0x62, 0xf3", 16));
	disassembly__fini(&d);
}

TEST(no_code_has_no_instructions_and_too_much_is_refused)
{
	struct disassembly_request request = {.machine = EM_X86_64};
	struct disassembly d = {};

	assert_int_equal(disassemble(&request, &d), 0);
	assert_int_equal(d.count, 0);
	disassembly__fini(&d);
	request.size = DISASSEMBLY_SIZE_MAX + 1;
	assert_int_equal(disassemble(&request, &d), -EFBIG);
}

static const struct text_verb verbs[] = {{"intel", print_intel},
					 {"att", print_att},
					 {"arm64", print_arm64},
					 {"other", print_other},
					 {}};

TEXT_TABLE("disassembly", verbs, NULL, NULL);
