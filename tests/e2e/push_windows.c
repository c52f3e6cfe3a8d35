/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * push_windows NAME=VALUE…: a sink with commands on standard input; it answers each line by one of JSON.
 *
 *   put COUNT REQUESTS SIZE   so many windows, of so many requests of so many bytes each
 *   stats                     the sink's
 *   memory                    what this process has in memory, bytes
 *   free MILLISECONDS         end the sink with that patience: how long it took
 *
 * url= spool= bearer= basic= header= ca= tenant= bytes= age=SECONDS timeout=MS least=MS most=MS slow=MS rate=BYTES
 * (of the pace) first=NUMBER of the first window; kind=directory; probe=1 asks whether the backend is there, and ends.
 *
 * Its format is made up: a request's path and bytes follow from the numbers of window and request, and answers mean
 * what they do for most backends.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/sink_private.h"
#include "base/clocks.h"
#include "base/parse.h"

#define NS_PER_MS     UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)

static enum sink_verdict judge_200(const struct http_answer *a)
{
	(void)a;
	return SINK_ACCEPTED;
}

static const struct answer_rule rules[] = {{400, "too old", NULL, SINK_TOO_OLD}, {}};

static const struct sink_format pushed = {
	.name = "pushed",
	.judge_200 = judge_200,
	.rules = rules,
	.empty = {"/", "application/octet-stream", ""},
};
static const struct sink_format written = {.name = "written"};

/* ---- windows --------------------------------------------------------------------------------- */

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "push_windows: %s\n", what);
	exit(2);
}

static struct sink_request make_request(const struct sink_format *format, uint64_t number,
					unsigned int i, size_t size)
{
	struct sink_request r = {.content_type = strdup("application/proto"),
				 .content_encoding = strdup(""),
				 .body = malloc(size + 1),
				 .size = size,
				 .samples = 10,
				 .cpu_ns = 1000,
				 .series = 1};
	int length = asprintf(&r.path, "%s%" PRIu64 "-%u", format == &pushed ? "/" : "", number, i);

	check(length > 0 && r.content_type && r.content_encoding && r.body, "no memory");
	for (size_t at = 0; at < size; at++)
		((char *)r.body)[at] = (number * 131 + i * 31 + at * 7 + (at >> 8)) & 0xff;
	return r;
}

static void put(struct sink *s, const struct sink_format *format, uint64_t number,
		unsigned int requests, size_t size)
{
	struct sealed_window w = {.number = number,
				  .start_realtime = realtime_ns(),
				  .end_realtime = realtime_ns() + 1,
				  .request_count = requests};

	w.requests = calloc(requests, sizeof(*w.requests));
	check(w.requests != NULL, "no memory");
	for (unsigned int i = 0; i < requests; i++)
		w.requests[i] = make_request(format, number, i, size);
	sink__put(s, &w);
}

/* ---- what it reports --------------------------------------------------------------------------- */

static void report_text(const char *text)
{
	putchar('"');
	for (; *text; text++)
		if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
			printf("\\u%04x", (unsigned char)*text);
		else
			putchar(*text);
	putchar('"');
}

static void report_stats(struct sink *s)
{
	struct sink_stats t;
	uint64_t dropped = 0;

	sink__stats(s, &t);
	for (size_t i = 0; i < SINK_VERDICT_COUNT; i++)
		dropped += t.windows_dropped[i];
#define NUMBER(name) printf("\"%s\": %" PRIu64 ", ", #name, t.name)
	printf("{");
	NUMBER(windows_put);
	NUMBER(windows_sent);
	NUMBER(cpu_ns_sent);
	NUMBER(samples_sent);
	NUMBER(windows_too_old);
	NUMBER(windows_no_room);
	NUMBER(ambiguous);
	NUMBER(requests);
	NUMBER(failures);
	NUMBER(bytes);
	NUMBER(spool_windows);
	NUMBER(spool_bytes);
	NUMBER(torn_files);
	printf("\"rejected\": %" PRIu64 ", \"too_old\": %" PRIu64 ", \"too_big\": %" PRIu64
	       ", \"dropped\": %" PRIu64 ", \"spool_failed\": %d, \"error\": ",
	       t.windows_dropped[SINK_REJECTED], t.windows_dropped[SINK_TOO_OLD],
	       t.windows_dropped[SINK_TOO_BIG], dropped, t.spool_failed);
	report_text(t.last_error);
	printf("}\n");
}

