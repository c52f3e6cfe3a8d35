/* SPDX-License-Identifier: BSD-2-Clause */
/* HotSpot by the contract of runtimes/runtime.h. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "elf/elf_exports.h"
#include "elf/elf_file.h"
#include "runtimes/hotspot/answers.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/known.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/runtime.h"
#include "runtimes/table.h"
#include "tenants/tenant_open.h"

/* ---- in a reader ----------------------------------------------------------------------------- */

/* The tables of a JVM. 0; -ENODATA: this is none. */
static int read_exports(struct elf_file *file, uint64_t bias, uint64_t exports[HOTSPOT_EXPORTS])
{
	struct elf_exports x;
	int err = elf_exports__init(&x, file);

	for (size_t i = 0; i < HOTSPOT_EXPORTS && !err; i++) {
		err = elf_exports__find(&x, hotspot_export_names[i], &exports[i]);
		exports[i] += bias;
	}
	return err;
}

/* Its heaps and its interpreter come with its first thread; until then they cannot be read. */
static void find(void *state, struct runtime_lookup *lookup)
{
	struct hotspot_found *found = state;
	uint64_t exports[HOTSPOT_EXPORTS];
	int err;

	if (found->layout.header_size || !lookup->has_bias ||
	    read_exports(lookup->file, lookup->bias, exports))
		return;
	if (hotspot_layout__read(&found->layout, &lookup->memory, exports)) {
		/* the loader has not relocated the library yet: its tables have no addresses */
		lookup->may_come = true;
		return;
	}
	if (!found->layout.can[HOTSPOT_CAN_UNWIND]) {
		/* the flag may not be parsed yet, and nothing here shows when it is */
		lookup->may_come |= found->layout.frame_pointers == HOTSPOT_FLAG_OFF;
		return;
	}
	err = hotspot_code__read(&found->code, &found->layout, &lookup->memory);
	if (!err && found->code.bytecode_start == found->code.bytecode_end)
		err = -ENODATA;
	lookup->may_come |= err != 0;
	found->is_read = !err && !hotspot_words__make(&found->words, &found->code);
}

static void fini(void *state)
{
	struct hotspot_found *found = state;

	hotspot_layout__fini(&found->layout);
	hotspot_known__fini(&found->known);
}

static void begin(void *state, struct target_memory *memory)
{
	struct hotspot_found *found = state;

	if (found->is_read)
		hotspot_unloads__look(&found->unloads, &found->layout, memory);
}

static int answer(void *state, struct code_answers *answers, struct target_memory *memory,
		  const struct code_question *q)
{
	struct hotspot_found *found = state;

	found->memory = memory;
	return q->kind == FRAME_NOTE_HOTSPOT ? hotspot_answers__method(answers, found, q)
					     : hotspot_answers__code(answers, found, q);
}

static void describe(const void *state, struct runtime_findings *findings,
		     struct runtime_finding *own)
{
	const struct hotspot_found *found = state;

	*own = (struct runtime_finding){
		.is_seen = found->is_read,
		.is_there = found->is_read,
		.is_read = found->is_read,
		.flags = found->layout.frame_pointers,
	};
	if (found->is_read && found->layout.can[HOTSPOT_CAN_NAME])
		own->flags |= HOTSPOT_FOUND_METHODS;
	if (found->layout.describes_all == HOTSPOT_FLAG_OFF)
		own->flags |= HOTSPOT_FOUND_GAPS;
	findings->keeps_frame_pointers |= found->layout.frame_pointers == HOTSPOT_FLAG_ON;
	if (!found->is_read)
		return;
	findings->info.has |= RUNTIME_HOTSPOT | RUNTIME_HOTSPOT_NOTES;
	findings->info.hotspot = found->words;
}

/* ---- its version ----------------------------------------------------------------------------- */

#define RELEASE_MAX 4096u

/* JAVA_VERSION="17.0.9" in the text of a JDK's `release`. */
static void take_version(const char *text, char *version, size_t size)
{
	static const char key[] = "JAVA_VERSION=\"";
	const char *at = strstr(text, key);
	size_t used = 0;

	if (!at)
		return;
	for (at += sizeof(key) - 1; used + 1 < size; at++) {
		if (!isdigit((unsigned char)*at) && *at != '.' && *at != '_')
			break;
		version[used++] = *at;
	}
	version[used] = '\0';
}

