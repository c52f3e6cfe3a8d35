/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A signal handler returns to "mov $__NR_rt_sigreturn,%rax; syscall". A program is entered where its header says,
 * without a return address: it marks the outermost frame (xor %ebp,%ebp), aligns the stack (and $-16,%rsp) and calls
 * on (System V ABI, AMD64 supplement, 3.4.1). glibc's dynamic linker is entered with mov %rsp,%rdi; call, and leaves
 * to the program with jmp *%r12.
 */
#include "unwind/trampoline.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"

#define TEXT_MAX  (16u << 20) /* C libraries and static programs; it takes 1 ms a MB */
#define ENTRY_MAX 128

static const unsigned char SIGRETURN[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
static const unsigned char SIGRETURN_32[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05}; /* mov $15,%eax */
static const unsigned char ENDBR64[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const unsigned char XOR_EBP[] = {0x31, 0xed};
static const unsigned char XOR_RBP[] = {0x48, 0x31, 0xed};
static const unsigned char LINKER_ENTRY[] = {0x48, 0x89, 0xe7, 0xe8};
static const unsigned char JUMP_R12[] = {0x41, 0xff, 0xe4};
static const unsigned char ALIGN[] = {0x48, 0x83, 0xe4, 0xf0};

struct text {
	const unsigned char *bytes;
	size_t size;
	uint64_t address;
};

static int find_returns(const struct text *text, const unsigned char *pattern, size_t size,
			struct trampoline *found, int count)
{
	const unsigned char *at = text->bytes, *end = at + text->size;

	while (count < TRAMPOLINES_MAX && (at = memmem(at, end - at, pattern, size))) {
		found[count++] = (struct trampoline){
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

static int find_entry(const struct text *text, uint64_t entry, struct trampoline *found, int count)
{
	uint64_t offset = entry - text->address, left = text->size - offset;
	size_t size;

	if (count == TRAMPOLINES_MAX || offset >= text->size)
		return count;
	size = entry_size(text->bytes + offset, min_u64(left, ENTRY_MAX));
	if (size)
		found[count++] = (struct trampoline){entry, entry + size, UNWIND_CFA_ROOT};
	return count;
}

int trampolines_find(struct elf_file *file, struct trampoline found[TRAMPOLINES_MAX])
{
	_cleanup_free_ void *code = NULL;
	struct elf_section section;
	struct text text;
	int count = 0, err;

	if (elf_file__find_section(file, ".text", &section))
		return 0;
	err = elf_file__section_data(file, ".text", TEXT_MAX, &code, &text.size);
	if (err)
		return err == -ENOMEM ? err : 0;
	text.bytes = code;
	text.address = section.address;
	count = find_entry(&text, elf_file__entry(file), found, count);
	count = find_returns(&text, SIGRETURN, sizeof(SIGRETURN), found, count);
	return find_returns(&text, SIGRETURN_32, sizeof(SIGRETURN_32), found, count);
}
