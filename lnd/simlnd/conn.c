/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/simlnd/conn.h"

#include <errno.h>

#include "base/backoff.h"

/* As socklnd's defaults. */
#define PAUSE_CEILING (150 * NSEC_PER_MSEC)
#define SILENT_AFTER  (400 * NSEC_PER_MSEC) /* path_silent_min, and a look */

static const struct fsm_state sim_conn_states[SIM_CONN_STATES] = {
	[SIM_CONN_NONE] = { "none",
			    FSM_TO(SIM_CONN_TRYING) | FSM_TO(SIM_CONN_OPEN) },
	[SIM_CONN_TRYING] = { "trying", FSM_TO(SIM_CONN_NONE) |
						FSM_TO(SIM_CONN_PAUSED) |
						FSM_TO(SIM_CONN_OPEN) },
	[SIM_CONN_PAUSED] = { "paused", FSM_TO(SIM_CONN_NONE) |
						FSM_TO(SIM_CONN_TRYING) |
						FSM_TO(SIM_CONN_OPEN) },
	[SIM_CONN_OPEN] = { "open", FSM_TO(SIM_CONN_NONE) },
};

static void sim_conn_move(struct sim_path *p, enum sim_conn_state to)
{
	fsm_move(&p->conn, sim_conn_states, to);
}

static void on_conn_timer(struct timer *t);
static void on_silence_timer(struct timer *t);

void sim_conn_init(struct sim_path *p)
{
	timer_init(&p->timer, on_conn_timer);
	timer_init(&p->silence, on_silence_timer);
}

static void sim_conn_timer(struct sim_path *p, uint64_t delay)
{
	struct loop *loop = p->sc->loop;

	loop_timer_arm(loop, &p->timer, loop_now(loop) + delay);
}

static uint64_t sim_conn_pause(const struct sim_path *p)
{
	static const struct backoff_law law = { .base = 10 * NSEC_PER_MSEC,
						.cap = PAUSE_CEILING };

	return backoff_pause(&law, p->failures + 1, loop_random(p->sc->loop));
}

static void sim_conn_try(struct sim_path *p)
{
	struct sim_cpt *sc = p->sc;

	sim_conn_move(p, SIM_CONN_TRYING);
	p->give_up = loop_now(sc->loop) + lnet_lnd_timeout(sc->ni);
	sim_conn_timer(p, p->link.connect);
}

static enum ulnet_cause cause_of_attempt(int status)
{
	switch (status) {
	case 0:
		return LNET_CAUSE_OK;
	case -ENETDOWN:
		return LNET_CAUSE_LOCAL_NO_ROUTE;
	default:
		return LNET_CAUSE_REMOTE_DROPPED;
	}
}

/* Tells LNet, which may call send() from within. */
static void sim_conn_tell(struct sim_path *p, int status)
{
	struct ulnet_id all = { p->dst, LNET_PID_ANY };

	p->wanted = false;
	lnet_peer_connected(p->sc->ni, &all, status, cause_of_attempt(status));
}

void sim_conn_end(struct sim_path *p)
{
	struct sim_cpt *sc = p->sc;

	sim_conn_move(p, SIM_CONN_NONE);
	list_del(&p->of_ep);
	if (list_empty(&p->severed))
		list_add_tail(&sc->severed, &p->severed);
	if (sc->scheduled)
		return;
	sc->scheduled = true;
	loop_post(sc->loop, &sc->work);
}

/* The way from where @p leads, or NULL. */
static struct sim_path *way_back(const struct sim_path *p)
{
	const struct ulnet_nid *from = &p->sc->ep->nid;

	if (!ep_is_there(p->ep))
		return NULL;
	return net_path(&p->ep->cpt[lnet_ni_cpt_of(p->ep->ni, from)], from);
}

void sim_conn_cut(struct sim_path *p)
{
	struct sim_path *back = way_back(p);

	p->cut = loop_now(p->sc->loop);
	if (back) /* which may not be open, as nothing has come there yet */
		back->cut = p->cut;
	sim_conn_end(p);
}

/* Those who wait are told, unless the NI is back by now: then the attempt may
 * still get through. */
static void attempt_fail(struct sim_path *p)
{
	if (!p->wanted || atomic_load(&p->sc->ep->up))
		return;
	loop_timer_cancel(p->sc->loop, &p->timer);
	sim_conn_move(p, SIM_CONN_NONE);
	sim_conn_tell(p, -ENETDOWN);
}

