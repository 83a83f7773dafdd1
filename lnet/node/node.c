/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/node/node.h"

#include <errno.h>
#include <signal.h>
#include <semaphore.h>

#include "base/caretaker.h"
#include "base/cpus.h"
#include "base/misuse.h"
#include "lnet/discovery/recovery.h"
#include "lnet/discovery/discovery.h"
#include "lnet/message/msgs.h"
#include "lnet/message/reroute.h"
#include "lnet/node/waits.h"
#include "lnet/peer/claim.h"
#include "lnet/peer/provenance.h"
#include "secure/keys.h"

/* The default of busy_poll when this process has the processors for itself:
 * about the time that it takes to sleep and to wake up. */
#define BUSY_POLL_OWN (50 * NSEC_PER_USEC)

/* ---- CPTs ---- */

static void node_cpt_init(struct lnet *node, unsigned int index)
{
	struct whole_cpt *whole = &whole_node(node)->all[index];
	struct lnet_cpt *cpt = &whole->discovery.msg.path.peer.portal.cpt;

	node->cpt[index] = cpt;
	cpt->node = node;
	cpt->index = index;
	cpt->loop = node->loops[index];
	portals_init(cpt);
	peers_init(cpt);
	paths_init(cpt);
	msgs_init(cpt);
	disc_init(cpt);
	recovery_init(cpt);
	watches_init(cpt);
	list_init(&whole_cpt(cpt)->leaving);
}

static void cpt_fini(struct lnet_cpt *cpt)
{
	caretaker_free(whole_cpt(cpt)->caretaker);
	waits_end(whole_cpt(cpt)->waits);
	peers_fini(cpt);
	msgs_fini(cpt);
	portals_fini(cpt);
}

struct cpt_start {
	struct lnet_cpt *cpt;
	sem_t taken;
};

static void *cpt_thread(void *arg)
{
	struct cpt_start *start = arg;
	struct caretaker *caretaker = whole_cpt(start->cpt)->caretaker;
	struct loop *loop = start->cpt->loop;

	if (caretaker)
		caretaker_begin(caretaker);
	else
		loop_take_over(loop);
	sem_post(&start->taken);
	if (caretaker)
		caretaker_run(caretaker);
	else
		loop_run(loop);
	return NULL;
}

static void loops_free(struct lnet *node)
{
	for (unsigned int i = 0; node->own_loops && i < node->cpts; i++) {
		if (!node->loops[i])
			continue;
		timers_check(node->loops[i], "lnet_close");
		loop_free(node->loops[i]);
	}
}

static int loops_make(struct lnet *node, const struct node_params *p)
{
	node->own_loops = !p->loops;
	whole_node(node)->has_threads =
		node->own_loops && (p->conf.run == LNET_RUN_THREADS ||
				    p->conf.run == LNET_RUN_SHARED);
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct env *env;
		int rc;

		if (p->loops) {
			node->loops[i] = p->loops[i];
			continue;
		}
		rc = env_ev_new(p->conf.ev, &env);
		if (!rc)
			rc = loop_new(env, &node->loops[i]);
		if (rc)
			return rc;
	}
	return 0;
}

/* Returns ns. A CPT that polls keeps other threads off its processor, so the
 * default is 0 unless this process has enough processors for itself. */
static uint64_t busy_poll_default(const struct lnet *node)
{
	return node->own_loops && cpus_are_own(node->cpts) ? BUSY_POLL_OWN : 0;
}

static bool runs_threads(const struct lnet *node)
{
	return whole_node(node)->has_threads;
}

static bool is_shared(const struct lnet *node)
{
	return node->own_loops && node->conf.run == LNET_RUN_SHARED;
}

/* How a thread polls that waits for what @cpt does, and leaves at least one
 * processor to each CPT. */
static struct spin wait_spin(struct lnet_cpt *cpt)
{
	struct lnet *node = cpt->node;

	return (struct spin){
		.max = &node->settings.value[SETTING_WAIT_POLL],
		.hits = &cpt->stats[STAT_wait_poll_hits],
		.misses = &cpt->stats[STAT_wait_poll_misses],
		.processors = node->cpts + 1,
	};
}

