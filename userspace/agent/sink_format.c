/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of formats, and the words of verdicts. */
#include "agent/sink_format.h"

#include <string.h>

#include "agent/sealing.h"

static const struct sink_format *const table[] = {&pyroscope_format, &parca_format, &otlp_format,
						  &dir_format, NULL};

const struct sink_format *const *sink_formats(void)
{
	return table;
}

const struct sink_format *sink_format__find(const char *name)
{
	for (size_t i = 0; table[i]; i++)
		if (!strcmp(table[i]->name, name))
			return table[i];
	return NULL;
}

const char *sink_verdict_text(enum sink_verdict verdict)
{
	static const char *const texts[] = {
#define X(id, text) text,
		SINK_VERDICTS(X)
#undef X
	};

	return verdict < SINK_VERDICT_COUNT ? texts[verdict] : "unknown";
}
