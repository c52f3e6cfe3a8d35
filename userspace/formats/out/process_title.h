/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process is called where there is room for one name. */
#ifndef FORMATS_OUT_PROCESS_TITLE_H
#define FORMATS_OUT_PROCESS_TITLE_H

#include <sysprof/profile.h>

#define PROCESS_TITLE_SIZE 256

struct json_writer;

/*
 * "OrderService (java, shop/api-7f9)": its service, its program, and its pod, container or unit,
 * each once; long ones are cut. The program alone, in any length, if there is nothing else.
 */
const char *process_title(const struct profile *p, const struct profile_process *process,
			  char title[PROCESS_TITLE_SIZE]);

/* What it belongs to, as members of an object. */
void write_process_names(const struct profile *p, const struct profile_process *process,
			 struct json_writer *w);

#endif
