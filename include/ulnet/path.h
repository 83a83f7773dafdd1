/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way messages go, and why. Manual: lnet_path_explain(3).
 */
#ifndef ULNET_PATH_H
#define ULNET_PATH_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The health of an NI of this node or of a peer: so much, less what failures
 * have taken. */
#define LNET_HEALTH_MAX 1000

/* What candidates for a path are: one of each is chosen, in this order. */
enum ulnet_path_kind {
	LNET_PATH_NET,
	LNET_PATH_LOCAL_NI,
	LNET_PATH_PEER_NI,
};

/*
 * What decides between two candidates: the first criterion in which they
 * differ, in this order. Nets, local NIs and peer NIs are compared by some of
 * the criteria each; the text of a criterion says what the better candidate
 * has.
 */
enum ulnet_path_why {
	LNET_PATH_CHOSEN, /* nothing: it is the one */
	LNET_PATH_UNTRIED,
	LNET_PATH_PEER_HEALTH,
	LNET_PATH_PEER_PRIORITY,
	LNET_PATH_HEALTH,
	LNET_PATH_PRIORITY,
	LNET_PATH_LESS_TRIED,
	LNET_PATH_PREFERRED,
	LNET_PATH_NEAR,
	LNET_PATH_CREDITS,
	LNET_PATH_PEER_TURN,
	LNET_PATH_TURN,
	LNET_PATH_CRITERIA, /* those above, and no criterion: */
	LNET_PATH_DOWN = LNET_PATH_CRITERIA, /* it is out of order */
	LNET_PATH_NOT_ASKED,		     /* the caller named another one */
	LNET_PATH_UNREACHED, /* a net that this node is not on */
	LNET_PATH_WHY_COUNT
};

#ifdef __cplusplus
}
#endif

#endif
