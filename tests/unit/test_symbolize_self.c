/* SPDX-License-Identifier: BSD-2-Clause */
/* From addresses to names: this process, its libraries and its vDSO, beside dladdr and nm. */
#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <sysprof/symbolizer.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "symbolize/demangle.h"
#include "symbolize/module_private.h"

#include "unit/symbolize_support.h"

/* ---- this process ---------------------------------------------------------------------------- */

struct module_query {
	uintptr_t address;
	uint64_t offset, elf_address;
	uint64_t text_start, text_end; /* ELF addresses of the segment */
	uint64_t text_offset;
	bool found;
};

static int find_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct module_query *q = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || q->address < start ||
		    q->address - start >= ph->p_filesz)
			continue;
		q->elf_address = q->address - info->dlpi_addr;
		q->offset = q->elf_address - ph->p_vaddr + ph->p_offset;
		q->text_start = ph->p_vaddr;
		q->text_end = ph->p_vaddr + ph->p_filesz;
		q->text_offset = ph->p_offset;
		q->found = true;
		return 1;
	}
	return 0;
}

static struct module_query module_of(const void *address)
{
	struct module_query q = {.address = (uintptr_t)address};

	dl_iterate_phdr(find_module, &q);
	assert_true(q.found);
	return q;
}

TEST(a_function_of_this_program_has_its_name)
{
	struct symbolizer *s = symbolizer__new();
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct module_query q = module_of(a_function_of_this_program_has_its_name);
	uint64_t offset = q.offset + 4;
	struct answer answer;

	assert_int_equal(resolve(s, DSO_FILE, fd, &offset, 1, &answer), SYMBOL_STATE_RESOLVED);
	assert_string_equal(answer.name, "a_function_of_this_program_has_its_name");
	assert_int_equal(answer.address, q.elf_address);
	assert_int_equal(answer.elf_address, q.elf_address + 4);
	assert_true(answer.size > 4);
	symbolizer__free(s);
}

TEST(names_of_libc_are_those_of_dlsym)
{
	static const char *const names[] = {"malloc", "free",  "qsort",	 "printf",
					    "fopen",  "fread", "getenv", "strtol"};
	struct symbolizer *s = symbolizer__new();
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	assert_non_null(libc);
	for (size_t i = 0; i < COUNT(names); i++) {
		char *function = dlsym(libc, names[i]);
		_cleanup_close_ int fd = -1;
		struct answer answer;
		uint64_t offset;
		Dl_info info;
		char *alias;

		assert_non_null(function);
		assert_int_not_equal(dladdr(function, &info), 0);
		offset = module_of(function).offset + 1;
		fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
		assert_int_equal(resolve(s, DSO_FILE, fd, &offset, 1, &answer),
				 SYMBOL_STATE_RESOLVED);
		assert_int_equal(answer.address, module_of(function).elf_address);
		if (i < 3)
			assert_string_equal(answer.name, names[i]);
		alias = dlsym(libc, answer.name);
		assert_true(!alias || alias == function);
	}
	dlclose(libc);
	symbolizer__free(s);
}

TEST(the_vdso_has_names_of_clock_functions)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR); // NOLINT
	struct symbolizer *s = symbolizer__new();
	const size_t step = 16, size = 4096;
	_cleanup_close_ int fd = -1;
	uint64_t offsets[4096 / 16];
	struct answer answers[4096 / 16];
	size_t count = 0, clocks = 0;

	if (!image) {
		symbolizer__free(s);
		print_message("skipped: this kernel gives no vDSO\n");
		skip();
	}
	fd = memfd_create("vdso", MFD_CLOEXEC);
	for (size_t at = 0; at < 16 * size; at += size) {
		/* The image's last page is not known here; write() says where reading ends. */
		if (pwrite(fd, image + at, size, (off_t)at) != (ssize_t)size)
			break;
	}
	for (size_t at = 0; at < size; at += step)
		offsets[count++] = at;
	assert_int_equal(resolve(s, DSO_VDSO, fd, offsets, count, answers), SYMBOL_STATE_RESOLVED);
	for (size_t i = 0; i < count; i++)
		clocks += strstr(answers[i].name, "clock_get") || strstr(answers[i].name, "time");
	assert_true(clocks > 0);
	symbolizer__free(s);
}

