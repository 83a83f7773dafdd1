/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to a node: struct lnet_control, which takes them, and what the files
 * of this folder do for them.
 */
#ifndef CONFIG_REQUEST_REQUEST_H
#define CONFIG_REQUEST_REQUEST_H

#include <pthread.h>

#include "base/fork.h"
#include "base/fsm.h"
#include "config/request/inquiry.h"
#include "config/request/plan.h"
#include "config/yaml/scope.h"
#include "ulnet/control.h"

struct server;

/* A node under control. */
struct lnet_control {
	struct lnet *node;	 /* immutable */
	struct server *server;	 /* immutable; NULL: no socket */
	unsigned int generation; /* fork_generation(); immutable */
	/* protects @busy; held for moments */
	pthread_mutex_t lock;
	pthread_cond_t turn; /* broadcast when @busy becomes false */
	/* Somebody has taken the turn to change the node's configuration, @down
	 * and @start. Requests that only read do not wait for the turn. */
	bool busy;
	/* LNet is down, since "lnet unconfigure" */
	atomic_bool down;
	char *start; /* file that "lnet configure --all" restores */

	/* protects what follows; held for moments */
	pthread_mutex_t programs_lock;
	struct list programs; /* commands of the program's own */
	/* signaled when no request runs a deleted command any more */
	pthread_cond_t program_idle;
};

/* Is this process a child of fork(), and the node its parent's? The node may be
 * gone. */
static inline bool control_is_forked(const struct lnet_control *control)
{
	return control->generation != fork_generation();
}

/* A request that is being carried out. */
struct request {
	struct lnet_control *control;
	struct answer *answer;
	const struct tree *args; /* a mapping, or null */
	struct scope scope;	 /* where errors about the arguments go */
	struct cancel *cancel;	 /* NULL: it cannot be canceled */
};

/* Carries out the request @root; output and errors are added to @answer. */
void request_carry_out(struct lnet_control *control, const struct tree *root,
		       struct cancel *cancel, struct answer *answer);

/* Is @name a command that programs cannot add? */
bool request_is_ours(const char *name);

/* Waits for the turn to change the configuration; the caller gives it back by
 * control_give(). Returns false: @cancel (NULL: nobody can) has ended the wait,
 * and the caller has no turn. */
bool control_take(struct lnet_control *c, struct cancel *cancel) must_check;
void control_give(struct lnet_control *c);
/* As control_take(), for a request; if it returns false there is an error in
 * the answer. */
bool request_take(struct request *r) must_check;

/* Adds the error that LNet is not configured. */
void request_down(struct request *r);

/* ---- commands of the program's own: program.c, lnet_control_add(3) ---- */

/* Carries out @r, or returns false: the program has no command @name. */
bool program_run(struct request *r, const char *name) must_check;
/* Deletes all commands of the program. No request may be under way. */
void programs_free(struct lnet_control *control);

/* ---- configuration files: import.c, lnet.conf(5) ---- */

/* Adds what is in the file @text, or nothing if there is an error. Called in a
 * turn of the control. */
int import_config(struct request *r, const char *text) must_check;

/* ---- changes ---- */

/*
 * Reads what is to be added, or (@add false) deleted; adds steps to @plan, or
 * an error to the answer of @s. @t is one of three: the arguments of a command,
 * an item of a file's section, or the whole section, if it is a mapping. An
 * item to be deleted is found by its name; a policy by its patterns, or, if it
 * has none, by its id; fault rules by kind, source and destination.
 */
typedef int plan_fn(struct plan *plan, const struct scope *s,
		    const struct tree *t, bool add);
plan_fn net_args, peer_args, route_args, policy_args, setting_args, tls_args;
plan_fn net_item, peer_item, route_item, routing_item, policy_item, fault_item;
plan_fn tls_item;
plan_fn buffers_section, global_section, numa_section;
/* What the items of "ip2nets" that were read say to this host. */
struct rules {
	bool any;     /* there are items */
	bool applied; /* one of them is for this host */
	unsigned int n;
	uint32_t nets[1024]; /* nets of the items for this host */
};
/* Adds steps for one item of "ip2nets". Of the items for this host that have
 * the same net, the first counts, as of the rules in the argument "ip2net" of
 * "net add". */
int ip2nets_item(struct plan *plan, const struct scope *s,
		 const struct tree *item, bool add,
		 struct rules *rules) must_check;

/* routes_forget() adds steps that delete all routes and turn routing off;
 * policies_forget() adds steps that delete all policies, and tls_forget() all
 * rules for nets with TLS. */
int routes_forget(struct plan *plan, const struct scope *s);
int policies_forget(struct plan *plan, const struct scope *s);
int tls_forget(struct plan *plan, const struct scope *s);

/* Carries out "set" of routing and of buffers of routers, which are no settings
 * of the node. -ENOENT, without an error in the answer: @at is something else.
 */
int routing_set(struct plan *plan, const struct scope *s, const struct tree *at,
		int64_t value);

/*
 * Reads @value of the setting BONDING. In old kernel nodes one NI could have
 * several interfaces; here each interface has an NI of its own, and LNet uses
 * all of them. So 1 is accepted with a note (requirement E6). -EINVAL: neither
 * 0 nor 1.
 */
int bonding_set(struct answer *a, int64_t value) must_check;
#define BONDING "use_tcp_bonding"

/* ---- reading ---- */

