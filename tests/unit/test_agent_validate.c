/* SPDX-License-Identifier: BSD-2-Clause */
/* Of a good profile one thing is made bad at a time, each something that a backend refuses or loses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pprof.pb-c.h>

#include "unit.h"
#include "agent/validate.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Two frames with names in one mapping, one without in another, and three samples. */
struct good {
	Pprof__Profile profile;
	Pprof__ValueType types[2], *type_list[2], period_type;
	Pprof__Sample samples[3], *sample_list[3];
	Pprof__Mapping mappings[2], *mapping_list[2];
	Pprof__Location locations[3], *location_list[3];
	Pprof__Line lines[2], *line_list[2];
	Pprof__Function functions[2], *function_list[2];
	Pprof__Label label, *label_list[1];
	ProtobufCBinaryData strings[10];
	uint64_t paths[3][3];
	int64_t values[3][3];
};

static const char *const texts[] = {"",	    "samples", "count", "cpu",	"nanoseconds",
				    "main", "work",    "a.out", "abcd", "key"};

static void fill_tables(struct good *g)
{
	for (size_t i = 0; i < 2; i++) {
		pprof__mapping__init(&g->mappings[i]);
		g->mappings[i].id = i + 1;
		g->mappings[i].filename = 7;
		g->mappings[i].build_id = 8;
		g->mappings[i].has_functions = !i;
		g->mapping_list[i] = &g->mappings[i];
		pprof__function__init(&g->functions[i]);
		g->functions[i].id = i + 1;
		g->functions[i].name = 5 + (int64_t)i;
		g->function_list[i] = &g->functions[i];
		pprof__line__init(&g->lines[i]);
		g->lines[i].function_id = i + 1;
		g->line_list[i] = &g->lines[i];
	}
	for (size_t i = 0; i < 3; i++) {
		pprof__location__init(&g->locations[i]);
		g->locations[i].id = i + 1;
		g->locations[i].mapping_id = i < 2 ? 1 : 2;
		g->locations[i].n_line = i < 2 ? 1 : 0;
		g->locations[i].line = &g->line_list[i % 2];
		g->location_list[i] = &g->locations[i];
	}
}

static void fill_samples(struct good *g)
{
	for (size_t i = 0; i < 3; i++) {
		pprof__sample__init(&g->samples[i]);
		for (size_t j = 0; j <= i; j++)
			g->paths[i][j] = j + 1;
		g->samples[i].n_location_id = i + 1;
		g->samples[i].location_id = g->paths[i];
		g->values[i][0] = (int64_t)i; /* of the first there are no ticks */
		g->values[i][1] = 100;
		g->samples[i].n_value = 2;
		g->samples[i].value = g->values[i];
		g->sample_list[i] = &g->samples[i];
	}
	pprof__label__init(&g->label);
	g->label.key = g->label.str = 9;
	g->label_list[0] = &g->label;
}

static void make_good(struct good *g)
{
	*g = (struct good){};
	fill_tables(g);
	fill_samples(g);
	pprof__profile__init(&g->profile);
	for (size_t i = 0; i < 2; i++) {
		pprof__value_type__init(&g->types[i]);
		g->types[i].type = 1 + 2 * (int64_t)i;
		g->types[i].unit = 2 + 2 * (int64_t)i;
		g->type_list[i] = &g->types[i];
	}
	for (size_t i = 0; i < COUNT(texts); i++)
		g->strings[i] = (ProtobufCBinaryData){strlen(texts[i]), (uint8_t *)texts[i]};
	pprof__value_type__init(&g->period_type);
	g->period_type.type = 3;
	g->period_type.unit = 4;
	g->profile.n_sample_type = 2;
	g->profile.sample_type = g->type_list;
	g->profile.n_sample = 3;
	g->profile.sample = g->sample_list;
	g->profile.n_mapping = 2;
	g->profile.mapping = g->mapping_list;
	g->profile.n_location = 3;
	g->profile.location = g->location_list;
	g->profile.n_function = 2;
	g->profile.function = g->function_list;
	g->profile.n_string_table = COUNT(texts);
	g->profile.string_table = g->strings;
	g->profile.time_nanos = 1700000000000000000;
	g->profile.duration_nanos = 15000000000;
	g->profile.period_type = &g->period_type;
	g->profile.period = 10309278;
}

