/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions of x86-64: their sizes, where they lead, what they do to the stack pointer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "elf/x86_code.h"

#define RAX 0
#define RBX 3
#define R11 11
#define ANY 0xff

struct example {
	const char *code;
	uint8_t size;
	enum x86_effect effect;
	uint8_t reg;	/* ANY: no matter */
	int32_t amount; /* where an effect has one */
	uint16_t writes;
};

static const struct example EXAMPLES[] = {
	{"\x90", 1, X86_PADDING, ANY, 0, 0},
	{"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 10, X86_PADDING, ANY, 0, 0},
	{"\x53", 1, X86_PUSH, RBX, 0, 0},
	{"\x41\x53", 2, X86_PUSH, R11, 0, 0},
	{"\x5d", 1, X86_POP, X86_RBP, 0, 1 << X86_RBP},
	{"\x5c", 1, X86_LOSE_SP, ANY, 0, 0},
	{"\x6a\x01", 2, X86_PUSH, X86_NO_REGISTER, 0, 0},
	{"\x68\x01\x00\x00\x00", 5, X86_PUSH, X86_NO_REGISTER, 0, 0},
	{"\xff\x34\x25\x00\x00\x00\x00", 7, X86_PUSH, X86_NO_REGISTER, 0, 0},
	{"\x48\x83\xec\x18", 4, X86_ADD_SP, ANY, -0x18, 0},
	{"\x48\x81\xc4\x50\x02\x00\x00", 7, X86_ADD_SP, ANY, 0x250, 0},
	{"\x48\x8d\x64\x24\xb8", 5, X86_ADD_SP, ANY, -0x48, 0},
	{"\x48\x83\xe4\xe0", 4, X86_LOSE_SP, ANY, 0, 0},
	{"\x83\xec\x18", 3, X86_LOSE_SP, ANY, 0, 0},
	{"\x49\x89\xe3", 3, X86_COPY_SP, R11, 0, 1 << R11},
	{"\x48\x8d\x44\x24\x08", 5, X86_COPY_SP, RAX, 8, 1 << RAX},
	{"\x4c\x89\xdc", 3, X86_SET_SP, R11, 0, 0},
	{"\x49\x8b\xe3", 3, X86_SET_SP, R11, 0, 0},
	{"\x48\x8d\x65\xd8", 4, X86_SET_SP, X86_RBP, -0x28, 0},
	{"\x48\x8b\x64\x24\x50", 5, X86_LOAD_SP, X86_RSP, 0x50, 0},
	{"\x48\x8b\x6c\x24\x18", 5, X86_LOAD, X86_RBP, 0x18, 1 << X86_RBP},
	{"\x48\x8b\x6d\x00", 4, X86_LOAD_FP, X86_RBP, 0, 1 << X86_RBP},
	{"\x49\x8b\x6d\x00", 4, X86_PLAIN, ANY, 0, 1 << X86_RBP}, /* what is at r13 */
	{"\x48\x89\x6c\x24\x18", 5, X86_STORE, X86_RBP, 0x18, 0},
	{"\x89\x6c\x24\x18", 4, X86_PLAIN, ANY, 0, 0},
	{"\x48\x89\x6c\x04\x18", 5, X86_PLAIN, ANY, 0, 0}, /* with an index */
	{"\xc9", 1, X86_LEAVE, ANY, 0, 1 << X86_RBP},
	{"\xe8\x10\x00\x00\x00", 5, X86_CALL, ANY, 0x10, 0},
	{"\xe8\x00\x00\x00\x00", 5, X86_PUSH, X86_NO_REGISTER, 0, 0},
	{"\xff\x54\x24\x08", 4, X86_CALL, ANY, 0, 0},
	{"\xff\xe0", 2, X86_JUMP_AWAY, ANY, 0, 0},
	{"\x3e\xff\xe0", 3, X86_JUMP_AWAY, ANY, 0, 0},
	{"\xeb\xfe", 2, X86_JUMP, ANY, -2, 0},
	{"\xe9\x00\x01\x00\x00", 5, X86_JUMP, ANY, 0x100, 0},
	{"\x7f\xf0", 2, X86_BRANCH, ANY, -16, 0},
	{"\x0f\x84\x00\x01\x00\x00", 6, X86_BRANCH, ANY, 0x100, 0},
	{"\xe3\x02", 2, X86_BRANCH, ANY, 2, 0},
	{"\xc3", 1, X86_RETURN, ANY, 0, 0},
	{"\xf3\xc3", 2, X86_RETURN, ANY, 0, 0},
	{"\xc2\x08\x00", 3, X86_RETURN, ANY, 0, 0},
	{"\x0f\x0b", 2, X86_STOP, ANY, 0, 0},
	{"\xf3\x0f\x1e\xfa", 4, X86_PLAIN, ANY, 0, 0},
	{"\x31\xed", 2, X86_PLAIN, ANY, 0, 1 << X86_RBP},
	{"\x39\xed", 2, X86_PLAIN, ANY, 0, 0},
	{"\x0f\x6f\xee", 3, X86_PLAIN, ANY, 0, 0}, /* movq %mm6,%mm5: no such register */
	{"\xb5\x01", 2, X86_PLAIN, ANY, 0, 2},	   /* mov $1,%ch */
	{"\x40\xb5\x01", 3, X86_PLAIN, ANY, 0, 1 << X86_RBP},
	{"\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10, X86_PLAIN, ANY, 0, 1},
	{"\x66\xb8\x01\x02", 4, X86_PLAIN, ANY, 0, 1},
	{"\xf6\xc1\x01", 3, X86_PLAIN, ANY, 0, 0},
	{"\xf7\xd9", 2, X86_PLAIN, ANY, 0, 2},
	{"\x48\xa1\x01\x02\x03\x04\x05\x06\x07\x08", 10, X86_PLAIN, ANY, 0, 5},
	{"\xc5\xf8\x77", 3, X86_PLAIN, ANY, 0, 0},
	{"\xc5\xfd\x7f\x44\x24\x20", 6, X86_PLAIN, ANY, 0, 0},
	{"\xc4\xe2\xd0\xf2\xec", 5, X86_PLAIN, ANY, 0, 1 << X86_RBP | 1 << 5}, /* andn */
	{"\xc4\xe3\x7d\x19\xc1\x01", 6, X86_PLAIN, ANY, 0, 0},
	{"\x62\xf1\x7c\x48\x28\x44\x24\x01", 8, X86_PLAIN, ANY, 0, 0},
	{"\x8f\xe8\x78\xa2\xc1\x20", 6, X86_PLAIN, ANY, 0, 0}, /* vpcmov of XOP */
	{"\x0f\x3a\x0f\xc1\x08", 5, X86_PLAIN, ANY, 0, 0},
	{"\x0f\xb2\x28", 3, X86_PLAIN, ANY, 0, 1 << X86_RBP}, /* lss (%rax),%ebp */
	{"\xc4\xe2\x71\xe6\x2a", 5, X86_PLAIN, ANY, 0,
	 1 << X86_RBP | 2}, /* cmpbexadd %ecx,%ebp,(%rdx) */
	{"\xc8\x10\x00\x00", 4, X86_LOSE_SP, ANY, 0, 0},
	{"\x48\x94", 2, X86_LOSE_SP, ANY, 0, 1}, /* xchg %rsp,%rax */
};

static void size_effect_and_writes_of_instructions_are_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(EXAMPLES) / sizeof(*EXAMPLES); i++) {
		const struct example *e = &EXAMPLES[i];
		const uint8_t *code = (const uint8_t *)e->code;
		struct x86_instruction in;

		if (!x86_decode(code, e->size, &in))
			fail_msg("example %zu is not decoded", i);
		if (in.size != e->size || in.effect != e->effect || in.writes != e->writes ||
		    (e->reg != ANY && in.reg != e->reg) || (e->amount && in.amount != e->amount))
			fail_msg("example %zu: %u bytes, effect %u, reg %u, amount %d, writes %#x",
				 i, in.size, in.effect, in.reg, in.amount, in.writes);
		for (size_t size = 0; size < e->size; size++) /* prefixes of prefixes may be one */
			assert_true(!x86_decode(code, size, &in) || in.size <= size);
	}
}