/* Reads a NID as the functions of scope.h read other values. ANY is refused. */
int scope_nid(const struct scope *s, const struct tree *t,
	      struct ulnet_nid *nid_p) must_check;
/* NIDs that a request names. */
struct nids {
	struct ulnet_nid *nids; /* array of the NIDs, to be freed */
	unsigned int n, room;
	unsigned int ranged; /* how many of them are from ranges */
};
/* how many NIDs all ranges of one request may expand to */
#define NIDS_RANGED_MAX 256

/* Adds to @list what @t, an item of a list of NIDs, says: NIDs with commas
 * between them, of which each may be a range, such as 10.0.0.[1-3]@tcp; or a
 * mapping with "nid". */
int scope_nids(const struct scope *s, const struct tree *t,
	       struct nids *list) must_check;
/* Reads a net as the functions of scope.h read other values. -ENOENT: it is no
 * net. */
int scope_net(const struct scope *s, const struct tree *t,
	      uint32_t *net_p) must_check;
/* Reads the argument "verbose"; 0 without it. */
int read_verbose(const struct scope *s, const struct tree *args,
		 int *verbose_p) must_check;

/* An argument that is not supported, and why. */
struct refused {
	const char *key, *why;
};
/* Fails with -EOPNOTSUPP, "KEY@how: WHY", if @map has a key of @refused, which
 * ends with NULL. */
int scope_refuse(const struct scope *s, const struct tree *map,
		 const struct refused *refused, const char *how) must_check;

/* Adds the error that @what of the node could not be read, unless @rc is 0.
 * Returns @rc. */
int cannot_get(const struct scope *s, int rc, const char *what);

/* ---- showing ---- */

/* Each show_...() adds a tree, with the keys of the kernel's lnetctl in their
 * order, to the mapping @out. Those that return an int return 0 or the error of
 * reading the node; -EMSGSIZE: the answer would be too long. */

/* How much is shown. */
struct show {
	int verbose;	      /* the level of -v */
	bool backup;	      /* only what is needed to configure it again */
	bool kernel;	      /* only what kernel nodes know, too */
	uint32_t net;	      /* LNET_NET_ANY: all */
	struct ulnet_nid nid; /* LNET_NID_ANY: all */
};

void show_nid(struct tree *out, const char *key, const struct ulnet_nid *nid);
/* Seconds until lnet_now() is @at (ns), rounded up; 0: @at is past. */
uint64_t show_seconds_to(struct lnet *node, uint64_t at);

int show_nets(struct lnet *node, const struct show *show, struct tree *out);
/* -ENOENT: no peer has the NID show->nid. */
int show_peers(struct lnet *node, const struct show *show, struct tree *out);
int show_peer_list(struct lnet *node, struct tree *out);
int show_stats(struct lnet *node, struct tree *out);
int show_objects(struct lnet *node, struct tree *out);
int show_settings(struct lnet *node, struct tree *out);
/* Do kernel nodes have the setting @name? In setting.c. */
bool setting_is_kernels(const char *name);
/* Shows, as "ulnet", the settings that kernel nodes do not have. @backup: only
 * those that differ from their defaults. */
int show_own_settings(struct lnet *node, bool backup, struct tree *out);
/* @kernel: only what kernel nodes know, too, as a backup. */
int show_all(struct lnet *node, bool backup, bool kernel, struct tree *out);

/* In route.c, policy.c, tls.c and fault.c: */

/* @only: NULL, or a pattern that the shown routes match. */
int show_routes(struct lnet *node, const struct ulnet_route *only, int verbose,
		bool backup, struct tree *out);
/* Shows whether it routes, and its buffers, unless all of that is the
 * default. */
int show_routing(struct lnet *node, bool backup, struct tree *out);
/* @only: an id; LNET_POLICY_LAST: all. */
int show_policies(struct lnet *node, uint32_t only, struct tree *out);
/* @name: of one rule; NULL: all. */
int show_tls_rules(struct lnet *node, const char *name, struct tree *out);
/* @kind LNET_FAULT_KINDS: all. @backup: without counters. */
int show_faults(struct lnet *node, enum ulnet_fault_kind kind, bool backup,
		struct tree *out);

/* ---- states by name ---- */

/* States of a net of this node, and of an NI of this node or of a peer. A state
 * is computed whenever a net or NI is shown; the tables are for lnet_states(7).
 */
enum debug_net { DEBUG_NET_ACTIVE, DEBUG_NET_INACTIVE, DEBUG_NETS };
enum debug_ni {
	DEBUG_NI_ACTIVE,
	DEBUG_NI_ILL,
	DEBUG_NI_RECOVERING,
	DEBUG_NI_DOWN,
	DEBUG_NIS
};
extern const struct fsm_state debug_nets[DEBUG_NETS];
extern const struct fsm_state debug_nis[DEBUG_NIS];

const char *debug_peer_ni_state(const struct ulnet_peer_info *info);

/* Shows what an item of a file names, if the node has it. */
typedef int show_item_fn(struct lnet *node, const struct scope *s,
			 const struct tree *item);
show_item_fn net_show_item, peer_show_item, route_show_item, policy_show_item;
show_item_fn tls_show_item;

/* ---- requests ---- */

/* Carries out @r. */
typedef void request_fn(struct request *r);
request_fn net_show, peer_show, route_show, policy_show, tls_show;
request_fn path_show, debug_recovery, debug_peer, debug_cpt_of_nid;
request_fn health_net_set, health_peer_set, fault_request, import_request;

#endif
