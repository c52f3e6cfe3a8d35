/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process context that OpenTelemetry's libraries publish (OTEP 4719): a mapping with a name, in it a header that
 * points at a protobuf message with attributes. Both are the process's own memory: a read may block, and every size,
 * pointer and byte may be forged.
 */
#ifndef PROCFS_OTEL_CONTEXT_H
#define PROCFS_OTEL_CONTEXT_H

#include <stdint.h>

#include "procfs/fact_text.h"

#define OTEL_CONTEXT_SIZE_MAX (16u * 1024) /* bytes of the message */

/* The names of mappings in /proc/PID/maps that may be one. */
bool otel_context_has_name(const char *path);

/*
 * The attributes that a service is named by, as facts "otel:service.name", from a message: a Resource, or a
 * ProcessContext, whose first field is one. Invalid parts are skipped.
 */
void otel_context__decode(const uint8_t *message, size_t size, struct fact_text *facts);

/* Of a process, `dir` being its directory below /proc. For a reader process. */
void otel_context__read(int dir, struct fact_text *facts);

#endif
