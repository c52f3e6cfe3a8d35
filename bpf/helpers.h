/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The headers of the kernel and of libbpf, whatever their version. Newer ones declare functions of the kernel, with types of
 * theirs, that programs here declare with types of kernel.h: in those headers they get another name.
 */
#ifndef BPF_HELPERS_H
#define BPF_HELPERS_H

#define bpf_iter_num_new      bpf_iter_num_new___libbpf
#define bpf_iter_num_next     bpf_iter_num_next___libbpf
#define bpf_iter_num_destroy  bpf_iter_num_destroy___libbpf
#define bpf_iter_task_new     bpf_iter_task_new___libbpf
#define bpf_iter_task_next    bpf_iter_task_next___libbpf
#define bpf_iter_task_destroy bpf_iter_task_destroy___libbpf

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#undef bpf_iter_num_new
#undef bpf_iter_num_next
#undef bpf_iter_num_destroy
#undef bpf_iter_task_new
#undef bpf_iter_task_next
#undef bpf_iter_task_destroy

#endif
