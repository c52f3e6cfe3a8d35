/* SPDX-License-Identifier: BSD-2-Clause */
/* One look-up in an unwind table, as the walks do it. */
#ifndef MODELS_UNWIND_FIND_H
#define MODELS_UNWIND_FIND_H

#include <stdint.h>

#include <sysprof/unwind_table.h>

/* The rule for an ELF virtual address, in a segment at `segment`. Never NULL: there is one without a rule. */
const struct unwind_rule *unwind_table__find(const void *segment, const struct unwind_table *table,
					     uint64_t address);

#endif
