/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of the agent's formats: windows of made-up profiles, and what is in the requests made of them. */
#ifndef TESTS_UNIT_AGENT_SUPPORT_H
#define TESTS_UNIT_AGENT_SUPPORT_H

#include "export_support.h"

#include "agent/agent_window.h"
#include "agent/sink_format.h"
#include "agent/validate.h"
#include "base/gzip.h"
#include "base/wire.h"

#define WINDOW_START UINT64_C(1700000000123456789)
#define WINDOW_END   (WINDOW_START + UINT64_C(15000000000))
#define SERVICES_MAX 64

struct made_window {
	struct agent_window window;
	struct labeled_service services[SERVICES_MAX];
	struct service_label labels[SERVICES_MAX][4];
	char names[SERVICES_MAX][16];
	uint32_t *service_of_process;
};

/* Process i belongs to service i modulo `services`; "a" to service 0, "b" to 1, … */
static inline void made_window__init(struct made_window *m, const struct profile *p,
				     size_t services)
{
	*m = (struct made_window){};
	assert_in_range(services, 1, SERVICES_MAX);
	m->service_of_process = calloc(p->process_count + 1, sizeof(uint32_t));
	assert_non_null(m->service_of_process);
	for (size_t i = 1; i < p->process_count; i++)
		m->service_of_process[i] = (uint32_t)((i - 1) % services);
	for (size_t i = 0; i < services; i++) {
		snprintf(m->names[i], sizeof(m->names[i]), "service-%zu", i);
		m->labels[i][0] = (struct service_label){"namespace", "shop"};
		m->labels[i][1] = (struct service_label){"service_name", m->names[i]};
		m->services[i] = (struct labeled_service){m->labels[i], 2, false};
	}
	m->window = (struct agent_window){
		.profile = p,
		.number = 7,
		.start_realtime = WINDOW_START,
		.end_realtime = WINDOW_END,
		.services = m->services,
		.service_count = services,
		.service_of_process = m->service_of_process,
	};
}

static inline void made_window__fini(struct made_window *m)
{
	free(m->service_of_process);
}

static inline struct sealed_window seal(const char *format, const struct agent_window *window,
					bool name_all)
{
	const struct sink_encoding_options options = {.node = "host-1", .name_all = name_all};
	const struct sink_format *f = sink_format__find(format);
	struct sealed_window sealed = {};

	assert_non_null(f);
	assert_int_equal(f->encode(window, &options, &sealed), 0);
	assert_int_equal(sealed.number, window->number);
	assert_int_equal(sealed.start_realtime, window->start_realtime);
	assert_int_equal(sealed.end_realtime, window->end_realtime);
	return sealed;
}

#define _cleanup_made_	 _cleanup_(made_window__fini)
#define _cleanup_sealed_ _cleanup_(sealed_window__fini)

static inline uint8_t *unzip(const void *bytes, size_t size, size_t *out_size)
{
	uint64_t offset;
	uint8_t *out;

	assert_true(is_gzip(bytes, size));
	assert_int_equal(gunzip_bytes(bytes, size, 64 << 20, &out, out_size, &offset), 0);
	return out;
}

static inline struct wire fields(const void *bytes, size_t size)
{
	return (struct wire){.start = bytes, .at = bytes, .end = (const uint8_t *)bytes + size};
}

/* The first field of this number of a message; false: it has none. */
static inline bool find_field(const void *bytes, size_t size, uint32_t number, struct wire *found)
{
	int more;

	*found = fields(bytes, size);
	while ((more = wire_next(found)) > 0)
		if (found->number == number)
			return true;
	assert_int_equal(more, 0);
	return false;
}

static inline size_t count_fields(const void *bytes, size_t size, uint32_t number)
{
	struct wire w = fields(bytes, size);
	size_t count = 0;
	int more;

	while ((more = wire_next(&w)) > 0)
		count += w.number == number;
	assert_int_equal(more, 0);
	return count;
}

static inline bool contains(const void *bytes, size_t size, const char *text)
{
	return memmem(bytes, size, text, strlen(text)) != NULL;
}

#endif
