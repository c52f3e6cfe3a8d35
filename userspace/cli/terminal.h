/* SPDX-License-Identifier: BSD-2-Clause */
/* What the terminal that standard output goes to can show, if it goes to one. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>

struct terminal {
	bool color; /* standard output is a terminal with colours, and NO_COLOR is not set */
	bool utf8;  /* by the locale, terminal or not */
	unsigned int width; /* columns; 0: no terminal */
};

void terminal__init(struct terminal *terminal);

#endif
