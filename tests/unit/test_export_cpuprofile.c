/* SPDX-License-Identifier: BSD-2-Clause */
/* The .cpuprofile of every thread says what the profile says of it: stacks, times, CPU, lines. */
#include "export_support.h"

#include "profile/timeline.h"

struct node {
	const cJSON *json;
	uint32_t parent;
	uint64_t hits;
};

/* Nodes by id; checks that ids are 1.. and that parents come first. */
static struct node *read_nodes(const cJSON *file, size_t *count)
{
	const cJSON **list = elements(get(file, "nodes"), count), *child;
	struct node *nodes = calloc(*count + 1, sizeof(*nodes));

	assert_non_null(nodes);
	for (size_t i = 0; i < *count; i++) {
		assert_true(number(list[i], "id") == (double)(i + 1));
		nodes[i + 1].json = list[i];
		cJSON_ArrayForEach (child, cJSON_GetObjectItem(list[i], "children")) {
			assert_true(child->valueint > (int)i + 1 && child->valueint <= (int)*count);
			assert_int_equal(nodes[child->valueint].parent, 0);
			nodes[child->valueint].parent = (uint32_t)i + 1;
		}
	}
	free(list);
	return nodes;
}

static const char *name_of(const struct node *node)
{
	return string(get(node->json, "callFrame"), "functionName");
}

static void check_stack(const struct profile *p, const struct node *nodes, uint32_t id,
			struct stack_id stack)
{
	for (uint32_t at = stack.v; at; at = p->stacks[at].parent.v) {
		const struct profile_location *l = &p->locations[p->stacks[at].location.v];

		for (uint32_t i = 0; i < l->line_count; i++) {
			const struct profile_function *function =
				&p->functions[p->lines[l->first_line + i].function.v];
			const cJSON *frame = get(nodes[id].json, "callFrame");

			assert_true(id > 1);
			assert_string_equal(name_of(&nodes[id]),
					    profile__string(p, function->name));
			assert_int_equal(get(frame, "lineNumber")->valueint,
					 (int)function->definition_line - 1);
			assert_int_equal(get(frame, "columnNumber")->valueint,
					 (int)function->definition_column - 1);
			id = nodes[id].parent;
		}
	}
	assert_int_equal(id, 1);
}

/* Real samples in order at the microsecond they were taken, all others idle; CPU adds up. */
static void check_thread(const struct profile *p, uint32_t id)
{
	const struct profile_thread *thread = &p->threads[id];
	const struct export_request options = {.thread = {id}};
	_cleanup_cjson_ cJSON *file = export_json(&cpuprofile_exporter, p, &options);
	const cJSON *own = get(file, "$sysprof");
	size_t node_count, count, delta_count, cpu_count, real = 0;
	_cleanup_free_ struct node *nodes = read_nodes(file, &node_count);
	_cleanup_free_ const cJSON **samples = elements(get(file, "samples"), &count);
	_cleanup_free_ const cJSON **deltas = elements(get(file, "timeDeltas"), &delta_count);
	_cleanup_free_ const cJSON **cpu = elements(get(own, "threadCPUDeltas"), &cpu_count);
	uint64_t time = (uint64_t)number(file, "startTime"), total = 0;

	assert_int_equal(count, delta_count);
	assert_int_equal(count, cpu_count);
	assert_true(count > 0);
	assert_int_equal(time, thread->start / 1000);
	for (size_t i = 0; i < count; i++) {
		uint32_t node = (uint32_t)samples[i]->valueint;

		assert_true(node >= 1 && node <= node_count);
		assert_true(deltas[i]->valuedouble >= 0);
		nodes[node].hits++;
		time += (uint64_t)deltas[i]->valuedouble;
		total += (uint64_t)cpu[i]->valuedouble;
		if (!strcmp(name_of(&nodes[node]), "(idle)")) {
			assert_int_equal(nodes[node].parent, 1);
			continue;
		}
		assert_true(real < thread->samples[SAMPLE_CPU].count);
		assert_int_equal(time, thread->samples[SAMPLE_CPU].time[real] / 1000);
		check_stack(p, nodes, node, thread->samples[SAMPLE_CPU].stack[real]);
		real++;
	}
	assert_int_equal(real, thread->samples[SAMPLE_CPU].count);
	assert_true(number(file, "endTime") > (double)time);
	assert_int_equal(total, profile_thread__cpu(thread));
	assert_true(number(own, "cpuTimeNs") == (double)total);
	for (size_t i = 1; i <= node_count; i++)
		assert_true(number(nodes[i].json, "hitCount") == (double)nodes[i].hits);
}

