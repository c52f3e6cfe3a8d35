/* SPDX-License-Identifier: BSD-2-Clause */
/* The libraries of a Firefox profile. */
#include "export/firefox.h"

#include "export/describe.h"

/*
 * The Breakpad form of a build-id: its first 16 bytes as a GUID, whose first three fields are
 * little-endian numbers, and an age of 0. Without a build-id the convention is a hash of the code, but
 * an exporter opens no file: the id is empty then, so viewers do not look it up.
 */
static void breakpad_id(const struct dso_build_id *build_id, char id[34])
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	static const char digits[] = "0123456789ABCDEF";
	char *out = id;

	for (unsigned int i = 0; build_id->size && i < sizeof(order); i++) {
		uint8_t byte = order[i] < build_id->size ? build_id->bytes[order[i]] : 0;

		*out++ = digits[byte >> 4];
		*out++ = digits[byte & 15];
	}
	if (build_id->size)
		*out++ = '0';
	*out = '\0';
}

static void code_id(const struct dso_build_id *build_id, char id[2 * BUILD_ID_SIZE + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned int i = 0; i < build_id->size; i++) {
		*id++ = digits[build_id->bytes[i] >> 4];
		*id++ = digits[build_id->bytes[i] & 15];
	}
	*id = '\0';
}

static void write_lib(const struct firefox_tables *t, struct json_writer *w, struct dso_id id,
		      const char *architecture)
{
	const struct profile_dso *dso = &t->p->dsos[id.v];
	const char *name = dso_display_name(t->p, id);
	const char *path = profile__string(t->p, dso->path);
	struct dso_build_id build_id;
	char breakpad[34], code[2 * BUILD_ID_SIZE + 1];

	if (dso->kind != DSO_FILE || !*path)
		path = name;
	dso_build_id(t->p, id, &build_id);
	breakpad_id(&build_id, breakpad);
	code_id(&build_id, code);
	json_begin_object(w);
	json_key_string(w, "name", name);
	json_key_string(w, "path", path);
	json_key_string(w, "debugName", name);
	json_key_string(w, "debugPath", path);
	json_key_string(w, "breakpadId", breakpad);
	json_key_string(w, "codeId", build_id.size ? code : NULL);
	json_key_string(w, "arch", architecture);
	json_end_object(w);
}

void firefox_tables__write_libs(const struct firefox_tables *t, struct json_writer *w)
{
	const char *architecture = profile__meta(t->p, META_ARCHITECTURE);

	json_begin_array(w);
	for (size_t i = 0; i < t->libs.used.count; i++)
		write_lib(t, w, (struct dso_id){t->libs.used.data[i]}, architecture);
	json_end_array(w);
}
