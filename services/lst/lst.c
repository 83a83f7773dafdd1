/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and closes the self-test's service, and runs its timers. */
#include "lst.h"

#include <errno.h>
#include <stdlib.h>

#include "lst_priv.h"

/* ---- deadlines ---- */

void lst_watch(struct lst_cpt *cpt)
{
	struct lnet *node = cpt->lst->node;

	if (!cpt->closing && !lnet_timer_armed(&cpt->tick))
		lnet_timer_arm(node, cpt->index, &cpt->tick,
			       lnet_now(node, cpt->index) + LST_TICK);
}

static void on_resume(struct ulnet_timer *timer)
{
	lst_units_resume(&LST_OF(timer, struct lst_cpt, resume)->yielding);
}

/* Ends the session if its deadline has passed. Returns whether there is a
 * session. */
static bool session_tick(struct lst *lst, uint64_t now)
{
	if (lst->session && lst->session->deadline <= now)
		lst_session_end(lst->session);
	return lst->session != NULL;
}

static void on_tick(struct ulnet_timer *timer)
{
	struct lst_cpt *cpt = LST_OF(timer, struct lst_cpt, tick);
	uint64_t now = lnet_now(cpt->lst->node, cpt->index);
	bool again = lst_calls_tick(&cpt->calls, now);

	again |= lst_slots_tick(cpt);
	lst_units_resume(&cpt->pausing);
	again |= cpt->lanes > 0;
	if (cpt->index == LST_HOME)
		again |= session_tick(cpt->lst, now);
	if (again)
		lst_watch(cpt);
}

/* ---- the end ---- */

/* Called for one CPT after the other. LST_HOME is the first, and stops the
 * tests of all CPTs. */
static int lst_cpt_close(void *arg)
{
	struct lst_cpt *cpt = arg;

	lst_slots_close(cpt);
	lnet_timer_cancel(cpt->lst->node, cpt->index, &cpt->tick);
	lnet_timer_cancel(cpt->lst->node, cpt->index, &cpt->resume);
	if (cpt->index == LST_HOME && cpt->lst->session)
		lst_session_end(cpt->lst->session);
	lst_units_resume(&cpt->yielding);
	lst_units_resume(&cpt->pausing);
	return 0;
}

static void lst_on_close(struct ulnet_layer *layer)
{
	struct lst *lst = (struct lst *)layer;

	for (unsigned int i = 0; i < lst->ncpts; i++)
		lnet_call(lst->node, i, lst_cpt_close, &lst->cpts[i]);
	lnet_layer_del(lst->node, layer);
}

void lst_free(struct lst *lst)
{
	if (!lst)
		return;
	for (unsigned int i = 0; i < lst->ncpts; i++)
		lst_slots_free(&lst->cpts[i]);
	free(lst->cpts);
	free(lst);
}

/* ---- the beginning ---- */

static int lst_cpt_open(void *arg)
{
	struct lst_cpt *cpt = arg;

	lst_calls_init(&cpt->calls, cpt->lst->node, cpt->index);
	return lst_slots_open(cpt);
}

static int lst_cpts_open(struct lst *lst)
{
	int rc = LNetSetLazyPortal(lst->node, LST_PORTAL_TEST);

	if (!rc)
		rc = LNetSetLazyPortal(lst->node, LST_PORTAL_FRAME);
	for (unsigned int i = 0; i < lst->ncpts && !rc; i++)
		rc = lnet_call(lst->node, i, lst_cpt_open, &lst->cpts[i]);
	return rc;
}

static struct lst_conf conf_of(const struct lst_conf *given)
{
	struct lst_conf conf = { 0 };

	if (given)
		conf = *given;
	if (!conf.session_s)
		conf.session_s = LST_SESSION_S;
	if (!conf.rpc_s)
		conf.rpc_s = LST_RPC_S;
	return conf;
}

int lst_open(struct lnet *node, const struct lst_conf *conf, struct lst **lst_p)
{
	struct lst *lst = calloc(1, sizeof(*lst));
	int rc;

	if (!lst)
		return -ENOMEM;
	lst->node = node;
	lst->conf = conf_of(conf);
	lst->ncpts = lnet_cpts(node);
	lst->cpts = calloc(lst->ncpts, sizeof(*lst->cpts));
	if (!lst->cpts) {
		free(lst);
		return -ENOMEM;
	}
	lst->layer.close = lst_on_close;
	LIST_INIT(&lst->zombies);
	for (unsigned int i = 0; i < lst->ncpts; i++) {
		lst->cpts[i].lst = lst;
		lst->cpts[i].index = i;
		lnet_timer_init(&lst->cpts[i].tick, on_tick);
		lnet_timer_init(&lst->cpts[i].resume, on_resume);
		TAILQ_INIT(&lst->cpts[i].yielding);
		TAILQ_INIT(&lst->cpts[i].pausing);
		lst_slots_init(&lst->cpts[i]);
	}
	/* The layer closes what was opened, after an error as well. */
	rc = lst_cpts_open(lst);
	lnet_layer_add(node, &lst->layer);
	*lst_p = lst;
	return rc;
}
