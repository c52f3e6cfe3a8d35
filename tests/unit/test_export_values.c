/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles and what formats and reports say of them: testdata/export_values.txt. */
#include "text_cases.h"

#include <pprof.pb-c.h>

#include "export_support.h"

#include "base/file_url.h"
#include "formats/out/report.h"
#include "formats/out/report_paint.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- profiles -------------------------------------------------------------------------------- */

static struct fixture fixture;
static const struct profile *profile;
static struct thread_id thread;
static uint32_t pid;
static struct {
	char name[16];
	struct location_id id;
} places[8];
static size_t place_count;

static void forget_profile(void)
{
	if (profile)
		profile_builder__free(fixture.b);
	profile = NULL;
	place_count = 0;
}

static struct dso_id file_named(const char *name)
{
	return !strcmp(name, "kernel")	  ? fixture.kernel
	       : !strcmp(name, "jit")	  ? fixture.jit
	       : !strcmp(name, "python")  ? add_dso(&fixture, DSO_RUNTIME, "//python", 0)
	       : *name == '/'		  ? add_dso(&fixture, DSO_FILE, name, 0)
	       : !strncmp(name, "id:", 3) ? add_dso(&fixture, DSO_FILE, name + 3, 16)
					  : fixture.program;
}

/* NAME FILE ADDRESS, and its functions from the inlined ones on: function|file|line|definition's|column|address|size|file */
static void add_place(char *words)
{
	const char *name = strsep(&words, " "), *file = strsep(&words, " ");
	struct location_id id = add_location(&fixture, file_named(file),
					     strtoull(strsep(&words, " "), NULL, 16));
	struct place levels[4] = {};

	snprintf(places[place_count].name, sizeof(places->name), "%s", name);
	places[place_count++].id = id;
	for (size_t i = 0; words && i < COUNT(levels) - 1; i++) {
		char *level = strsep(&words, " "), *part[8] = {};
		uint64_t number[8] = {};

		for (size_t k = 0; k < COUNT(part); k++) {
			part[k] = strsep(&level, "|");
			number[k] = part[k] ? strtoull(part[k], NULL, 0) : 0;
		}
		levels[i] = (struct place){part[0],
					   part[1],
					   (uint32_t)number[2],
					   (uint32_t)number[3],
					   (uint32_t)number[4],
					   number[5],
					   number[6],
					   part[7]};
	}
	if (levels[0].function)
		name_location(&fixture, id, levels);
}

/* MS CPU_NS STACK, and more of: comm=NAME ticks=N gil=STATE context=NAME wall=SINCE */
static void take_sample(char *words)
{
	struct profile_sample sample = {.ticks = 1};
	const double ms = strtod(strsep(&words, " "), NULL);
	char *stack, *frame, *word;

	sample.time = AT(ms);
	sample.weight = strtoull(strsep(&words, " "), NULL, 10);
	sample.comm = text(&fixture, "a");
	stack = strsep(&words, " ");
	while ((frame = strsep(&stack, ";"))) {
		size_t i = 0;

		while (strcmp(places[i].name, frame))
			assert_true(++i < place_count);
		sample.stack = profile_builder__stack(fixture.b, sample.stack, places[i].id);
	}
	while ((word = strsep(&words, " "))) {
		const char *value = strchr(word, '=') + 1;

		if (!strncmp(word, "ticks=", 6))
			sample.ticks = strtoull(value, NULL, 10);
		else if (!strncmp(word, "comm=", 5))
			sample.comm = text(&fixture, value);
		else if (!strncmp(word, "wall=", 5))
			sample.kind = SAMPLE_WALL, sample.state = WALL_LOCK,
			sample.until = sample.time, sample.since = AT(strtod(value, NULL));
		for (int k = 1; k < GIL_STATE_COUNT; k++)
			if (!strncmp(word, "gil=", 4) && !strcmp(value, gil_state_name(k)))
				sample.gil = k;
		for (int k = 1; k < CONTEXT_COUNT; k++)
			if (!strncmp(word, "context=", 8) && !strcmp(value, sample_context_name(k)))
				sample.context = k;
	}
	profile_builder__sample(fixture.b, thread, &sample);
}

