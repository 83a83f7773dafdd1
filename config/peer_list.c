/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/peer_list.h"

#include <errno.h>
#include <stdlib.h>

static int by_primary(const void *pa, const void *pb)
{
	const struct ulnet_peer_info *a = pa, *b = pb;
	int c = lnet_nid_cmp(&a->primary, &b->primary);

	if (c)
		return c;
	c = lnet_nid_eq(&b->nid, &b->primary) -
	    lnet_nid_eq(&a->nid, &a->primary);
	return c ? c : lnet_nid_cmp(&a->nid, &b->nid);
}

static void drop_lo(struct peer_list *list)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < list->n; i++)
		if (!lnet_nid_is_lo(&list->infos[i].nid))
			list->infos[kept++] = list->infos[i];
	list->n = kept;
}

int peer_list_read(struct lnet *node, struct peer_list *list)
{
	struct ulnet_peer_info *infos = NULL, *more;
	int room = 16, n;

	for (;;) {
		more = realloc(infos, (size_t)room * sizeof(*infos));
		if (!more) {
			free(infos);
			return -ENOMEM;
		}
		infos = more;
		n = lnet_peers(node, infos, (unsigned int)room);
		if (n <= room)
			break;
		/* There may be more of them by now. */
		room = n + n / 4;
	}
	if (n < 0) {
		free(infos);
		return n;
	}
	*list = (struct peer_list){ infos, (unsigned int)n };
	drop_lo(list);
	qsort(infos, list->n, sizeof(*infos), by_primary);
	return 0;
}

void peer_list_free(struct peer_list *list)
{
	free(list->infos);
	*list = (struct peer_list){ NULL, 0 };
}

void peer_list_keep_configured(struct peer_list *list)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < list->n; i++)
		if (list->infos[i].configured)
			list->infos[kept++] = list->infos[i];
	list->n = kept;
}

unsigned int peer_list_span(const struct peer_list *list, unsigned int i)
{
	unsigned int end = i + 1;

	while (end < list->n &&
	       lnet_nid_eq(&list->infos[end].primary, &list->infos[i].primary))
		end++;
	return end - i;
}

unsigned int peer_list_find(const struct peer_list *list,
			    const struct ulnet_nid *nid,
			    const struct ulnet_peer_info **infos_p)
{
	for (unsigned int i = 0, span; i < list->n; i += span) {
		span = peer_list_span(list, i);
		for (unsigned int j = i; j < i + span; j++) {
			if (!lnet_nid_eq(&list->infos[j].nid, nid))
				continue;
			*infos_p = &list->infos[i];
			return span;
		}
	}
	return 0;
}
