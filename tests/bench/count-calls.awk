# SPDX-License-Identifier: BSD-2-Clause
#
# Adds to LLVM's text of the programs in the kernel, after all inlining, what counts their functions; see counted_calls.bpf.h.
# Offsets are those of `counted` there.

function assembly(text) {
	gsub(/; /, "\\0A", text)
	print "call void asm sideeffect \"" text "\", \"~{r0},~{r1},~{r2},~{r3}\"()"
}

/^define / {
	print
	is_hook = /section "/ && !/section "perf_event"/
	if (is_hook)
		next
	if (/@tick\(/) # the tick before, with a sample in it or not
		assembly("r0 = counted ll; r1 = *(u64 *)(r0 + 40); " \
			 "r2 = *(u64 *)(r0 + 24); r2 *= r1; r3 = *(u64 *)(r0 + 0); r3 += r2; *(u64 *)(r0 + 0) = r3; " \
			 "r2 = *(u64 *)(r0 + 32); r2 *= r1; r3 = *(u64 *)(r0 + 8); r3 += r2; *(u64 *)(r0 + 8) = r3; " \
			 "r3 = *(u64 *)(r0 + 16); r3 += r1; *(u64 *)(r0 + 16) = r3; " \
			 "r2 = 1; r2 -= r1; r3 = *(u64 *)(r0 + 56); r3 += r2; *(u64 *)(r0 + 56) = r3; " \
			 "r3 = *(u64 *)(r0 + 32); r3 *= r2; r2 = *(u64 *)(r0 + 48); r2 += r3; *(u64 *)(r0 + 48) = r2; " \
			 "r1 = 0; *(u64 *)(r0 + 24) = r1; *(u64 *)(r0 + 32) = r1; *(u64 *)(r0 + 40) = r1")
	else
		assembly("r0 = counted ll; r1 = *(u64 *)(r0 + 24); r1 += 1; *(u64 *)(r0 + 24) = r1")
	next
}

is_hook { gsub(/@counted/, "@elsewhere") }
{ print }