/* ---- all threads of a process in one file ---------------------------------------------------- */

#define PATHS 12

/* Functions "f0" to "f3", called by each other: which samples there are is up to chance. */
static const struct profile *build_process(struct fixture *f, unsigned int *seed)
{
	struct location_id locations[4];
	struct stack_id stacks[PATHS];
	int threads = 1 + rand_r(seed) % 5;
	char name[8];

	fixture__init(f, 400);
	f->process = add_process(f, 7, "shop", 0, 0);
	for (unsigned int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		locations[i] = add_location(f, f->program, 0x100 + 16 * i);
		NAME(f, locations[i], {.function = name});
	}
	for (int i = 0; i < PATHS; i++) {
		stacks[i] = i < 4 ? (struct stack_id){0} : stacks[rand_r(seed) % i];
		stacks[i] = profile_builder__stack(f->b, stacks[i], locations[rand_r(seed) % 4]);
	}
	for (int t = 0; t < threads; t++) {
		struct thread_id thread = add_thread(f, f->process, 7 + t, t == 0, "worker", 0);
		double ms = rand_r(seed) % 100;
		int samples = rand_r(seed) % 100;

		for (int i = 0; i < samples; i++) {
			double cpu = rand_r(seed) % 3 ? 1 : rand_r(seed) % 1000 / 1000.0;

			ms += cpu + (rand_r(seed) % 20 ? 0 : rand_r(seed) % 40);
			add_sample(f, thread, ms, stacks[rand_r(seed) % PATHS], cpu, "worker");
		}
		profile_builder__thread_cpu_tail(f->b, thread, (uint64_t)rand_r(seed) % 5000);
	}
	return finish(f);
}

/* "f0;f1", the root first; of the profile and of a file. */
static void path_of_stack(const struct profile *p, struct stack_id stack, char *text)
{
	const struct profile_stack *at = &p->stacks[stack.v];

	*text = '\0';
	if (at->parent.v)
		path_of_stack(p, at->parent, text);
	sprintf(text + strlen(text), ";%s",
		profile__string(
			p,
			p->functions[p->lines[p->locations[at->location.v].first_line].function.v]
				.name));
}

static void path_of_node(const struct node *nodes, uint32_t id, char *text)
{
	*text = '\0';
	if (nodes[id].parent > 1)
		path_of_node(nodes, nodes[id].parent, text);
	sprintf(text + strlen(text), ";%s", name_of(&nodes[id]));
}

struct path_sum {
	char path[256];
	uint64_t cpu, us, samples;
};

static struct path_sum *sum_of(struct path_sum *sums, const char *path)
{
	while (*sums->path && strcmp(sums->path, path))
		sums++;
	snprintf(sums->path, sizeof(sums->path), "%s", path);
	return sums;
}

static void sum_profile(const struct profile *p, struct path_sum *sums)
{
	char path[256];

	for (uint32_t t = 1; t < p->thread_count; t++) {
		const struct profile_samples *s = &p->threads[t].samples[SAMPLE_CPU];

		for (size_t i = 0; i < s->count; i++) {
			path_of_stack(p, s->stack[i], path);
			sum_of(sums, path)->cpu += s->weight[i];
			if (i + 1 == s->count)
				sum_of(sums, path)->cpu += p->threads[t].cpu_tail;
		}
	}
}

