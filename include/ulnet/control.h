/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration of a node, in its own process or through a socket: the library
 * behind lnetctl(8). Manual: lnet_control(7), which has the protocol, and
 * lnet.conf(5), which has the YAML; lnet_control_start(3), lnet_ctl_connect(3),
 * lnet_routes_parse(3).
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

/* ---- routes in one text: lnet_routes_parse(3) ---- */

/*
 * Parses routes such as "tcp1 10.0.0.[1-4]@tcp:1; o2ib[1,2] 3 10.0.0.9@tcp"
 * into what lnet_route_add() needs for each route, in the order of the text. An
 * entry stands for a route to each of its nets through each of its gateways. Of
 * routes that come twice the first counts; nets of types that do not exist here
 * are left out, and logged.
 * *@routes_p is an array of *@n_p elements, to be freed with free(); NULL and 0
 * if the text has no routes. -EINVAL, with *@err filled unless @err is NULL;
 * -ENOMEM.
 */
ULNET_EXPORT int lnet_routes_parse(const char *text,
				   struct ulnet_route **routes_p,
				   unsigned int *n_p,
				   struct ulnet_text_error *err);

/* Called for a route that lnet_routes_add() passes over, with the reason, a
 * constant text. */
typedef void (*lnet_routes_passed_fn)(void *arg,
				      const struct ulnet_route *route,
				      const char *why);

/*
 * Adds those of @routes that are for @node, as one text serves a whole cluster.
 * A route whose gateway is a NID of the node itself makes the node a router.
 * Passed over are routes to nets that the node is on, routes by gateways on
 * none of its nets, and routes that @node has already; @passed, unless it is
 * NULL, is called for each of them. Returns 0, or the error of the first route
 * that cannot be added; then none is. Any thread but those of CPTs.
 */
ULNET_EXPORT int lnet_routes_add(struct lnet *node,
				 const struct ulnet_route *routes,
				 unsigned int n, lnet_routes_passed_fn passed,
				 void *arg);

/* ---- a node under control: lnet_control_start(3) ---- */

struct lnet_control;

struct ulnet_control_conf {
	const char *path; /* where the UNIX socket is; NULL: no socket */
	/* name or number of a group whose members may use the socket, too (mode
	 * 0660); NULL: only the owner may (0600) */
	const char *group;
	unsigned int clients_max; /* clients at the same time; 0 = 16 */
	/* us that a request may take from its first byte to its last, and that
	 * an answer may stay without progress; 0 = 10 s */
	uint64_t timeout;
};

/*
 * Puts @node, which must stay open until lnet_control_stop(), under control.
 * Threads of the control serve the socket. A socket file on which no process
 * listens is replaced; -EADDRINUSE: a process listens on it. @conf NULL: no
 * socket.
 */
ULNET_EXPORT int lnet_control_start(struct lnet *node,
				    const struct ulnet_control_conf *conf,
				    struct lnet_control **control_p);
/* Ends the requests whose clients still wait for an answer, and removes the
 * socket file. NULL is fine. */
ULNET_EXPORT void lnet_control_stop(struct lnet_control *control);

/*
 * Carries out one request as if a client had sent it, and waits for its end.
 * Any thread but those of CPTs (-EDEADLK). Returns 0, also when the request
 * failed, which the answer's status says: *@answer_p is the answer, to be freed
 * with free(). -ENOMEM.
 */
ULNET_EXPORT int lnet_control_request(struct lnet_control *control,
				      const char *request, char **answer_p);

/*
 * Sets the configuration that "lnet configure: {all: true}" restores after
 * "lnet unconfigure": @config, YAML as in lnet.conf(5), which is copied now,
 * and read only when it is restored; or, with NULL, the node's present
 * configuration. If this function was never called, that request restores the
 * configuration at the time of lnet_control_start(). -ENOMEM.
 */
ULNET_EXPORT int lnet_control_remember(struct lnet_control *control,
				       const char *config);

/* ---- commands that a program adds: lnet_control_add(3) ---- */

struct lnet_control_call; /* a request for an added command */

/*
 * Carries out a request, on a thread that runs no loop; several calls may run
 * at the same time. To succeed, returns 0; it may set *@output_p to a text from
 * malloc(), a YAML mapping, which becomes the output of the answer, and which
 * the library frees. A negative errno becomes the status of the answer.
 */
typedef int (*lnet_control_fn)(void *arg, struct lnet_control_call *call,
			       char **output_p);

struct ulnet_control_command {
	const char *name; /* name of the command, as in requests: "rpc show" */
	/* names of the arguments, ended by NULL; NULL: the command has none */
	const char *const *keys;
	lnet_control_fn fn;
	/* called when lnet_control_stop() ends the command; may be NULL */
	void (*gone)(void *arg);
	void *arg;
};

#define LNET_CONTROL_NAME_MAX 63 /* bytes of a command's name */

