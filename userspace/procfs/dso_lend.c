/* SPDX-License-Identifier: BSD-2-Clause */
/* For callers that keep descriptors without a dup: what they get stays open as long as the opener. */
#include <errno.h>

#include "procfs/dso_opener_private.h"

struct loan {
	struct dso_opener *o;
	struct file_answer file;
};

static void lend_image(struct dso_opener *o, uint32_t index)
{
	struct image *image = &o->images.data[index];

	if (!image->lent)
		dso_images__hold(o, index);
	image->lent = true;
}

static void lend_root(struct dso_opener *o, int root)
{
	if (!o->roots.data[root].lent)
		dso_roots__hold(o, root);
	o->roots.data[root].lent = true;
}

static int lend_file(void *context, const struct file_answer *answer)
{
	struct loan *loan = context;
	struct dso_opener *o = loan->o;

	loan->file = *answer;
	if (answer->root_fd >= 0)
		lend_root(o, o->images.data[o->answering].root);
	if (answer->fd < 0)
		return 0;
	if (o->fds > o->caps.fds_max + FD_ON_DEMAND)
		loan->file.fd = -EMFILE;
	else
		lend_image(o, o->answering);
	return 0;
}

int dso_opener__find(struct dso_opener *o, const struct dso_identity *identity, int *root_fd,
		     uint64_t *base)
{
	struct loan loan = {.o = o};

	if (dso_opener__request(o, identity, lend_file, &loan))
		loan.file = (struct file_answer){.fd = -1, .root_fd = -1};
	if (root_fd)
		*root_fd = loan.file.root_fd;
	*base = loan.file.base;
	return loan.file.fd < 0 ? -1 : loan.file.fd;
}

int dso_opener__open_by_identity(struct dso_opener *o, const struct dso_identity *identity,
				 uint64_t *base)
{
	struct loan loan = {.o = o};
	int err = dso_opener__request_by_identity(o, identity, lend_file, &loan);

	if (err)
		return err;
	*base = loan.file.base;
	return loan.file.fd;
}
