/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What users of perf and samply type, and what the same is here. One table, so that each spelling
 * that this program does not have is refused with the line to write instead.
 */
#ifndef CLI_HABITS_H
#define CLI_HABITS_H

/*
 * The sentence for a word of another tool: an option as it was spelled, without its value ("-G",
 * "--rate"), of `command`; or with `command` NULL a command ("script"). NULL: there is none.
 */
const char *habit__find(const char *command, const char *word);

#endif
