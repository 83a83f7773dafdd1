/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory descriptors. An MD belongs to one CPT (its home): where it was bound,
 * or where its match entry lives. Its events are delivered there, one at a
 * time.
 *
 * Life: active -> unlinked (its handle is invalid, nothing new matches) ->
 * freed, with its last event, once no message and no operation uses it (refs =
 * 0).
 */
#ifndef LNET_MD_H
#define LNET_MD_H

#include <sys/uio.h>
#include "base/list.h"
#include "base/mailbox.h"
#include "ulnet/loop.h"

struct eq;
struct lnet_cpt;
struct lnet_me;
struct lnet_mem;

/* Fragments that need no memory of their own. */
#define MD_OWN_IOV 3

struct lnet_md {
	struct lnet_cpt *cpt;
	uint64_t cookie;    /* of its handle */
	struct lnet_me *me; /* NULL: bound, or unlinked */
	struct list link;   /* portal_cpt.mds_unlinked, once unlinked */
	const struct iovec *iov;
	unsigned int niov;
	struct iovec own[MD_OWN_IOV]; /* when there are no more fragments */
	struct lnet_mem *mem;	      /* all of them lie in it; or NULL */
	uint32_t length;	      /* bytes */
	uint32_t offset;	      /* local offset */
	int threshold;
	uint32_t max_size;
	int numa_node; /* with LNET_MD_NUMA_NODE */
	uint32_t options;
	uint32_t refs; /* operations and messages that use the memory */
	bool attached; /* was it ever, to a match entry */
	bool auto_unlink;
	bool unlinked;
	bool aborted; /* by its user, while in use */
	void *start;
	void *user_ptr;
	ulnet_handler_fn handler;
	struct eq *eq;
	uint64_t timeout; /* ns; 0: the node's */
	struct list ops;  /* what was begun on it, and has not ended */
	struct work work; /* the UNLINK event of an idle one */
};

/* Makes an MD of a user's description. 0; -EINVAL: options, threshold, length,
 * fragments or max_size make no sense; -ENOENT: no such event queue; -ENOBUFS:
 * it has no place left; -ENOMEM. */
int md_new(struct lnet_cpt *cpt, const struct ulnet_md *umd,
	   enum ulnet_unlink unlink, bool attach, struct lnet_md **md_p);

/* Frees an MD that was never used, without an event. */
void md_free_unused(struct lnet_md *md);

/* The handle becomes invalid; the memory is the user's with the last event,
 * which comes after this call. @canceled: the user has unlinked it, so that
 * operations on the MD end as soon as possible. An operation that succeeds
 * before that is reported as a success, since the peer was told the same. */
void md_unlink(struct lnet_md *md, bool canceled);

/* An operation begins on referenced @md: one less of threshold, which may
 * unlink it; the local offset of an attached one moves. */
void md_take(struct lnet_md *md, uint32_t mlength, uint32_t offset);

static inline void md_ref(struct lnet_md *md)
{
	md->refs++;
}

/* Its threshold, or its memory, is used up: nothing more may begin on it. */
bool md_exhausted(const struct lnet_md *md);

/* Drops a reference, and delivers @ev (which has type, status and the like) as
 * the end of what held the reference. If nothing else uses the MD, @ev is its
 * last event, and the MD is freed. @op: the operation that @ev is about, 0 for
 * none. */
void md_event_put(struct lnet_md *md, struct ulnet_event *ev, uint64_t op);
/* Delivers an event; what caused it keeps its reference. */
void md_event(struct lnet_md *md, struct ulnet_event *ev, uint64_t op);

struct ulnet_md_handle md_handle(const struct lnet_md *md);

/* Event places an operation needs: SEND and the answer. */
#define OP_EVENTS 2

#endif