/* Of its own, without what it shares with files. */
static void report_memory(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kilobytes = 0;

	check(f != NULL, "no /proc/self/status");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld kB", &kilobytes) == 1)
			break;
	fclose(f);
	printf("{\"bytes\": %ld}\n", kilobytes * 1024);
}

/* ---- options --------------------------------------------------------------------------------- */

struct options {
	struct sink_options sink;
	struct sink_pace pace;
	uint64_t first;
	bool probe;
};

static bool take_text(const char *argument, const char *name, const char **value)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length) || argument[length] != '=')
		return false;
	*value = argument + length + 1;
	return true;
}

static bool take_number(const char *argument, const char *name, uint64_t unit, uint64_t *value)
{
	const char *text;

	if (!take_text(argument, name, &text))
		return false;
	check(!parse_u64(text, 0, UINT64_MAX / unit, value), argument);
	*value *= unit;
	return true;
}

static void take_option(struct options *o, const char *a)
{
	struct sink_options *s = &o->sink;
	uint64_t probe;
	const char *kind;

	if (take_text(a, "url", &s->http.url) || take_text(a, "spool", &s->spool.directory) ||
	    take_text(a, "bearer", &s->http.credentials.bearer) ||
	    take_text(a, "basic", &s->http.credentials.basic) ||
	    take_text(a, "header", &s->http.credentials.header) ||
	    take_text(a, "ca", &s->http.ca_file) || take_text(a, "tenant", &s->http.tenant))
		return;
	if (take_number(a, "bytes", 1, &s->spool.bytes) ||
	    take_number(a, "age", NS_PER_SECOND, &s->spool.age) ||
	    take_number(a, "timeout", NS_PER_MS, &s->http.timeout) ||
	    take_number(a, "least", NS_PER_MS, &o->pace.retry.least) ||
	    take_number(a, "most", NS_PER_MS, &o->pace.retry.most) ||
	    take_number(a, "slow", NS_PER_MS, &o->pace.retry.slow) ||
	    take_number(a, "rate", 1, &o->pace.bytes_per_second) ||
	    take_number(a, "first", 1, &o->first))
		return;
	if (take_number(a, "probe", 1, &probe)) {
		o->probe = probe != 0;
		return;
	}
	check(take_text(a, "kind", &kind) && !strcmp(kind, "directory"), a);
	s->format = &written;
}

static void set_bearer(const struct options *o, struct sink *s, const char *path)
{
	struct http_options http = o->sink.http;
	struct failure failure = {};
	struct http_client *client;

	http.credentials.bearer = path;
	check(!http_client__new(&http, &client, &failure), failure.what);
	sink__set_client(s, client);
	printf("{}\n");
}

static void apply(struct options *o, struct sink **s, const char *line)
{
	char path[256];
	uint64_t count, begin;
	unsigned int requests, milliseconds;
	size_t size;

	if (sscanf(line, "put %" SCNu64 " %u %zu", &count, &requests, &size) == 3) {
		for (; count; count--)
			put(*s, o->sink.format, o->first++, requests, size);
		printf("{}\n");
	} else if (sscanf(line, "bearer %255s", path) == 1) {
		set_bearer(o, *s, path);
	} else if (!strcmp(line, "stats\n")) {
		report_stats(*s);
	} else if (!strcmp(line, "memory\n")) {
		report_memory();
	} else if (sscanf(line, "free %u", &milliseconds) == 1) {
		begin = monotonic_ns();
		sink__free(*s, milliseconds * NS_PER_MS);
		*s = NULL;
		printf("{\"seconds\": %.3f}\n", (monotonic_ns() - begin) / 1e9);
	} else {
		check(false, line);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct options o = {.sink.format = &pushed,
			    .pace = {.retry = {20 * NS_PER_MS, 200 * NS_PER_MS, 300 * NS_PER_MS},
				     .bytes_per_second = 256u << 20}};
	struct failure failure = {};
	struct sink *s = NULL;
	char line[256];
	int err;

	log_set_level(LOG_DEBUG);
	for (int i = 1; i < argc; i++)
		take_option(&o, argv[i]);
	err = o.probe ? sink__probe(&o.sink, &failure)
		      : sink__new_paced(&o.sink, &o.pace, &s, &failure);
	if (err) {
		printf("%s\n%s\n", failure.what, failure.remedy);
		return 1;
	}
	while (!o.probe && fgets(line, sizeof(line), stdin) && (s || !strcmp(line, "memory\n")))
		apply(&o, &s, line);
	fflush(stdout);
	_exit(0);
}
