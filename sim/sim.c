/* SPDX-License-Identifier: BSD-3-Clause */
/* The cluster: nodes, faults, time. */
#include "ulnet/sim.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/lockstep.h"
#include "base/loop.h"
#include "base/misuse.h"
#include "lnd/lnds.h"
#include "lnet/node/node.h"
#include "sim/sim_priv.h"
#include "sim/sim.h"

#define SIM_RECOVERY_S 100

/* Aborts if the caller is inside of a turn or a callback. For public functions
 * that let time pass; @fn is the name of the function. */
static void check_outside(const char *fn)
{
	MISUSE_IF(loop_current(),
		  "%s(): called in a turn of a node, by a handler or what it "
		  "has called: lnet_sim_at() calls a function outside of all "
		  "nodes",
		  fn);
	MISUSE_IF(lockstep_current(),
		  "%s(): called by a thread of lnet_thread_start(): only the "
		  "thread that made the simulation lets time pass",
		  fn);
}

static void check_calling(const struct lnet_sim *sim, const char *fn)
{
	MISUSE_IF(sim->calling, "%s(): called by a function of lnet_sim_at()",
		  fn);
}

/* ---- life ---- */

static void loops_close(const struct lnet_sim *sim, struct loop **loops)
{
	for (unsigned int i = 0; i < sim->cpts; i++) {
		if (!loops[i])
			continue;
		timers_check(loops[i], "lnet_sim_free");
		loop_free(loops[i]);
	}
}

static int loops_open(struct lnet_sim *sim, struct loop **loops)
{
	for (unsigned int i = 0; i < sim->cpts; i++) {
		struct env *env;
		int rc = env_sim_env(sim->env, &env);

		if (!rc)
			rc = loop_new(env, &loops[i]);
		if (rc)
			return rc;
	}
	return 0;
}

static int sim_init(struct lnet_sim *sim)
{
	struct sim_net_watch watch = audit_net_watch;
	int rc;

	watch.arg = sim;
	rc = env_sim_new(sim->seed, &sim->env);
	if (rc)
		return rc;
	rc = sim_net_new(&watch, &sim->net);
	if (rc)
		goto err_env;
	rc = loops_open(sim, sim->loops);
	if (rc)
		goto err_net;
	return 0;

err_net:
	loops_close(sim, sim->loops);
	sim_net_free(sim->net);
err_env:
	env_sim_free(sim->env);
	return rc;
}

/* Has libulnetlab taken the place of libulnet, which libulrpc needs? It has
 * only if the linker looks up symbols in libulnetlab first. */
static bool in_its_place(void)
{
	Dl_info public, own;

	return dladdr((void *)lnet_open, &public) &&
	       dladdr((void *)loops_open, &own) &&
	       public.dli_fbase == own.dli_fbase;
}

int lnet_sim_new(uint64_t seed, unsigned int cpts, struct lnet_sim **sim_p)
{
	struct lnet_sim *sim;
	int rc;

	if (cpts < 1 || cpts > LNET_CPTS_MAX)
		return -EINVAL;
	if (!in_its_place())
		return -ELIBSCN;
	sim = calloc(1, sizeof(*sim));
	if (!sim)
		return -ENOMEM;
	sim->seed = seed;
	sim->cpts = cpts;
	timer_wheel_init(&sim->callbacks, 0);
	list_init(&sim->ats);
	hash_init(&sim->ops);
	hash_init(&sim->ways);
	pool_init(&sim->audit_ops, audit_op_size(), 0);
	list_init(&sim->names);
	list_init(&sim->feeds);
	list_init(&sim->bufs);
	list_init(&sim->retired);
	rc = sim_init(sim);
	if (rc) {
		free(sim);
		return rc;
	}
	*sim_p = sim;
	return 0;
}

int sim_verbs(struct lnet_sim *sim, const struct simqp_conf *conf,
	      struct simqp_fabric **fabric_p)
{
	int rc;

