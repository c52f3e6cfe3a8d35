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
	_cleanup_fixture_ struct fixture f;

	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		check_sums(build_profile(&f, named_profiles[i].name));
		profile_builder__free(f.b);
	}
	check_sums(build_random(&f, 3, 6, 1200));
}
