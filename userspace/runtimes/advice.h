/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences about what a recording lacks, for several runtimes. */
#ifndef RUNTIMES_ADVICE_H
#define RUNTIMES_ADVICE_H

#define NO_NAMES	"its functions have no names"
#define NO_INTERPRETED	"its functions have no names: only the interpreter's own are seen"
#define NO_TRACES	"compiled traces have no names"

#define NAMED_BY_MEMORY "functions, files and lines are read from its memory"

#endif
