/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration of a node, in its own process or through a socket: the library
 * behind lnetctl(8). Manual: lnet_control(7), which has the protocol, and
 * lnet.conf(5), which has the YAML; lnet_control_start(3), lnet_ctl_connect(3),
 * lnet_networks_parse(3), lnet_routes_parse(3).
 *
 * Requests and answers are YAML documents, one each. A request is a mapping
 * with one key, the command; an answer has "status" (0 or a negative errno)
 * and, if there is anything to say, "output" and "error": what lnetctl prints
 * on stdout and stderr.
 */
#ifndef ULNET_CONTROL_H
#define ULNET_CONTROL_H

#include <stdio.h>
#include "ulnet/lnet.h"
#include "ulnet/route.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- networks in one line: lnet_networks_parse(3) ---- */

/*
 * "tcp(eth0,eth1),tcp1(127.0.0.2)": what lnet_ni_add() wants to know of each
 * interface, in the order of the text. A net without interfaces gets the first
 * one of this host that is up, not a loopback, and has an IPv4 address.
 * *@confs_p, *@n_p of them, is to be given back with free(), which frees the
 * names in it, too. A list of CPTs, "tcp(eth0)[0,1]", is passed over, since all
 * CPTs use each interface, and logged. -EINVAL, -ENODEV (no interface), each
 * with *@err filled (when not NULL); -ENOMEM.
 */
ULNET_EXPORT int lnet_networks_parse(const char *text,
				     struct ulnet_ni_conf **confs_p,
				     unsigned int *n_p,
				     struct ulnet_text_error *err);

/*
 * "tcp1(eth1) 10.1.*.*; o2ib 10.[2-3].0.0/16": takes those rules that have a
 * range that matches an address of this host, in their order. A net without
 * interfaces gets the interface of the first such address. The rest is as for
 * lnet_networks_parse(); -ENOENT: nothing matches. lnet_ip2nets_parse(3).
 */
ULNET_EXPORT int lnet_ip2nets_parse(const char *text,
				    struct ulnet_ni_conf **confs_p,
				    unsigned int *n_p,
				    struct ulnet_text_error *err);

/* ---- routes in one text: lnet_routes_parse(3) ---- */

/*
 * "tcp1 10.0.0.[1-4]@tcp:1; o2ib[1,2] 3 10.0.0.9@tcp": what lnet_route_add()
 * wants to know of each route, in the order of the text. An entry stands for a
 * route to each of its nets by each of its gateways. *@routes_p, *@n_p of them
 * (NULL and 0 if the text has none), is to be given back with free(). -EINVAL
 * with *@err filled (when not NULL); -ENOMEM.
 */
ULNET_EXPORT int lnet_routes_parse(const char *text,
				   struct ulnet_route **routes_p,
				   unsigned int *n_p,
				   struct ulnet_text_error *err);

/* ---- a node under control: lnet_control_start(3) ---- */

struct lnet_control;

struct ulnet_control_conf {
	const char *path;  /* of the UNIX socket; NULL: none is made */
	const char *group; /* name or number, may use it, too (mode 0660); NULL:
			    * the owner alone (0600) */
	unsigned int clients_max; /* at once; 0 = 16 */
	uint64_t timeout; /* us from a request's first byte to its last, and
			   * without progress of an answer; 0 = 10 s */
};

/*
 * Puts @node, which must stay open until lnet_control_stop(), under control.
 * The socket is served by threads of its own. A socket file that nobody listens
 * on is replaced; -EADDRINUSE: somebody does. @conf NULL: no socket.
 */
ULNET_EXPORT int lnet_control_start(struct lnet *node,
				    const struct ulnet_control_conf *conf,
				    struct lnet_control **control_p);
/* Ends the requests that clients wait for, and removes the socket file. NULL is
 * fine. */
ULNET_EXPORT void lnet_control_stop(struct lnet_control *control);

/*
 * Carries out one request, as if a client had sent it; waits for it. Any thread
 * but those of nodes' CPTs (-EDEADLK). 0: *@answer_p is the answer, to be
 * given back with free(); -ENOMEM. What the request leads to is in the answer.
 */
ULNET_EXPORT int lnet_control_request(struct lnet_control *control,
				      const char *request, char **answer_p);