/* ---- beside nm ------------------------------------------------------------------------------- */

struct nm_symbol {
	uint64_t address, size;
	char *name;
};

struct nm_list {
	VEC(struct nm_symbol) symbols;
};

static void read_nm(struct nm_list *list, const char *options, const char *path)
{
	char command[600], line[8192], demangled[DEMANGLED_SIZE];
	FILE *nm;

	snprintf(command, sizeof(command), "nm %s -S --defined-only %s 2>/dev/null", options, path);
	nm = popen(command, "r");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm)) {
		unsigned long long address, size = 0;
		char type, *name;
		int end = 0;

		if (sscanf(line, "%llx %llx %c %n", &address, &size, &type, &end) != 3 || !end) {
			size = 0;
			if (sscanf(line, "%llx %c %n", &address, &type, &end) != 2)
				continue;
		}
		if (!strchr("TtWwiu", type))
			continue;
		name = line + end;
		name[strcspn(name, "@\n")] = '\0';
		demangle(name, demangled, sizeof(demangled));
		assert_int_equal(vec_push(&list->symbols,
					  (struct nm_symbol){address, size, strdup(demangled)}),
				 0);
	}
	pclose(nm);
}

static void assert_nm_agrees(const struct nm_list *nm, const struct answer *answer)
{
	bool named = false, covered = false;
	size_t length = strlen(answer->name);

	for (size_t i = 0; i < nm->symbols.count; i++) {
		const struct nm_symbol *symbol = &nm->symbols.data[i];
		bool covers = answer->elf_address - symbol->address < symbol->size;

		covered |= covers;
		if (!length || symbol->address != answer->address || symbol->size != answer->size)
			continue;
		/* Kept answers are cut at the test's own buffer. */
		named |= (covers || !symbol->size) &&
			 !strncmp(symbol->name, answer->name, sizeof(answer->name) - 1);
	}
	assert_int_equal(named, length > 0);
	assert_true(!covered || length);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void compare_with_nm(const char *path, const struct module_query *text, size_t count,
			    uint64_t seed)
{
	_cleanup_free_ uint64_t *offsets = calloc(count, sizeof(*offsets));
	_cleanup_free_ struct answer *answers = calloc(count, sizeof(*answers));
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct nm_list nm = {};
	size_t distinct = 0;

	read_nm(&nm, "", path);
	read_nm(&nm, "-D", path);
	assert_true(nm.symbols.count > 50);
	for (size_t i = 0; i < count; i++)
		offsets[i] = text->text_offset +
			     next_random(&seed) % (text->text_end - text->text_start);
	qsort(offsets, count, sizeof(*offsets), compare_u64);
	for (size_t i = 0; i < count; i++) {
		if (!i || offsets[i] != offsets[i - 1])
			offsets[distinct++] = offsets[i];
	}
	assert_int_equal(resolve_symbols(fd, offsets, distinct, answers), SYMBOL_STATE_RESOLVED);
	for (size_t i = 0; i < distinct; i++) {
		assert_int_equal(answers[i].elf_address,
				 offsets[i] - text->text_offset + text->text_start);
		assert_nm_agrees(&nm, &answers[i]);
	}
	for (size_t i = 0; i < nm.symbols.count; i++)
		free(nm.symbols.data[i].name);
	vec_free(&nm.symbols);
}

TEST(names_in_libraries_agree_with_nm)
{
	struct module_query text = module_of(dlsym(RTLD_DEFAULT, "qsort"));
	char own[4096];
	ssize_t length;
	void *library;
	Dl_info info;

	assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "qsort"), &info), 0);
	compare_with_nm(info.dli_fname, &text, 20000, 0x1234567);
	library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (!library) {
		print_message("skipped in part: libstdc++ is not there\n");
		return;
	}
	assert_int_not_equal(dladdr(dlsym(library, "__cxa_throw"), &info), 0);
	text = module_of(dlsym(library, "__cxa_throw"));
	compare_with_nm(info.dli_fname, &text, 20000, 0x7654321);
	dlclose(library);
	text = module_of(compare_with_nm);
	length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	assert_true(length > 0);
	own[length] = '\0';
	compare_with_nm(own, &text, 20000, 0xabcdef);
}
