/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry of a linkage table is 16 bytes: a jump through the global offset table, and where symbols are bound lazily
 * the number of the symbol is pushed and the first entry jumped to, which pushes one word more (System V ABI, AMD64
 * supplement, "Procedure Linkage Table"; with CET the jumps are in .plt.sec). GNU ld describes its own, lld does not.
 *
 * Some C libraries, musl above all, do not describe where a stack begins or is left. A signal handler returns to
 * "mov $__NR_rt_sigreturn,%rax; syscall". A program is entered where its header says, without a return address: it
 * marks the outermost frame (xor %ebp,%ebp), aligns the stack (and $-16,%rsp) and calls on (System V ABI, AMD64
 * supplement, 3.4.1). glibc's dynamic linker is entered with mov %rsp,%rdi; call, and leaves to the program with
 * jmp *%r12.
 */
#include "unwind/undescribed.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"

#define PLT_MAX	  (64u << 20)
#define TEXT_MAX  (16u << 20) /* C libraries and static programs; it takes 1 ms a MB */
#define ENTRY_MAX 128

static const unsigned char SIGRETURN[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
static const unsigned char SIGRETURN_32[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05}; /* mov $15,%eax */
static const unsigned char ENDBR64[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const unsigned char XOR_EBP[] = {0x31, 0xed};
static const unsigned char XOR_RBP[] = {0x48, 0x31, 0xed};
static const unsigned char LINKER_ENTRY[] = {0x48, 0x89, 0xe7, 0xe8};
static const unsigned char JUMP[] = {0xff, 0x25};
static const unsigned char JUMP_R12[] = {0x41, 0xff, 0xe4};
static const unsigned char ALIGN[] = {0x48, 0x83, 0xe4, 0xf0};

/* Behind which byte of an entry the symbol's number has been pushed; 0: it never is. */
static unsigned int pushed_after(const unsigned char *entry)
{
	if (!memcmp(entry, JUMP, sizeof(JUMP)) && entry[6] == 0x68)
		return 11;
	if (!memcmp(entry, ENDBR64, sizeof(ENDBR64)) && entry[4] == 0x68)
		return 9;
	return 0;
}

/* Adds to the `count` that were found: how many there are then, or -ENOMEM. So do the functions below. */
static int find_plts(struct elf_file *file, struct known_code *found, int count)
{
	static const char *const NAMES[] = {".plt", ".plt.sec", ".plt.got"};

	for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
		_cleanup_free_ void *code = NULL;
		struct elf_section section;
		size_t size;
		int err;

		if (elf_file__find_section(file, NAMES[i], &section) ||
		    !(section.flags & SHF_EXECINSTR) || section.address % PLT_ENTRY_SIZE)
			continue;
		err = elf_file__section_data(file, NAMES[i], PLT_MAX, &code, &size);
		if (err == -ENOMEM)
			return err;
		if (err || !size)
			continue;
		found[count++] = (struct known_code){
			.start = section.address,
			.end = section.address + size,
			.cfa = UNWIND_CFA_PLT,
			.pushed_after =
				size < 2 * PLT_ENTRY_SIZE
					? 0
					: pushed_after((unsigned char *)code + PLT_ENTRY_SIZE),
		};
	}
	return count;
}

struct text {
	const unsigned char *bytes;
	size_t size;
	uint64_t address;
};

static int find_returns(const struct text *text, const unsigned char *pattern, size_t size,
			struct known_code *found, int count)
{
	const unsigned char *at = text->bytes, *end = at + text->size;

	while (count < KNOWN_CODE_MAX && (at = memmem(at, end - at, pattern, size))) {
		found[count++] = (struct known_code){
			.start = text->address + (at - text->bytes),
			.end = text->address + (at - text->bytes) + size,
			.cfa = UNWIND_CFA_SIGNAL,
		};
		at += size;
	}
	return count;
}

static bool begins_with(const unsigned char *at, size_t left, const unsigned char *bytes,
			size_t size)
{
	return left >= size && !memcmp(at, bytes, size);
}

/* How many bytes of code there are from the linker's entry to that jump; 0: it looks different. */
static size_t linker_entry_size(const unsigned char *code, size_t size)
{
	const unsigned char *jump;

	if (!begins_with(code, size, LINKER_ENTRY, sizeof(LINKER_ENTRY)))
		return 0;
	jump = memmem(code, size, JUMP_R12, sizeof(JUMP_R12));
	return jump ? jump + sizeof(JUMP_R12) - code : 0;
}

/* How many bytes of code there are from the entry to the end of its first call; 0: it looks different. */
static size_t entry_size(const unsigned char *code, size_t size)
{
	const unsigned char *align;
	size_t at = 0;

	if (begins_with(code, size, ENDBR64, sizeof(ENDBR64)))
		at = sizeof(ENDBR64);
	if (!begins_with(code + at, size - at, XOR_EBP, sizeof(XOR_EBP)) &&
	    !begins_with(code + at, size - at, XOR_RBP, sizeof(XOR_RBP)))
		return linker_entry_size(code, size);
	align = memmem(code, size, ALIGN, sizeof(ALIGN));
	if (!align)
		return 0;
	for (at = align + sizeof(ALIGN) - code; at + 6 <= size; at++) {
		if (code[at] == 0xe8) /* call rel32 */
			return at + 5;
		if (code[at] == 0xff && code[at + 1] == 0x15) /* call *rel32(%rip) */
			return at + 6;
	}
	return 0;
}

static int find_entry(const struct text *text, uint64_t entry, struct known_code *found, int count)
{
	uint64_t offset = entry - text->address, left = text->size - offset;
	size_t size;

	if (count == KNOWN_CODE_MAX || offset >= text->size)
		return count;
	size = entry_size(text->bytes + offset, min_u64(left, ENTRY_MAX));
	if (size)
		found[count++] = (struct known_code){
			.start = entry, .end = entry + size, .cfa = UNWIND_CFA_ROOT};
	return count;
}

static int find_trampolines(struct elf_file *file, struct known_code *found, int count)
{
	_cleanup_free_ void *code = NULL;
	struct elf_section section;
	struct text text;
	int err;

	if (elf_file__find_section(file, ".text", &section))
		return count;
	err = elf_file__section_data(file, ".text", TEXT_MAX, &code, &text.size);
	if (err)
		return err == -ENOMEM ? err : count;
	text.bytes = code;
	text.address = section.address;
	count = find_entry(&text, elf_file__entry(file), found, count);
	count = find_returns(&text, SIGRETURN, sizeof(SIGRETURN), found, count);
	return find_returns(&text, SIGRETURN_32, sizeof(SIGRETURN_32), found, count);
}

int known_code__find(struct elf_file *file, struct known_code found[KNOWN_CODE_MAX])
{
	int count = find_plts(file, found, 0);

	return count < 0 ? count : find_trampolines(file, found, count);
}