/*
 * Sets what "lnet configure: {all: true}" brings back after "lnet unconfigure":
 * @config, YAML as in lnet.conf(5), which is copied now and read only then;
 * NULL: the configuration that the node has now. Without this call it is the
 * configuration at the time of lnet_control_start(). -ENOMEM.
 */
ULNET_EXPORT int lnet_control_remember(struct lnet_control *control,
				       const char *config);

/* ---- commands of the program's own: lnet_control_add(3) ---- */

struct lnet_control_call; /* a request for one of them */

/*
 * Carries out a request, on a thread that runs no loop, also several at once.
 * 0: *@output_p is YAML, a mapping, which becomes the answer's output, and will
 * be freed; or it was left alone: there is none. A negative errno: so is the
 * answer's status.
 */
typedef int (*lnet_control_fn)(void *arg, struct lnet_control_call *call,
			       char **output_p);

struct ulnet_control_command {
	const char *name;	 /* as requests have it: "rpc show" */
	const char *const *keys; /* of its arguments, up to NULL; NULL: none */
	lnet_control_fn fn;
	void (*gone)(void *arg); /* lnet_control_stop() ends it; may be NULL */
	void *arg;
};

#define LNET_CONTROL_NAME_MAX 63 /* bytes of a command's name */

/* Copies all of @command. -EEXIST: there is such a command; -EINVAL; -ENOMEM.
 * Any thread. */
ULNET_EXPORT int lnet_control_add(struct lnet_control *control,
				  const struct ulnet_control_command *command);
/* Waits for requests that are being carried out; fn is not called any more
 * after it, and gone is not called. Any thread outside of turns (-EDEADLK), but
 * not fn's. -ENOENT. */
ULNET_EXPORT int lnet_control_del(struct lnet_control *control,
				  const char *name);

/*
 * For fn: the argument @key, in [@min, @max]; or *@text_p, which is borrowed
 * until fn returns. 0, also when there is no such argument: the result is left
 * alone. -EINVAL: the answer says why, and fn is to return that.
 */
ULNET_EXPORT int lnet_control_number(struct lnet_control_call *call,
				     const char *key, int64_t min, int64_t max,
				     int64_t *value_p);
ULNET_EXPORT int lnet_control_text(struct lnet_control_call *call,
				   const char *key, const char **text_p);

/* ---- a node in another process: lnet_ctl_connect(3) ---- */

struct lnet_ctl;

/* @path NULL: $ULNET_SOCKET, or else LNET_CTL_PATH. @timeout: us to wait while
 * the node has too many clients that want to connect (0: for ever): -ETIMEDOUT.
 * -EINVAL: the path is empty; -errno of connect(). */
#define LNET_CTL_PATH "/run/ulnet/lnetd.sock"
ULNET_EXPORT int lnet_ctl_connect(const char *path, uint64_t timeout,
				  struct lnet_ctl **ctl_p);
ULNET_EXPORT void lnet_ctl_close(struct lnet_ctl *ctl);

/* As lnet_control_request(). @timeout: us to wait for the answer (0: for ever):
 * -ETIMEDOUT; -ECONNRESET: the node went away; -EMSGSIZE: request or answer is
 * too long. After an error the connection is of no more use. */
ULNET_EXPORT int lnet_ctl_request(struct lnet_ctl *ctl, const char *request,
				  uint64_t timeout, char **answer_p);

/* ---- requests and answers, for programs like lnetctl ---- */

/* @text as a YAML scalar in double quotes on one line, for a request; to be
 * given back with free(). -EILSEQ: not UTF-8; -ENOMEM. */
ULNET_EXPORT int lnet_ctl_quote(const char *text, char **quoted_p);

/*
 * Prints @answer as the kernel's lnetctl prints its results: its output on
 * @out, its error on @err, each of which may be NULL; notes, as comments, on
 * @err. *@status_p (unless NULL) is its status. -EINVAL: it is no answer;
 * -EIO: it could not be written; -ENOMEM.
 */
ULNET_EXPORT int lnet_ctl_print(const char *answer, FILE *out, FILE *err,
				int *status_p);

#ifdef __cplusplus
}
#endif

#endif
