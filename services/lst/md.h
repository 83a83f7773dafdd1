/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One use of memory by LNet: a message that is sent, data that are fetched, or
 * a message that is expected. Each has one end.
 *
 * The caller embeds struct lst_md and sets done; it must be left alone from a
 * begin that succeeds until done is called, once, on that CPT, and never inside
 * of the function that began it. The memory is lent for the same time.
 * Thread: a CPT of the node, in a turn, or whoever drives it.
 */
#ifndef SERVICES_LST_MD_H
#define SERVICES_LST_MD_H

#include <ulnet/loop.h>

/* The object that @p is a member of. */
#define LST_OF(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

struct lst_md {
	void (*done)(struct lst_md *md);
	/* In done(): */
	int status;	       /* 0; negative errno: it did not happen */
	uint32_t length;       /* bytes moved */
	struct ulnet_id peer;  /* expected: where it came from */
	struct ulnet_nid self; /* expected: the NID it was sent to */
	/* Its own: */
	struct ulnet_md_handle handle;
	enum ulnet_event_type wanted;
	bool busy;
};

/* Where a message goes, or comes from. */
struct lst_place {
	struct lnet *node;
	struct ulnet_nid self; /* sent from; LNET_NID_ANY: LNet chooses */
	struct ulnet_id peer;  /* expected: may be wildcards */
	unsigned int portal;
	uint64_t bits;
	uint64_t timeout; /* us, of what is sent and fetched */
};

/* 0, or a negative errno: nothing has begun, and done is not called. */
int lst_md_put(struct lst_md *md, const struct lst_place *to, void *memory,
	       uint32_t length);
int lst_md_get(struct lst_md *md, const struct lst_place *from, void *memory,
	       uint32_t length);
/* One PUT, or with LNET_MD_OP_GET one GET, of at most @length bytes. */
int lst_md_expect(struct lst_md *md, const struct lst_place *from,
		  unsigned int op, void *memory, uint32_t length);
/* It ends soon, unless it has ended. */
void lst_md_cancel(struct lst_md *md);

#endif
