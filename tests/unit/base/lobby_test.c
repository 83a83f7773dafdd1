/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/lobby.h"
#include "base/passage.h"

struct visit {
	struct lobby_guest guest;
	struct env_io io; /* on the loop that it was sent to */
	struct work work;
	struct passage *passage;
	struct loop *to;
	int far; /* the other end of its socket */
	unsigned int calls, reads;
	struct lobby_guest *expels[2]; /* guests to remove when it is called */
	bool closes;
};

static unsigned int closed;

static struct loop *make_loop(void)
{
	struct loop *l;
	struct env *e;

	cr_assert_eq(env_ev_new(NULL, &e), 0);
	cr_assert_eq(loop_new(e, &l), 0);
	return l;
}

static void on_first(struct lobby_guest *g)
{
	struct visit *v = container_of(g, struct visit, guest);
	struct lobby *l = g->lobby;

	v->calls++;
	for (size_t i = 0; i < ARRAY_SIZE(v->expels); i++)
		if (v->expels[i])
			lobby_leave(v->expels[i]);
	if (v->closes)
		lobby_close(l);
	if (v->passage) {
		lobby_leave(g);
		passage_send(v->passage, v->to, &v->work);
	}
}

static void on_read(struct env_io *io, int revents)
{
	struct visit *v = container_of(io, struct visit, io);
	char c;

	cr_assert(revents & ENV_READ);
	cr_assert_eq(loop_current(), v->to);
	cr_assert_eq(read(io->fd, &c, 1), 1);
	v->reads++;
}

static void on_there(struct work *w)
{
	struct visit *v = container_of(w, struct visit, work);

	cr_assert_eq(loop_current(), v->to);
	v->io.fd = v->guest.fd;
	v->io.events = ENV_READ;
	v->io.fn = on_read;
	cr_assert_eq(loop_watch(v->to, &v->io), 0);
	passage_arrived(v->passage);
}

static void on_closed(struct work *w)
{
	(void)w;
	closed++;
}

static void never(struct lobby *l)
{
	(void)l;
	cr_assert_fail("the lobby has failed");
}

static void visit_begin(struct visit *v, struct lobby *l)
{
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd),
		     0);
	*v = (struct visit){ .far = fd[1], .work.fn = on_there };
	v->guest.fn = on_first;
	cr_assert_eq(lobby_enter(l, &v->guest, fd[0]), 0);
}

static void say(const struct visit *v)
{
	cr_assert_eq(write(v->far, "x", 1), 1);
}

static void visit_end(struct visit *v)
{
	lobby_leave(&v->guest);
	if (v->io.impl)
		loop_unwatch(v->to, &v->io);
	close(v->guest.fd);
	close(v->far);
}

static void turns(struct loop *l)
{
	for (int i = 0; i < 5; i++)
		loop_run_once(l, false);
}

Test(lobby, a_guest_that_has_sent_is_called)
{
	struct loop *loop = make_loop();
	struct visit says, silent, gone, left;
	struct lobby l;

	cr_assert_eq(lobby_open(&l, loop, never), 0);
	visit_begin(&says, &l);
	visit_begin(&silent, &l);
	visit_begin(&gone, &l);
	visit_begin(&left, &l);
	turns(loop);
	cr_assert_eq(says.calls + silent.calls + gone.calls + left.calls, 0);
	say(&says);
	say(&left);
	shutdown(gone.far, SHUT_WR);
	lobby_leave(&left.guest);
	loop_run_once(loop, true);
	cr_assert_eq(says.calls, 1);
	cr_assert_eq(gone.calls, 1, "an end is something to read");
	cr_assert_eq(silent.calls + left.calls, 0);
	visit_end(&says);
	visit_end(&silent);
	visit_end(&gone);
	visit_end(&left);
	lobby_close(&l);
	loop_free(loop);
}

