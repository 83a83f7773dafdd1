/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/peer_wish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer_wish *peer_wish_new(enum peer_wish_kind kind, unsigned int n,
				const struct ulnet_nid *primary)
{
	struct peer_wish *w = calloc(1, sizeof(*w) + n * sizeof(w->nids[0]));

	if (!w)
		return NULL;
	w->kind = kind;
	w->multi_rail = true;
	w->n = 1;
	w->nids[0] = *primary;
	return w;
}

bool peer_wish_nid(struct peer_wish *w, const struct ulnet_nid *nid)
{
	if (lnet_nid_eq(nid, &w->nids[0]))
		return false;
	w->nids[w->n++] = *nid;
	return true;
}

void peer_wish_before(struct peer_wish *w, const struct peer_list *list)
{
	unsigned int i = 0;

	while (i < list->n &&
	       !lnet_nid_eq(&list->infos[i].primary, &w->nids[0]))
		i++;
	if (i == list->n)
		return;
	w->before = &list->infos[i];
	w->nbefore = peer_list_span(list, i);
}

/* ---- doing, and undoing ---- */

/* One by one: it is known then which of them it fails with. */
static int nid_add(struct lnet *node, const struct ulnet_nid *primary,
		   const struct ulnet_nid *nid, bool multi_rail)
{
	const struct ulnet_nid pair[] = { *primary, *nid };

	return lnet_peer_add(node, pair, lnet_nid_eq(primary, nid) ? 1 : 2,
			     multi_rail);
}

static int peer_add(struct lnet *node, struct peer_wish *w)
{
	int rc = 0;

	for (unsigned int i = 0; !rc && i < w->n; i++) {
		w->at = i;
		rc = nid_add(node, &w->nids[0], &w->nids[i], w->multi_rail);
	}
	if (rc == -EINVAL && w->at == 0 && w->may_be_us) {
		w->kind = PEER_IS_US;
		rc = 0;
	}
	return rc;
}

static int peer_del_nids(struct lnet *node, struct peer_wish *w)
{
	int rc = 0;

	for (unsigned int i = 1; !rc && i < w->n; i++) {
		w->at = i;
		rc = lnet_peer_del(node, &w->nids[0], &w->nids[i], 1);
	}
	return rc;
}

int peer_wish_do(struct lnet *node, struct peer_wish *w)
{
	switch (w->kind) {
	case PEER_ADD:
		return peer_add(node, w);
	case PEER_DEL:
		return peer_del_nids(node, w);
	case PEER_STAYS_US:
		return 0;
	default:
		return lnet_peer_del(node, &w->nids[0], NULL, 0);
	}
}

static bool was_there(const struct peer_wish *w, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < w->nbefore; i++)
		if (lnet_nid_eq(&w->before[i].nid, nid))
			return true;
	return false;
}

/* What is not there need not be taken away. */
static int gone(int rc)
{
	return rc == -ENOENT ? 0 : rc;
}

int peer_wish_undo(struct lnet *node, const struct peer_wish *w)
{
	const struct ulnet_nid *primary = &w->nids[0];
	int rc = 0;

	if (w->kind == PEER_IS_US || w->kind == PEER_STAYS_US)
		return 0;
	if (!w->nbefore)
		return gone(lnet_peer_del(node, primary, NULL, 0));
	for (unsigned int i = 0; !rc && i < w->nbefore; i++)
		rc = nid_add(node, primary, &w->before[i].nid,
			     w->before->multi_rail);
	for (unsigned int i = 1; !rc && i < w->n; i++)
		if (!was_there(w, &w->nids[i]))
			rc = gone(lnet_peer_del(node, primary, &w->nids[i], 1));
	return rc;
}

/* ---- words ---- */

static const char *why(int rc)
{
	switch (rc) {
	case -EEXIST:
		return "another configured peer has it";
	case -ENOENT:
		return "no such peer was configured";
	case -EINVAL: /* the scope has refused what else is no peer's NID */
		return "that is a NID of this node";
	case -EBUSY:
		return "it is in use, or another configured peer has it";
	default:
		return strerror(-rc);
	}
}

const char *peer_wish_complaint(const struct peer_wish *w, int rc,
				char text[PEER_WISH_TEXT_SIZE])
{
	const char *what = w->kind == PEER_ADD ? "add" : "del";
	char primary[LNET_NIDSTR_SIZE], nid[LNET_NIDSTR_SIZE];

	lnet_nid_format(&w->nids[0], primary, sizeof(primary));
	lnet_nid_format(&w->nids[w->at], nid, sizeof(nid));
	if (w->at)
		snprintf(text, PEER_WISH_TEXT_SIZE,
			 "cannot %s NID %s %s peer %s: %s", what, nid,
			 w->kind == PEER_ADD ? "to" : "from", primary,
			 rc == -ENOENT ? "the peer has not got it" : why(rc));
	else
		snprintf(text, PEER_WISH_TEXT_SIZE, "cannot %s peer %s: %s",
			 what, primary, why(rc));
	return text;
}

int peer_unconfigure_all(struct lnet *node)
{
	struct peer_list list;
	int rc = peer_list_read(node, &list);

	if (rc)
		return rc;
	peer_list_keep_configured(&list);
	for (unsigned int i = 0; !rc && i < list.n;
	     i += peer_list_span(&list, i))
		rc = gone(lnet_peer_del(node, &list.infos[i].primary, NULL, 0));
	peer_list_free(&list);
	return rc;
}
