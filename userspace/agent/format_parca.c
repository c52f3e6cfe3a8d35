/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parca: WriteRaw of pprof, by its JSON endpoint.
 *
 * Of its three endpoints only this one has unambiguous answers: an HTTP status, and "{}" for
 * success. Those of gRPC need HTTP/2, or answer 200 with the real status inside. It takes no
 * compressed requests, so profiles are compressed one by one.
 *
 * Only CPU time is sent: Parca shows samples/count as period times count, in nanoseconds again. If
 * it refuses one series, it refuses the request and stores nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/sink_format.h"
#include "agent/series.h"
#include "agent/validate.h"
#include "base/base64.h"
#include "base/json_writer.h"

#define REQUEST_MAX 1000000 /* bytes: its server waits 5 s for a body */
/* Of a part: one that cannot be compressed at all becomes a third larger, and has labels. */
#define PART_MAX 650000

static const char head[] = "{\"normalized\":true,\"series\":[", tail[] = "]}";

static int write_labels(const struct series_part *part, FILE *out)
{
	struct json_writer w;

	json_writer__init(&w, out);
	json_begin_object(&w);
	json_key_array(&w, "labels");
	for (size_t i = 0; i < part->label_count; i++) {
		json_begin_object(&w);
		json_key_string(&w, "name", part->labels[i].name);
		json_key_string(&w, "value", part->labels[i].value);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	return json_writer__finish(&w);
}

static int write_base64(const struct bytes *bytes, FILE *out)
{
	FILE *base64 = base64_writer(out);
	bool good;

	if (!base64)
		return -ENOMEM;
	good = fwrite(bytes->data, 1, bytes->count, base64) == bytes->count;
	return fclose(base64) || !good ? -ENOMEM : 0;
}

static int write_series(void *context, FILE *out)
{
	const struct series_part *part = context;
	_cleanup_bytes_ struct bytes compressed = {};
	int err = bytes__gzip(&part->pprof, NULL, 0, &compressed);

	fputs("{\"labels\":", out);
	if (!err)
		err = write_labels(part, out);
	fputs(",\"samples\":[{\"rawProfile\":\"", out);
	if (!err)
		err = write_base64(&compressed, out);
	fputs("\"}]}", out);
	return err;
}

static int make(const struct series_part *part, struct bytes *made)
{
	return bytes__write(write_series, (void *)part, made);
}

static int add(struct series_request *request, const struct bytes *made)
{
	const char *before = request->facts.series ? "," : head;

	return bytes__add(&request->body, before, strlen(before))
		       ?: bytes__add(&request->body, made->data, made->count);
}

static int seal(struct series_request *request)
{
	int err = bytes__add(&request->body, tail, strlen(tail));

	request->facts.path = "/api/profiles/writeraw";
	request->facts.content_type = "application/json";
	request->facts.content_encoding = "";
	return err ?: sealed_window__add(request->sealed, &request->facts, &request->body);
}

static int encode(const struct agent_window *window, const struct sink_encoding_options *options,
		  struct sealed_window *sealed)
{
	static const struct series_requests kind = {
		.series_max = SIZE_MAX,
		.size_max = REQUEST_MAX - sizeof(",]}"),
		.make = make,
		.add = add,
		.seal = seal,
	};
	const struct series_options series_options = {
		.name_all = options->name_all,
		.samples_max = VALID_SAMPLES_MAX,
		.size_max = PART_MAX,
		.add_node = options->node, /* its list of agents */
	};

	return series__seal(window, &series_options, &kind, sealed);
}

/* Requests with an unknown path or type get 200 with its page. */
static enum sink_verdict judge_200(const struct http_answer *a)
{
	const char *body = a->body;
	size_t size = a->size;

	while (size && (body[size - 1] == '\n' || body[size - 1] == '\r'))
		size--;
	return size == 2 && !memcmp(body, "{}", 2) ? SINK_ACCEPTED : SINK_NOT_A_BACKEND;
}

static bool may_not_be_repeated(const struct http_answer *a)
{
	return !a->retry_after;
}

static const struct answer_rule rules[] = {
	/* the body trickled for longer than it waits */
	{400, "i/o timeout", NULL, SINK_RETRY},
	/* its own, with code 8: the message is too large; a proxy's: there are too many */
	{429, "\"code\":8", may_not_be_repeated, SINK_TOO_BIG},
	/* code 2 is for what it could not read as well */
	{500, "invalid profile type", NULL, SINK_REJECTED},
	{500, "unexpected EOF", NULL, SINK_REJECTED},
	{500, NULL, NULL, SINK_RETRY_FEW},
	{},
};

const struct sink_format parca_format = {
	.name = "parca",
	.encode = encode,
	.judge_200 = judge_200,
	.rules = rules,
	.empty = {"/api/profiles/writeraw", "application/json", "{\"series\":[]}"},
};
