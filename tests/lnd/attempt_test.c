/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attempts to connect over TCP: how often, how many at once, and that nobody
 * suffers who does not wait for the same peer.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lnd/apart.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/stranger.h"

/* Who waits for a silent peer waits for longer than any test takes. */
static const struct ulnet_tunable patient[] = { { "conns_per_peer", 1 },
						{ "sock_timeout", 1000 } };

static struct real_net net = {
	.nids = { "127.0.0.5@tcp", "127.0.0.6@tcp" },
	.absent = "127.0.0.99@tcp",
	.run = LNET_RUN_THREADS,
	.cpts = 1,
	.port = true,
};

static struct lnd_rig rig = {
	.name = "attempts", .can = RIG_THREADS, .ops = &real_ops, .arg = &net
};

static bool up(struct fx *fx, const struct ulnet_tunable *tunables,
	       unsigned int n)
{
	*fx = (struct fx){ .lock = PTHREAD_MUTEX_INITIALIZER };
	net.tunables = tunables;
	net.ntunables = n;
	return expect(fx, fx_up(fx, &rig) == 0);
}

static int down(struct fx *fx)
{
	fx_down(fx);
	return fx->failures ? 1 : 0;
}

/* ---- peers that say nothing ---- */

#define SILENT	 33 /* with 8 credits each, more than an NI's 256 */
#define PER_PEER 12

/* The system takes connections for them, and nobody ever reads. */
static bool silent_begin(struct fx *fx, struct stranger *s)
{
	for (unsigned int i = 0; i < SILENT; i++) {
		char nid[LNET_NIDSTR_SIZE];

		snprintf(nid, sizeof(nid), "127.0.1.%u@tcp", i + 1);
		stranger_init(&s[i], fx, nid);
		if (!expect(fx, stranger_listen(&s[i]) == 0))
			return false;
	}
	return true;
}

static void silent_end(struct stranger *s)
{
	for (unsigned int i = 0; i < SILENT; i++)
		stranger_fini(&s[i]);
}

/* Messages that will not get there. */
static struct box *wait_for(struct fx *fx, const struct stranger *s)
{
	struct box *b = box_new(fx, 100, CUT_NONE);

	if (box_bind(b, 0, LNET_MD_THRESH_INF, 1000 * UINT64_C(1000000)))
		for (unsigned int i = 0; i < PER_PEER; i++)
			box_put_to(b, &s->nid, false, PORTAL, 1, i);
	return b;
}

/* A message to a peer that is connected goes out, and one that waits is given up
 * when the user says so, while nothing comes of the others. */
static int silent_peers(void)
{
	struct stranger s[SILENT];
	struct box *waits[SILENT];
	struct fx fx;

	if (!up(&fx, patient, ARRAY_SIZE(patient)) || !silent_begin(&fx, s))
		return 1;
	still_works(&fx);
	for (unsigned int i = 0; i < SILENT; i++)
		waits[i] = wait_for(&fx, &s[i]);
	still_works(&fx);
	for (unsigned int i = 0; i < SILENT; i++)
		expect(&fx, fx_read(&fx, &waits[i]->terminals) == 0);
	for (unsigned int i = 0; i < SILENT; i++) {
		expect(&fx, box_unlink(waits[i]) == 0);
		expect(&fx, fx_wait(&fx, &waits[i]->unlinked, 1));
		expect(&fx, waits[i]->terminals == PER_PEER);
		expect(&fx, waits[i]->outcomes[LNET_OUTCOME_NOT_DELIVERED] ==
				    PER_PEER);
	}
	expect(&fx, fx_wait_idle(&fx));
	silent_end(s);
	return down(&fx);
}

/* ---- */

static const struct apart_test tests[] = {
	{ "peers that say nothing hold up nobody", silent_peers },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