static void invalid_codes_and_endless_prefixes_are_not_decoded(void **state)
{
	static const char *const BAD[] = {"\x06", "\x0f\x04", "\x62\xf7\x00\x00\x00", "\x9a",
					  "\xea"};
	uint8_t prefixes[32];
	struct x86_instruction in;

	(void)state;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++)
		assert_false(x86_decode((const uint8_t *)BAD[i], strlen(BAD[i]), &in));
	memset(prefixes, 0x66, sizeof(prefixes));
	assert_false(x86_decode(prefixes, sizeof(prefixes), &in));
	assert_false(x86_decode(prefixes, 0, &in));
}

/* Whatever it is, it ends within what there is, and within 15 bytes. */
static void a_decoded_instruction_ends_within_its_bytes(void **state)
{
	struct x86_instruction in;

	(void)state;
	srandom(1);
	for (int i = 0; i < 300000; i++) {
		size_t size = (size_t)(random() % 20);
		uint8_t *exact = malloc(size + 1); /* a reader of more is seen by sanitizers */

		assert_non_null(exact);
		for (size_t k = 0; k < size; k++)
			exact[k] = (uint8_t)random();
		if (x86_decode(exact, size, &in)) {
			assert_true(in.size && in.size <= size && in.size <= X86_SIZE_MAX);
			assert_true(in.effect <= X86_STOP && in.reg <= X86_NO_REGISTER);
		}
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_effect_and_writes_of_instructions_are_decoded),
		cmocka_unit_test(invalid_codes_and_endless_prefixes_are_not_decoded),
		cmocka_unit_test(a_decoded_instruction_ends_within_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
