/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/told.h"

#include <errno.h>
#include <string.h>

#include "lnet/core/cpt.h"
#include "lnet/discovery/info.h"

static int bytes_decode(struct lnet_cpt *cpt, const uint8_t *bytes,
			size_t length, struct ulnet_ping_info *info,
			struct ulnet_ping_ni **ni, size_t *need_p)
{
	unsigned int max = settings_interfaces_max(&cpt->node->settings);
	size_t need = 0;
	int rc;

	*need_p = 0;
	*ni = malloc(ping_info_room(length, max) * sizeof(**ni));
	if (!*ni)
		return -ENOMEM;
	rc = ping_info_decode(bytes, length, info, *ni, max, &need);
	if (rc != -EMSGSIZE)
		return rc;
	*need_p = need;
	return 0;
}

int told_decode(struct lnet_cpt *cpt, const struct told *told,
		struct ulnet_ping_info *info, struct ulnet_ping_ni **ni,
		size_t *need_p)
{
	return bytes_decode(cpt, told->bytes, told->length, info, ni, need_p);
}

int told_new(struct lnet_cpt *cpt, const uint8_t *bytes, size_t length,
	     struct told **told_p)
{
	struct ulnet_ping_info info;
	struct ulnet_ping_ni *ni;
	struct told *told;
	size_t need;
	int rc = bytes_decode(cpt, bytes, length, &info, &ni, &need);

	free(ni);
	*told_p = NULL;
	if (rc)
		return rc;
	told = malloc(sizeof(*told) + length);
	if (!told)
		return -ENOMEM;
	told->claimed = told->kept = 0;
	told->unanswered = 0;
	told->keeps = calloc(MAX(info.nnis, 1), sizeof(told->keeps[0]));
	if (!told->keeps) {
		free(told);
		return -ENOMEM;
	}
	told->sequence = info.sequence;
	told->pid = info.pid;
	told->length = length;
	memcpy(told->bytes, bytes, length);
	*told_p = told;
	return 0;
}

void told_free(struct told *told)
{
	if (!told)
		return;
	free(told->keeps);
	free(told);
}

enum told_order told_order(const struct told *was, const struct told *is)
{
	bool same = was->length == is->length &&
		    !memcmp(was->bytes, is->bytes, is->length);

	if (was->pid != is->pid || same ||
	    disc_later(is->sequence, was->sequence))
		return TOLD_LATER;
	if (is->source == MERGE_REPLY || is->sequence == was->sequence)
		return TOLD_PERHAPS_LATER;
	return TOLD_PERHAPS_EARLIER;
}
