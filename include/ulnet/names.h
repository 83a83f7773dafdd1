/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets as users write them: NIDs, names of hosts, and whatever else stands
 * for the addresses of servers; looked up without holding up a CPT, renewed as
 * long as somebody uses them. Manual: ulnet_names(7), lnet_target_parse(3),
 * lnet_name_open(3).
 */
#ifndef ULNET_NAMES_H
#define ULNET_NAMES_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LNET_TARGET_NIDS 16 /* most NIDs of one target */

/* What a text says that names a target. */
struct ulnet_target {
	/* It is a name, which has to be looked up; the fields below are 0. */
	bool is_name;
	/* NIDs of one node, as they stand in the text */
	unsigned int nnids;
	struct ulnet_nid nids[LNET_TARGET_NIDS];
	uint32_t pid; /* LNET_PID_LUSTRE unless the NIDs have another one */
};

/*
 * Parses the text of a target: lnet_target_parse(3) has the forms. 0; -EINVAL:
 * *@err, unless @err is NULL, says what is wrong. Whether there is such a host
 * is not looked up. Any thread.
 */
ULNET_EXPORT int lnet_target_parse(const char *text,
				   struct ulnet_target *target,
				   struct ulnet_text_error *err);

/* ---- what a name stands for: lnet_name_open(3) ---- */

#define LNET_ADDRESSES_MAX 256 /* of one name; further ones are dropped */
#define LNET_NAME_WHY	   160 /* bytes of a reason, with its terminator */

/* Where a server is. */
struct ulnet_address {
	struct ulnet_nid nid;
	/* TCP port on which the node with that NID listens; 0: it is that of
	 * the node that asks */
	uint16_t port;
	/* Servers with the lowest number come first. Among those of the same
	 * number, a server is to be chosen as often as its weight says. */
	uint16_t priority;
	uint16_t weight;
};

/* What was found out about a name. */
struct ulnet_name_answer {
	/* of the last look-up: 0; -ENOENT: there is no such name; -ENODATA: it
	 * has no address; -ETIMEDOUT: nobody answers; or another error */
	int status;
	/* the same for people: "there is no such name"; "" with 0 */
	char why[LNET_NAME_WHY];
	/* In the order of priority, else as the source had them. If a look-up
	 * fails after one that did not, these are the addresses that were found
	 * last. */
	unsigned int n;
	const struct ulnet_address *addresses;
};

struct ulnet_name; /* the interest of one user in one name */

/* @answer is valid only during the call. */
typedef void (*ulnet_name_fn)(void *arg,
			      const struct ulnet_name_answer *answer);

/* Prepares @node for names; further calls change nothing. Threads as for
 * lnet_layer_add(3). -ENOMEM, -errno. */
ULNET_EXPORT int lnet_names_open(struct lnet *node);

/*
 * Begins to look up @text, a name or NIDs. Calls @fn, in turns of @cpt and
 * never inside of this function, when the first answer is known, at once if
 * another user has the name, and whenever the answer has changed. Any thread.
 * -EINVAL: *@err, unless @err is NULL, says what is wrong with the text;
 * -EPROTONOSUPPORT: there is no such scheme; -ENOSPC: too many names; -ENXIO:
 * lnet_names_open() was not called; -ENOMEM, -errno; -ESHUTDOWN.
 */
ULNET_EXPORT int lnet_name_open(struct lnet *node, unsigned int cpt,
				const char *text, ulnet_name_fn fn, void *arg,
				struct ulnet_name **name_p,
				struct ulnet_text_error *err);
/* Its function is not called any more. NULL is fine. Owner of the CPT. */
ULNET_EXPORT void lnet_name_close(struct ulnet_name *name);
/*
 * Looks up @text, waits at most @timeout us for the first answer, and sets
 * *@answer_p to it, which is to be freed with free(). 0, whatever
 * answer->status; -ETIMEDOUT: there is no answer yet; -EDEADLK: called in a
 * turn. Other errors as lnet_name_open(). Under virtual time it does not wait:
 * -ETIMEDOUT if the answer is not known.
 */
ULNET_EXPORT int lnet_name_lookup_wait(struct lnet *node, const char *text,
				       uint64_t timeout,
				       struct ulnet_name_answer **answer_p,
				       struct ulnet_text_error *err);

/* ---- schemes: where names are looked up: lnet_name_scheme_add(3) ---- */

/*
 * What looks up texts of the form SCHEME://REST. A feed is what one such text
 * is looked up for. Answers to it may be given at any time between open() and
 * close(); those that come later are dropped.
 */
struct ulnet_name_scheme {
	void *opaque[2];
	const char *scheme; /* "etcd"; "": whatever no other scheme looks up */
	/* Begins to look up @rest, borrowed until return. Must not block; any
	 * thread. 0; -errno: nothing is opened. */
	int (*open)(void *arg, struct lnet *node, uint64_t feed,
		    const char *rest, void **priv_p);
	/* Nobody uses the name any more. Must not block; any thread. */
	void (*close)(void *arg, void *priv);
	void *arg;
};

/* Borrows @scheme until the node is closed. Comes before those that ulnet has.
 * Threads as for lnet_layer_add(3). -EEXIST; -ENXIO: lnet_names_open() was not
 * called. */
ULNET_EXPORT int lnet_name_scheme_add(struct lnet *node,
				      struct ulnet_name_scheme *scheme);
/* An answer to @feed: replaces the one before. It is good for @ttl us. 0, also
 * if the feed is closed; -ENOMEM. Any thread; also in open(). */
ULNET_EXPORT int lnet_name_answer(struct lnet *node, uint64_t feed,
				  const struct ulnet_name_answer *answer,
				  uint64_t ttl);

#ifdef __cplusplus
}
#endif

#endif
