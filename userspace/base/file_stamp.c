/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file_stamp.h"

#include <errno.h>
#include <sys/stat.h>

int file_stamp__read(int fd, struct file_stamp *stamp)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*stamp = (struct file_stamp){
		.device = st.st_dev,
		.inode = st.st_ino,
		.size = st.st_size,
		.changed = st.st_ctim.tv_sec,
		.changed_ns = st.st_ctim.tv_nsec,
	};
	return 0;
}
