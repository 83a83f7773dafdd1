/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: the node that they are made to, the table of commands, and what the
 * files of this folder add to it.
 */
#ifndef CONFIG_REQUEST_REQUEST_H
#define CONFIG_REQUEST_REQUEST_H

#include <pthread.h>

#include "config/request/inquiry.h"
#include "config/request/plan.h"
#include "config/yaml/scope.h"
#include "ulnet/control.h"

struct server;

/* A node under control. */
struct lnet_control {
	struct lnet *node;     /* immutable */
	struct server *server; /* immutable; NULL: no socket */
	pthread_mutex_t lock;  /* for what follows, and for changes of the
				* node's configuration: one at a time */
	bool down;	       /* "lnet unconfigure" was last */
	char *start;	       /* what "lnet configure --all" brings back */

	pthread_mutex_t programs_lock; /* for what follows; held for moments */
	struct list programs;	       /* commands of the program's own */
	pthread_cond_t left;	       /* nobody runs one of them any more */
};

struct request {
	struct lnet_control *control;
	struct answer *answer;
	const struct tree *args; /* a mapping, or null */
	struct scope scope;
	struct cancel *cancel; /* NULL: nobody can end it */
};

/* Carries out the request @root; the outcome is in @answer. */
void request_carry_out(struct lnet_control *control, const struct tree *root,
		       struct cancel *cancel, struct answer *answer);

/* Is there a command @name that the program cannot add? */
bool request_is_ours(const char *name);

/* Answers what is asked of a node that "lnet unconfigure" has taken down. */
int request_down(struct request *r);

/* ---- commands of the program's own: program.c, lnet_control_add(3) ---- */

/* Carries out @r if the program has a command @name. */
bool program_run(struct request *r, const char *name) must_check;
/* Ends all commands, once no request is being carried out any more. */
void programs_free(struct lnet_control *control);

/* ---- configuration files: import.c, lnet.conf(5) ---- */

enum import_mode { IMPORT_ADD, IMPORT_DEL, IMPORT_SHOW, IMPORT_EXEC };

/*
 * Does with the file @text what @mode says. Takes the control's lock for all
 * modes but IMPORT_EXEC, unless IMPORT_LOCKED says that the caller has it. If
 * it fails the node is as it was before; with IMPORT_IGNORE_ERRORS each item is
 * done or not done by itself, and the answer has an error for each that fails.
 */
enum import_flag { IMPORT_LOCKED = 1, IMPORT_IGNORE_ERRORS = 2 };
int import_text(struct request *r, const char *text, enum import_mode mode,
		unsigned int flags);

/* ---- changes ---- */

/*
 * The arguments of commands that change the node: of "add", or of "del". They
 * add steps to @plan, or an error to the answer of @s.
 */
int net_args(struct plan *plan, const struct scope *s, const struct tree *args,
	     bool add) must_check;
int peer_args(struct plan *plan, const struct scope *s, const struct tree *args,
	      bool add) must_check;
int route_args(struct plan *plan, const struct scope *s,
	       const struct tree *args, bool add) must_check;
int policy_args(struct plan *plan, const struct scope *s,
		const struct tree *args, bool add) must_check;
int setting_args(struct plan *plan, const struct scope *s,
		 const struct tree *args, bool add) must_check;

/*
 * The same of files: one item of a section, or all of a section that is a
 * mapping. To be deleted is what the item names, of a policy the one with the
 * same patterns, or without any the one at its index, of fault rules those of
 * its kind, source and destination.
 */
int net_item(struct plan *plan, const struct scope *s, const struct tree *item,
	     bool add) must_check;
int peer_item(struct plan *plan, const struct scope *s, const struct tree *item,
	      bool add) must_check;
int route_item(struct plan *plan, const struct scope *s,
	       const struct tree *item, bool add) must_check;
int routing_item(struct plan *plan, const struct scope *s,
		 const struct tree *item, bool add) must_check;
int buffers_section(struct plan *plan, const struct scope *s,
		    const struct tree *map, bool add) must_check;
int policy_item(struct plan *plan, const struct scope *s,
		const struct tree *item, bool add) must_check;
int fault_item(struct plan *plan, const struct scope *s,
	       const struct tree *item, bool add) must_check;
int global_section(struct plan *plan, const struct scope *s,
		   const struct tree *map, bool add) must_check;
int numa_section(struct plan *plan, const struct scope *s,
		 const struct tree *map, bool add) must_check;
/* One item of "ip2nets", which may be about other hosts: then *@applied_p is
 * left alone, else it is set. */
int ip2nets_item(struct plan *plan, const struct scope *s,
		 const struct tree *item, bool add, bool *applied_p) must_check;

/* All of them are to go; and routing is to be off. */
int routes_forget(struct plan *plan, const struct scope *s);
int policies_forget(struct plan *plan, const struct scope *s);

/* "set" of what is no setting of the node: routing, and the buffers of routers.
 * -ENOENT, and nothing said: @at is of another one. */
int routing_set(struct plan *plan, const struct scope *s, const struct tree *at,
		int64_t value);

/*
 * Bonding, as kernel nodes had it before multi-rail: one NI, whose LND spread
 * its traffic over several interfaces. Here each interface has an NI of its
 * own, and LNet uses all of them. What asked for bonding is accepted, with a
 * note that says so (requirement E6): the setting is to be @value. -EINVAL:
 * neither 0 nor 1.
 */
int bonding_set(struct answer *a, int64_t value) must_check;
#define BONDING "use_tcp_bonding"

/* ---- reading: args.c ---- */

/* A NID that is not ANY; of what has @key in @map, as scope_get_text(). */
int scope_nid(const struct scope *s, const struct tree *t,
	      struct ulnet_nid *nid_p) must_check;
int scope_get_nid(const struct scope *s, const struct tree *map,
		  const char *key, struct ulnet_nid *nid_p) must_check;
/* -ENOENT: it is none. */
int scope_net(const struct scope *s, const struct tree *t,
	      uint32_t *net_p) must_check;
int scope_get_net(const struct scope *s, const struct tree *map,
		  const char *key, uint32_t *net_p) must_check;

/* "verbose"; without it 0. */
int scope_get_verbose(const struct scope *s, const struct tree *map,
		      int *verbose_p) must_check;

/* The state of the node could not be read; 0: it could. Returns @rc. */
int cannot_get(const struct scope *s, int rc, const char *what);

/* ---- showing ---- */

void net_show(struct request *r);
void peer_show(struct request *r);
void route_show(struct request *r);
void policy_show(struct request *r);
void path_show(struct request *r);
void debug_recovery(struct request *r);
void debug_peer(struct request *r);
void debug_cpt_of_nid(struct request *r);

/* What an item of a file names, if it is there. */
int net_show_item(struct lnet *node, const struct scope *s,
		  const struct tree *item);
int peer_show_item(struct lnet *node, const struct scope *s,
		   const struct tree *item);
int route_show_item(struct lnet *node, const struct scope *s,
		    const struct tree *item);
int policy_show_item(struct lnet *node, const struct scope *s,
		     const struct tree *item);

/* ---- what is no configuration ---- */

/* Health set by hand: "net set" and "peer set". */
void health_net_set(struct request *r);
void health_peer_set(struct request *r);

void fault_request(struct request *r);

#endif
