/* SPDX-License-Identifier: BSD-2-Clause */
/* disassemble intel|att|arm64 FILE: the file as code, "ADDRESS SIZE TEXT" for each instruction. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "elf/disassembly.h"

int main(int argc, char **argv)
{
	_cleanup_free_ char *code = NULL;
	struct disassembly_request request = {};
	struct disassembly d = {};
	int err = argc == 3 ? read_file_at(AT_FDCWD, argv[2], DISASSEMBLY_SIZE_MAX, &code,
					   &request.size)
			    : -EINVAL;

	if (!err) {
		request.code = (const uint8_t *)code;
		request.machine = strcmp(argv[1], "arm64") ? EM_X86_64 : EM_AARCH64;
		request.syntax = strcmp(argv[1], "att") ? SYNTAX_INTEL : SYNTAX_ATT;
		err = disassemble(&request, &d);
	}
	for (size_t i = 0; i < d.count; i++)
		printf("%" PRIx32 " %" PRIu32 " %s\n", d.data[i].offset, d.data[i].size,
		       disassembly__text(&d, i));
	disassembly__fini(&d);
	if (err)
		fprintf(stderr, "%s\n", disassembly_strerror(err));
	return err ? 1 : 0;
}
