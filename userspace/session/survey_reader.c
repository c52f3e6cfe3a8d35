/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/process_survey.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/proc_task.h"
#include "base/tenant_open.h"
#include "elf/elf_file.h"
#include "elf/gopclntab.h"
#include "runtimes/runtime.h"
#include "symbolize/debug_file.h"

_Static_assert(sizeof(struct survey_mapping) <= MESSAGE_SIZE_MAX, "it is one request");

#define FILE_MAX     (16ull << 30) /* bytes of a file that is looked at */
#define BUILD_ID_MAX 64u

/* 0, or -EPROTO: it is no such request. The path ends. */
static int take_mapping(const struct helper_job *job, struct survey_mapping *mapping)
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
	crc_ledger__init(&counts.crcs);
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

/* ---- a file ---------------------------------------------------------------------------------- */

static void look_at(const struct survey_mapping *mapping, int fd, struct elf_file *file,
		    struct survey_file *answer)
{
	const char *slash = strrchr(mapping->path, '/');
	const struct runtime *runtime = slash ? runtime_like_file(slash + 1) : NULL;

	answer->wide = elf_file__is_x86_64(file);
	answer->cfi = cfi_of(file);
	answer->symbols = has_section(file, ".symtab") ? 1 : has_section(file, ".dynsym") ? 2 : 0;
	answer->debug = find_debug(mapping, fd, file);
	if (runtime && runtime->read_version)
		runtime->read_version((pid_t)mapping->pid, mapping->path, answer->version,
				      sizeof(answer->version));
}

void survey_file__serve(struct helper_job *job)
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