	if (sim->fabric || sim->nnodes)
		return -EALREADY;
	rc = simqp_fabric_new(sim->env, conf, &sim->fabric);
	if (!rc)
		*fabric_p = sim->fabric;
	return rc;
}

int sim_memory(struct lnet_sim *sim, const struct sim_memory *conf)
{
	if (sim->memory || sim->nnodes)
		return -EALREADY;
	sim->memory = true;
	sim->apart = true;
	sim->tunables[0] =
		(struct ulnet_tunable){ "ring_size", conf->ring_size };
	sim->tunables[1] = (struct ulnet_tunable){ "copy_min", conf->copy_min };
	env_sim_delay(sim->env, conf->delay);
	return 0;
}

void sim_tap(struct lnet_sim *sim, sim_tap_fn *fn, void *arg)
{
	sim_net_tap(sim->net, fn, arg);
}

void sim_push(struct lnet_sim *sim, uint32_t ppm)
{
	sim_net_push(sim->net, ppm);
}

void sim_prefix(struct lnet_sim *sim, unsigned int bits)
{
	BUG_ON(sim->nnodes);
	sim_net_prefix(sim->net, bits);
}

void lnet_sim_set_command(struct lnet_sim *sim, const char *command)
{
	snprintf(sim->command, sizeof(sim->command), "%s", command);
}

void lnet_sim_fail(struct lnet_sim *sim, const char *fmt, ...)
{
	va_list ap;

	sim->violations++;
	fprintf(stderr, "sim: seed %" PRIu64 ", at %" PRIu64 " ns: ", sim->seed,
		lnet_sim_now(sim));
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	if (sim->violations == 1 && sim->command[0])
		fprintf(stderr, "sim: to repeat: %s\n", sim->command);
}

/* ---- nodes ---- */

static struct sim_node *node_at(struct lnet_sim *sim, unsigned int index)
{
	return index < sim->nnodes ? sim->nodes[index] : NULL;
}

struct lnet *lnet_sim_node(struct lnet_sim *sim, unsigned int index)
{
	struct sim_node *n = node_at(sim, index);

	return n ? n->node : NULL;
}

/* Does what is due next, by @until at the latest: see node_params.drive. */
static bool sim_step(struct lnet_sim *sim, uint64_t until)
{
	uint64_t next = timer_wheel_next(&sim->callbacks);
	bool calling;

	if (env_sim_step(sim->env, MIN(next, until)))
		return true;
	if (next > until || next == TIME_NEVER)
		return false;
	calling = sim->calling;
	sim->calling = true;
	timer_wheel_advance(&sim->callbacks, lnet_sim_now(sim));
	sim->calling = calling;
	return true;
}

/* As node_params.drive: lets time pass while a function such as lnet_close() or
 * LNetEQPoll() waits for a node. */
static bool sim_drive(void *arg, uint64_t until)
{
	struct lnet_sim *sim = arg;

	return sim->crashing ? env_sim_step(sim->env, lnet_sim_now(sim))
			     : sim_step(sim, until);
}

static int node_set_up(struct sim_node *n)
{
	int rc = 0;

	for (unsigned int i = 0; i < n->nnids; i++) {
		struct ulnet_ni_conf conf = { .nid = n->nids[i] };

		if (n->sim->memory && conf.nid.type == LNET_TYPE_SHM) {
			conf.tunables = n->sim->tunables;
			conf.ntunables = ARRAY_SIZE(n->sim->tunables);
		}
		rc = lnet_ni_add(n->node, &conf);
		if (rc)
			return rc;
	}
	if (n->start)
		rc = n->start(n->arg, n->index, n->node);
	return MIN(rc, 0);
}

