/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request without data, which each backend answers in its own way: Pyroscope by 400 and "no profiles received", Parca
 * and a Collector by 200, Pyroscope's OTLP door by 500 and "missing profile metadata dictionary". Whatever the format
 * takes for an answer of its backend is one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answers.h"
#include "agent/sink_private.h"
#include "base/output_file.h"

static const struct empty_request {
	const char *format, *path, *type, *body;
} EMPTY_REQUESTS[] = {
	{"pyroscope", "/push.v1.PusherService/Push", "application/proto", ""},
	{"parca", "/api/profiles/writeraw", "application/json", "{\"series\":[]}"},
	{"otlp", "/v1development/profiles", "application/x-protobuf", ""},
	{NULL, "/", "application/octet-stream", ""},
};

static struct http_request empty_request(const struct sink_format *format)
{
	const struct empty_request *e = EMPTY_REQUESTS;

	while (e->format && strcmp(e->format, format->name))
		e++;
	return (struct http_request){.path = e->path,
				     .type = e->type,
				     .encoding = "",
				     .body = e->body,
				     .size = strlen(e->body)};
}

static int explain(const struct sink_options *o, const struct http_answer *a,
		   struct failure *failure)
{
	const char *url = o->url;

	if (a->credentials_unreadable)
		return fail(failure, -EACCES, "%s: %s", url, a->text);
	if (!a->status) {
		fail(failure, -EHOSTUNREACH, "%s does not answer: %s", url, a->text);
		return fail_remedy(failure, -EHOSTUNREACH,
				   "see that it runs, and that this host may reach it");
	}
	switch (answer__judge_http(o->format, a)) {
	case SINK_UNAUTHORIZED:
		fail(failure, -EACCES, "%s refuses us: %s", url, a->text);
		return fail_remedy(failure, -EACCES, "see the token or password, and the tenant");
	case SINK_NOT_A_BACKEND:
		return fail(failure, -EPROTO, "%s does not answer as %s does: %s", url,
			    o->format->name, a->text);
	case SINK_RETRY:
	case SINK_AMBIGUOUS:
		return fail(failure, -EAGAIN, "%s answers, but takes nothing now: %s", url,
			    a->text);
	default:
		return 0;
	}
}

/* Can a file be made there? */
static int probe_directory(const char *path, struct failure *failure)
{
	struct output_file *file;
	char *name;
	int err;

	if (asprintf(&name, "%s/probe", path) < 0)
		return -ENOMEM;
	err = output_file__open(name, &file);
	free(name);
	if (err)
		return fail(failure, err, "cannot write to the directory %s: %s", path,
			    strerror(-err));
	output_file__abort(file);
	return 0;
}

int sink__probe(const struct sink_options *o, struct failure *failure)
{
	const struct http_options options = sink_http_options(o);
	const struct http_request request = empty_request(o->format);
	struct http_client *client;
	struct http_answer answer;
	int err;

	if (!o->format->judge)
		return probe_directory(o->url, failure);
	err = http_client__new(&options, &client, failure);
	if (err)
		return err;
	err = http_client__post(client, &request, &answer);
	if (!err)
		err = explain(o, &answer, failure);
	http_answer__fini(&answer);
	http_client__free(client);
	return err;
}
