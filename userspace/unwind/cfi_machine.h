/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_CFI_MACHINE_H
#define UNWIND_CFI_MACHINE_H

#include <stdint.h>

struct cfi_machine;

/* Runs to the end or to an invalid instruction. 0, or the result of `row`. */
int cfi_machine__run(struct cfi_machine *m, const uint8_t *instructions, const uint8_t *end);
/* Reports the row of the current location. */
int cfi_machine__emit_row(struct cfi_machine *m);

#endif
