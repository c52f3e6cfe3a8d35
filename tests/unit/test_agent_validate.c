/* SPDX-License-Identifier: BSD-2-Clause */
/* Of a good profile one thing is made bad at a time, each something that a backend refuses or loses. */
#include "pprof_text.h"

#include "base/cleanup.h"
#include "agent/validate.h"

static char good[4000];

/* The validity, and sums of a profile that is valid. */
static void validate(FILE *out, char *text)
{
	struct pprof_sums sums = {};
	char why[128] = "";
	size_t size;
	_cleanup_free_ char *bytes = encode_pprof(text, &size);

	if (validate_pprof((uint8_t *)bytes, size, &sums, why, sizeof(why)))
		fprintf(out, "valid: %llu samples, %lld %lld", (unsigned long long)sums.samples,
			(long long)sums.values[0], (long long)sums.values[1]);
	else
		fputs(why, out);
}

/* The profile that others change. */
static void keep_good(FILE *out, char *input)
{
	snprintf(good, sizeof(good), "%s", input);
	validate(out, input);
}

/* FROM -> TO, there once in the good profile. */
static void change(FILE *out, char *input)
{
	char *to = strstr(input, " -> "), *at, text[8000];

	*to = '\0';
	to += 4;
	at = strstr(good, input);
	if (!at || strstr(at + 1, input))
		fail_msg("not there once: %s", input);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, to, at + strlen(input));
	validate(out, text);
}

static const struct text_verb verbs[] = {{"good", keep_good}, {"change", change}, {}};

TEXT_TABLE("agent_validate", verbs, NULL, NULL);

/* Cut off anywhere, or with any byte changed: an answer, and no reading beyond the end. */
TEST(almost_every_truncated_profile_is_invalid)
{
	struct pprof_sums sums;
	size_t size, valid = 0;
	_cleanup_free_ uint8_t *bytes = (uint8_t *)encode_pprof(good, &size);
	char why[128];

	assert_true(validate_pprof(bytes, size, &sums, why, sizeof(why)));
	assert_int_equal(sums.time_ns, 1700000000000000000);
	for (size_t i = 0; i < size; i++) {
		_cleanup_free_ uint8_t *copy = malloc(i + 1);

		memcpy(copy, bytes, i);
		valid += validate_pprof(copy, i, NULL, why, sizeof(why));
	}
	assert_in_range(valid, 0, 16); /* what is last, the period, may be missing */
	for (size_t i = 0; i < size; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			bytes[i] ^= (uint8_t)(1u << bit);
			validate_pprof(bytes, size, NULL, why, sizeof(why));
			bytes[i] ^= (uint8_t)(1u << bit);
		}
	assert_true(validate_pprof(bytes, size, NULL, why, sizeof(why)));
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