static int node_start(struct sim_node *n)
{
	static const struct lnd *const lnds[] = { &lolnd, &o2iblnd, &shmlnd,
						  NULL };
	struct lnet_sim *sim = n->sim;
	struct node_params p = {
		.conf = n->conf,
		.loops = n->loops,
		.lnds = lnds,
		.lnd = &simlnd,
		.lnd_net = sim->net,
		.fabric = sim->fabric,
		.memory = sim->memory,
		.observer = &n->observer,
		.drive = sim_drive,
		.drive_arg = sim,
	};
	int rc;

	audit_watch(n);
	rc = node_open(&p, &n->node);
	if (rc)
		return rc;
	/* While NIs are dead, recovery pings are sent. Without a limit
	 * lnet_sim_run_all() would never end then. */
	BUG_ON(lnet_setting_set(n->node, "recovery_limit", SIM_RECOVERY_S));
	rc = sim_names_start(n);
	if (!rc)
		rc = node_set_up(n);
	if (rc) {
		lnet_close(n->node);
		n->node = NULL;
	}
	return rc;
}

static void sim_node_free(struct sim_node *n)
{
	loops_close(n->sim, n->own);
	free(n->nids);
	free(n);
}

static int parse_nids(struct sim_node *n, const char *text)
{
	char *copy = strdup(text), *save = NULL, *word;
	int rc = copy ? 0 : -ENOMEM;

	for (word = copy ? strtok_r(copy, " ", &save) : NULL; word && !rc;
	     word = strtok_r(NULL, " ", &save)) {
		struct ulnet_nid *nids =
			realloc(n->nids, (n->nnids + 1) * sizeof(*nids));

		if (!nids) {
			rc = -ENOMEM;
			break;
		}
		n->nids = nids;
		rc = lnet_nid_parse(word, &nids[n->nnids]);
		if (rc)
			node_conf_refuse(&n->conf, rc,
					 "nids: '%.64s' is not the NID of one "
					 "interface",
					 word);
		else
			n->nnids++;
	}
	free(copy);
	return rc;
}

static int sim_node_new(struct lnet_sim *sim, const char *nids,
			const struct ulnet_conf *conf, struct sim_node **n_p)
{
	struct sim_node *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return -ENOMEM;
	n->sim = sim;
	n->index = sim->nnodes;
	n->loops = sim->apart ? n->own : sim->loops;
	if (conf)
		n->conf = *conf;
	/* The configuration of the caller has no say in these fields. */
	n->conf.run = LNET_RUN_THREADS;
	n->conf.ev = NULL;
	n->conf.cpts = sim->cpts;
	rc = n->conf.nids ? node_conf_refuse(&n->conf, -EINVAL,
					     "nids: lnet_sim_node_add() has an "
					     "argument for them")
			  : node_conf_fill(&n->conf);
	if (!rc)
		rc = parse_nids(n, nids);
	n->conf.err = NULL; /* the caller's memory may be gone */
	if (!rc && sim->apart)
		rc = loops_open(sim, n->own);
	if (rc) {
		sim_node_free(n);
		return rc;
	}
	*n_p = n;
	return 0;
}

int lnet_sim_node_add(struct lnet_sim *sim, const char *nids,
		      const struct ulnet_conf *conf, lnet_sim_start_fn start,
		      void *arg)
{
	struct sim_node **nodes, *n;
	int rc = sim_node_new(sim, nids, conf, &n);

	if (rc)
		return rc;
	n->start = start;
	n->arg = arg;
	nodes = realloc(sim->nodes,
			(sim->nnodes + 1) * sizeof(struct sim_node *));
	if (!nodes) {
		sim_node_free(n);
		return -ENOMEM;
	}
	sim->nodes = nodes;
	/* The node is in the table before it starts, since handlers may look it
	 * up. */
	sim->nodes[sim->nnodes++] = n;
	rc = node_start(n);
	if (rc) {
		sim->nnodes--;
		sim_node_free(n);
		return rc;
	}
	return (int)n->index;
}

/* Makes the RDMA devices of a node that crashes send nothing any more, not even
 * that connections are closed. @over: the crash is over, and the devices may be
 * used again. */
static void devices_die(const struct sim_node *n, bool over)
{
	static const struct ulnet_nid any = LNET_NID_ANY;
	struct simqp_fabric *fabric = n->sim->fabric;

	for (unsigned int i = 0; i < n->nnids && fabric; i++) {
		if (n->nids[i].type != LNET_TYPE_O2IB)
			continue;
		if (over)
			simqp_silence(fabric, &n->nids[i], &any, 0);
		else
			simqp_die(fabric, &n->nids[i]);
	}
}