void sim_conns_fail(struct sim_cpt *sc)
{
	struct sim_path *p;

	/* Who is told may send, once the NI is back. */
	hash_keep(&sc->paths, true);
	hash_for_each (p, &sc->paths, hash) {
		if (p->conn.state != SIM_CONN_OPEN) {
			attempt_fail(p);
			continue;
		}
		p->cut = loop_now(sc->loop);
		sim_conn_end(p);
	}
	hash_keep(&sc->paths, false);
}

void sim_conns_tell(struct sim_cpt *sc)
{
	struct sim_path *p;

	while ((p = list_pop(&sc->severed, struct sim_path, severed))) {
		struct ulnet_id all = { p->dst, LNET_PID_ANY };

		lnet_peer_disconnected(sc->ni, &all);
	}
}

static void sim_conn_open(struct sim_path *p)
{
	sim_conn_move(p, SIM_CONN_OPEN);
	if (p->sc->ep->net->watched)
		list_add_tail(&p->ep->conns, &p->of_ep);
	loop_timer_cancel(p->sc->loop, &p->timer);
	p->failures = 0;
	p->generation = atomic_load(&p->ep->generation);
	sim_conn_tell(p, 0);
}

bool sim_conn_is_quiet(const struct sim_path *p)
{
	return p->conn.state == SIM_CONN_OPEN && !timer_armed(&p->silence) &&
	       list_empty(&p->severed);
}

void sim_conn_leave(struct sim_path *p)
{
	sim_conn_move(p, SIM_CONN_NONE);
	list_del(&p->of_ep);
}

void sim_conn_arrive(struct sim_path *p)
{
	/* The peer may have been heard on it here before. */
	if (p->conn.state != SIM_CONN_OPEN)
		sim_conn_open(p);
}

void sim_conn_lapse(struct sim_cpt *sc, const struct ulnet_nid *nid)
{
	struct ulnet_id all = { *nid, LNET_PID_ANY };

	lnet_peer_disconnected(sc->ni, &all);
}

static void sim_conn_failed(struct sim_path *p, int status)
{
	uint64_t pause = sim_conn_pause(p);

	sim_conn_move(p, SIM_CONN_PAUSED);
	p->failures++;
	sim_conn_timer(p, pause);
	sim_conn_tell(p, status);
}

bool sim_conn_is_cut(const struct sim_path *p)
{
	return p->partitioned || p->deaf || !atomic_load(&p->sc->ep->up) ||
	       (p->ep && ep_is_there(p->ep) && !atomic_load(&p->ep->up));
}

/* ---- silence ---- */

static bool only_calls(const struct sim_path *p)
{
	return p->ep && ep_is_there(p->ep) &&
	       p->ep->ni->conf->pid & LNET_PID_USERFLAG;
}

static void conn_tell_silent(struct sim_path *p, uint64_t ns)
{
	struct ulnet_id all = { p->dst, LNET_PID_ANY };

	p->told_silent = true;
	lnet_peer_silent(p->sc->ni, &all, ns);
}

static void sim_conn_silent(struct sim_path *p)
{
	sim_conn_move(p, SIM_CONN_NONE);
	list_del(&p->of_ep);
	/* Credits come back, so others may be sent, and try already. */
	if (simlnd_give_back(p))
		p->wanted = true;
	if (p->wanted && p->conn.state == SIM_CONN_NONE)
		sim_conn_try(p);
	conn_tell_silent(p, SILENT_AFTER);
}

/* Whoever has been heard from since has got what was sent after that. */
static void on_silence_timer(struct timer *t)
{
	struct sim_path *p = container_of(t, struct sim_path, silence);

	net_path_now(p->sc, p);
	if (p->conn.state == SIM_CONN_OPEN && sim_conn_is_cut(p) &&
	    !only_calls(p))
		sim_conn_silent(p);
}

void sim_conn_lost(struct sim_path *p)
{
	struct loop *loop = p->sc->loop;

	if (p->conn.state == SIM_CONN_OPEN && !timer_armed(&p->silence))
		loop_timer_arm(loop, &p->silence,
			       loop_now(loop) + SILENT_AFTER);
}