/* A line of a profile. */
static void take_line(char *line)
{
	const char *word = strsep(&line, " ");

	if (!strcmp(word, "process")) {
		pid = (uint32_t)strtoul(line, &line, 10);
		word = strsep(&line, " ") ? strsep(&line, " ") : "";
		fixture.process = add_process(&fixture, pid, word, line ? strtod(line, &line) : 0,
					      line ? strtod(line, NULL) : 0);
	} else if (!strcmp(word, "thread")) {
		uint32_t tid = (uint32_t)strtoul(line, &line, 10);
		double start, end;

		word = strsep(&line, " ") ? strsep(&line, " ") : "";
		start = line ? strtod(line, &line) : 0;
		end = line ? strtod(line, NULL) : 0;
		thread = add_thread(&fixture, fixture.process, tid, tid == pid, word, start);
		if (end > 0)
			profile_builder__thread_end(fixture.b, thread, AT(end));
	} else if (!strcmp(word, "at")) {
		add_place(line);
	} else if (!strcmp(word, "sample")) {
		take_sample(line);
	} else if (!strcmp(word, "wall")) {
		struct profile_wall wall = {.since = AT(strtod(line, &line))};

		wall.until = AT(strtod(line, &line));
		wall.blocked = (uint64_t)(strtod(line, NULL) * MS);
		profile_builder__thread_wall(fixture.b, thread, &wall);
	} else if (!strcmp(word, "untimed")) {
		profile_builder__session(fixture.b)->untimed = true;
		profile_builder__session(fixture.b)->period = 0;
	} else {
		fail_msg("what is %s?", word);
	}
}

/* A profile by its name, or line by line. */
static void make_profile(FILE *out, char *input)
{
	unsigned int seed;
	size_t threads, samples;
	char *line;

	forget_profile();
	if (sscanf(input, "random %u %zu %zu", &seed, &threads, &samples) == 3) {
		profile = build_random(&fixture, seed, threads, samples);
	} else if (!strncmp(input, "named ", 6)) {
		profile = build_profile(&fixture, input + 6);
	} else {
		if (!strcmp(input, "interrupted"))
			interrupted_profile(&fixture);
		else if (!strcmp(input, "interpreted"))
			interpreted_profile(&fixture);
		else
			for (fixture__init(&fixture, 20); (line = strsep(&input, "\n"));)
				take_line(line);
		profile = finish(&fixture);
	}
	fprintf(out, "%llu samples", (unsigned long long)profile->sample_count);
}

/* ---- values of JSON -------------------------------------------------------------------------- */

/* Members by "name", elements by "[2]", all by "[*]", those with a member by "[name=value]". */
static void step(cJSON *from, char *path, cJSON *to)
{
	const cJSON *child;
	char *end = path + (*path == '[' ? strcspn(path, "]") + 1 : strcspn(path, ".[")),
	     saved = *end;
	char *key = path + (*path == '['), *value;

	if (!*path) {
		cJSON_AddItemToArray(to, cJSON_Duplicate(from, true));
		return;
	}
	if (*path == '.') {
		step(from, path + 1, to);
		return;
	}
	*end = '\0';
	if (*path != '[' && !strcmp(path, "length") && cJSON_IsArray(from)) {
		cJSON_AddItemToArray(to, cJSON_CreateNumber(cJSON_GetArraySize(from)));
	} else if (*path != '[') {
		child = cJSON_GetObjectItemCaseSensitive(from, path);
		*end = saved;
		child ? step((cJSON *)child, end, to)
		      : (void)cJSON_AddItemToArray(to, cJSON_CreateNull());
	} else {
		end[-1] = '\0';
		value = strchr(key, '=');
		for (int i = 0; i < cJSON_GetArraySize(from); i++) {
			cJSON *element = cJSON_GetArrayItem(from, i);

			if (value)
				*value = '\0';
			if (value ? !strcmp(string(element, key), value + 1)
				  : *key == '*' || i == atoi(key)) {
				*end = saved;
				step(element, end, to);
				*end = '\0';
			}
			if (value)
				*value = '=';
		}
		end[-1] = ']';
	}
	*end = saved;
}

/* The values at a path; with " -> PATH", those that they are indexes of. */
static cJSON *values_at(cJSON *file, char *path)
{
	char *last = strstr(path, " -> ");
	cJSON *values = cJSON_CreateArray(), *mapped, *table, *index;

	if (last)
		*last = '\0';
	step(file, path, values);
	while (last) {
		char *next = strstr(last + 4, " -> ");

		if (next)
			*next = '\0';
		if (cJSON_IsArray(cJSON_GetArrayItem(values, 0))) {
			mapped = cJSON_DetachItemFromArray(values, 0);
			cJSON_Delete(values);
			values = mapped;
		}
		table = cJSON_CreateArray();
		step(file, last + 4, table);
		mapped = cJSON_CreateArray();
		cJSON_ArrayForEach (index, values)
			cJSON_AddItemToArray(
				mapped,
				cJSON_IsNumber(index) && index->valueint >= 0
					? cJSON_Duplicate(
						  cJSON_GetArrayItem(cJSON_GetArrayItem(table, 0),
								     index->valueint),
						  true)
					: cJSON_CreateNull());
		cJSON_Delete(table);
		cJSON_Delete(values);
		values = mapped;
		last = next;
	}
	return values;
}

