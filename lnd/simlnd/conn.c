/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/simlnd/net.h"

#include <errno.h>

#include "base/backoff.h"

/* The defaults of socklnd's tunables, in ns. */
#define PAUSE_BASE   (10 * NSEC_PER_MSEC)
#define PAUSE_CAP    (150 * NSEC_PER_MSEC)
#define SILENT_AFTER (400 * NSEC_PER_MSEC) /* path_silent_min, and a period */

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
	static const struct backoff_law law = { .base = PAUSE_BASE,
						.cap = PAUSE_CAP };

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

/* Tells LNet the outcome of an attempt; LNet may call send() from within. */
static void sim_conn_tell(struct sim_path *p, int status)
{
	struct ulnet_id all = { p->dst, LNET_PID_ANY };

	p->wanted = false;
	lnet_peer_connected(p->sc->ni, &all, status, cause_of_attempt(status));
}

static void tell_disconnected(struct sim_cpt *sc, const struct ulnet_nid *nid)
{
	struct ulnet_id all = { *nid, LNET_PID_ANY };

	lnet_peer_disconnected(sc->ni, &all);
}

void sim_conn_end(struct sim_path *p)
{
	struct sim_cpt *sc = p->sc;

	sim_conn_move(p, SIM_CONN_NONE);
	list_del(&p->of_ep);
	if (list_empty(&p->in_lost))
		list_add_tail(&sc->lost_conns, &p->in_lost);
	if (sc->scheduled)
		return;
	sc->scheduled = true;
	loop_post(sc->loop, &sc->work);
}

/* The path of the opposite direction, or NULL. */
static struct sim_path *path_back(const struct sim_path *p)
{
	const struct ulnet_nid *from = &p->sc->ep->nid;

	if (!ep_is_there(p->ep))
		return NULL;
	return net_path(&p->ep->cpt[lnet_ni_cpt_of(p->ep->ni, from)], from);
}

void sim_conn_cut(struct sim_path *p)
{
	struct sim_path *back = path_back(p);

	p->cut = loop_now(p->sc->loop);
	/* NULL: the other direction is not open yet. */
	if (back)
		back->cut = p->cut;
	sim_conn_end(p);
}

/* The NI has failed: ends an attempt on @p, if any, unless the NI is back by
 * now; then the attempt may still succeed. */
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

	/* Handlers may send, which adds to the paths. */
	hash_hold_size(&sc->paths, true);
	hash_for_each (p, &sc->paths, hash) {
		if (p->conn.state != SIM_CONN_OPEN) {
			attempt_fail(p);
			continue;
		}
		p->cut = loop_now(sc->loop);
		sim_conn_end(p);
	}
	hash_hold_size(&sc->paths, false);
}

void sim_conns_tell(struct sim_cpt *sc)
{
	struct sim_path *p;

	while ((p = list_pop(&sc->lost_conns, struct sim_path, in_lost)))
		tell_disconnected(sc, &p->dst);
}

static void sim_conn_open(struct sim_path *p)
{
	sim_conn_move(p, SIM_CONN_OPEN);
	if (p->sc->ep->net->watched)
		list_add_tail(&p->ep->conns, &p->of_ep);
	loop_timer_cancel(p->sc->loop, &p->timer);
	p->failures = 0;
	p->stuck = false;
	p->generation = atomic_load(&p->ep->generation);
	sim_conn_tell(p, 0);
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
	/* Giving messages back returns credits, so LNet may send others, for
	 * which an attempt may begin already. */
	if (simlnd_give_back(p))
		p->wanted = true;
	if (p->wanted && p->conn.state == SIM_CONN_NONE)
		sim_conn_try(p);
	conn_tell_silent(p, SILENT_AFTER);
}

/* Something was lost a while ago. If the network is still cut, or does not take
 * it, the connection is silent; otherwise later messages have got through. */
static void on_silence_timer(struct timer *t)
{
	struct sim_path *p = container_of(t, struct sim_path, silence);

	net_path_now(p->sc, p);
	if (p->conn.state == SIM_CONN_OPEN &&
	    (p->stuck || sim_conn_is_cut(p)) && !only_calls(p))
		sim_conn_silent(p);
}

void sim_conn_lost(struct sim_path *p, bool hole)
{
	struct loop *loop = p->sc->loop;

	p->stuck |= hole;
	if (p->conn.state == SIM_CONN_OPEN && !timer_armed(&p->silence))
		loop_timer_arm(loop, &p->silence,
			       loop_now(loop) + SILENT_AFTER);
}

/* An attempt has heard nothing so far: it is repeated after PAUSE_CAP. */
static void sim_conn_unheard(struct sim_path *p)
{
	uint64_t began = p->give_up - lnet_lnd_timeout(p->sc->ni);
	uint64_t ns = loop_now(p->sc->loop) - began;

	sim_conn_timer(p, PAUSE_CAP);
	if (p->wanted && !p->told_silent && ns >= SILENT_AFTER)
		conn_tell_silent(p, ns);
}