/* Every sample lasts as long as its CPU time, to the µs, and is exact in ns beside it. */
static void check_process(const struct profile *p)
{
	const struct export_request options = {.thread = export_busiest_thread(p),
					       .merge_threads = true};
	_cleanup_cjson_ cJSON *file = export_json(&cpuprofile_exporter, p, &options);
	const cJSON *own = get(file, "$sysprof");
	struct path_sum sums[PATHS + 2] = {}, expected[PATHS + 2] = {};
	size_t node_count, count, number_of;
	_cleanup_free_ struct node *nodes = read_nodes(file, &node_count);
	_cleanup_free_ const cJSON **samples = elements(get(file, "samples"), &count);
	_cleanup_free_ const cJSON **deltas = elements(get(file, "timeDeltas"), &number_of);
	_cleanup_free_ const cJSON **cpu = elements(get(own, "threadCPUDeltas"), &number_of);
	double time = number(file, "startTime"), end = number(file, "endTime");
	uint64_t total = 0, busy = 0;

	assert_int_equal(count, number_of);
	for (size_t i = 0; i < count; i++) {
		uint32_t node = (uint32_t)samples[i]->valueint;
		struct path_sum *sum;
		char path[256];

		time += deltas[i]->valuedouble;
		path_of_node(nodes, node, path);
		sum = sum_of(sums, path);
		sum->us += (uint64_t)(i + 1 < count ? deltas[i + 1]->valuedouble : end - time);
		sum->cpu += (uint64_t)cpu[i]->valuedouble;
		sum->samples++;
		total += (uint64_t)cpu[i]->valuedouble;
	}
	sum_profile(p, expected);
	for (struct path_sum *sum = expected; *sum->path; sum++) {
		const struct path_sum *found = sum_of(sums, sum->path);

		assert_int_equal(found->cpu, sum->cpu);
		busy += found->us;
		/* a begin is rounded down */
		assert_true(found->us * 1000 <= sum->cpu + found->samples * 1000);
		assert_true(sum->cpu <= found->us * 1000 + found->samples * 1000);
	}
	assert_true(number(own, "cpuTimeNs") == (double)total);
	assert_true((uint64_t)(end - number(file, "startTime")) ==
		    busy + sum_of(sums, ";(idle)")->us);
}

TEST(the_threads_of_a_process_are_one_timeline_with_exact_sums)
{
	unsigned int seed = 7;

	for (int i = 0; i < 300; i++) {
		_cleanup_fixture_ struct fixture f;
		const struct profile *p = build_process(&f, &seed);

		if (p->sample_count)
			check_process(p);
	}
}

/* Leaf functions in the order of a file, equal ones in a row once. */
static void order_of_leaves(const struct profile *p, char *text)
{
	const struct export_request options = {.merge_threads = true};
	_cleanup_cjson_ cJSON *file = export_json(&cpuprofile_exporter, p, &options);
	size_t node_count, count;
	_cleanup_free_ struct node *nodes = read_nodes(file, &node_count);
	_cleanup_free_ const cJSON **samples = elements(get(file, "samples"), &count);
	int last = 0;

	*text = '\0';
	for (size_t i = 0; i < count; i++) {
		if (samples[i]->valueint != last)
			sprintf(text + strlen(text), "%s ", name_of(&nodes[samples[i]->valueint]));
		last = samples[i]->valueint;
	}
}

