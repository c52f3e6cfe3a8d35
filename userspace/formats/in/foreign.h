/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of formats that are not read: what they are, and what to do with them. */
#ifndef FORMATS_IN_FOREIGN_H
#define FORMATS_IN_FOREIGN_H

#include <sysprof/importer.h>

/* 0: it is none of these; -EPROTONOSUPPORT. */
int foreign_refuse(const struct import_request *request, struct import_failure *failure);

#endif
