/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes as tables have them, and rules of unwinding as text. */
#ifndef TESTS_UNIT_RULE_TEXT_H
#define TESTS_UNIT_RULE_TEXT_H

#include "text_cases.h"

#include "unwind/unwind_table.h"

/* Bytes in hexadecimal up to a semicolon, with "*" and a number behind those that come again. */
static inline size_t read_bytes(const char *text, uint8_t *code)
{
	size_t size = 0;

	for (char *at = (char *)text; *at && *at != ';'; at += strspn(at, " ")) {
		uint8_t byte = (uint8_t)strtoul(at, &at, 16);
		size_t count = *at == '*' ? strtoul(at + 1, &at, 10) : 1;

		memset(code + size, byte, count);
		size += count;
	}
	return size;
}

/* Where the CFA is, and what is not as usual: the return address below it, rbp in its register. */
static inline void put_rule(FILE *out, const struct unwind_rule *rule)
{
	static const char *const others[] = {[UNWIND_CFA_SIGNAL] = "signal",
					     [UNWIND_CFA_ROOT] = "root",
					     [UNWIND_CFA_UNKNOWN] = "unknown",
					     [UNWIND_CFA_STARTER] = "starter"};
	static const char *const before[UNWIND_CFA_STARTER + 1] = {[UNWIND_CFA_DEREF] = "[",
								   [UNWIND_CFA_DEREF_TWICE] = "[[",
								   [UNWIND_CFA_PLT] = "plt "};
	int offset = rule->cfa == UNWIND_CFA_DEREF_TWICE ? unwind_first_offset(rule->cfa_offset)
							 : rule->cfa_offset;

	if (rule->cfa == UNWIND_CFA_NONE || rule->cfa == UNWIND_CFA_SIGNAL ||
	    rule->cfa == UNWIND_CFA_ROOT || rule->cfa == UNWIND_CFA_UNKNOWN) {
		const struct unwind_rule alone = {.cfa = rule->cfa, .ra = rule->ra};

		assert_memory_equal(rule, &alone, sizeof(alone));
		fputs(rule->cfa != UNWIND_CFA_NONE     ? others[rule->cfa]
		      : rule->ra == UNWIND_RA_INFERRED ? "not inferred"
						       : "none",
		      out);
		return;
	}
	fputs(before[rule->cfa] ?: "", out);
	if (rule->cfa == UNWIND_CFA_FP && rule->cfa_register == UNWIND_X86_RBP)
		fprintf(out, "fp%+d", offset);
	else if (rule->cfa_register == UNWIND_X86_RSP)
		fprintf(out, "sp%+d", offset);
	else
		fprintf(out, "r%u%+d", rule->cfa_register, offset);
	if (rule->cfa == UNWIND_CFA_DEREF_TWICE)
		fprintf(out, "]%+d", unwind_second_offset(rule->cfa_offset));
	fputs(before[rule->cfa] && rule->cfa != UNWIND_CFA_PLT ? "]" : "", out);
	if (rule->cfa_addend)
		fprintf(out, "%+d", rule->cfa_addend);
	if (rule->ra == UNWIND_RA_REGISTER)
		fprintf(out, " ra=r%d", rule->ra_offset);
	else
		assert_int_equal(rule->ra_offset, -8);
	if (rule->fp == UNWIND_FP_AT_CFA)
		fprintf(out, " fp%+d", rule->fp_offset);
	else if (rule->fp == UNWIND_FP_AT_FP)
		fprintf(out, " fp at fp%+d", rule->fp_offset);
	else if (rule->fp != UNWIND_FP_SAME)
		fputs(" fp lost", out);
	if (rule->rbx)
		fprintf(out, " rbx %u", rule->rbx);
}

#endif
