/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/portal/portal.h"

#include "lnet/portal/match.h"
#include "lnet/portal/md.h"

void portals_init(struct lnet_cpt *cpt)
{
	struct portal_cpt *pc = portal_cpt(cpt);

	for (unsigned int i = 0; i < LNET_PORTALS; i++) {
		list_init(&pc->portals[i].masked);
		hash_init(&pc->portals[i].exact);
		hash_init(&pc->portals[i].by_bits);
	}
	id_table_init(&pc->mds, ID_TAG(cpt->index, ID_MD));
	id_table_init(&pc->mes, ID_TAG(cpt->index, ID_ME));
	pool_init(&pc->md_pool, sizeof(struct lnet_md), 0);
	pool_init(&pc->me_pool, sizeof(struct lnet_me), 0);
	list_init(&pc->mds_unlinked);
}

void portals_fini(struct lnet_cpt *cpt)
{
	struct portal_cpt *pc = portal_cpt(cpt);

	for (unsigned int i = 0; i < LNET_PORTALS; i++) {
		hash_fini(&pc->portals[i].exact);
		hash_fini(&pc->portals[i].by_bits);
	}
	cpt_pool_fini(cpt, &pc->md_pool, "MDs");
	cpt_pool_fini(cpt, &pc->me_pool, "match entries");
	mems_fini(&pc->mems);
	id_table_fini(&pc->mds);
	id_table_fini(&pc->mes);
}

void portals_unlink(struct lnet_cpt *cpt)
{
	struct portal_cpt *pc = portal_cpt(cpt);
	struct lnet_me *me;
	struct lnet_md *md;
	uint32_t pos = 0;

	while ((me = id_walk(&pc->mes, &pos)))
		me_unlink(me);
	pos = 0;
	while ((md = id_walk(&pc->mds, &pos)))
		md_unlink(md, true);
}

bool portals_idle(const struct lnet_cpt *cpt)
{
	return list_empty(&portal_cpt(cpt)->mds_unlinked);
}