/* Adds a command. Copies all of @command. -EEXIST: there is a command of this
 * name; -EINVAL; -ENOMEM. Any thread. */
ULNET_EXPORT int lnet_control_add(struct lnet_control *control,
				  const struct ulnet_control_command *command);
/* Deletes a command that was added. Waits for its requests that are being
 * carried out; after return fn is not called any more, and gone is not called
 * at all. Any thread that is not in a turn (-EDEADLK), and not inside of fn.
 * -ENOENT: no such command was added. */
ULNET_EXPORT int lnet_control_del(struct lnet_control *control,
				  const char *name);

/*
 * For use in fn: get the argument @key as a number in [@min, @max], or as a
 * text, which is borrowed until fn returns. Both return 0 also if there is no
 * such argument, and then leave *@value_p or *@text_p alone. -EINVAL: the
 * argument is wrong; the answer says why, and fn must return -EINVAL.
 */
ULNET_EXPORT int lnet_control_number(struct lnet_control_call *call,
				     const char *key, int64_t min, int64_t max,
				     int64_t *value_p);
ULNET_EXPORT int lnet_control_text(struct lnet_control_call *call,
				   const char *key, const char **text_p);

/* For use in fn: says in the answer why the command fails, with one line of
 * text, which is copied. Returns @rc, a negative errno, which fn must return.
 */
ULNET_EXPORT int lnet_control_fail(struct lnet_control_call *call, int rc,
				   const char *text);

/* ---- rules for callers of RPC: lnet_rules_parse(3) ---- */

struct ulrpc_rules_conf; /* ulnet/service.h */

/*
 * Reads the section "rpc" of @text, the content of a file as in lnet.conf(5):
 * rules for ulrpc_rules_new(3). *@conf_p is one block, to be freed with free().
 * On error @why, of @size bytes, gets a sentence that names the line. -ENOENT:
 * there is no such section; -EINVAL; -EMSGSIZE; -ENOMEM. Any thread.
 */
ULNET_EXPORT int lnet_rules_parse(const char *text,
				  struct ulrpc_rules_conf **conf_p, char *why,
				  size_t size);

/* ---- a node in another process: lnet_ctl_connect(3) ---- */

struct lnet_ctl;

/* Connects to the control socket @path (NULL: $ULNET_SOCKET or, if that is not
 * set, LNET_CTL_PATH). If the node has too many clients, waits up to @timeout
 * us (0: for ever), and then returns -ETIMEDOUT. -EINVAL: the path is empty;
 * -errno of connect(). */
#define LNET_CTL_PATH "/run/ulnet/lnetd.sock"
ULNET_EXPORT int lnet_ctl_connect(const char *path, uint64_t timeout,
				  struct lnet_ctl **ctl_p);
ULNET_EXPORT void lnet_ctl_close(struct lnet_ctl *ctl);

/* Sends a request, and waits up to @timeout us (0: for ever) for *@answer_p, as
 * in lnet_control_request(). -ETIMEDOUT; -ECONNRESET: the node has closed the
 * connection; -EMSGSIZE: the request or the answer is too long. After an error
 * the connection cannot be used any more. */
ULNET_EXPORT int lnet_ctl_request(struct lnet_ctl *ctl, const char *request,
				  uint64_t timeout, char **answer_p);

/* ---- requests and answers, for programs like lnetctl ---- */

/* Writes @text as a YAML scalar in double quotes on one line, for use in a
 * request. *@quoted_p is to be freed with free(). -EILSEQ: @text is not UTF-8;
 * -ENOMEM. */
ULNET_EXPORT int lnet_ctl_quote(const char *text, char **quoted_p);

/* Returns name number @i, from 0, of those that the request "set" takes:
 * constant texts. NULL: there are no more. Any thread. */
ULNET_EXPORT const char *lnet_ctl_setting(unsigned int i);

/*
 * Prints @answer as the kernel's lnetctl prints its results: the output to
 * @out; the error, and notes as comments, to @err. Both streams may be NULL.
 * *@status_p (unless NULL) is the answer's status. -EINVAL: @answer is not an
 * answer; -EIO: the output could not be written; -ENOMEM.
 */
ULNET_EXPORT int lnet_ctl_print(const char *answer, FILE *out, FILE *err,
				int *status_p);

/* ---- the service manager: lnet_notify(3) ---- */

/* Sends @state, lines such as "READY=1
 * ", to the service manager that has started this process, as sd_notify(3)
 * does: by a datagram to the socket in $NOTIFY_SOCKET. Without that variable
 * nothing is sent, and 0 is returned. Any thread. -EAFNOSUPPORT: an unknown
 * kind of socket; -ENAMETOOLONG; -errno. */
ULNET_EXPORT int lnet_notify(const char *state);

#ifdef __cplusplus
}
#endif

#endif