/* `release` is two directories above lib/server/; before JDK 9 four above jre/lib/amd64/server/. */
static void read_version(pid_t pid, const char *library, char *version, size_t size)
{
	_cleanup_close_ int root = tenant_root(pid);
	char path[PATH_MAX + 32], text[RELEASE_MAX];
	const char *slash = strrchr(library, '/');
	struct stat st;

	if (root < 0 || !slash)
		return;
	for (const char *up = "../../"; up && !*version;
	     up = strlen(up) < 12 ? "../../../../" : NULL) {
		_cleanup_close_ int fd = -1;
		ssize_t got;

		snprintf(path, sizeof(path), "%.*s/%srelease", (int)(slash - library), library, up);
		fd = tenant_open(root, path, 0, RELEASE_MAX, &st);
		got = fd < 0 ? -1 : pread_full(fd, text, sizeof(text) - 1, 0);
		text[got > 0 ? got : 0] = '\0';
		take_version(text, version, size);
	}
}

/* ---- in the collector ------------------------------------------------------------------------ */

static unsigned int place_question(const struct sample_event *e, const struct frame_note *note,
				   struct code_question *questions)
{
	questions->address = note_code_address(note, e->frames[e->kernel_frames + note->frame]);
	return 1;
}

static struct note_placing place_code(const struct frame_note *note, uint64_t native,
				      bool (*is_made)(const void *context, uint64_t address),
				      const void *context)
{
	(void)is_made;
	(void)context;
	return (struct note_placing){.address = note_code_address(note, native)};
}

static const struct note_ops notes[] = {
	{.kind = FRAME_NOTE_HOTSPOT,
	 .counted_as = FRAME_NOTE_HOTSPOT,
	 .calls = FRAME_NOTE_HOTSPOT,
	 .is_beside_map = true,
	 .has_signatures = true},
	{.kind = FRAME_NOTE_HOTSPOT_CODE,
	 .is_beside_map = true,
	 .has_pieces = true,
	 .counted_as = FRAME_NOTE_HOTSPOT,
	 .calls = FRAME_NOTE_HOTSPOT,
	 .naming = NAMED_BY_CODE,
	 .lasting = CODE_STAYS,
	 .questions = place_question,
	 .place = place_code},
};

#define DESCRIBE_ALL                                                                               \
	"start it with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints: innermost methods that may be inlined are marked without it"

static void judge(const struct runtime_finding *found, const struct runtime *runtime,
		  const char *version, struct surveyed_runtime *judgement)
{
	enum hotspot_flag pointers = found->flags & HOTSPOT_FOUND_POINTERS;

	snprintf(judgement->version, sizeof(judgement->version), "%s", version);
	if (found->flags & HOTSPOT_FOUND_METHODS) {
		surveyed_runtime__judge(
			judgement, SURVEY_GOOD,
			"whole stacks, by its code heaps; methods, files and lines are read from its memory");
		if (found->flags & HOTSPOT_FOUND_GAPS)
			judgement->remedy = DESCRIBE_ALL;
		return;
	}
	judgement->remedy = runtime->remedy;
	if (found->is_read) {
		surveyed_runtime__judge(
			judgement, SURVEY_PARTLY,
			"whole stacks, by its code heaps; methods have names with record --jvm-perfmap");
	} else if (pointers == HOTSPOT_FLAG_ON) {
		surveyed_runtime__judge(
			judgement, SURVEY_PARTLY,
			"whole stacks (-XX:+PreserveFramePointer); methods have names with record --jvm-perfmap");
	} else {
		surveyed_runtime__judge(
			judgement, SURVEY_BAD, "%s%s", runtime->lacks,
			pointers == HOTSPOT_FLAG_UNKNOWN
				? " (whether it keeps frame pointers cannot be read)"
				: "");
		judgement->remedy =
			"start it with -XX:+PreserveFramePointer, and record with --jvm-perfmap";
	}
}

static const struct runtime_memory hotspot_memory = {
	.home = &java_runtime,
	.doubt_remedy = DESCRIBE_ALL,
	.bits = RUNTIME_HOTSPOT | RUNTIME_HOTSPOT_NOTES,
	.notes = notes,
	.note_count = sizeof(notes) / sizeof(notes[0]),
	.state_size = sizeof(struct hotspot_found),
	.find = find,
	.fini = fini,
	.begin = begin,
	.answer = answer,
	.describe = describe,
	.judge = judge,
	.needs_walk = true,
};

const struct runtime java_runtime = {
	.name = "Java",
	.files = {{"libjvm.so", true}},
	.remedy = "record with --jvm-perfmap (or run jcmd PID Compiler.perfmap)",
	.lacks = "stacks end at the first frame of Java, whose methods have no names",
	.memory = &hotspot_memory,
	.read_version = read_version,
	.has_own_walk = true,
};
