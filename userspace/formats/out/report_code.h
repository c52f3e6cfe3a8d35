/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FORMATS_OUT_REPORT_CODE_H
#define FORMATS_OUT_REPORT_CODE_H

#include <stdint.h>

#include <sysprof/profile.h>

#include "base/map.h"
#include "base/vec.h"
#include "formats/out/report.h"
#include "formats/out/report_rows.h"

struct report_code_keys;
struct report_modules;

/* Code that looks the same to a reader is one row. A line of the profile belongs to one row. */

/* The fields that make rows of code equal: all that is shown of them. */
/* The modules of code, by the name that is shown: versions of a library are one. */
struct report_module {
	const char *name; /* in the profile, or constant */
};
MAP_TYPE(report_modules, struct report_module);

struct report_code_key {
	struct string_id name; /* of the function; 0 for dsos */
	struct string_id file;
	uint32_t module, line;
};
MAP_TYPE(report_code_keys, struct report_code_key);

struct report_code {
	const struct profile *p;
	enum report_by by; /* REPORT_FUNCTION, REPORT_DSO or REPORT_LINE */
	VEC(struct report_row) rows;
	struct report_code_keys keys; /* by row */
	uint32_t *row_of_line;	      /* by line of the profile */
	struct report_modules modules;
	uint32_t *module_of_name; /* by string of the profile */
};

/* 0 or -ENOMEM; fini is due in both cases. */
int report_code__init(struct report_code *code, const struct profile *p, enum report_by by);
void report_code__fini(struct report_code *code);

/* The row of a line of a location; new rows have no counts. 0 or -ENOMEM. */
int report_code__row(struct report_code *code, const struct profile_location *location,
		     uint32_t line, uint32_t *row);

/* Orders what rows show, names first; 0 only for equal ones. For rows with equal counts. */
int report_row__compare_texts(const struct report_row *a, const struct report_row *b);

#endif
