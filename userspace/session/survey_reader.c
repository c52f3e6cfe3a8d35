/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/survey_reader.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/mapping_path.h"
#include "base/tenant_open.h"
#include "elf/elf_file.h"
#include "elf/gopclntab.h"
#include "jitwatch/runtime_finder.h"
#include "symbolize/debug_file.h"

_Static_assert(sizeof(struct survey_mapping) <= READER_REQUEST_MAX, "it is one request");

#define FILE_MAX     (16ull << 30) /* bytes of a file that is looked at */
#define RELEASE_MAX  4096u
#define BUILD_ID_MAX 64u

/* 0, or -EPROTO: it is no such request. The path ends. */
static int take_mapping(const struct reader_job *job, struct survey_mapping *mapping)
{
	if (job->request_size != sizeof(*mapping))
		return -EPROTO;
	memcpy(mapping, job->request, sizeof(*mapping));
	mapping->path[sizeof(mapping->path) - 1] = '\0';
	return 0;
}

/* ---- sections -------------------------------------------------------------------------------- */

static bool has_section(struct elf_file *file, const char *name)
{
	struct elf_section section;

	return !elf_file__find_section(file, name, &section) && section.type != SHT_NOBITS &&
	       section.size > 4; /* an .eh_frame that only ends is none */
}

static enum survey_cfi cfi_of(struct elf_file *file)
{
	struct elf_section section;

	if (has_section(file, ".eh_frame"))
		return SURVEY_CFI_EH_FRAME;
	if (!elf_file__find_section(file, ".gopclntab", &section) ||
	    !elf_file__find_section(file, ".data.rel.ro.gopclntab", &section))
		return SURVEY_CFI_GO;
	return has_section(file, ".debug_frame") ? SURVEY_CFI_DEBUG_FRAME : SURVEY_CFI_NONE;
}

static bool has_debug_info(struct elf_file *file)
{
	return has_section(file, ".debug_info") || has_section(file, ".zdebug_info");
}

static enum survey_debug find_debug(const struct survey_mapping *mapping, int fd,
				    struct elf_file *file)
{
	_cleanup_close_ int root = tenant_root((pid_t)mapping->pid), debug = -1, alt = -1;
	uint8_t build_id[BUILD_ID_MAX];
	struct debug_file_counts counts = {};
	char path[PATH_MAX];
	int size;

	if (has_debug_info(file))
		return SURVEY_DEBUG_INSIDE;
	size = elf_file__build_id(file, build_id, sizeof(build_id));
	snprintf(path, sizeof(path), "%.*s", (int)mapping_path_length(mapping->path),
		 mapping->path);
	debug_file_find(
		&(struct debug_file_request){
			.elf_fd = fd,
			.root_fd = root,
			.path = path,
			.build_id = build_id,
			.build_id_size = size > 0 ? (uint8_t)size : 0,
		},
		&debug, &alt, &counts);
	return debug >= 0 ? SURVEY_DEBUG_SEPARATE : SURVEY_DEBUG_NONE;
}

/* ---- Java ------------------------------------------------------------------------------------ */

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

/* It lies two directories above that of the library: lib/server/libjvm.so, or lib/amd64/server/ before 9. */
static void read_java_version(const struct survey_mapping *mapping, char *version, size_t size)
{
	_cleanup_close_ int root = tenant_root((pid_t)mapping->pid);
	char path[PATH_MAX + 32], text[RELEASE_MAX];
	const char *slash = strrchr(mapping->path, '/');
	struct stat st;

	if (root < 0 || !slash)
		return;
	for (const char *up = "../../"; up && !*version;
	     up = strlen(up) < 12 ? "../../../../" : NULL) {
		_cleanup_close_ int fd = -1;
		ssize_t got;

		snprintf(path, sizeof(path), "%.*s/%srelease", (int)(slash - mapping->path),
			 mapping->path, up);
		fd = tenant_open(root, path, 0, RELEASE_MAX, &st);
		got = fd < 0 ? -1 : pread_full(fd, text, sizeof(text) - 1, 0);
		text[got > 0 ? got : 0] = '\0';
		take_version(text, version, size);
	}
}

static bool is_jvm(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && !strncmp(slash + 1, "libjvm.so", strlen("libjvm.so"));
}

/* ---- a file ---------------------------------------------------------------------------------- */

static void look_at(const struct survey_mapping *mapping, int fd, struct elf_file *file,
		    struct survey_file *answer)
{
	answer->wide = elf_file__is_x86_64(file);
	answer->cfi = cfi_of(file);
	answer->symbols = has_section(file, ".symtab") ? 1 : has_section(file, ".dynsym") ? 2 : 0;
	answer->debug = find_debug(mapping, fd, file);
	if (is_jvm(mapping->path))
		read_java_version(mapping, answer->version, sizeof(answer->version));
}

void survey_file__serve(struct reader_job *job)
{
	struct survey_file *answer = job->answer;
	struct survey_mapping mapping;
	_cleanup_close_ int fd = -1;
	struct elf_file *file;
	struct stat st;

	job->answer_size = sizeof(*answer);
	answer->error = take_mapping(job, &mapping);
	if (answer->error)
		return;
	fd = tenant_open_mapped((pid_t)mapping.pid, mapping.start, mapping.end, FILE_MAX, &st);
	answer->error = fd < 0 ? fd : elf_file__open(fd, &file);
	if (answer->error)
		return;
	look_at(&mapping, fd, file, answer);
	elf_file__free(file);
}

/* ---- memory ---------------------------------------------------------------------------------- */

void survey_runtimes__serve(struct reader_job *job)
{
	struct survey_memory *answer = job->answer;
	struct found_runtimes found = {};
	uint32_t pid;

	job->answer_size = sizeof(*answer);
	answer->error = -EPROTO;
	if (job->request_size != sizeof(pid))
		return;
	memcpy(&pid, job->request, sizeof(pid));
	answer->error = runtime_finder__look((pid_t)pid, &found);
	answer->v8_verdict = found.v8_verdict;
	answer->python_verdict = found.python_verdict;
	answer->has_v8 = found.has_v8;
	answer->has_python = found.has_python;
	answer->has_hotspot = found.has_hotspot;
	answer->has_methods = found.has_hotspot && found.hotspot.can[HOTSPOT_CAN_NAME];
	answer->frame_pointers = found.hotspot.frame_pointers;
	answer->v8_version[0] = found.v8.major;
	answer->v8_version[1] = found.v8.minor;
	answer->v8_version[2] = found.v8.build;
	answer->python_version = found.python.version;
	found_runtimes__fini(&found);
}