/* An attempt hears nothing. */
static void sim_conn_unheard(struct sim_path *p)
{
	uint64_t began = p->give_up - lnet_lnd_timeout(p->sc->ni);
	uint64_t ns = loop_now(p->sc->loop) - began;

	sim_conn_timer(p, PAUSE_CEILING);
	if (p->wanted && !p->told_silent && ns >= SILENT_AFTER)
		conn_tell_silent(p, ns);
}

/* ---- attempts ---- */

/* The time that an attempt takes is over. */
static void sim_conn_tried(struct sim_path *p)
{
	uint64_t now = loop_now(p->sc->loop);

	net_path_now(p->sc, p);
	if (sim_conn_is_cut(p)) {
		if (now >= p->give_up)
			sim_conn_failed(p, -ETIMEDOUT);
		else
			sim_conn_unheard(p);
	} else if (!p->ep || !ep_is_there(p->ep) ||
		   loop_random(p->sc->loop) % LNET_SIM_ALWAYS <
			   p->link.refuse) {
		sim_conn_failed(p, -ECONNREFUSED);
	} else {
		sim_conn_open(p);
	}
}

static void on_conn_timer(struct timer *t)
{
	struct sim_path *p = container_of(t, struct sim_path, timer);

	if (p->conn.state == SIM_CONN_TRYING)
		sim_conn_tried(p);
	else if (p->wanted)
		sim_conn_try(p);
	else
		sim_conn_move(p, SIM_CONN_NONE);
}

int sim_conn_ready(struct sim_path *p)
{
	if (likely(!p->link.connect))
		return 0;
	if (p->conn.state == SIM_CONN_OPEN) {
		if (p->generation == atomic_load(&p->ep->generation))
			return 0;
		sim_conn_end(p);
	}
	if (only_calls(p))
		return -EHOSTUNREACH;
	if (!p->wanted)
		p->told_silent = false;
	p->wanted = true;
	if (p->conn.state == SIM_CONN_NONE)
		sim_conn_try(p);
	return -EINPROGRESS;
}

void sim_conn_heard(struct sim_path *p)
{
	if (p->link.connect && p->conn.state != SIM_CONN_OPEN && p->ep &&
	    ep_is_there(p->ep))
		sim_conn_open(p);
}

void sim_conns_stop(struct sim_cpt *sc)
{
	struct sim_path *p;

	hash_for_each (p, &sc->paths, hash) {
		loop_timer_cancel(sc->loop, &p->timer);
		if (timer_armed(&p->silence))
			loop_timer_cancel(sc->loop, &p->silence);
		list_del(&p->of_ep);
		list_del(&p->severed);
		p->wanted = false;
		if (p->conn.state != SIM_CONN_NONE)
			sim_conn_move(p, SIM_CONN_NONE);
	}
}

/* ---- to another CPT ---- */

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
static bool conn_is_over(const struct sim_passage *pass,
			 const struct sim_path *p)
{
	const struct sim_ep *own = p->sc->ep;

	return pass->changes != own->changes || !p->ep ||
	       pass->generation != atomic_load(&p->ep->generation);
}

static void conn_arrive(const struct sim_passage *pass, struct sim_cpt *sc)
{
	struct sim_path *p = net_path(sc, &pass->nid);

	if (p) {
		p->free_at = MAX(p->free_at, pass->free_at);
		p->last = MAX(p->last, pass->last);
		p->cut = MAX(p->cut, pass->cut);
	}
	if (!p || conn_is_over(pass, p))
		sim_conn_lapse(sc, &pass->nid);
	else
		sim_conn_arrive(p);
}

static void pass_on(struct sim_passage *pass);

static void conn_on_arrived(struct work *w)
{
	struct sim_passage *pass = container_of(w, struct sim_passage, work);
	struct sim_cpt *sc = pass->to;

	if (sc->running && lnet_ni_cpt_of(sc->ni, &pass->nid) != sc->index) {
		pass_on(pass);
		return;
	}
	if (sc->running)
		conn_arrive(pass, sc);
	pass->work.fn = on_passed;
	loop_post(pass->from->loop, &pass->work);
}

/* To whoever owns the NID by now. */
static void pass_on(struct sim_passage *pass)
{
	struct lnd_ni *ni = pass->from->ni;

	pass->to = simlnd_cpt(ni, lnet_ni_cpt_of(ni, &pass->nid));
	pass->work.fn = conn_on_arrived;
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