/* With LNET_RUN_SHARED, only threads that wait sleep in turns. */
static void loops_poll(struct lnet *node)
{
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct lnet_cpt *cpt = node->cpt[i];
		struct spin spin = wait_spin(cpt);

		if (!is_shared(node))
			spin = (struct spin){
				.max = &node->settings.value[SETTING_BUSY_POLL],
				.hits = &cpt->stats[STAT_busy_poll_hits],
				.misses = &cpt->stats[STAT_busy_poll_misses],
			};
		loop_poll_before_sleep(node->loops[i], &spin);
	}
}

/* Prepares for threads that wait for that of the CPT. */
static int node_waits_init(struct lnet_cpt *cpt)
{
	struct whole_cpt *whole = whole_cpt(cpt);
	struct spin spin = wait_spin(cpt);

	if (is_shared(cpt->node))
		return caretaker_new(cpt->loop, &whole->caretaker);
	whole->waits = waits_new(cpt->loop->env, &spin);
	return whole->waits ? 0 : -ENOMEM;
}

/* Starts the thread of a CPT. The caller, which has made the loop, owns it
 * until the thread has become its owner; then this function returns. */
static int node_thread_start(struct lnet_cpt *cpt)
{
	struct cpt_start start = { .cpt = cpt };
	sigset_t all, before;
	int rc;

	rc = node_waits_init(cpt);
	if (rc)
		return -rc;
	sem_init(&start.taken, 0, 0);
	/* Signals are handled by the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&whole_cpt(cpt)->thread, NULL, cpt_thread, &start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (!rc && sem_wait(&start.taken)) /* sem_wait() was interrupted */
		;
	sem_destroy(&start.taken);
	return rc;
}

/* Ends the threads of the first @n CPTs. After that the caller owns their
 * loops. */
static void threads_stop(struct lnet *node, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (is_shared(node))
			caretaker_stop(whole_cpt(node->cpt[i])->caretaker);
		else
			loop_stop(node->loops[i]);
		pthread_join(whole_cpt(node->cpt[i])->thread, NULL);
		loop_take_over(node->loops[i]);
	}
}

static int threads_start(struct lnet *node)
{
	for (unsigned int i = 0; runs_threads(node) && i < node->cpts; i++) {
		int rc = node_thread_start(node->cpt[i]);

		if (rc) {
			threads_stop(node, i);
			return -rc;
		}
	}
	return 0;
}

/* ---- opening ---- */

static int cpts_start(struct lnet *node)
{
	int rc = 0;

	for (unsigned int i = 0; i < node->cpts && !rc; i++) {
		node->cpt[i]->config = net_node(node)->config;
		rc = targets_start(node->cpt[i]);
	}
	return rc;
}

static void node_free(struct lnet *node)
{
	threads_check_joined(node);
	if (node->own_loops)
		fork_watch_del(&whole_node(node)->fork);
	nis_fini(node);
	routes_fini(node);
	policies_fini(node);
	faults_fini(node);
	for (unsigned int i = 0; i < node->cpts; i++)
		cpt_fini(node->cpt[i]);
	directory_fini(&node->directory);
	loops_free(node);
	eqs_fini(&portal_node(node)->eqs);
	settings_fini(&node->settings);
	keys_put((struct keys *)node->conf.keys);
	pthread_mutex_destroy(&whole_node(node)->control);
	lnd_ports_fini(&net_node(node)->ports);
	lnd_tls_rules_fini(&net_node(node)->tls_rules);
	commons_fini(&net_node(node)->commons);
	pthread_mutex_destroy(&net_node(node)->config_lock);
	pthread_mutex_destroy(&node->ended_lock);
	pthread_cond_destroy(&node->ended);
	log_node_del(&whole_node(node)->log);
	free(whole_node(node)->all);
	free(whole_node(node));
}

/* ---- fork() ---- */

/* Called in a child of fork(), which can neither wait for the node's threads
 * nor send. What the threads were changing may be half changed, so the child
 * cannot even free it. */
static void node_in_child(struct fork_watch *watch)
{
	struct lnet *node =
		&container_of(watch, struct whole_node, fork)->net.portal.node;

	node->forked = true;
	log_node_leave(&whole_node(node)->log);
	atomic_store(&node->closing, true);
	/* Functions look up NIDs before they find that the node has gone, and
	 * the lock may have been held by a thread that the child does not have.
	 */
	pthread_mutex_init(&node->directory.lock, NULL);
	for (unsigned int i = 0; i < node->cpts; i++) {
		node->cpt[i]->closing = true;
		loop_orphan(node->loops[i]);
	}
}

