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
	struct node *nodes = read_nodes(file, &node_count);
	const cJSON **samples = elements(get(file, "samples"), &count);
	const cJSON **deltas = elements(get(file, "timeDeltas"), &delta_count);
	const cJSON **cpu = elements(get(own, "threadCPUDeltas"), &cpu_count);
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
	free(nodes);
	free(samples);
	free(deltas);
	free(cpu);
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
