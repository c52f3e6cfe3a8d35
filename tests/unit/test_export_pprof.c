/* SPDX-License-Identifier: BSD-2-Clause */
/* pprof, unpacked again: sums, stacks, inline chains, and mappings that are honest. */
#include "export_support.h"

#include <pprof.pb-c.h>

static Pprof__Profile *export_pprof(const struct profile *p)
{
	size_t size;
	char *bytes = export_bytes(&pprof_exporter, p, NULL, &size);
	Pprof__Profile *profile = pprof__profile__unpack(NULL, size, (const uint8_t *)bytes);

	assert_non_null(profile);
	free(bytes);
	return profile;
}

/* A string of the table, which has no NUL at its end. */
static bool is_text(const Pprof__Profile *profile, int64_t index, const char *text)
{
	const ProtobufCBinaryData *string = &profile->string_table[index];

	assert_true(index >= 0 && (size_t)index < profile->n_string_table);
	return string->len == strlen(text) && !memcmp(string->data, text, string->len);
}

static const Pprof__Function *function_of(const Pprof__Profile *profile, const Pprof__Line *line)
{
	assert_in_range(line->function_id, 1, profile->n_function);
	return profile->function[line->function_id - 1];
}

/* [X6] All ticks and all CPU time, that of threads without a sample and of last moments included. */
static void check_sums(const struct profile *p)
{
	Pprof__Profile *profile = export_pprof(p);
	uint64_t ticks = 0, cpu = 0, wanted = 0;

	for (size_t i = 0; i < profile->n_sample; i++) {
		assert_int_equal(profile->sample[i]->n_value, p->visits.hz ? 3 : 2);
		ticks += (uint64_t)profile->sample[i]->value[0];
		cpu += (uint64_t)profile->sample[i]->value[1];
	}
	for (size_t i = 1; i < p->thread_count; i++)
		wanted += profile_thread__cpu(&p->threads[i]);
	assert_int_equal(ticks, p->sample_count);
	assert_int_equal(cpu, wanted);
	assert_int_equal(profile->time_nanos, p->start_realtime);
	assert_int_equal(profile->duration_nanos, p->end - p->start);
	assert_int_equal(profile->period, p->period);
	assert_true(is_text(profile, profile->default_sample_type, wanted ? "cpu" : "samples"));
	pprof__profile__free_unpacked(profile, NULL);
}

TEST(all_ticks_and_cpu_time_are_exported)
{
	struct fixture f;

	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		check_sums(build_profile(&f, named_profiles[i].name));
		profile_builder__free(f.b);
	}
	check_sums(build_random(&f, 3, 6, 1200));
	profile_builder__free(f.b);
}

/* Rows that stand for several ticks, with one stack: one sample, with labels. */
TEST(rows_of_equal_stack_and_labels_become_one_sample)
{
	struct fixture f;
	struct location_id place;
	struct thread_id thread;
	Pprof__Profile *profile;

	fixture__init(&f, 10);
	f.process = add_process(&f, 7, "a", 0, 0);
	thread = add_thread(&f, f.process, 8, false, "b", 0);
	place = add_location(&f, f.program, 0x10);
	for (unsigned int i = 1; i <= 3; i++)
		profile_builder__sample(f.b, thread,
					&(struct profile_sample){
						.time = AT(i),
						.weight = 10 * i,
						.ticks = i,
						.stack = STACK(&f, place),
						.comm = text(&f, i == 3 ? "c" : "b"),
						.gil = i == 3 ? GIL_HELD : GIL_UNKNOWN,
						.context = i == 3 ? CONTEXT_SOFTIRQ : CONTEXT_NONE,
					});
	NAME(&f, place, {.function = "work"});
	profile = export_pprof(finish(&f));
	assert_int_equal(profile->n_sample, 2); /* it was called b, then c */
	assert_int_equal(profile->sample[0]->value[0], 3);
	assert_int_equal(profile->sample[0]->value[1], 30);
	assert_int_equal(profile->sample[1]->value[0], 3);
	assert_int_equal(profile->sample[0]->n_label, 4);
	assert_true(is_text(profile, profile->sample[0]->label[0]->key, "pid"));
	assert_int_equal(profile->sample[0]->label[0]->num, 7);
	assert_int_equal(profile->sample[0]->label[1]->num, 8);
	assert_true(is_text(profile, profile->sample[0]->label[2]->str, "a"));
	assert_true(is_text(profile, profile->sample[0]->label[3]->str, "b"));
	assert_true(is_text(profile, profile->sample[1]->label[3]->str, "c"));
	assert_int_equal(profile->sample[1]->n_label, 6);
	assert_true(is_text(profile, profile->sample[1]->label[4]->key, "gil"));
	assert_true(is_text(profile, profile->sample[1]->label[4]->str, "held"));
	assert_true(is_text(profile, profile->sample[1]->label[5]->key, "context"));
	assert_true(is_text(profile, profile->sample[1]->label[5]->str, "softirq"));
	pprof__profile__free_unpacked(profile, NULL);
	profile_builder__free(f.b);
}

/* Leaf first, and within a location the innermost function first; definitions in start_line. */
TEST(inlined_functions_precede_the_function_around_them)
{
	static const char *const names[] = {"min", "clamp", "fib"};
	static const int64_t starts[] = {2, 5, 10}, lines[] = {3, 7, 14};
	struct fixture f;
	Pprof__Profile *profile = export_pprof(build_profile(&f, "recursion"));
	size_t found = 0;

	for (size_t i = 0; i < profile->n_location; i++) {
		const Pprof__Location *location = profile->location[i];

		assert_int_equal(location->id, i + 1);
		if (location->n_line != 3)
			continue;
		found++;
		for (size_t j = 0; j < 3; j++) {
			const Pprof__Function *function = function_of(profile, location->line[j]);

			assert_true(is_text(profile, function->name, names[j]));
			assert_int_equal(function->start_line, starts[j]);
			assert_int_equal(function->system_name, 0);
			assert_int_equal(location->line[j]->line, lines[j]);
		}
	}
	assert_int_equal(found, 1);
	pprof__profile__free_unpacked(profile, NULL);
	profile_builder__free(f.b);
}

