/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/spool_profiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/messages.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "import/json.h"

#define UNPACKED_MAX (UINT64_C(64) << 20)

/* The function that gets the profiles. */
struct taker {
	const char *service;
	int (*take)(void *context, const void *pprof, size_t size);
	void *context;
};

/* ---- Pyroscope, OTLP ------------------------------------------------------------------------- */

static int read_packed(const struct sink_request *r, const struct taker *t,
		       int (*read)(const void *request, size_t size, const char *service,
				   int (*take)(void *context, const void *pprof, size_t size),
				   void *context))
{
	_cleanup_free_ uint8_t *unpacked = NULL;
	uint64_t offset;
	size_t size;
	int err = gunzip_bytes(r->body, r->size, UNPACKED_MAX, &unpacked, &size, &offset);

	return err ? err : read(unpacked, size, t->service, t->take, t->context);
}

/* ---- Parca ----------------------------------------------------------------------------------- */

static bool is_string(struct json_value value, const char *text)
{
	size_t size = strlen(text);

	return json_type(value) == JSON_STRING && (size_t)(value.end - value.at) == size + 2 &&
	       !memcmp(value.at + 1, text, size);
}

/* {"labels":[{"name":…,"value":…},…]} */
static int has_service(const struct json_text *text, struct json_value labels, const char *service,
		       bool *has)
{
	struct json_value list = {}, name, value;
	const struct json_member outer[] = {{"labels", &list}};
	const struct json_member pair[] = {{"name", &name}, {"value", &value}};
	struct json_walk walk;
	int more = json_members(text, labels, outer, 1);

	*has = false;
	if (!more)
		more = json_walk__init(&walk, text, list.at, JSON_ARRAY);
	while (!more && (more = json_walk__next(&walk)) > 0) {
		name = value = (struct json_value){};
		more = json_members(text, walk.value, pair, 2);
		*has |= !more && is_string(name, "service_name") && is_string(value, service);
	}
	return more;
}

/* [{"rawProfile":"…"},…] */
static int take_samples(const struct json_text *text, struct json_value samples,
			const struct taker *t)
{
	struct json_value raw;
	const struct json_member wanted[] = {{"rawProfile", &raw}};
	struct json_walk walk;
	int more = json_walk__init(&walk, text, samples.at, JSON_ARRAY);

	while (!more && (more = json_walk__next(&walk)) > 0) {
		_cleanup_free_ uint8_t *pprof = NULL;
		size_t size = 0;

		raw = (struct json_value){};
		more = json_members(text, walk.value, wanted, 1);
		if (!more && json_type(raw) != JSON_STRING)
			more = -EBADMSG;
		if (!more)
			more = base64_decode(raw.at + 1, (size_t)(raw.end - raw.at) - 2, &pprof,
					     &size);
		if (!more)
			more = t->take(t->context, pprof, size);
	}
	return more;
}

static int read_writeraw(const struct sink_request *r, const struct taker *t)
{
	struct import_failure failure = {};
	const struct json_text text = {r->body, (const char *)r->body + r->size, &failure};
	struct json_value series = {}, labels, samples;
	const struct json_member whole[] = {{"series", &series}};
	const struct json_member wanted[] = {{"labels", &labels}, {"samples", &samples}};
	struct json_walk walk;
	int more = json_document(&text, whole, 1);
	bool has = false;

	if (!more)
		more = json_walk__init(&walk, &text, series.at, JSON_ARRAY);
	while (!more && (more = json_walk__next(&walk)) > 0) {
		labels = samples = (struct json_value){};
		more = json_members(&text, walk.value, wanted, 2);
		if (!more)
			more = has_service(&text, labels, t->service, &has);
		if (!more && has)
			more = take_samples(&text, samples, t);
	}
	return more;
}

int sink_request__profiles(const struct sink_request *r, const char *service,
			   int (*take)(void *context, const void *pprof, size_t size),
			   void *context)
{
	const struct taker t = {service, take, context};

	if (!strcmp(r->path, "/push.v1.PusherService/Push"))
		return read_packed(r, &t, push_message__read);
	if (!strcmp(r->path, "/v1development/profiles"))
		return read_packed(r, &t, otlp_request__read);
	if (!strcmp(r->path, "/api/profiles/writeraw"))
		return read_writeraw(r, &t);
	return -EPROTONOSUPPORT;
}
