/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SERVICES_PROCESS_NAMES_H
#define SERVICES_PROCESS_NAMES_H

struct profile_builder;

/*
 * Sets the names of all processes by what the profile has of them, as the agent names services. If
 * no facts of processes were recorded they stay without. After the last sample. 0 or -ENOMEM.
 */
int name_processes(struct profile_builder *b);

#endif
