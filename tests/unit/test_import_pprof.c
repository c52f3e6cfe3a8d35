/* SPDX-License-Identifier: BSD-2-Clause */
/* pprof, written as text and encoded here: testdata/import_pprof.txt. */
#include "import_support.h"

struct message {
	uint8_t bytes[4096];
	size_t size;
};

/* Strings have numbers in the order of their first use; the table is field 6 at the end. */
static const char *strings[64];
static size_t string_count;

static void put(struct message *m, uint64_t value)
{
	do {
		assert_true(m->size < sizeof(m->bytes));
		m->bytes[m->size++] = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
		value >>= 7;
	} while (value);
}

static void put_bytes(struct message *m, unsigned int field, const void *bytes, size_t size)
{
	put(m, field << 3 | 2);
	put(m, size);
	assert_true(m->size + size <= sizeof(m->bytes));
	memcpy(m->bytes + m->size, bytes, size);
	m->size += size;
}

static uint64_t string_number(const char *text)
{
	size_t i = 1;

	while (i < string_count && strcmp(strings[i], text))
		i++;
	assert_true(i < 64);
	if (i >= string_count) {
		strings[i] = text;
		string_count = i + 1;
	}
	return i;
}

/* FIELD=NUMBER, FIELD='string', FIELD=[packed numbers], FIELD={a message}, up to the bracket that closes. */
static const char *encode(struct message *m, char *at)
{
	while (*at && *at != '}') {
		unsigned int field = (unsigned int)strtoul(at, &at, 10);
		struct message inner = {};

		assert_int_equal(*at++, '=');
		if (*at == '{') {
			at = (char *)encode(&inner, at + 1);
			put_bytes(m, field, inner.bytes, inner.size);
		} else if (*at == '[') {
			for (at++; *at != ']'; at += *at == ' ')
				put(&inner, (uint64_t)strtoll(at, &at, 0));
			put_bytes(m, field, inner.bytes, inner.size);
			at++;
		} else {
			char *text = at + 1;
			uint64_t number;

			if (*at == '\'') {
				at = strchr(text, '\'');
				*at++ = '\0';
				number = string_number(text);
			} else {
				number = strtoull(at, &at, 0);
			}
			put(m, field << 3);
			put(m, number);
		}
		at += strspn(at, " \n");
	}
	return at + (*at == '}');
}

/* Tables, to be used as "tables" in other inputs. */
static char tables[2000];

static void keep_tables(FILE *out, char *input)
{
	(void)out;
	snprintf(tables, sizeof(tables), "%s", input);
}

static void import_input(FILE *out, char *input)
{
	struct message m = {};
	struct imported i;
	char text[4000], *use = strstr(input, "$tables");

	if (use)
		*use = '\0';
	snprintf(text, sizeof(text), "%s%s%s", input, use ? tables : "", use ? use + 7 : "");
	string_count = 1;
	encode(&m, text);
	put_bytes(&m, 6, "", 0);
	for (size_t k = 1; k < string_count; k++)
		put_bytes(&m, 6, strings[k], strlen(strings[k]));
	i = import_bytes(m.bytes, m.size);
	if (i.err) {
		text_put_error(out, i.err);
		fprintf(out, ": %s", i.failure.what);
	} else {
		put_profile(out, i.p);
	}
	import_done(&i);
	for (size_t cut = 0; cut < m.size; cut++) {
		i = import_bytes(m.bytes, cut);
		assert_true(!i.err || i.err == -EBADMSG || i.err == -EPROTONOSUPPORT);
		import_done(&i);
	}
}

static const struct text_verb verbs[] = {{"tables", keep_tables}, {"import", import_input}, {}};

TEXT_TABLE("import_pprof", verbs, NULL, NULL);
