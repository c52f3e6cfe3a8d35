/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf writes a mapping for the kernel's image, "[kernel.kallsyms]_text", whose page offset is the
 * address of that symbol, and one for each module. A kernel that was started again lies elsewhere:
 * its symbols are moved by the distance of that symbol.
 */
#include "stream/perf/perf_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/kernel_build_id.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/suffix.h"
#include "stream/kallsyms_pieces.h"

#define IMAGE	       "[kernel.kallsyms]"
#define LINE_MAX_READ  (64u * 1024)
#define LINE_MAX_MOVED 1024u

void perf_kernel__fini(struct perf_kernel *kernel)
{
	vec_free(&kernel->modules);
}

/* ---- the running kernel ---------------------------------------------------------------------- */

void running_kernel__open(struct running_kernel *kernel)
{
	*kernel = (struct running_kernel){
		.kallsyms = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC),
		.modules = open("/proc/modules", O_RDONLY | O_CLOEXEC),
	};
	if (kernel_build_id__read(kernel->build_id, sizeof(kernel->build_id)))
		*kernel->build_id = '\0';
	uname(&kernel->name);
}

void running_kernel__close(struct running_kernel *kernel)
{
	cleanup_close(&kernel->kallsyms);
	cleanup_close(&kernel->modules);
}

/* ---- mappings -------------------------------------------------------------------------------- */

static void take_image(struct perf_kernel *k, const char *symbol, uint64_t address)
{
	snprintf(k->symbol, sizeof(k->symbol), "%s", symbol);
	k->address = *symbol ? address : 0;
}

static void take_build_id(struct perf_kernel *k, const uint8_t *bytes)
{
	if (!bytes[0] || bytes[0] > BUILD_ID_SIZE)
		return;
	k->build_id_size = bytes[0];
	memcpy(k->build_id, bytes + 4, bytes[0]);
}

void perf_kernel__module_name(const char *path, char *name, size_t size)
{
	const char *base = path_base(path);
	size_t length;

	base += *base == '[';
	length = strcspn(base, "].");
	length = length < size ? length : size - 1;
	for (size_t i = 0; i < length; i++)
		name[i] = base[i] == '-' ? '_' : base[i];
	name[length] = '\0';
}