bool lnet_is_forked(struct lnet *node)
{
	return node->forked;
}

/* Under virtual time nothing is watched: no thread is lost in fork(), and
 * nothing is sent, so a child can go on with a simulation of its own. */
static int node_watch_forks(struct lnet *node)
{
	struct fork_watch *watch = &whole_node(node)->fork;

	list_init(&watch->link);
	watch->in_child = node_in_child;
	return node->own_loops ? fork_watch_add(watch) : 0;
}

/* lnet_close() in a child. */
static void node_leave(struct lnet *node)
{
	fork_watch_del(&whole_node(node)->fork);
	free(whole_node(node)->all);
	free(whole_node(node));
}

static void node_silence(struct lnet *node);
static void node_stop(struct lnet *node);

/* Returns a random pid. Several processes that accept no connections may share
 * an address; they differ only in the pid. If two of them draw the same pid,
 * the peer's LND still tells them apart by their connections. */
static uint32_t pid_default(struct lnet *node)
{
	if (node->conf.accept != LNET_ACCEPT_NONE)
		return LNET_PID_LUSTRE;
	return LNET_PID_USERFLAG |
	       (uint32_t)(loop_random(node->loops[0]) % ~LNET_PID_USERFLAG);
}

/* The NIDs of peers have changed. @cpt may have aliases for them, and may hold
 * messages for match entries that name such a peer. */
static void node_directory_changed(struct directory *d, unsigned int cpt,
				   const struct directory_entry *to,
				   unsigned int n)
{
	struct lnet *node = container_of(d, struct lnet, directory);

	for (unsigned int i = 0; i < n; i++) {
		peer_renamed(node->cpt[cpt], &to[i].nid);
		unexpected_renamed(node->cpt[cpt], &to[i].nid);
	}
}

static void node_directory_idled(struct directory *d)
{
	node_wake_closer(container_of(d, struct lnet, directory));
}

static const struct directory_users node_directory_users = {
	.changed = node_directory_changed,
	.idled = node_directory_idled,
};

static int node_alloc(const struct node_params *p, struct lnet **node_p)
{
	struct whole_node *whole = lines_calloc(sizeof(*whole));
	struct lnet *node;
	int rc;

	if (!whole)
		return -ENOMEM;
	node = &whole->net.portal.node;
	node->conf = p->conf;
	node->conf.nids = NULL;
	node->conf.err = NULL;
	node->cpts = p->conf.cpts;
	whole->lnd = p->lnd;
	whole->memory = p->memory;
	net_node(node)->lnds = p->lnds;
	net_node(node)->upcalls = &nis_upcalls;
	net_node(node)->lnd_net = p->lnd_net;
	net_node(node)->fabric = p->fabric;
	net_node(node)->numa = p->numa_dir ? numa_read(p->numa_dir) : NULL;
	node->observer = p->observer;
	portal_node(node)->portal_users = &msgs_users;
	portal_node(node)->poll = lnet_poll;
	whole->drive = p->drive;
	whole->drive_arg = p->drive_arg;
	whole->all = calloc(node->cpts, sizeof(*whole->all));
	rc = whole->all ? eqs_init(&portal_node(node)->eqs) : -ENOMEM;
	if (rc)
		goto err_free;
	rc = loops_make(node, p);
	if (rc)
		goto err_loops;
	list_init(&whole->layers);
	list_init(&whole->threads);
	settings_init(&node->settings, &node->conf, busy_poll_default(node));
	pthread_mutex_init(&whole->control, NULL);
	pthread_mutex_init(&net_node(node)->config_lock, NULL);
	pthread_mutex_init(&node->ended_lock, NULL);
	pthread_cond_init(&node->ended, NULL);
	if (!node->conf.pid)
		node->conf.pid = pid_default(node);
	node->incarnation = loop_random(node->loops[0]);
	node->hash_seed = loop_random(node->loops[0]);
	lnd_ports_init(&net_node(node)->ports, node->hash_seed);
	lnd_tls_rules_init(&net_node(node)->tls_rules);
	commons_init(&net_node(node)->commons, node->conf.shared_max);
	directory_init(&node->directory, node->cpts, node->loops,
		       node->hash_seed, &node_directory_users);
	atomic_store(&portal_node(node)->portals[0].lazy, true);
	for (unsigned int i = 0; i < node->cpts; i++)
		node_cpt_init(node, i);
	targets_init(node);
	if (node->own_loops)
		loops_poll(node);
	log_node_add(&whole->log);
	if (node->conf.keys)
		(void)keys_ref((struct keys *)node->conf.keys);
	*node_p = node;
	return 0;

err_loops:
	loops_free(node);
	eqs_fini(&portal_node(node)->eqs);
err_free:
	free(net_node(node)->numa);
	free(whole->all);
	free(whole);
	return rc;
}

