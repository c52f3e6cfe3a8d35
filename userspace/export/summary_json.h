/* SPDX-License-Identifier: BSD-2-Clause */
/* The figures of a whole recording as JSON: in the report and the page, and as a member of our own in Chrome's formats. */
#ifndef EXPORT_SUMMARY_JSON_H
#define EXPORT_SUMMARY_JSON_H

#include <sysprof/profile.h>

#include "base/json_writer.h"
#include "profile/figures.h"

/* An object, the "summary" of the report's JSON: docs/report.schema.json describes it. */
void write_summary(const struct profile *p, const struct figures *f, struct json_writer *w);

/* The member "recording" of a file of one thread or of all, in the camel case of Chrome's formats. */
void write_recording(const struct profile *p, struct json_writer *w);

#endif
