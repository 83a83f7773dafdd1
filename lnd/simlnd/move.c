/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/simlnd/move.h"

#include "lnd/simlnd/conn.h"

/* A connection between two CPTs. */
struct sim_passage {
	struct work work;
	struct sim_cpt *from, *to;
	struct ulnet_nid nid;
	unsigned int changes; /* of its own NI, as it left */
	/* As in struct sim_path: */
	unsigned int generation;
	uint64_t free_at, last, cut;
};

/* Its memory is that of the CPT that it has left, which waits for it. */
static void on_passed(struct work *w)
{
	struct sim_passage *pass = container_of(w, struct sim_passage, work);
	struct sim_cpt *from = pass->from;

	free(pass);
	from->leaving--;
	simlnd_stopped(from);
}

/* Its NI has failed, or its peer has gone, while it was on its way. */
static bool is_over(const struct sim_passage *pass, const struct sim_path *p)
{
	const struct sim_ep *own = p->sc->ep;

	return pass->changes != own->changes || !p->ep ||
	       pass->generation != atomic_load(&p->ep->generation);
}

static void arrive(const struct sim_passage *pass, struct sim_cpt *sc)
{
	struct sim_path *p = net_path(sc, &pass->nid);

	if (p) {
		p->free_at = MAX(p->free_at, pass->free_at);
		p->last = MAX(p->last, pass->last);
		p->cut = MAX(p->cut, pass->cut);
	}
	if (!p || is_over(pass, p))
		sim_conn_lapse(sc, &pass->nid);
	else
		sim_conn_arrive(p);
}

static void pass_on(struct sim_passage *pass);

static void on_arrived(struct work *w)
{
	struct sim_passage *pass = container_of(w, struct sim_passage, work);
	struct sim_cpt *sc = pass->to;

	if (sc->running && lnet_ni_cpt_of(sc->ni, &pass->nid) != sc->index) {
		pass_on(pass);
		return;
	}
	if (sc->running)
		arrive(pass, sc);
	pass->work.fn = on_passed;
	loop_post(pass->from->loop, &pass->work);
}

/* To whoever owns the NID by now. */
static void pass_on(struct sim_passage *pass)
{
	struct lnd_ni *ni = pass->from->ni;

	pass->to = simlnd_cpt(ni, lnet_ni_cpt_of(ni, &pass->nid));
	pass->work.fn = on_arrived;
	loop_post(pass->to->loop, &pass->work);
}

bool sim_can_move(struct lnd_ni *ni, unsigned int cpt,
		  const struct ulnet_nid *nid)
{
	const struct sim_path *p = net_path_find(simlnd_cpt(ni, cpt), nid);

	return p && sim_conn_is_quiet(p) && simlnd_is_idle(p);
}

void sim_move(struct lnd_ni *ni, unsigned int cpt, const struct ulnet_nid *nid)
{
	struct sim_cpt *sc = simlnd_cpt(ni, cpt);
	struct sim_path *p = net_path_find(sc, nid);
	struct sim_passage *pass = malloc(sizeof(*pass));

	if (!pass) {
		sim_conn_end(p);
		return;
	}
	pass->from = sc;
	pass->nid = *nid;
	pass->changes = sc->ep->changes;
	pass->generation = p->generation;
	pass->free_at = p->free_at;
	pass->last = p->last;
	pass->cut = p->cut;
	sc->leaving++;
	sim_conn_leave(p);
	pass_on(pass);
}
