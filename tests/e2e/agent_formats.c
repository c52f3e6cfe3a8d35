/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_formats FORMAT OUTPUT RECORDING [NAME=SERVICE]…
 *     What FORMAT sends of a recording as one window: a process is the service of its name, or the one that is
 *     given for it; other processes are those of "_rest" if any is given. A file a request, OUTPUT.N, and a line of
 *     JSON each on standard output. NAME_ALL=0: frames without a name stay so. START=NS: when the window begins.
 * agent_formats made-up PROCESSES SERVICES TICKS [OUTPUT]
 *     How large a window of a made-up host is, in each format; with OUTPUT its files, OUTPUT.FORMAT.N, and their lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sysprof/profile_builder.h>

#include "agent/sink_format.h"
#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "window/replay.h"

#define WINDOW	  UINT64_C(15000000000)
#define NAME_SIZE 64

struct services {
	VEC(struct labeled_service) list;
	VEC(struct service_label *) labels;
	uint32_t *of_process;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "agent_formats: %s: %s\n", what, why);
	exit(1);
}

static uint32_t find_service(struct services *s, const char *name)
{
	struct service_label *labels;
	char *clean;

	for (uint32_t i = 0; i < s->list.count; i++)
		if (!strcmp(s->labels.data[i][1].value, name))
			return i;
	labels = calloc(2, sizeof(*labels));
	clean = strdup(name);
	if (!labels || !clean)
		die("services", "no memory");
	labels[0] = (struct service_label){"namespace", "test"};
	labels[1] = (struct service_label){"service_name", clean};
	if (vec_push(&s->labels, labels) ||
	    vec_push(&s->list, (struct labeled_service){labels, 2, false}))
		die("services", "no memory");
	return (uint32_t)s->list.count - 1;
}

/* NAME=SERVICE: the service, if this is the name. */
static const char *service_of_name(const char *name, char **map, int count)
{
	for (int i = 0; i < count; i++) {
		const char *equals = strrchr(map[i], '=');

		if (equals && strlen(name) == (size_t)(equals - map[i]) &&
		    !strncmp(map[i], name, strlen(name)))
			return equals + 1;
	}
	return count ? "_rest" : name;
}

static void map_services(struct services *s, const struct profile *p, char **map, int count)
{
	s->of_process = calloc(p->process_count + 1, sizeof(*s->of_process));
	if (!s->of_process)
		die("services", "no memory");
	for (size_t i = 1; i < p->process_count; i++) {
		const char *name = profile__string(p, p->processes[i].name);
		char clean[256];

		utf8_sanitize(clean, sizeof(clean), *name ? name : "unknown");
		s->of_process[i] = find_service(s, service_of_name(clean, map, count));
	}
}

static struct agent_window window_of(const struct profile *p, const struct services *s)
{
	const char *start = getenv("START");
	struct agent_window w = {
		.profile = p,
		.number = 1,
		.start_realtime = start ? strtoull(start, NULL, 10) : p->start_realtime,
		.services = s->list.data,
		.service_count = s->list.count,
		.service_of_process = s->of_process,
	};

	w.end_realtime = w.start_realtime + (p->end - p->start);
	return w;
}

static struct sealed_window encode(const char *format, const struct agent_window *window)
{
	const char *name_all = getenv("NAME_ALL");
	const struct sink_encoding_options options = {
		.node = "test-node", .name_all = !name_all || strcmp(name_all, "0") != 0};
	const struct sink_format *f = sink_format__find(format);
	struct sealed_window sealed = {};
	int err = f ? f->encode(window, &options, &sealed) : -EINVAL;

	if (err)
		die(format, strerror(-err));
	return sealed;
}

static void write_file(const char *path, const struct sink_request *request)
{
	FILE *file = fopen(path, "we");

	if (!file || fwrite(request->body, 1, request->size, file) != request->size || fclose(file))
		die(path, strerror(errno));
}

static void report(const char *path, const struct sink_request *request)
{
	struct json_writer w;

	json_writer__init(&w, stdout);
	json_begin_object(&w);
	json_key_string(&w, "file", path);
	json_key_string(&w, "path", request->path);
	json_key_string(&w, "type", request->content_type);
	json_key_string(&w, "encoding", request->content_encoding);
	json_key_uint(&w, "samples", request->samples);
	json_key_uint(&w, "cpu_ns", request->cpu_ns);
	json_key_uint(&w, "series", request->series);
	json_end_object(&w);
	json_writer__finish(&w);
	printf("\n");
}