/* The sockets of @n, which has loops of its own, end. */
static void node_hang_up(const struct sim_node *n)
{
	for (unsigned int i = 0; i < n->sim->cpts; i++)
		env_sim_hang_up(n->own[i]->env);
}

/* The loops of @n, which are its own, do nothing until @until, ns. */
static void node_freeze(const struct sim_node *n, uint64_t until)
{
	for (unsigned int i = 0; i < n->sim->cpts; i++)
		env_sim_freeze(n->own[i]->env, until);
}

int lnet_sim_crash(struct lnet_sim *sim, unsigned int index)
{
	struct sim_node *n = node_at(sim, index);
	struct lnet *node;

	if (!n || !n->node)
		return -ENOENT;
	if (whole_node(n->node)->driving || threads_are_busy(n->node))
		return -EBUSY;
	check_outside("lnet_sim_crash");
	audit_note(sim, "crashes", index);
	if (n->loops == n->own)
		node_freeze(n, 0);
	node = n->node;
	n->node = NULL;
	sim->crashing = n;
	devices_die(n, false);
	if (sim->memory)
		node_hang_up(n);
	node_crash(node);
	devices_die(n, true);
	sim->crashing = NULL;
	ways_forget(sim, node);
	return 0;
}

int lnet_sim_restart(struct lnet_sim *sim, unsigned int index)
{
	struct sim_node *n = node_at(sim, index);

	if (!n)
		return -ENOENT;
	if (n->node)
		return -EALREADY;
	audit_note(sim, "starts", index);
	return node_start(n);
}

void lnet_sim_apart(struct lnet_sim *sim)
{
	sim->apart = true;
}

int lnet_sim_pause(struct lnet_sim *sim, unsigned int index, uint64_t duration)
{
	struct sim_node *n = node_at(sim, index);
	uint64_t until = lnet_sim_now(sim) + MIN(duration, TIME_NEVER / 4);

	if (!n || !n->node)
		return -ENOENT;
	if (n->loops != n->own)
		return -EINVAL;
	audit_note(sim, "pauses", index);
	n->paused = until;
	node_freeze(n, until);
	return 0;
}

/* ---- faults ---- */

int lnet_sim_ni_set(struct lnet_sim *sim, const struct ulnet_nid *nid, bool up)
{
	return sim_net_ni_set(sim->net, nid, up);
}

static bool link_is_sane(const struct ulnet_sim_link *l)
{
	const uint32_t parts[] = { l->loss,   l->duplicate, l->reorder,
				   l->refuse, l->error,	    l->stall,
				   l->mute,   l->cut };

	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i] > LNET_SIM_ALWAYS)
			return false;
	return l->latency < TIME_NEVER / 4 && l->jitter < TIME_NEVER / 4 &&
	       l->reorder_window < TIME_NEVER / 4 &&
	       l->connect < TIME_NEVER / 4;
}

int lnet_sim_link_set(struct lnet_sim *sim, const struct ulnet_nid *src,
		      const struct ulnet_nid *dst,
		      const struct ulnet_sim_link *link)
{
	if (!link_is_sane(link))
		return -EINVAL;
	return sim_net_link_set(sim->net, src, dst, link);
}

int lnet_sim_partition(struct lnet_sim *sim, const struct ulnet_nid *a,
		       const struct ulnet_nid *b, bool on)
{
	return sim_net_partition(sim->net, a, b, on);
}

void lnet_sim_cut(struct lnet_sim *sim, const struct ulnet_nid *a,
		  const struct ulnet_nid *b)
{
	sim_net_cut(sim->net, a, b);
}

/* ---- time ---- */

uint64_t lnet_sim_now(const struct lnet_sim *sim)
{
	return env_sim_now(sim->env);
}

uint64_t lnet_sim_random(struct lnet_sim *sim, uint64_t below)
{
	return below ? env_sim_random(sim->env) % below : 0;
}

