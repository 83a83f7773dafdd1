/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ping and push targets of a CPT, which every node owes to its peers
 * (portal 0). CPT threads only.
 */
#ifndef LNET_TARGET_H
#define LNET_TARGET_H

#include "base/loop.h"
#include "base/timer.h"

#define PUSH_TARGET_SIZE 272

struct lnd_ni;
struct lnet;
struct lnet_cpt;
struct lnet_me;
struct target_buf;

/* Of a CPT. */
struct targets {
	struct lnet_me *ping; /* NULL: none posted */
	uint64_t push;	      /* cookie of its entry, which goes with a push */
	struct work work;     /* targets_changed() */
	atomic_bool posted;
	bool away;		  /* a push's memory is with another CPT */
	struct target_buf *spare; /* could not be posted, for want of memory */
	struct timer again;	  /* ... and is tried again then */
};


/* For a node that is being opened, whose settings and CPTs are there. */
void targets_init(struct lnet *node);

/* Posts the targets. targets_stop() takes them away, also after targets_start()
 * has failed. */
int targets_start(struct lnet_cpt *cpt) must_check;
void targets_stop(struct lnet_cpt *cpt);
/* After targets_stop(): is nothing of them elsewhere any more? */
bool targets_are_idle(const struct lnet_cpt *cpt);

/* What peers are told of this node is another. Any thread. */
void targets_changed(struct lnet *node);

/* As lnd_upcalls has it. */
void upcall_ni_set_up(struct lnd_ni *lnd, bool up, const char *why);

/* The CPT's configuration has changed: answers pings with the new one. -ENOMEM:
 * goes on answering with the old one. */
int targets_refresh(struct lnet_cpt *cpt) must_check;

#endif