/* ---- attempts ---- */

/* The time that an attempt takes is over. */
static void sim_conn_attempt_over(struct sim_path *p)
{
	uint64_t now = loop_now(p->sc->loop);

	net_path_now(p->sc, p);
	if (sim_conn_is_cut(p)) {
		if (now >= p->give_up)
			sim_conn_failed(p, -ETIMEDOUT);
		else
			sim_conn_unheard(p);
	} else if (!p->ep || !ep_is_there(p->ep)) {
		sim_conn_failed(p, -ECONNREFUSED);
	} else if (loop_random(p->sc->loop) % LNET_SIM_ALWAYS <
		   p->link.refuse) {
		sim_conn_failed(p, -ECONNRESET);
	} else {
		sim_conn_open(p);
	}
}

static void on_conn_timer(struct timer *t)
{
	struct sim_path *p = container_of(t, struct sim_path, timer);

	if (p->conn.state == SIM_CONN_TRYING)
		sim_conn_attempt_over(p);
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
		list_del(&p->in_lost);
		p->wanted = false;
		if (p->conn.state != SIM_CONN_NONE)
			sim_conn_move(p, SIM_CONN_NONE);
	}
}

/* ---- moving to another CPT ---- */

/* A connection that moves from one CPT to another. */
struct sim_moving {
	struct work work;
	struct sim_cpt *from, *to;
	struct ulnet_nid nid;
	/* sim_ep.changes of this NI when the connection left */
	unsigned int changes;
	/* As in struct sim_path: */
	unsigned int generation;
	uint64_t free_at, last, cut;
};

/* The connection has arrived. Runs on the CPT that it has left, which may stop
 * from now on. */
static void on_moved(struct work *w)
{
	struct sim_moving *m = container_of(w, struct sim_moving, work);
	struct sim_cpt *from = m->from;

	free(m);
	from->moving--;
	simlnd_stopped(from);
}

/* Has this NI failed, or the peer gone, while the connection was on its way? */
static bool is_over(const struct sim_moving *m, const struct sim_path *p)
{
	return m->changes != p->sc->ep->changes || !p->ep ||
	       m->generation != atomic_load(&p->ep->generation);
}

static void conn_arrive(const struct sim_moving *m, struct sim_cpt *sc)
{
	struct sim_path *p = net_path(sc, &m->nid);

	if (p) {
		p->free_at = MAX(p->free_at, m->free_at);
		p->last = MAX(p->last, m->last);
		p->cut = MAX(p->cut, m->cut);
	}
	if (!p || is_over(m, p))
		tell_disconnected(sc, &m->nid);
	else if (p->conn.state != SIM_CONN_OPEN)
		sim_conn_open(p);
}

static void move_on(struct sim_moving *m);

static void conn_on_arrived(struct work *w)
{
	struct sim_moving *m = container_of(w, struct sim_moving, work);
	struct sim_cpt *sc = m->to;

	if (sc->running && lnet_ni_cpt_of(sc->ni, &m->nid) != sc->index) {
		move_on(m);
		return;
	}
	if (sc->running)
		conn_arrive(m, sc);
	m->work.fn = on_moved;
	loop_post(m->from->loop, &m->work);
}

/* Sends the connection to the present owner of the NID. */
static void move_on(struct sim_moving *m)
{
	struct lnd_ni *ni = m->from->ni;

	m->to = simlnd_cpt(ni, lnet_ni_cpt_of(ni, &m->nid));
	m->work.fn = conn_on_arrived;
	loop_post(m->to->loop, &m->work);
}

bool sim_can_move(struct lnd_ni *ni, unsigned int cpt,
		  const struct ulnet_nid *nid)
{
	const struct sim_path *p = net_path_find(simlnd_cpt(ni, cpt), nid);

	return p && p->conn.state == SIM_CONN_OPEN &&
	       !timer_armed(&p->silence) && list_empty(&p->in_lost) &&
	       simlnd_is_idle(p);
}

void sim_move(struct lnd_ni *ni, unsigned int cpt, const struct ulnet_nid *nid)
{
	struct sim_cpt *sc = simlnd_cpt(ni, cpt);
	struct sim_path *p = net_path_find(sc, nid);
	struct sim_moving *m = malloc(sizeof(*m));

	if (!m) {
		sim_conn_end(p);
		return;
	}
	*m = (struct sim_moving){ .from = sc,
				  .nid = *nid,
				  .changes = sc->ep->changes,
				  .generation = p->generation,
				  .free_at = p->free_at,
				  .last = p->last,
				  .cut = p->cut };
	sc->moving++;
	sim_conn_move(p, SIM_CONN_NONE);
	list_del(&p->of_ep);
	move_on(m);
}