int node_open(const struct node_params *p, struct lnet **node_p)
{
	struct lnet *node;
	int rc = node_alloc(p, &node);

	if (rc)
		return rc;
	rc = node_watch_forks(node);
	if (!rc)
		rc = routes_start(node);
	if (!rc)
		rc = nis_start_lo(node);
	if (rc) {
		node_free(node);
		return rc;
	}
	rc = cpts_start(node);
	if (!rc)
		rc = threads_start(node);
	if (rc) {
		node->conf.run = LNET_RUN_POLL;
		whole_node(node)->has_threads = false;
		node_silence(node);
		node_stop(node);
		return rc;
	}
	*node_p = node;
	return 0;
}

/* ---- running ---- */

static void poll_late(struct timer *t)
{
	(void)t;
}

/* Returns 0 if the caller may make the node's turns. */
static int poll_check(struct lnet *node)
{
	if (loop_current())
		return -EDEADLK;
	if (runs_threads(node))
		return node->forked ? -ESHUTDOWN : -EBUSY;
	/* In a child of fork() nobody owns a loop. */
	if (!loop_is_owner(node->loops[0]))
		return node->forked ? -ESHUTDOWN : -EXDEV;
	return 0;
}

bool node_drive(struct lnet *node, uint64_t until)
{
	bool moved;

	whole_node(node)->driving++;
	moved = whole_node(node)->drive(whole_node(node)->drive_arg, until);
	whole_node(node)->driving--;
	return moved;
}

/* The part of lnet_poll() that may wait. */
static out_of_line int poll_until(struct lnet *node, uint64_t timeout)
{
	struct loop *l = node->loops[0];
	uint64_t until =
		loop_now(l) + MIN(timeout, TIME_NEVER / 4000) * NSEC_PER_USEC;
	struct timer t;

	if (whole_node(node)->drive) {
		/* A wait without limit takes no virtual time if nothing is left
		 * to happen. */
		if (timeout == UINT64_MAX)
			until = TIME_NEVER;
		return node_drive(node, until) ? 0 : -EAGAIN;
	}
	timer_init(&t, poll_late);
	loop_timer_arm(l, &t, until);
	loop_run_once(l, true);
	loop_timer_cancel(l, &t);
	return 0;
}

int lnet_poll(struct lnet *node, uint64_t timeout)
{
	int rc = poll_check(node);

	if (rc)
		return rc;
	if (timeout || whole_node(node)->drive)
		return poll_until(node, timeout);
	loop_run_once(node->loops[0], false);
	return 0;
}

int lnet_fd(struct lnet *node)
{
	int rc = poll_check(node);

	return rc ? rc : loop_fd(node->loops[0]);
}

