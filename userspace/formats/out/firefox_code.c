/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/firefox_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/minmax.h"
#include "elf/disassembly.h"
#include "formats/out/annotation.h"
#include "formats/out/firefox_tables.h"
#include "profile/profile.h"

static bool is_of_library(const struct profile *p, struct dso_id dso,
			  const struct firefox_code_request *request)
{
	char id[FIREFOX_DEBUG_ID_SIZE];

	firefox_debug_id(p, dso, id);
	if (*id && request->debug_id && *request->debug_id)
		return !strcasecmp(id, request->debug_id);
	return request->name && !strcmp(dso_display_name(p, dso), request->name);
}

/* What makes the library's address of one in the code. */
static uint64_t delta_of(const struct profile *p, const struct profile_code *code)
{
	for (size_t i = 1; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		if (l->dso.v == code->dso.v && l->elf_address != PROFILE_UNKNOWN_ADDRESS &&
		    profile__code(p, l) == code)
			return l->elf_address - l->address;
	}
	return 0;
}

static const struct profile_code *find_code(const struct profile *p,
					    const struct firefox_code_request *request,
					    const uint64_t *jit_places, uint64_t *offset)
{
	for (size_t i = 0; i < p->code_count; i++) {
		const struct profile_code *code = &p->codes[i];
		uint64_t start;

		if (!is_of_library(p, code->dso, request))
			continue;
		start = jit_places[i] ?: (code->address + delta_of(p, code)) & FIREFOX_ADDRESS_MASK;
		*offset = request->address - start;
		if (*offset < code->size)
			return code;
	}
	return NULL;
}

static void key_hex(struct json_writer *w, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	json_key_string(w, key, text);
}

static void write_instruction(struct json_writer *w, const struct disassembly *d, size_t i)
{
	json_begin_array(w);
	json_uint(w, d->data[i].offset);
	json_string(w, disassembly__text(d, i));
	json_end_array(w);
}

const char *firefox_code(const struct profile *p, const struct firefox_code_request *request,
			 struct json_writer *w)
{
	_cleanup_free_ uint64_t *jit_places = firefox_jit_places(p);
	uint64_t offset;
	const struct profile_code *code = jit_places ? find_code(p, request, jit_places, &offset)
						     : NULL;
	_cleanup_(disassembly__fini) struct disassembly d = {};
	struct disassembly_request bytes = {.address = request->address, .syntax = SYNTAX_INTEL};
	int err;

	if (!code)
		return annotation_no_code(p);
	if (jit_places[code - p->codes]) /* jumps lead to where the code was */
		bytes.address = code->address + offset;
	bytes.code = code->bytes + offset;
	bytes.size = code->size - offset;
	if (!request->whole)
		bytes.size = min_u64(bytes.size, request->size);
	bytes.machine = elf_machine_of(code->machine);
	err = disassemble(&bytes, &d);
	if (err)
		return disassembly_strerror(err);
	key_hex(w, "startAddress", request->address);
	key_hex(w, "size", bytes.size);
	json_key_string(w, "arch", code->machine == CODE_MACHINE_ARM64 ? "aarch64" : "x86_64");
	json_key_array(w, "syntax");
	json_string(w, code->machine == CODE_MACHINE_ARM64 ? "ARM" : "Intel");
	json_end_array(w);
	JSON_COLUMN(w, "instructions", d.count, write_instruction(w, &d, i));
	return NULL;
}
