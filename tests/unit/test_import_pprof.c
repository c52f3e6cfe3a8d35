/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of pprof, written as text: testdata/import_pprof.txt. */
#include "import_support.h"
#include "pprof_text.h"

/* Tables, to be used as "$tables" in other inputs. */
static char tables[2000];

static void keep_tables(FILE *out, char *input)
{
	snprintf(tables, sizeof(tables), "%s", input);
}

static void import_input(FILE *out, char *input)
{
	struct imported i;
	char text[4000], *use = strstr(input, "$tables"), *bytes;
	size_t size;

	if (use)
		*use = '\0';
	snprintf(text, sizeof(text), "%s%s%s", input, use ? tables : "", use ? use + 7 : "");
	bytes = encode_pprof(text, &size);
	i = import_bytes(bytes, size);
	if (i.err) {
		text_put_error(out, i.err);
		fprintf(out, ": %s", i.failure.what);
	} else {
		put_profile(out, i.p);
	}
	import_done(&i);
	for (size_t cut = 0; cut < size; cut++) {
		i = import_bytes(bytes, cut);
		assert_true(!i.err || i.err == -EBADMSG || i.err == -EPROTONOSUPPORT);
		import_done(&i);
	}
	free(bytes);
}

static const struct text_verb verbs[] = {{"tables", keep_tables}, {"import", import_input}, {}};

TEXT_TABLE("import_pprof", verbs, NULL, NULL);