uint64_t lnet_next_timeout(struct lnet *node)
{
	struct loop *l = node->loops[0];
	uint64_t at, now;

	if (poll_check(node))
		return UINT64_MAX;
	at = loop_next(l);
	now = loop_now(l);
	if (at == TIME_NEVER)
		return UINT64_MAX;
	/* Rounded up, or the caller would wake up too early. */
	return (MAX(at, now) - now + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
}

int lnet_call(struct lnet *node, unsigned int cpt, int (*fn)(void *arg),
	      void *arg)
{
	if (cpt >= node->cpts)
		return -EINVAL;
	return loop_call(node->loops[cpt], fn, arg);
}

/* ---- closing: close, stop, free ---- */

/* Makes the CPT refuse new work, and end its operations and messages. */
static int node_cpt_close(struct lnet_cpt *cpt, void *arg)
{
	(void)arg;
	cpt->closing = true;
	disc_stop(cpt);
	recovery_stop(cpt);
	provenance_stop(cpt);
	msgs_abandon(cpt);
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		shutdown_ni(cpt->config->ni[i], cpt);
	targets_stop(cpt);
	return 0;
}

static int cpt_unlink(struct lnet_cpt *cpt, void *arg)
{
	(void)arg;
	portals_unlink(cpt);
	return 0;
}

/* If *@arg is NULL, and the CPT still has to wait for something, sets *@arg to
 * its name. */
static int node_cpt_waits(struct lnet_cpt *cpt, void *arg)
{
	const char **what = arg;

	if (*what)
		return 0;
	if (!msgs_idle(cpt))
		*what = "messages";
	else if (!portals_idle(cpt))
		*what = "memory descriptors";
	else if (!peer_claims_idle(cpt) || !targets_are_idle(cpt))
		*what = "peers";
	else if (!disc_is_idle(cpt))
		*what = "discovery";
	else if (!recovery_is_idle(cpt))
		*what = "recovery";
	return 0;
}

/* Returns what the node, which is being closed, still waits for; NULL: for
 * nothing. */
static const char *node_waits(struct lnet *node)
{
	const char *what = NULL;

	if (atomic_load(&net_node(node)->nis_alive))
		what = "interfaces";
	else if (atomic_load(&node->gateway_news) ||
		 !directory_is_idle(&node->directory))
		what = "peers";
	BUG_ON(node_each_cpt(node, node_cpt_waits, &what));
	return what;
}

static uint64_t ended_count(struct lnet *node)
{
	uint64_t n;

	pthread_mutex_lock(&node->ended_lock);
	n = node->ended_count;
	pthread_mutex_unlock(&node->ended_lock);
	return n;
}

/* Makes turns, or waits while the CPTs' threads make them, until something has
 * ended. @seen: the value of ended_count() before the caller found that the
 * node waits for @what. */
static void node_turn(struct lnet *node, const char *what, uint64_t seen)
{
	if (whole_node(node)->drive) {
		/* Does what is due now, or, if nothing is, what is due next. */
		MISUSE_IF(!node_drive(node, loop_now(node->loops[0])) &&
				  !node_drive(node, TIME_NEVER),
			  "%s: nothing is left that can happen, but the node "
			  "waits for its %s",
			  node->crashed ? "lnet_sim_crash()" : "lnet_close()",
			  what);
		return;
	}
	if (!runs_threads(node)) {
		/* Several loops without threads exist if starting a thread has
		 * failed. */
		for (unsigned int i = 0; i < node->cpts; i++)
			loop_run_once(node->loops[i], node->cpts == 1);
		return;
	}
	pthread_mutex_lock(&node->ended_lock);
	while (node->ended_count == seen)
		pthread_cond_wait(&node->ended, &node->ended_lock);
	pthread_mutex_unlock(&node->ended_lock);
}

/* Does the work that was posted to the loops and has not been done yet. */
static void work_finish(struct lnet *node)
{
	bool any = node->own_loops;

	while (any) {
		any = false;
		for (unsigned int i = 0; i < node->cpts; i++) {
			if (loop_next(node->loops[i]) != 0)
				continue;
			loop_run_once(node->loops[i], false);
			any = true;
		}
	}
}

/* From now on the node sends and receives nothing, and its operations and
 * messages end. */
static void node_silence(struct lnet *node)
{
	atomic_store(&node->closing, true);
	BUG_ON(node_each_cpt(node, node_cpt_close, NULL));
}

static void node_stop(struct lnet *node)
{
	uint64_t seen = ended_count(node);
	const char *what;

	BUG_ON(node_each_cpt(node, cpt_unlink, NULL));
	while ((what = node_waits(node))) {
		node_turn(node, what, seen);
		seen = ended_count(node);
	}
	if (runs_threads(node))
		threads_stop(node, node->cpts);
	work_finish(node);
	node_free(node);
}

void lnet_close(struct lnet *node)
{
	if (!node)
		return;
	/* Closing waits for the node's loops, so it must not run on one of
	 * their threads. */
	MISUSE_IF(loop_current(),
		  "lnet_close(): called in a turn of a CPT, by a handler or "
		  "what it has called, where nothing may wait");
	if (node->forked) {
		node_leave(node);
		return;
	}
	threads_check_closer(node);
	layers_close(node);
	node_silence(node);
	node_stop(node);
}

void node_crash(struct lnet *node)
{
	BUG_ON(loop_current());
	node->crashed = true;
	layers_mute(node);
	node_silence(node);
	threads_end(node);
	while (!threads_ended(node))
		node_turn(node, "threads", 0);
	layers_close(node);
	node_stop(node);
}
