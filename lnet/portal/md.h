/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory descriptors. An MD belongs to the CPT where it was bound, or where its
 * match entry lives. Its events are delivered there, one at a time.
 *
 * Life: active -> unlinked (its handle is invalid, and nothing more matches) ->
 * freed with its last event, when no message and no operation uses it (refs is
 * 0).
 */
#ifndef LNET_MD_H
#define LNET_MD_H

#include <sys/uio.h>
#include "base/list.h"
#include "base/loop.h"
#include "ulnet/loop.h"

struct eq;
struct lnet_cpt;
struct lnet_me;
struct lnet_mem;

/* As many fragments are kept in the MD itself. */
#define MD_OWN_IOV 3

struct lnet_md {
	struct lnet_cpt *cpt;
	uint64_t cookie;    /* of its handle */
	struct lnet_me *me; /* NULL: bound, or unlinked */
	struct list link;   /* portal_cpt.mds_unlinked, once unlinked */
	const struct iovec *iov;
	unsigned int niov;
	struct iovec own[MD_OWN_IOV]; /* .iov, if there are not more */
	struct lnet_mem *mem;	      /* registered memory; or NULL */
	uint32_t length;	      /* bytes */
	uint32_t offset;	      /* local offset */
	int threshold;
	uint32_t max_size;
	int numa_node; /* with LNET_MD_NUMA_NODE */
	uint32_t options;
	uint32_t refs; /* operations and messages that use the memory */
	bool attached; /* it is, or was, attached to a match entry */
	bool auto_unlink;
	bool unlinked;
	bool aborted; /* unlinked by its user while in use */
	void *start;
	void *user_ptr;
	ulnet_handler_fn handler;
	struct eq *eq;
	uint64_t timeout; /* ns; 0: the node's */
	struct list ops;  /* operations on it that have not ended */
	struct work work; /* delivers UNLINK if it was not in use */
};

/* Makes an MD of a user's description. Returns 0; -EINVAL: options, threshold,
 * length, fragments or max_size make no sense; -ENOENT: there is no such event
 * queue; -ENOBUFS: the queue has no free slot; -ENOMEM. */
int md_new(struct lnet_cpt *cpt, const struct ulnet_md *umd,
	   enum ulnet_unlink unlink, bool attach, struct lnet_md **md_p);

/* Frees an MD that was never used, without an event. */
void md_free_unused(struct lnet_md *md);

/* Makes the handle invalid. The memory is the user's again with the last event,
 * which comes after this call. @canceled: by the user, so that operations on
 * the MD end as soon as possible. One that succeeds before is reported as a
 * success, since the peer was told the same. */
void md_unlink(struct lnet_md *md, bool canceled);

/* An operation begins on @md, which the caller has referenced: decreases its
 * threshold, which may unlink it, and moves the local offset if it is
 * attached. */
void md_take(struct lnet_md *md, uint32_t mlength, uint32_t offset);

static inline void md_ref(struct lnet_md *md)
{
	md->refs++;
}

/* Is its threshold, or its memory, used up, so that nothing more may begin? */
bool md_exhausted(const struct lnet_md *md);

/* Drops a reference, and delivers @ev as the end of what held the reference:
 * the caller has filled in type, status and what depends on them. If nothing
 * else uses an unlinked MD, @ev is its last event, and the MD is freed. @op:
 * the operation of @ev, or 0. */
void md_event_put(struct lnet_md *md, struct ulnet_event *ev, uint64_t op);
/* Delivers @ev without dropping a reference. */
void md_event(struct lnet_md *md, struct ulnet_event *ev, uint64_t op);

struct ulnet_md_handle md_handle(const struct lnet_md *md);

/* Slots for events that an operation needs: SEND and the answer. */
#define OP_EVENTS 2

#endif