int perf_kernel__map(struct perf_kernel *k, const struct perf_event_header *record, struct cursor c)
{
	struct perf_range range = {};
	const uint8_t *about;
	const char *path;
	uint64_t offset;

	if ((record->type != PERF_RECORD_MMAP && record->type != PERF_RECORD_MMAP2) ||
	    (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_KERNEL)
		return 0;
	cursor__skip(&c, 8); /* pid, tid */
	range.start = cursor__u64(&c);
	range.end = range.start + cursor__u64(&c);
	offset = cursor__u64(&c);
	about = c.at;
	if (record->type == PERF_RECORD_MMAP2)
		cursor__skip(&c, 32); /* build-id, or device and inode; protection, flags */
	path = cursor__string(&c);
	if (!path || range.end <= range.start)
		return 0;
	perf_kernel__module_name(path, range.module, sizeof(range.module));
	if (strncmp(path, IMAGE, strlen(IMAGE)))
		return k->modules.count < PERF_KERNEL_RANGES_MAX ? vec_push(&k->modules, range) : 0;
	take_image(k, path + strlen(IMAGE), offset);
	if (record->type == PERF_RECORD_MMAP2 && record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		take_build_id(k, about);
	return 0;
}

static bool is_image_path(const char *path)
{
	return !strncmp(path, IMAGE, strlen(IMAGE)) || strstr(path, "vmlinux") ||
	       strstr(path, "vmlinuz") || !strcmp(path, "/proc/kcore");
}

void perf_kernel__settle(struct perf_kernel *k, const struct perf_file *file)
{
	for (size_t i = 0; i < file->build_ids.count && !k->build_id_size; i++) {
		const struct perf_build_id *id = &file->build_ids.data[i];

		if (!id->is_kernel || id->is_doubtful || !is_image_path(id->path))
			continue;
		k->build_id_size = id->size;
		memcpy(k->build_id, id->bytes, id->size);
	}
}

const char *perf_kernel__build_id(const struct perf_kernel *k, char *text, size_t size)
{
	*text = '\0';
	if (k->build_id_size && 2u * k->build_id_size < size)
		put_hex_bytes(text, k->build_id, k->build_id_size);
	return text;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct names {
	const struct perf_kernel *kernel;
	const struct running_kernel *here;
	struct perf_range *modules; /* sorted */
	struct kallsyms_pieces pieces;
	uint64_t running; /* address of the kernel's symbol now; 0: not seen */
	uint64_t moved;	  /* to be added to addresses of the running kernel */
};

DEFINE_ORDER(compare_ranges, struct perf_range, order_of(x->start, y->start));

/* A line_fn: stops at the symbol. */
static int look_for_symbol(void *context, char *line, size_t size)
{
	struct names *n = context;
	const char *at = line;
	uint64_t address;
	size_t length = strlen(n->kernel->symbol);

	if (parse_hex(&at, &address) || size < (size_t)(at - line) + 3 + length || at[0] != ' ')
		return 0;
	at += 3;
	if ((size_t)(line + size - at) != length || memcmp(at, n->kernel->symbol, length))
		return 0;
	n->running = address;
	return 1;
}

/* The last one that begins at the address or before. NULL: none. */
static struct perf_range *range_before(const struct names *n, uint64_t address)
{
	size_t low = 0, high = n->kernel->modules.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (n->modules[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &n->modules[low - 1] : NULL;
}

/* "… T NAME\t[MODULE]" and its newline: is the address in the mapping of that module? */
static bool is_in_module(const struct names *n, const char *line, size_t size, uint64_t address)
{
	const struct perf_range *range = range_before(n, address);
	const char *tag = memrchr(line, '[', size);
	size_t length = range ? strlen(range->module) : 0;

	return range && range->is_here && address < range->end && tag &&
	       (size_t)(line + size - tag) >= length + 2 &&
	       !memcmp(tag + 1, range->module, length) && tag[1 + length] == ']';
}

/* A line_fn of /proc/modules: "NAME SIZE REFERENCES USERS STATE ADDRESS". */
static int note_module(void *context, char *line, size_t size)
{
	struct names *n = context;
	const char *at = memrchr(line, ' ', size);
	struct perf_range *range;
	uint64_t address;

	for (; at && strncmp(at, " 0x", 3); at = memrchr(line, ' ', (size_t)(at - line)))
		; /* "(OE)" may follow */
	if (!at)
		return 0;
	at += 3;
	if (parse_hex(&at, &address))
		return 0;
	range = range_before(n, address);
	line[strcspn(line, " ")] = '\0';
	if (range && range->start == address && !strcmp(range->module, line))
		range->is_here = true;
	return 0;
}

/* Without them, or their addresses, none is at the same place. */
static int read_modules(struct names *n)
{
	return n->here->modules < 0 || !n->kernel->modules.count
		       ? 0
		       : read_lines(n->here->modules, LINE_MAX_READ, note_module, n);
}

static int add_moved(struct names *n, const char *line, size_t size, const char *rest,
		     uint64_t address)
{
	char moved[LINE_MAX_MOVED];
	int length = snprintf(moved, sizeof(moved), "%016" PRIx64 "%.*s\n", address + n->moved,
			      (int)(line + size - rest), rest);

	if (length <= 0 || (size_t)length >= sizeof(moved))
		return 0;
	return kallsyms_pieces__add(&n->pieces, moved, (size_t)length);
}

/* A line_fn. Programs of BPF are none of these: PERF_RECORD_KSYMBOL has them. */
static int take_line(void *context, char *line, size_t size)
{
	struct names *n = context;
	const char *at = line;
	uint64_t address;

	if (parse_hex(&at, &address))
		return 0;
	if (kallsyms_line_has_module(line, size + 1))
		return n->moved || !is_in_module(n, line, size, address)
			       ? 0
			       : kallsyms_pieces__add(&n->pieces, line, size + 1);
	return n->moved ? add_moved(n, line, size, at, address)
			: kallsyms_pieces__add(&n->pieces, line, size + 1);
}

/* Where the image is now, and how far that is from where it was. */
static int find_distance(struct names *n)
{
	int fd = n->here->kallsyms;
	int err = n->kernel->address ? read_lines(fd, LINE_MAX_READ, look_for_symbol, n) : 0;

	if (err < 0)
		return err;
	if (n->running)
		n->moved = n->kernel->address - n->running;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int read_names(struct names *n)
{
	return read_lines(n->here->kallsyms, LINE_MAX_READ, take_line, n)
		       ?: kallsyms_pieces__end(&n->pieces);
}

static enum perf_kernel_names judge_build_id(const struct names *n)
{
	char recorded[2 * BUILD_ID_SIZE + 1];

	return strcmp(perf_kernel__build_id(n->kernel, recorded, sizeof(recorded)),
		      n->here->build_id)
		       ? PERF_KERNEL_OTHER
		       : PERF_KERNEL_SAME;
}

/* An address that is random at each start makes it the same one, or one as good. */
static enum perf_kernel_names judge_likeness(const struct names *n, const struct perf_facts *facts)
{
	const struct utsname *here = &n->here->name;

	return n->running && !n->moved && *facts->release &&
			       !strcmp(here->release, facts->release) &&
			       !strcmp(here->nodename, facts->hostname)
		       ? PERF_KERNEL_ALIKE
		       : PERF_KERNEL_UNKNOWN;
}

static enum perf_kernel_names judge(const struct names *n, const struct perf_facts *facts)
{
	enum perf_kernel_names names = n->kernel->build_id_size ? judge_build_id(n)
								: judge_likeness(n, facts);

	if (names > PERF_KERNEL_ALIKE)
		return names;
	if (!n->kernel->address) /* it may have been started again, and lie elsewhere */
		return PERF_KERNEL_UNKNOWN;
	if (!n->running)
		return PERF_KERNEL_HIDDEN;
	return names;
}

static int sort_modules(struct names *n)
{
	size_t count = n->kernel->modules.count;

	n->modules = calloc(count + 1, sizeof(*n->modules));
	if (!n->modules)
		return -ENOMEM;
	if (count)
		memcpy(n->modules, n->kernel->modules.data, count * sizeof(*n->modules));
	qsort(n->modules, count, sizeof(*n->modules), compare_ranges);
	return 0;
}

int perf_kernel__emit_names(const struct perf_kernel *k, const struct running_kernel *here,
			    const struct perf_facts *facts, event_push_fn push, void *context,
			    enum perf_kernel_names *names)
{
	struct names n = {.kernel = k, .here = here};
	int err;

	*names = PERF_KERNEL_HIDDEN;
	if (!here || here->kallsyms < 0)
		return 0;
	err = find_distance(&n);
	if (err)
		return err;
	*names = judge(&n, facts);
	if (*names > PERF_KERNEL_ALIKE)
		return 0;
	err = kallsyms_pieces__init(&n.pieces, 0, push, context)
		      ?: sort_modules(&n)
		      ?: read_modules(&n)
		      ?: read_names(&n);
	kallsyms_pieces__fini(&n.pieces);
	free(n.modules);
	return err;
}
