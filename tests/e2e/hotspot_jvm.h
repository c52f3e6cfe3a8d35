/* SPDX-License-Identifier: BSD-2-Clause */
/* The JVM that hotspot_oracle looks at: its memory, what it publishes of itself, and its code. */
#ifndef TESTS_E2E_HOTSPOT_JVM_H
#define TESTS_E2E_HOTSPOT_JVM_H

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "models/hotspot_walk.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/layout.h"
#include "unwind_target.h"

static struct hotspot_layout layout;
static struct hotspot_code code;
static struct hotspot_blobs blobs;
static struct hotspot_table table;
static struct hotspot_changes changes;
static bool has_rows;
static uint64_t reads, failed;

/* ---- memory ---------------------------------------------------------------------------------- */

static int read_target(void *context, void *to, size_t size, uint64_t address)
{
	reads++;
	return read_process(context, to, size, address) ? -ENODATA : 0;
}

static struct target_memory memory_of(void)
{
	return (struct target_memory){
		.read = read_target, .bytes_left = 1u << 30, .reads_left = 10000000};
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* ---- the JVM --------------------------------------------------------------------------------- */

static uint64_t exports[HOTSPOT_EXPORTS];

static int note_export(void *context, const struct elf_symbol *symbol)
{
	uint64_t bias = *(const uint64_t *)context;

	for (int i = 0; i < HOTSPOT_EXPORTS; i++)
		if (!strcmp(symbol->name, hotspot_export_names[i]))
			exports[i] = symbol->address + bias;
	return 0;
}

static void find_exports(void)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	char path[128], protection[8];
	uint64_t start, end, offset;
	size_t size = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0) {
		uint64_t address, bias;
		struct elf_file *file;
		int fd;

		if (!strstr(line, "/libjvm.so") ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &start, &end, protection,
			   &offset) != 4 ||
		    protection[2] != 'x')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start,
			 end);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || elf_file__open(fd, &file) ||
		    elf_file__address_of_offset(file, offset, &address))
			die("libjvm.so");
		bias = start - address;
		elf_file__each_object(file, true, note_export, &bias);
		elf_file__free(file);
		close(fd);
		return;
	}
	die("no libjvm.so");
}

static void open_jvm(void)
{
	struct target_memory memory = memory_of();

	find_exports();
	if (hotspot_layout__read(&layout, &memory, exports))
		die("layout");
	if (hotspot_code__read(&code, &layout, &memory))
		die("code heaps");
}

static void refresh(void)
{
	struct target_memory memory = memory_of();
	int err;

	if (!has_rows)
		return;
	err = hotspot_code__read(&code, &layout, &memory);
	if (!err)
		err = hotspot_blobs__refresh(&blobs, &code, &memory, &changes);
	if (!err)
		err = hotspot_table__refresh(&table, &code, &memory, &blobs, &changes);
	if (err)
		failed++;
}

#endif