static int encode_recording(char **arguments, int count)
{
	_cleanup_close_ int fd = open(arguments[2], O_RDONLY | O_CLOEXEC);
	const struct replay_options options = {.symbols = {.cache = false}};
	struct recording_summary summary = {};
	struct failure failure = {};
	const struct profile *p;
	struct windows *windows;
	struct services services = {};
	struct agent_window window;
	struct sealed_window sealed;
	char path[4096];

	if (replay_recording(fd, arguments[2], &options, &windows, &p, &summary, &failure))
		die(arguments[2], failure.what);
	map_services(&services, p, arguments + 3, count - 3);
	window = window_of(p, &services);
	sealed = encode(arguments[0], &window);
	for (size_t i = 0; i < sealed.request_count; i++) {
		snprintf(path, sizeof(path), "%s.%zu", arguments[1], i);
		write_file(path, &sealed.requests[i]);
		report(path, &sealed.requests[i]);
	}
	sealed_window__fini(&sealed);
	windows__free(windows);
	return sealed.series_invalid != 0;
}

/* ---- a made-up host -------------------------------------------------------------------------- */

#define FUNCTIONS	 60  /* of a program that are seen on a CPU */
#define SHARED_FUNCTIONS 400 /* of libc and the kernel */
#define DEPTH		 24

struct host {
	struct profile_builder *b;
	VEC(struct location_id) locations;
	unsigned int seed;
};

/* Few are hot: the cube of a number between 0 and 1 is mostly small. */
static size_t choose(struct host *h, size_t count)
{
	double x = (double)rand_r(&h->seed) / ((double)RAND_MAX + 1);

	return (size_t)((double)count * x * x * x);
}

/* A function calls one that it calls mostly, and now and then one of two others. */
static size_t callee(struct host *h, size_t function, size_t count)
{
	size_t which = rand_r(&h->seed) % 32 ? 0 : 1 + (size_t)rand_r(&h->seed) % 2;

	return (function * 3 + 1 + which) % count;
}

static struct dso_id add_program(struct host *h, const char *path, enum dso_kind kind)
{
	struct profile_dso dso = {
		.kind = kind,
		.path = profile_builder__string(h->b, path),
		.name = profile_builder__string(h->b,
						strrchr(path, '/') ? strrchr(path, '/') + 1 : path),
		.build_id_size = 20,
	};

	for (unsigned int i = 0; i < 20; i++)
		dso.build_id[i] = (uint8_t)rand_r(&h->seed);
	return profile_builder__dso(h->b, &dso);
}

static size_t add_functions(struct host *h, struct dso_id dso, size_t count)
{
	size_t first = h->locations.count;

	for (size_t i = 0; i < count; i++) {
		uint64_t address = 0x1000 + ((uint64_t)rand_r(&h->seed) << 4) % 0x4000000;
		struct location_id id = profile_builder__location(
			h->b, dso, address, (struct process_id){0}, CATEGORY_USER);

		if (vec_push(&h->locations, id))
			die("made-up", "no memory");
	}
	return first;
}

static void name_functions(struct host *h)
{
	static const char *const words[] = {"parse",  "write",	"read",	   "find",
					    "insert", "remove", "cache",   "buffer",
					    "queue",  "index",	"request", "session"};

	for (size_t i = 0; i < h->locations.count; i++) {
		char name[128], file[128];
		struct profile_function function;
		struct profile_line line = {.line = 1 + (uint32_t)rand_r(&h->seed) % 2000};

		snprintf(name, sizeof(name), "%s_%s_%s%zu", words[i % 12], words[i / 12 % 12],
			 words[i / 144 % 12], i);
		snprintf(file, sizeof(file), "src/%s/%s_%s.c", words[i / 600 % 12],
			 words[i / 50 % 12], words[i / 10 % 12]);
		function = (struct profile_function){
			.name = profile_builder__string(h->b, name),
			.dso = profile_builder__get_location(h->b, h->locations.data[i])->dso,
			.address = i << 6,
			.definition_file = profile_builder__string(h->b, file),
			.definition_line = line.line,
		};
		line.function = profile_builder__function(h->b, &function);
		line.file = function.definition_file;
		profile_builder__resolve(h->b, h->locations.data[i], 0x400000 + (i << 6), &line, 1);
	}
}

/* A stack of the program, of which one in three goes on in libc and the kernel. */
static struct stack_id make_stack(struct host *h, size_t program, size_t shared)
{
	size_t depth = DEPTH / 2 + choose(h, DEPTH), at = choose(h, 4);
	struct stack_id stack = {0};

