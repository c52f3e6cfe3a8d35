/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_CODE_FLOW_H
#define UNWIND_CODE_FLOW_H

struct code_flow;

/* All rules have UNWIND_RA_INFERRED, unless frame pointers will do. 0, -ENOMEM, result of `row`. */
int code_flow__follow(const struct code_flow *flow);

#endif