/* A function with lines in two files is two functions: that of the definition has a start_line. */
TEST(a_function_of_two_files_is_exported_twice)
{
	struct fixture f;
	struct location_id own, other;
	struct thread_id thread;
	Pprof__Profile *profile;
	const Pprof__Function *functions[2];

	fixture__init(&f, 10);
	f.process = add_process(&f, 1, "a", 0, 0);
	thread = add_thread(&f, f.process, 1, true, "a", 0);
	own = add_location(&f, f.program, 0x10);
	other = add_location(&f, f.program, 0x20);
	add_sample(&f, thread, 1, STACK(&f, own), 1, "a");
	add_sample(&f, thread, 2, STACK(&f, other), 1, "a");
	NAME(&f, own, {"g", "/src/g.c", 8, 5, 1, 0x100, 64, NULL});
	NAME(&f, other, {"g", "/src/table.inc", 9, 5, 1, 0x100, 64, "/src/g.c"});
	profile = export_pprof(finish(&f));
	assert_int_equal(profile->n_function, 2);
	for (unsigned int i = 0; i < 2; i++)
		functions[i] = function_of(profile, profile->location[i]->line[0]);
	assert_true(is_text(profile, functions[0]->filename, "/src/g.c"));
	assert_int_equal(functions[0]->start_line, 5);
	assert_true(is_text(profile, functions[1]->filename, "/src/table.inc"));
	assert_int_equal(functions[1]->start_line, 0);
	pprof__profile__free_unpacked(profile, NULL);
	profile_builder__free(f.b);
}

/* One name in a file, and all of its locations have a line; none, and a build id decides. */
TEST(locations_of_a_mapping_have_all_names_or_none)
{
	struct fixture f;
	struct dso_id with_id, without_id;
	struct location_id named, unnamed, no_symbols, no_identity, jitted;
	struct thread_id thread;
	Pprof__Profile *profile;
	bool symbolized[4] = {false};

	fixture__init(&f, 10);
	f.process = add_process(&f, 1, "a", 0, 0);
	thread = add_thread(&f, f.process, 1, true, "a", 0);
	with_id = add_dso(&f, DSO_FILE, "/lib/libwith.so", 16); /* 20: the program's */
	without_id = add_dso(&f, DSO_FILE, "/lib/libwithout.so", 0);
	named = add_location(&f, f.program, 0x1010);
	unnamed = add_location(&f, f.program, 0x5020);
	no_symbols = add_location(&f, with_id, 0x3030);
	no_identity = add_location(&f, without_id, 0x40);
	jitted = add_location(&f, f.jit, 0x7f0000001000);
	add_sample(&f, thread, 1, STACK(&f, named, unnamed, no_symbols, no_identity, jitted), 1,
		   "a");
	NAME(&f, named, {.function = "work"});
	profile = export_pprof(finish(&f));
	assert_int_equal(profile->n_mapping, 3);
	assert_true(is_text(profile, profile->mapping[0]->filename, "/opt/bin/fixture"));
	for (size_t i = 0; i < profile->n_location; i++) {
		const Pprof__Location *location = profile->location[i];

		if (!location->mapping_id) { /* JIT code has a name, at least its address */
			assert_int_equal(location->n_line, 1);
			continue;
		}
		assert_true(location->address >=
			    profile->mapping[location->mapping_id - 1]->memory_start);
		assert_true(location->address <
			    profile->mapping[location->mapping_id - 1]->memory_limit);
		symbolized[location->mapping_id] = location->n_line == 1;
		assert_int_equal(profile->mapping[location->mapping_id - 1]->has_functions,
				 location->n_line);
	}
	for (size_t i = 1; i <= 3; i++) {
		const Pprof__Mapping *mapping = profile->mapping[i - 1];
		bool is_bare = is_text(profile, mapping->filename, "/lib/libwith.so");

		assert_true(symbolized[i] == !is_bare);
		if (is_bare) { /* offsets in the file */
			assert_int_equal(mapping->memory_start, 0);
			assert_int_equal(mapping->file_offset, 0);
		}
	}
	/* an address of the ELF file, less where it is in the file: as the program headers say */
	assert_int_equal(profile->mapping[0]->memory_start, 0x401000);
	assert_int_equal(profile->mapping[0]->file_offset, 0x1000);
	pprof__profile__free_unpacked(profile, NULL);
	profile_builder__free(f.b);
}

/* A function that an interpreter runs is in its source file. */
TEST(interpreted_functions_are_in_a_mapping_of_their_own)
{
	struct fixture f;
	Pprof__Profile *profile;
	bool found = false;

	interpreted_profile(&f);
	profile = export_pprof(finish(&f));
	assert_int_equal(profile->n_mapping, 2);
	assert_true(is_text(profile, profile->mapping[1]->filename, INTERPRETED));
	assert_true(profile->mapping[1]->has_functions && profile->mapping[1]->has_filenames);
	for (size_t i = 0; i < profile->n_location; i++)
		found |= profile->location[i]->mapping_id == 2;
	assert_true(found);
	pprof__profile__free_unpacked(profile, NULL);
	profile_builder__free(f.b);
}
