/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unwind tables' maps (bpf/maps.bpf.h): arrays that the kernel shares with unwind/, and memory
 * segments that are added as tables come.
 */
#ifndef LIVE_CAPTURE_BPF_SESSION_UNWIND_H
#define LIVE_CAPTURE_BPF_SESSION_UNWIND_H

#include <stdbool.h>
#include <stddef.h>

struct bpf_session;
struct failure;
struct unwind_memory;

/* Where unwind tables go; false: there are none. Valid as long as the session. */
bool bpf_session__unwind_memory(struct bpf_session *session, struct unwind_memory *memory);

/* Choose the size of segments and of the maps. The programs are not loaded yet. */
int bpf_session__choose_segments(struct bpf_session *s, size_t bytes);
int bpf_session__size_unwind_maps(struct bpf_session *s);
/* Map them. The programs are loaded. */
int bpf_session__map_unwind_tables(struct bpf_session *s, struct failure *failure);
void bpf_session__unmap_unwind_tables(struct bpf_session *s);

#endif
