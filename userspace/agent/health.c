/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/health.h"

void health__window(struct health *h, uint64_t samples, uint64_t sent, unsigned int sinks)
{
	bool progress = sent != h->sent;

	h->sent = sent;
	if (progress || !sinks)
		h->silent = 0;
	else if (samples && h->silent < HEALTH_SILENT_WINDOWS)
		h->silent++;
}

bool health__is_well(const struct health *h)
{
	return h->silent < HEALTH_SILENT_WINDOWS;
}
