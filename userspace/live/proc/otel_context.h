/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_PROC_OTEL_CONTEXT_H
#define LIVE_PROC_OTEL_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fact_text;

/* The names of mappings in /proc/PID/maps that may be one. */
bool otel_context_has_name(const char *path);

/*
 * The attributes that name a service, as facts "otel:service.name", from a message: a Resource, or
 * a ProcessContext, whose first field is one. Invalid parts are skipped.
 */
void otel_context__decode(const uint8_t *message, size_t size, struct fact_text *facts);

/* Of a process, `dir` being its directory below /proc. For a reader process. */
void otel_context__read(int dir, struct fact_text *facts);

#endif
