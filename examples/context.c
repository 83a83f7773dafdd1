/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/intercept.h>
#include <ulnet/service.h>

static void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

/* ---- interceptors ---- */

/* Gives each call of this node a token. */
static int add_token(void *arg, struct ulrpc_call_start *call)
{
	return ulrpc_context_add(call->context, "token", arg, strlen(arg));
}

/* Refuses requests without the token. */
static int check_token(void *arg, struct ulrpc_request_start *start)
{
	struct ulrpc_metadata token;

	if (!ulrpc_request_find(start->request, "token", &token) &&
	    !strcmp(token.value, arg))
		return 0;
	strcpy(start->text, "wrong token");
	return ulrpc_status_errno(ULRPC_STATUS_UNAUTHENTICATED);
}

/* Tells how each request has ended. */
static void tell(void *arg, void *state, const struct ulrpc_request_end *end)
{
	(void)arg, (void)state;
	warnx("%s.%s: %s", end->service, end->method,
	      ulrpc_cause_name(end->cause));
}

static struct ulrpc *open_node(const char *nids, uint16_t port, char *token)
{
	const struct ulrpc_call_interceptor calls = { .begin = add_token,
						      .arg = token };
	const struct ulrpc_request_interceptor requests[] = {
		{ .end = tell }, { .begin = check_token, .arg = token }
	};
	const struct ulrpc_conf how = {
		.call_interceptors = &calls,
		.ncall_interceptors = 1,
		.request_interceptors = requests,
		.nrequest_interceptors = 2,
	};
	struct ulnet_conf_error why = { "" };
	struct ulnet_conf conf = {
		.nids = nids,
		.port = port,
		.accept = nids ? LNET_ACCEPT_ALL : LNET_ACCEPT_NONE,
		.err = &why,
	};
	struct lnet *node;
	struct ulrpc *rpc;

	check(lnet_open(&conf, &node), why.what);
	check(ulrpc_open(node, &how, &rpc), "RPC");
	return rpc;
}

static struct ulrpc_client *open_client(struct ulrpc *rpc, const char *target,
					const char *service)
{
	struct ulrpc_client_conf conf = { .target = target,
					  .service = service };
	struct ulrpc_client *client;

	check(ulrpc_client_open(rpc, &conf, &client), target);
	return client;
}

/* ---- the server ---- */

static void take(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	const struct ulrpc_details apples = { "shop.Instead", "apples", 6 };

	(void)arg;
	if (length == 4 && !memcmp(body, "snow", 4) &&
	    ulrpc_request_sleep(request, 3600 * (uint64_t)1000000)) {
		ulrpc_fail_status(request, ULRPC_STATUS_CANCELLED, NULL);
	} else if (length == 4 && !memcmp(body, "pear", 4)) {
		ulrpc_reply_details(request, &apples);
		ulrpc_fail_status(request, ULRPC_STATUS_NOT_FOUND, "no pears");
	} else {
		ulrpc_reply(request, body, length);
	}
}

/* Asks the stock, for the request that it serves. */
static void order(void *arg, struct ulrpc_request *request, const void *body,
		  size_t length)
{
	struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER };
	struct ulrpc_outcome o = { .status = -ENOMEM };
	struct ulrpc_metadata who;
	struct ulrpc_details d;
	char item[64];

	check(ulrpc_context_new(&conf.context), "context");
	check(ulrpc_context_under(conf.context, request), "context");
	if (!ulrpc_call_wait(arg, ulrpc_method("take"), body, length, &conf,
			     item, sizeof(item), &length, &o) &&
	    o.cause == ULRPC_CAUSE_OK) {
		if (!ulrpc_request_find(request, "tenant", &who))
			ulrpc_reply_add(request, "for", who.value, who.length);
		ulrpc_reply(request, item, length);
	} else {
		if (!ulrpc_context_details(conf.context, &d))
			ulrpc_reply_details(request, &d);
		ulrpc_fail_status(request, ulrpc_status_of(&o), o.text);
	}
	ulrpc_context_free(conf.context);
}

/* Until its input ends. */
static void serve(const char *nid, uint16_t port, char *token)
{
	struct ulrpc *rpc = open_node(nid, port, token);
	struct ulrpc_client *stock = open_client(rpc, nid, "stock");
	const struct ulrpc_method_conf methods[] = {
		{ .name = "take", .handler = take },
		{ .name = "order", .handler = order, .arg = stock },
	};
	struct ulrpc_service_conf conf = { .name = "stock",
					   .methods = &methods[0],
					   .nmethods = 1,
					   .workers_min = 4 };

	check(ulrpc_service_start(rpc, &conf, NULL), "stock");
	conf.name = "shop";
	conf.methods = &methods[1];
	check(ulrpc_service_start(rpc, &conf, NULL), "shop");
	warnx("ready; the end of input ends it");
	while (getchar() != EOF)
		;
	lnet_close(ulrpc_node(rpc));
}

/* ---- the client ---- */

static void call(const char *target, char *token, const char *item,
		 uint64_t deadline)
{
	struct ulrpc *rpc = open_node(NULL, 0, token);
	struct ulrpc_client *shop = open_client(rpc, target, "shop");
	struct ulrpc_call_conf conf = { .deadline = deadline };
	struct ulrpc_outcome o;
	struct ulrpc_metadata who;
	struct ulrpc_details d;
	char reply[64];
	size_t length;

	check(ulrpc_context_new(&conf.context), "context");
	check(ulrpc_context_add(conf.context, "tenant", "blue", 4), "tenant");
	check(ulrpc_call_wait(shop, ulrpc_method("order"), item, strlen(item),
			      &conf, reply, sizeof(reply), &length, &o),
	      "call");
	printf("%s", ulrpc_status_name(ulrpc_status_of(&o)));
	if (o.cause == ULRPC_CAUSE_OK &&
	    !ulrpc_context_find(conf.context, "for", &who))
		printf(": %.*s for %s", (int)length, reply,
		       (const char *)who.value);
	lnet_text_clean(o.text); /* it is the service's */
	if (o.text[0])
		printf(": %s", o.text);
	if (!ulrpc_context_details(conf.context, &d))
		printf(", but %.*s", (int)d.length, (const char *)d.bytes);
	printf("\n");
	ulrpc_context_free(conf.context);
	ulrpc_client_close(shop);
	lnet_close(ulrpc_node(rpc));
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "serve"))
		serve(argv[2], (uint16_t)strtoul(argv[3], NULL, 10), argv[4]);
	else if ((argc == 5 || argc == 6) && !strcmp(argv[1], "call"))
		call(argv[2], argv[3], argv[4],
		     argc == 6 ? strtoul(argv[5], NULL, 10) * 1000 : 60000000);
	else
		errx(2, "usage: serve NID PORT TOKEN | "
			"call TARGET TOKEN ITEM [MS]");
	return 0;
}