static void put_values(FILE *out, cJSON *file, char *path)
{
	cJSON *values = values_at(file, path);
	int count = cJSON_GetArraySize(values);

	for (int i = 0; i < count; i++) {
		_cleanup_free_ char *printed =
			cJSON_PrintUnformatted(cJSON_GetArrayItem(values, i));

		fprintf(out, "%s%s", i ? " " : "", printed);
	}
	cJSON_Delete(values);
	cJSON_Delete(file);
}

static void firefox(FILE *out, char *input)
{
	put_values(out, export_json(&firefox_exporter, profile, NULL), input);
}

static void trace(FILE *out, char *input)
{
	put_values(out, export_json(&trace_exporter, profile, NULL), input);
}

/* The number of a thread, 0 for the busiest, and a path. */
static void cpuprofile(FILE *out, char *input)
{
	const struct export_request options = {
		.thread = {(uint32_t)strtoul(strsep(&input, " "), NULL, 10)}};

	put_values(out, export_json(&cpuprofile_exporter, profile, &options), input);
}

static void convert_url(FILE *out, char *input)
{
	_cleanup_free_ char *path = file_url_path(input);

	fputs(path ?: "no file", out);
}

/* ---- pprof ----------------------------------------------------------------------------------- */

static void put_string(FILE *out, const Pprof__Profile *p, const char *before, int64_t index)
{
	assert_true(index >= 0 && (size_t)index < p->n_string_table);
	if (index)
		fprintf(out, "%s%.*s", before, (int)p->string_table[index].len,
			(const char *)p->string_table[index].data);
}

static void put_pprof_samples(FILE *out, const Pprof__Profile *p)
{
	for (size_t i = 0; i < p->n_sample; i++) {
		const Pprof__Sample *s = p->sample[i];

		fputs("sample", out);
		for (size_t k = 0; k < s->n_value; k++)
			fprintf(out, " %lld", (long long)s->value[k]);
		for (size_t k = 0; k < s->n_location_id; k++)
			fprintf(out, "%s%llu", k ? ";" : " at ",
				(unsigned long long)s->location_id[k]);
		for (size_t k = 0; k < s->n_label; k++) {
			put_string(out, p, ", ", s->label[k]->key);
			put_string(out, p, " ", s->label[k]->str);
			if (!s->label[k]->str)
				fprintf(out, " %lld", (long long)s->label[k]->num);
		}
		fputc('\n', out);
	}
}

