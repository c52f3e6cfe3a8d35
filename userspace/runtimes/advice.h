/* SPDX-License-Identifier: BSD-2-Clause */
/* What a recording lacks, as several runtimes have it. */
#ifndef RUNTIMES_ADVICE_H
#define RUNTIMES_ADVICE_H

#define NO_NAMES	"its functions have no names"
#define NO_INTERPRETED	"its functions have no names: only the interpreter's own are seen"
#define NO_TRACES	"compiled traces have no names"

#define NAMED_BY_MEMORY "functions, files and lines are read from its memory"

#endif