	for (size_t i = 0; i < depth; i++, at = callee(h, at, FUNCTIONS))
		stack = profile_builder__stack(h->b, stack, h->locations.data[program + at]);
	depth = rand_r(&h->seed) % 3 ? 0 : 8;
	for (size_t i = 0; i < depth; i++, at = callee(h, at, SHARED_FUNCTIONS))
		stack = profile_builder__stack(h->b, stack, h->locations.data[shared + at]);
	return stack;
}

static void add_processes(struct host *h, size_t processes, size_t services, size_t ticks)
{
	struct string_id name = profile_builder__string(h->b, "worker");
	struct thread_id *threads = calloc(processes, sizeof(*threads));
	size_t *programs = calloc(services, sizeof(*programs));
	size_t shared;
	char path[NAME_SIZE];

	if (!threads || !programs)
		die("made-up", "no memory");
	shared = add_functions(h, add_program(h, "/lib/libc.so.6", DSO_FILE), SHARED_FUNCTIONS);
	for (size_t i = 0; i < services; i++) {
		snprintf(path, sizeof(path), "/usr/bin/service-%zu", i);
		programs[i] = add_functions(h, add_program(h, path, DSO_FILE), FUNCTIONS);
	}
	for (size_t i = 0; i < processes; i++) {
		struct profile_process process = {
			.pid = 100 + (uint32_t)i, .name = name, .start = 1};
		struct process_id id = profile_builder__process(h->b, &process);

		threads[i] = profile_builder__thread(h->b, id, process.pid, true, name, 1);
	}
	for (size_t i = 0; i < ticks; i++) {
		/* some services are busy, most are hardly seen, and so it is with their processes */
		size_t service = choose(h, services);
		size_t process = choose(h, processes / services) * services + service;
		struct profile_sample sample = {
			.time = 1000 + i * 1000,
			.weight = 10309278,
			.stack = make_stack(h, programs[service], shared),
			.comm = name,
		};

		profile_builder__sample(h->b, threads[process], &sample);
	}
	free(threads);
	free(programs);
}

static void measure(const char *format, const struct agent_window *window, const char *output)
{
	clock_t begin = clock();
	struct sealed_window sealed = encode(format, window);
	double ms = 1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC;
	uint64_t size = 0, series = 0;
	char path[4096];

	for (size_t i = 0; i < sealed.request_count; i++) {
		size += sealed.requests[i].size;
		series += sealed.requests[i].series;
		if (!output)
			continue;
		snprintf(path, sizeof(path), "%s.%s.%zu", output, format, i);
		write_file(path, &sealed.requests[i]);
		report(path, &sealed.requests[i]);
	}
	if (!output)
		printf("%s requests %zu bytes %llu series %llu cpu_ms %.1f\n", format,
		       sealed.request_count, (unsigned long long)size, (unsigned long long)series,
		       ms);
	sealed_window__fini(&sealed);
}

static int make_up(size_t processes, size_t services, size_t ticks, const char *output)
{
	struct host host = {.b = profile_builder__new(), .seed = 1};
	struct services map = {};
	struct agent_window window;
	const struct profile *p;
	char why[256] = "", name[NAME_SIZE];

	if (!host.b || !processes || !services)
		die("made-up", "how many?");
	*profile_builder__session(host.b) = (struct profile){.start = 1,
							     .end = 1 + WINDOW,
							     .start_realtime = 1700000000000000000,
							     .period = 10309278};
	add_processes(&host, processes, services, ticks);
	name_functions(&host);
	if (profile_builder__finish(host.b, &p, why, sizeof(why)))
		die("made-up", why);
	map.of_process = calloc(p->process_count + 1, sizeof(*map.of_process));
	if (!map.of_process)
		die("made-up", "no memory");
	for (size_t i = 1; i < p->process_count; i++) {
		snprintf(name, sizeof(name), "service-%zu", (i - 1) % services);
		map.of_process[i] = find_service(&map, name);
	}
	window = window_of(p, &map);
	for (const struct sink_format *const *f = sink_formats(); *f; f++)
		measure((*f)->name, &window, output);
	profile_builder__free(host.b);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && !strcmp(argv[1], "made-up"))
		return make_up(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10),
			       strtoul(argv[4], NULL, 10), argv[5]);
	if (argc < 4)
		die("usage", "FORMAT OUTPUT RECORDING [NAME=SERVICE]…");
	return encode_recording(argv + 1, argc - 1);
}