/* All guests are ready, and the first one that is called removes all others. */
Test(lobby, a_guest_that_left_is_not_called)
{
	struct loop *loop = make_loop();
	struct visit v[3];
	struct lobby l;

	cr_assert_eq(lobby_open(&l, loop, never), 0);
	for (unsigned int i = 0; i < 3; i++)
		visit_begin(&v[i], &l);
	for (unsigned int i = 0; i < 3; i++) {
		v[i].expels[0] = &v[(i + 1) % 3].guest;
		v[i].expels[1] = &v[(i + 2) % 3].guest;
		say(&v[i]);
	}
	lobby_serve(&l);
	cr_assert_eq(v[0].calls + v[1].calls + v[2].calls, 1);
	for (unsigned int i = 0; i < 3; i++)
		visit_end(&v[i]);
	lobby_close(&l);
	loop_free(loop);
}

Test(lobby, is_closed_by_a_guest)
{
	struct loop *loop = make_loop();
	struct visit v[2];
	struct lobby l;

	cr_assert_eq(lobby_open(&l, loop, never), 0);
	for (unsigned int i = 0; i < 2; i++)
		visit_begin(&v[i], &l);
	for (unsigned int i = 0; i < 2; i++) {
		v[i].expels[0] = &v[0].guest;
		v[i].expels[1] = &v[1].guest;
		v[i].closes = true;
		say(&v[i]);
	}
	loop_run_once(loop, true);
	cr_assert_eq(v[0].calls + v[1].calls, 1);
	turns(loop);
	for (unsigned int i = 0; i < 2; i++)
		visit_end(&v[i]);
	loop_free(loop);
}

/* Later data is seen by the new loop only, and the passage closes only after
 * the guest has arrived. */
Test(lobby, guests_go_to_another_loop)
{
	struct loop *loop = make_loop(), *other = make_loop();
	struct passage passage;
	struct visit v;
	struct lobby l;

	closed = 0;
	passage_init(&passage, loop, on_closed);
	cr_assert_eq(lobby_open(&l, loop, never), 0);
	visit_begin(&v, &l);
	v.passage = &passage;
	v.to = other;
	say(&v);
	loop_run_once(loop, true);
	cr_assert_eq(v.calls, 1);
	passage_close(&passage);
	turns(loop);
	cr_assert_eq(closed, 0, "one is on its way");
	turns(other);
	turns(loop);
	cr_assert_eq(closed, 1);
	say(&v);
	turns(loop);
	turns(other);
	cr_assert_eq(v.calls, 1);
	cr_assert_eq(v.reads, 2);
	visit_end(&v);
	lobby_close(&l);
	loop_free(other);
	loop_free(loop);
}

/* passage_hold() keeps a passage open, and fails once all have arrived. */
Test(lobby, a_passage_is_held)
{
	struct loop *loop = make_loop();
	struct passage passage;

	closed = 0;
	passage_init(&passage, loop, on_closed);
	cr_assert(passage_hold(&passage));
	passage_close(&passage);
	turns(loop);
	cr_assert_eq(closed, 0);
	cr_assert(passage_hold(&passage));
	passage_arrived(&passage);
	turns(loop);
	cr_assert_eq(closed, 0);
	passage_arrived(&passage);
	cr_assert_not(passage_hold(&passage));
	turns(loop);
	cr_assert_eq(closed, 1);
	loop_free(loop);
}

Test(lobby, guests_stay)
{
	struct loop *loop = make_loop();
	struct passage passage;
	struct visit v;
	struct lobby l;

	closed = 0;
	passage_init(&passage, loop, on_closed);
	cr_assert_eq(lobby_open(&l, loop, never), 0);
	visit_begin(&v, &l);
	v.passage = &passage;
	v.to = loop;
	say(&v);
	loop_run_once(loop, true);
	turns(loop);
	cr_assert_eq(v.calls, 1);
	cr_assert_eq(v.reads, 1);
	cr_assert_eq(closed, 0);
	passage_close(&passage);
	turns(loop);
	cr_assert_eq(closed, 1);
	visit_end(&v);
	lobby_close(&l);
	loop_free(loop);
}
