/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/event_widen.h"

#include <string.h>

#include "stream/event_decode.h"

#define MEMORY_ONLY UINT32_MAX

/* Fields of 8 bytes that came with a version, in the order of the versions; one for each event. */
static const struct grown_event {
	uint32_t version; /* MEMORY_ONLY: no recording has the field */
	uint16_t type;
	uint16_t at;
} grown_events[] = {
	{2, EVENT_SAMPLE, offsetof(struct sample_event, period)},
	{2, EVENT_VISIT, offsetof(struct visit_event, stack.period)},
	{2, EVENT_BOOKS, offsetof(struct books_event, counted)},
	{MEMORY_ONLY, EVENT_MMAP, offsetof(struct mmap_event, file)},
};

static struct event_header *insert_field(const struct event_header *event, size_t at, void *buffer)
{
	struct event_header *wide = buffer;
	char *bytes = buffer;

	memmove(bytes + at + sizeof(uint64_t), (const char *)event + at, event->size - at);
	memmove(bytes, event, at);
	memset(bytes + at, 0, sizeof(uint64_t));
	wide->size += sizeof(uint64_t);
	if (wide->type == EVENT_VISIT)
		((struct visit_event *)buffer)->stack.header.size += sizeof(uint64_t);
	return wide;
}

struct event_header *event_widen(struct event_header *event, size_t available, uint32_t version,
				 void *buffer)
{
	if (available < sizeof(*event))
		return event;
	for (size_t i = 0; i < sizeof(grown_events) / sizeof(grown_events[0]); i++) {
		const struct grown_event *grown = &grown_events[i];

		if (version >= grown->version || event->type != grown->type)
			continue;
		if (event->size <= available && event_size_is_sound(event) &&
		    event->size >= grown->at)
			return insert_field(event, grown->at, buffer);
	}
	return event;
}

size_t event_narrow(const struct event_header *event, void *buffer)
{
	const size_t at = offsetof(struct mmap_event, file), behind = at + sizeof(uint64_t);
	struct event_header *narrow = buffer;

	if (event->type != EVENT_MMAP || event->size < behind) {
		memcpy(buffer, event, event->size);
		return event->size;
	}
	memcpy(buffer, event, at);
	memcpy((char *)buffer + at, (const char *)event + behind, event->size - behind);
	narrow->size -= sizeof(uint64_t);
	return narrow->size;
}