static void pprof(FILE *out, char *input)
{
	size_t size;
	char *bytes = export_bytes(&pprof_exporter, profile, NULL, &size);
	Pprof__Profile *p = pprof__profile__unpack(NULL, size, (const uint8_t *)bytes);

	free(bytes);
	assert_non_null(p);
	if (strstr(input, "samples"))
		put_pprof_samples(out, p);
	for (size_t i = 0; i < p->n_mapping && strstr(input, "mappings"); i++) {
		const Pprof__Mapping *m = p->mapping[i];

		fprintf(out, "mapping %llx..%llx of %llx", (unsigned long long)m->memory_start,
			(unsigned long long)m->memory_limit, (unsigned long long)m->file_offset);
		put_string(out, p, " ", m->filename);
		fprintf(out, "%s%s\n", m->has_functions ? ", functions" : "",
			m->has_filenames ? ", files" : "");
	}
	for (size_t i = 0; i < p->n_location && strstr(input, "locations"); i++) {
		const Pprof__Location *l = p->location[i];

		assert_int_equal(l->id, i + 1);
		fprintf(out, "location %llx of %llu:", (unsigned long long)l->address,
			(unsigned long long)l->mapping_id);
		for (size_t k = 0; k < l->n_line; k++) {
			assert_in_range(l->line[k]->function_id, 1, p->n_function);
			put_string(out, p, " ", p->function[l->line[k]->function_id - 1]->name);
			fprintf(out, ":%lld", (long long)l->line[k]->line);
		}
		fputc('\n', out);
	}
	for (size_t i = 0; i < p->n_function && strstr(input, "functions"); i++) {
		const Pprof__Function *function = p->function[i];

		put_string(out, p, "function ", function->name);
		put_string(out, p, " ", function->filename);
		fprintf(out, ":%lld\n", (long long)function->start_line);
		assert_int_equal(function->system_name, 0);
	}
	pprof__profile__free_unpacked(p, NULL);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void folded(FILE *out, char *input)
{
	char *text = export_text(&folded_exporter, profile,
				 &(struct export_request){.lines = !strcmp(input, "with lines")});

	fputs(text, out);
	free(text);
}

/* Words that select a report, of which the head is left out, and of JSON all but a path. */
static void report(FILE *out, char *input)
{
	struct report_options options = {.by = REPORT_FUNCTION};
	struct export_request request = {.profile = profile};
	char *path = strstr(input, ": "), *word, *text = NULL;
	const bool head = !strcmp(input, "head");
	size_t size;

	if (path)
		*path = '\0';
	for (word = strtok(input, " "); word; word = strtok(NULL, " ")) {
		const char *value = strchrnul(word, '=') + !!strchr(word, '=');

		if (!strncmp(word, "by=", 3))
			assert_int_equal(report_by_parse(value, &options.by), 0);
		else if (!strncmp(word, "top=", 4))
			request.top = (unsigned int)atoi(value);
		else if (!strncmp(word, "min=", 4))
			options.min_share = strtod(value, NULL);
		options.shape = !strcmp(word, "tree")	   ? REPORT_TREE
				: !strcmp(word, "callers") ? REPORT_CALLERS
							   : options.shape;
		options.utf8 |= !strcmp(word, "utf8");
		options.color |= !strcmp(word, "color");
		options.json |= !strcmp(word, "json");
		if (!strcmp(word, "wall"))
			options.wall = options.parked = true,
			options.wall_by = REPORT_WALL_FUNCTION;
	}
	request.out = open_memstream(&text, &size);
	assert_int_equal(report_write(&request, &options), 0);
	assert_int_equal(fclose(request.out), 0);
	if (path)
		put_values(out, cJSON_Parse(text), path + 2);
	else if (head)
		fprintf(out, "%.*s", (int)(strstr(text, "\n\n") - text), text);
	else
		fputs(strstr(text, "\n\n") + 2, out);
	free(text);
}

static void parse_grouping(FILE *out, char *input)
{
	enum report_by by = REPORT_BY_COUNT;
	int err = report_by_parse(input, &by);

	assert_true(!err || by == REPORT_BY_COUNT);
	text_put_error(out, err);
}

/* COLUMNS, "end" to keep the end, "utf8", and a text. */
static void shorten(FILE *out, char *input)
{
	const size_t columns = strtoul(strsep(&input, " "), NULL, 10);
	const bool end = !strncmp(input, "end ", 4) && (input += 4);
	const bool utf8 = !strncmp(input, "utf8 ", 5) && (input += 5);

	shorten_text(input, columns, end, utf8);
	assert_true(text_columns(input) <= columns);
	fputs(input, out);
}

/* A profile, or the name of one of these and its input; without a name it is the one of the input before. */
static void say(FILE *out, char *input)
{
	static const struct text_verb writers[] = {{"firefox", firefox},       {"trace", trace},
						   {"cpuprofile", cpuprofile}, {"pprof", pprof},
						   {"folded", folded},	       {"report", report}};
	static const struct text_verb *writer;
	const size_t size = strcspn(input, " \n");

	for (size_t i = 0; i < COUNT(writers); i++) {
		if (strlen(writers[i].name) == size && !memcmp(input, writers[i].name, size)) {
			writer = &writers[i];
			writer->run(out, input + size + !!input[size]);
			return;
		}
	}
	for (const char *const *word =
		     (const char *const[]){"process", "named", "random", "interrupted",
					   "interpreted", "untimed", NULL};
	     *word; word++) {
		if (strlen(*word) == size && !memcmp(input, *word, size)) {
			make_profile(out, input);
			return;
		}
	}
	writer->run(out, input);
}

static const struct text_verb verbs[] = {
	{"say", say}, {"url", convert_url}, {"grouping", parse_grouping}, {"shorten", shorten}, {}};

TEXT_TABLE("export_values", verbs, NULL, forget_profile);
