/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer has told of itself, in a reply or by a push, kept as it came
 * until it is merged (merging.h). */
#ifndef LNET_TOLD_H
#define LNET_TOLD_H

#include "lnet/discovery/merge.h"

struct lnet_cpt;

struct told {
	enum merge_source source;
	struct ulnet_nid from;
	uint32_t sequence; /* as it says */
	uint32_t pid;
	/* NIDs that other CPTs own are claimed one by one: how many entries of
	 * it were looked at so far, and how many NIDs their owners keep, which
	 * keeps[] names. */
	unsigned int claimed, kept;
	/* Why a question that began before this came had no answer; or 0. If
	 * there was none, the process that told this may have ended. */
	int unanswered;
	bool *keeps;
	size_t length; /* of @bytes: less than it says if it was cut */
	uint8_t bytes[];
};

/* Copies @length @bytes, which are a ping information or the beginning of one;
 * told_free(). *@told_p: NULL on error. -EPROTO, -E2BIG: they are not one that
 * a node would send; -ENOMEM. */
int told_new(struct lnet_cpt *cpt, const uint8_t *bytes, size_t length,
	     struct told **told_p) must_check;
void told_free(struct told *told);

/* Decoded. The entries are those of @ni, which is for the caller to free, also
 * on error. *@need_p: bytes of the whole, or 0: nothing was cut. */
int told_decode(struct lnet_cpt *cpt, const struct told *told,
		struct ulnet_ping_info *info, struct ulnet_ping_ni **ni,
		size_t *need_p) must_check;

/* Two that a peer has told, of which one may have been overtaken on its way. */
enum told_order {
	TOLD_LATER,	      /* what came last is what is so */
	TOLD_PERHAPS_LATER,   /* ... most likely; the peer knows */
	TOLD_PERHAPS_EARLIER, /* ... hardly; the peer knows */
};
enum told_order told_order(const struct told *was, const struct told *is);

#endif