struct sim_at {
	struct timer timer;
	struct list link; /* in sim->ats */
	void (*fn)(void *arg);
	void *arg;
};

static void at_run(struct timer *t)
{
	struct sim_at *at = container_of(t, struct sim_at, timer);
	void (*fn)(void *arg) = at->fn;
	void *arg = at->arg;

	list_del(&at->link);
	free(at);
	fn(arg);
}

int lnet_sim_at(struct lnet_sim *sim, uint64_t delay, void (*fn)(void *arg),
		void *arg)
{
	struct sim_at *at;

	if (sim->ending)
		return -ESHUTDOWN;
	at = malloc(sizeof(*at));
	if (!at)
		return -ENOMEM;
	at->fn = fn;
	at->arg = arg;
	timer_init(&at->timer, at_run);
	list_add_tail(&sim->ats, &at->link);
	timer_wheel_arm(&sim->callbacks, &at->timer,
			lnet_sim_now(sim) + MIN(delay, TIME_NEVER / 4));
	return 0;
}

static void ats_free(struct lnet_sim *sim)
{
	struct sim_at *at, *next;

	list_for_each_entry_safe (at, next, &sim->ats, link) {
		timer_wheel_cancel(&sim->callbacks, &at->timer);
		free(at);
	}
}

static void run_until(struct lnet_sim *sim, uint64_t end, const char *fn)
{
	check_outside(fn);
	check_calling(sim, fn);
	while (sim_step(sim, end))
		;
}

void lnet_sim_run(struct lnet_sim *sim, uint64_t duration)
{
	run_until(sim, lnet_sim_now(sim) + MIN(duration, TIME_NEVER / 4),
		  "lnet_sim_run");
}

void lnet_sim_run_all(struct lnet_sim *sim)
{
	run_until(sim, TIME_NEVER, "lnet_sim_run_all");
}

/* ---- checking ---- */

unsigned int lnet_sim_check(struct lnet_sim *sim)
{
	char buf[256];

	for (unsigned int i = 0; i < sim->nnodes; i++) {
		struct lnet *node = sim->nodes[i]->node;

		if (node && node_check(node, buf, sizeof(buf)))
			lnet_sim_fail(sim, "node %u: %s", i, buf);
	}
	audit_check(sim, false);
	bufs_check(sim);
	return sim->violations;
}

void lnet_sim_trace(struct lnet_sim *sim, FILE *out)
{
	sim->trace = out;
}

uint64_t lnet_sim_digest(const struct lnet_sim *sim)
{
	return sim->digest;
}

void lnet_sim_stats(const struct lnet_sim *sim, struct ulnet_sim_stats *stats)
{
	struct sim_net_stats net;

	sim_net_stats(sim->net, &net);
	*stats = sim->stats;
	stats->messages = net.messages;
	stats->faults = net.faults;
}

unsigned int lnet_sim_free(struct lnet_sim *sim)
{
	unsigned int violations;

	if (!sim)
		return 0;
	check_outside("lnet_sim_free");
	check_calling(sim, "lnet_sim_free");
	/* Nodes let time pass while they close, in which nothing that the
	 * scenario has planned may happen. */
	ats_free(sim);
	sim->ending = true;
	for (unsigned int i = 0; i < sim->nnodes; i++) {
		lnet_close(sim->nodes[i]->node);
		sim->nodes[i]->node = NULL;
	}
	audit_check(sim, true);
	bufs_check(sim);
	violations = sim->violations;
	for (unsigned int i = 0; i < sim->nnodes; i++)
		sim_node_free(sim->nodes[i]);
	free(sim->nodes);
	bufs_free(sim);
	sim_names_free(sim);
	hash_fini(&sim->ops);
	ways_forget(sim, NULL);
	hash_fini(&sim->ways);
	loops_close(sim, sim->loops);
	if (sim->fabric)
		simqp_fabric_free(sim->fabric);
	sim_net_free(sim->net);
	pool_fini(&sim->audit_ops);
	env_sim_free(sim->env);
	free(sim);
	return violations;
}