static bool is_valid(const struct good *g, struct pprof_sums *sums, char *why, size_t why_size)
{
	size_t size = pprof__profile__get_packed_size(&g->profile);
	uint8_t *bytes = malloc(size);
	bool valid;

	assert_non_null(bytes);
	pprof__profile__pack(&g->profile, bytes);
	valid = validate_pprof(bytes, size, sums, why, why_size);
	free(bytes);
	return valid;
}

TEST(a_good_profile_is_valid_and_summed)
{
	struct pprof_sums sums = {};
	struct good g;
	char why[128] = "";

	make_good(&g);
	if (!is_valid(&g, &sums, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(sums.samples, 3);
	assert_int_equal(sums.values[0], 3);
	assert_int_equal(sums.values[1], 300);
	assert_int_equal(sums.time_ns, 1700000000000000000);
}

static uint8_t not_utf8[] = {0xff, 0xfe}, dashed[] = "cp-u", something[] = "x";
static char huge[65537];

#define SET_STRING(n, bytes, size) (g->strings[n] = (ProtobufCBinaryData){size, (uint8_t *)(bytes)})

/* X(what is said, what is done) */
#define FAULTS(X)                                                                                  \
	X("string 0 is not empty", SET_STRING(0, something, 1))                                    \
	X("a string is not UTF-8", SET_STRING(9, not_utf8, 2))                                     \
	X("a string of 65536 bytes", SET_STRING(9, huge, 65536))                                   \
	X("invalid type", SET_STRING(3, dashed, 4))                                                \
	X("a function without a name", SET_STRING(5, "", 0))                                       \
	X("no strings", g->profile.n_string_table = 0; g->profile.n_mapping = 0)                   \
	X("location ids are not sequential", g->locations[1].id = 7)                               \
	X("location ids are not sequential", g->locations[0].id = 0)                               \
	X("function ids are not sequential", g->functions[0].id = 0)                               \
	X("mapping ids are not sequential", g->mappings[0].id = 0)                                 \
	X("dangling location", g->paths[1][1] = 4)                                                 \
	X("dangling location", g->paths[2][0] = 0)                                                 \
	X("dangling function", g->lines[0].function_id = 3)                                        \
	X("dangling mapping", g->locations[0].mapping_id = 3)                                      \
	X("dangling mapping", g->locations[0].mapping_id = 0)                                      \
	X("dangling string", g->functions[0].name = 10)                                            \
	X("dangling string", g->functions[0].filename = -1)                                        \
	X("dangling string", g->mappings[0].build_id = 10)                                         \
	X("dangling string", g->mappings[1].filename = 10)                                         \
	X("dangling string", g->types[0].type = 10)                                                \
	X("1 values of 2 types", g->samples[0].n_value = 1)                                        \
	X("3 values of 2 types", g->samples[0].n_value = 3)                                        \
	X("a negative value", g->values[1][0] = -1)                                                \
	X("a sample of nothing", g->values[0][1] = 0)                                              \
	X("a sample without a stack", g->samples[1].n_location_id = 0)                             \
	X("a label at a sample", g->samples[1].n_label = 1; g->samples[1].label = g->label_list)   \
	X("a frame without a name among frames with names", g->locations[0].n_line = 0)            \
	X("a frame without a name among frames with names", g->mappings[0].has_functions = 0)      \
	X("a frame without a name or a build id", g->mappings[1].build_id = 0)                     \
	X("no period type", g->profile.period_type = NULL)                                         \
	X("0 sample types", g->profile.n_sample_type = 0; g->profile.n_sample = 0)                 \
	X("no samples", g->profile.n_sample = 0)                                                   \
	X("no time", g->profile.time_nanos = 0)                                                    \
	X("no time", g->profile.time_nanos = -1)                                                   \
	X("no duration", g->profile.duration_nanos = 0)

TEST(every_fault_of_a_profile_is_reported)
{
	struct good good, *g = &good;
	char why[128];

	memset(huge, 'h', sizeof(huge));
#define X(text, fault)                                                                             \
	make_good(g);                                                                              \
	fault;                                                                                     \
	why[0] = '\0';                                                                             \
	if (is_valid(g, NULL, why, sizeof(why)) || strcmp(why, text))                              \
		fail_msg("%s: \"%s\", not \"%s\"", #fault, why, text);
	FAULTS(X)
#undef X
}

/* So many samples, so many frames, and so many bytes are good; one more is not. */
TEST(profiles_over_a_limit_are_invalid)
{
	static Pprof__Sample *list[16001];
	static uint64_t deep[1001];
	struct good g;
	char why[128];

	make_good(&g);
	for (size_t i = 0; i < COUNT(list); i++)
		list[i] = &g.samples[2];
	g.profile.sample = list;
	g.profile.n_sample = 16000;
	assert_true(is_valid(&g, NULL, why, sizeof(why)));
	g.profile.n_sample = 16001;
	assert_false(is_valid(&g, NULL, why, sizeof(why)));
	assert_string_equal(why, "16001 samples");

	make_good(&g);
	for (size_t i = 0; i < COUNT(deep); i++)
		deep[i] = 1;
	g.samples[0].location_id = deep;
	g.samples[0].n_location_id = 1000;
	assert_true(is_valid(&g, NULL, why, sizeof(why)));
	g.samples[0].n_location_id = 1001;
	assert_false(is_valid(&g, NULL, why, sizeof(why)));
	assert_string_equal(why, "a stack of 1001 frames");

	make_good(&g);
	g.profile.sample = list;
	g.profile.n_sample = 16000;
	g.samples[2].location_id = deep;
	g.samples[2].n_location_id = 100;
	assert_false(is_valid(&g, NULL, why, sizeof(why)));
	assert_non_null(strstr(why, "bytes"));
}

/* Cut off anywhere, or with any byte changed: an answer, and no reading beyond the end. */
TEST(almost_every_truncated_profile_is_invalid)
{
	struct good g;
	size_t size, good = 0;
	uint8_t *bytes, *copy;
	char why[128];

	make_good(&g);
	size = pprof__profile__get_packed_size(&g.profile);
	bytes = malloc(size);
	assert_non_null(bytes);
	pprof__profile__pack(&g.profile, bytes);
	for (size_t i = 0; i < size; i++) {
		copy = malloc(i + 1);
		assert_non_null(copy);
		memcpy(copy, bytes, i);
		good += validate_pprof(copy, i, NULL, why, sizeof(why));
		free(copy);
	}
	assert_in_range(good, 0, 16); /* what is last, the period, may be missing */
	for (size_t i = 0; i < size; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			bytes[i] ^= (uint8_t)(1u << bit);
			validate_pprof(bytes, size, NULL, why, sizeof(why));
			bytes[i] ^= (uint8_t)(1u << bit);
		}
	assert_true(validate_pprof(bytes, size, NULL, why, sizeof(why)));
	free(bytes);
}

TEST(missing_oversized_or_duplicate_labels_are_invalid)
{
	static const struct service_label name = {"__name__", "process_cpu"},
					  service = {"service_name", "api"};
	static char long_name[1026], long_value[2050], names[40][8];
	struct service_label labels[40] = {name, service};
	char why[128];

	assert_true(validate_labels(labels, 2, why, sizeof(why)));
	assert_false(validate_labels(labels, 1, why, sizeof(why)));
	assert_string_equal(why, "no service_name");
	assert_false(validate_labels(labels + 1, 1, why, sizeof(why)));
	assert_string_equal(why, "no __name__");
	memset(long_name, 'n', 1025);
	memset(long_value, 'v', 2049);
	labels[2] = (struct service_label){long_name, "v"};
	assert_false(validate_labels(labels, 3, why, sizeof(why)));
	long_name[1024] = '\0';
	assert_true(validate_labels(labels, 3, why, sizeof(why)));
	labels[2] = (struct service_label){"n", long_value};
	assert_false(validate_labels(labels, 3, why, sizeof(why)));
	long_value[2048] = '\0';
	assert_true(validate_labels(labels, 3, why, sizeof(why)));
	for (int i = 2; i < 40; i++) {
		snprintf(names[i], sizeof(names[i]), "n%d", i);
		labels[i] = (struct service_label){names[i], "v"};
	}
	assert_true(validate_labels(labels, 30, why, sizeof(why)));
	assert_false(validate_labels(labels, 31, why, sizeof(why)));
	labels[2] = labels[3];
	assert_false(validate_labels(labels, 30, why, sizeof(why)));
	assert_string_equal(why, "duplicate label");
}
