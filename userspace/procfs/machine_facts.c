/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/machine_facts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "stream/meta.h"

#define NOTES_MAX      (64u << 10)
#define CPU_INFO_LINES 200 /* the first CPU's are enough */

/* The CPU's name from /proc/cpuinfo, if the architecture has one there. */
static int read_cpu_name(char *name, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/cpuinfo", "re");
	char line[512];

	if (!file)
		return -errno;
	for (int i = 0; i < CPU_INFO_LINES && fgets(line, sizeof(line), file); i++) {
		const char *colon = strchr(line, ':');

		if (!colon || strncmp(line, "model name", strlen("model name")))
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		snprintf(name, size, "%.*s", (int)strcspn(colon, "\n"), colon);
		return 0;
	}
	return -ENOENT;
}

static size_t align_note(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

/* The build-id in the kernel's notes, as hexadecimal digits. 0 or negative errno. */
static int read_kernel_build_id(char *text, size_t size)
{
	_cleanup_free_ char *notes = NULL;
	size_t total = 0, at = 0;
	int err = read_file_at(AT_FDCWD, "/sys/kernel/notes", NOTES_MAX, &notes, &total);

	while (!err && at + sizeof(Elf64_Nhdr) <= total) {
		Elf64_Nhdr note;
		size_t name = at + sizeof(note), id, used = 0;

		memcpy(&note, notes + at, sizeof(note));
		id = name + align_note(note.n_namesz);
		at = id + align_note(note.n_descsz);
		if (note.n_namesz > total || note.n_descsz > total || id + note.n_descsz > total)
			return -EBADMSG;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp(notes + name, "GNU", sizeof("GNU")) || 2 * note.n_descsz >= size)
			continue;
		for (size_t i = 0; i < note.n_descsz; i++)
			used += snprintf(text + used, size - used, "%02x",
					 (unsigned char)notes[id + i]);
		return used ? 0 : -ENOENT;
	}
	return err ? err : -ENOENT;
}

int machine_facts__emit(event_push_fn push, void *context, uint64_t time)
{
	struct utsname machine = {};
	char text[512];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int err;

	uname(&machine);
	err = meta_event__emit(push, context, time, META_PRODUCT, "sysprof " SYSPROF_VERSION);
	if (!err)
		err = meta_event__emit(push, context, time, META_HOSTNAME, machine.nodename);
	if (!err)
		err = meta_event__emit(push, context, time, META_KERNEL_RELEASE, machine.release);
	if (!err && !read_kernel_build_id(text, sizeof(text)))
		err = meta_event__emit(push, context, time, META_KERNEL_BUILD_ID, text);
	if (!err)
		err = meta_event__emit(push, context, time, META_ARCHITECTURE, machine.machine);
	if (!err && !read_cpu_name(text, sizeof(text)))
		err = meta_event__emit(push, context, time, META_CPU, text);
	if (!err && cpus > 0) {
		snprintf(text, sizeof(text), "%ld", cpus);
		err = meta_event__emit(push, context, time, META_CPU_COUNT, text);
	}
	return err;
}
