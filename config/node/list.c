/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/node/list.h"

#include <errno.h>

/* ---- peers ---- */

bool nid_is_ours(struct lnet *node, const struct ulnet_nid *nid)
{
	struct ulnet_ni_info info;

	for (unsigned int i = 0; !lnet_ni_info(node, i, &info); i++)
		if (lnet_nid_eq(&info.nid, nid))
			return true;
	return false;
}

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
		/* Room for peers that are added between counting and reading.
		 */
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

unsigned int peer_list_seek(const struct peer_list *list,
			    const struct ulnet_nid *primary)
{
	unsigned int low = 0, high = list->n;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (lnet_nid_cmp(&list->infos[middle].primary, primary) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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

/* ---- routes, policies, counters ---- */

int routes_read(struct lnet *node, struct ulnet_route_info **infos_p)
{
	int n = lnet_routes(node, NULL, 0);

	*infos_p = calloc((size_t)n + 1, sizeof(**infos_p));
	return *infos_p ? MIN(n, lnet_routes(node, *infos_p, (unsigned int)n))
			: -ENOMEM;
}

int policies_read(struct lnet *node, struct ulnet_policy **policies_p)
{
	int n = lnet_policies(node, NULL, 0);

	*policies_p = calloc((size_t)n + 1, sizeof(**policies_p));
	return *policies_p ? MIN(n, lnet_policies(node, *policies_p,
						  (unsigned int)n))
			   : -ENOMEM;
}

int tls_rules_read(struct lnet *node, struct ulnet_tls_rule **rules_p)
{
	int n = lnet_tls_rules(node, NULL, 0);

	*rules_p = calloc((size_t)n + 1, sizeof(**rules_p));
	return *rules_p
		       ? MIN(n, lnet_tls_rules(node, *rules_p, (unsigned int)n))
		       : -ENOMEM;
}

int stats_read(struct lnet *node, struct ulnet_stat **stats_p)
{
	int n = lnet_stats(node, NULL, 0);

	*stats_p = calloc((size_t)n + 1, sizeof(**stats_p));
	return *stats_p ? MIN(n, lnet_stats(node, *stats_p, (unsigned int)n))
			: -ENOMEM;
}

int objects_read(struct lnet *node, struct ulnet_object **objects_p)
{
	int n = lnet_objects(node, NULL, 0);

	*objects_p = calloc((size_t)n + 1, sizeof(**objects_p));
	if (!*objects_p)
		return -ENOMEM;
	return MIN(n, lnet_objects(node, *objects_p, (unsigned int)n));
}

const char *const buffer_names[LNET_BUFFER_KINDS] = {
	[LNET_TINY_BUFFERS] = "tiny",
	[LNET_SMALL_BUFFERS] = "small",
	[LNET_LARGE_BUFFERS] = "large",
};

bool buffers_sum(struct lnet *node, struct buffers_sum sums[LNET_BUFFER_KINDS])
{
	struct ulnet_buffers_info info[LNET_BUFFER_KINDS];
	struct ulnet_routing routing;

	lnet_routing(node, &routing);
	if (!routing.enabled)
		return false;
	for (int k = 0; k < LNET_BUFFER_KINDS; k++)
		sums[k] = (struct buffers_sum){ .kind = buffer_names[k] };
	for (unsigned int i = 0; !lnet_routing_buffers(node, i, info); i++)
		for (int k = 0; k < LNET_BUFFER_KINDS; k++) {
			sums[k].count += info[k].count;
			sums[k].free += MAX(info[k].free, 0);
			sums[k].free_min += info[k].free_min;
			sums[k].waiting += MAX(-info[k].free, 0);
		}
	return true;
}

/* ---- settings ---- */

int settings_read(struct lnet *node, struct setting_list *s)
{
	int n = lnet_settings(node, s->all, SETTINGS_MAX);

	BUG_ON(n > SETTINGS_MAX);
	s->n = n < 0 ? 0 : (unsigned int)n;
	return n < 0 ? n : 0;
}

const struct ulnet_setting *settings_find(const struct setting_list *s,
					  const char *name)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (!strcmp(s->all[i].name, name))
			return &s->all[i];
	return NULL;
}

bool settings_are_on(const struct setting_list *s, const char *name)
{
	const struct ulnet_setting *setting = settings_find(s, name);

	return setting && setting->value != 0;
}