/* Two threads at once: f calls g and h, and k runs beside it. */
TEST(what_runs_at_once_is_left_heavy_and_the_rest_in_the_order_of_time)
{
	_cleanup_fixture_ struct fixture f;
	struct thread_id one, two;
	struct location_id at[4];
	struct stack_id g, h, k;
	char text[256], name[2] = "f";

	fixture__init(&f, 100);
	f.process = add_process(&f, 7, "shop", 0, 0);
	one = add_thread(&f, f.process, 7, true, "one", 0);
	two = add_thread(&f, f.process, 8, false, "two", 0);
	for (int i = 0; i < 4; i++) {
		name[0] = "fghk"[i];
		at[i] = add_location(&f, f.program, 0x100 + 16 * (uint64_t)i);
		NAME(&f, at[i], {.function = name});
	}
	g = STACK(&f, at[0], at[1]);
	h = STACK(&f, at[0], at[2]);
	k = STACK(&f, at[3]);
	/* 7 ms of one, of which 3 are of g, and 6 of two, in the same cell */
	for (int i = 1; i <= 7; i++)
		add_sample(&f, one, 10 + i, i % 2 ? h : g, 1, "one");
	for (int i = 1; i <= 6; i++)
		add_sample(&f, two, 10 + i, k, 1, "two");
	/* alone */
	for (int i = 1; i <= 4; i++)
		add_sample(&f, one, 40 + i, i % 2 ? h : g, 1, "one");
	order_of_leaves(finish(&f), text);
	assert_string_equal(text, "(idle) h g k (idle) h g h g (idle) ");
}

/* How long the samples of functions are, µs, and how long those of (idle). */
static void sum_lengths(const cJSON *file, double *busy, double *idle)
{
	size_t node_count, count, number_of;
	_cleanup_free_ struct node *nodes = read_nodes(file, &node_count);
	_cleanup_free_ const cJSON **samples = elements(get(file, "samples"), &count);
	_cleanup_free_ const cJSON **deltas = elements(get(file, "timeDeltas"), &number_of);
	double time = number(file, "startTime");

	assert_int_equal(count, number_of);
	*busy = *idle = 0;
	for (size_t i = 0; i < count; i++) {
		bool is_idle = !strcmp(name_of(&nodes[samples[i]->valueint]), "(idle)");
		double length;

		time += deltas[i]->valuedouble;
		length = i + 1 < count ? deltas[i + 1]->valuedouble
				       : number(file, "endTime") - time;
		*(is_idle ? idle : busy) += length;
	}
}

/* As of perf.data with cycles. One thread has no sample, and may be the one that is requested. */
TEST(threads_without_cpu_time_are_one_timeline_of_periods)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p;
	struct thread_id silent, threads[2];
	struct location_id at;

	fixture__init(&f, 100);
	profile_builder__session(f.b)->event = text(&f, "cycles");
	profile_builder__session(f.b)->event_unit = text(&f, "count");
	f.process = add_process(&f, 7, "shop", 0, 0);
	silent = add_thread(&f, f.process, 7, true, "silent", 0);
	at = add_location(&f, f.program, 0x100);
	NAME(&f, at, {.function = "f"});
	for (int t = 0; t < 2; t++) {
		threads[t] = add_thread(&f, f.process, 8 + t, false, "worker", 0);
		for (int i = 1; i <= 10; i++)
			add_sample(&f, threads[t], 20 + i, STACK(&f, at), 0, "worker");
	}
	p = finish(&f);
	for (int i = 0; i < 2; i++) {
		const struct export_request options = {.thread = i ? silent : threads[0],
						       .merge_threads = true};
		_cleanup_cjson_ cJSON *file = export_json(&cpuprofile_exporter, p, &options);
		double busy, idle;

		sum_lengths(file, &busy, &idle);
		assert_true(busy == 20 * 1000);
		assert_in_range((uint64_t)idle, 80 * 1000,
				80 * 1000 + 1); /* an end is rounded up */
		assert_true(number(get(file, "$sysprof"), "mergedThreads") == 2);
		assert_true(number(get(file, "$sysprof"), "cpuTimeNs") == 0);
	}
}

TEST(every_thread_has_its_stacks_times_and_cpu_time)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p;

	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		if (!strcmp(named_profiles[i].name, "hostile")) /* names are changed there */
			continue;
		p = build_profile(&f, named_profiles[i].name);
		for (uint32_t t = 1; t < p->thread_count; t++)
			check_thread(p, t);
		profile_builder__free(f.b);
	}
	p = build_random(&f, 11, 6, 1200);
	for (uint32_t t = 1; t < p->thread_count; t++)
		check_thread(p, t);
}
