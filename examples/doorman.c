/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service that knows who calls it, and its client, in one program:
 *
 *	doorman --keys keys --as server serve 127.0.0.1@tcp
 *	doorman --keys keys --as alice call 127.0.0.1@tcp "swordfish"
 *
 * ulnet-keys(8) makes the folder "keys". Without --keys nobody is known, and
 * everybody may call. With "--flavour privacy" nobody on the way can read what
 * is said, either.
 */
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/keys.h>
#include <ulnet/service.h>

struct options {
	unsigned int port;
	const char *folder, *name; /* NULL: none */
	enum ulrpc_flavour flavour;
};

static void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

/* ---- keys ---- */

/* Keys of a node, as ulnet-keys(8) names them; NULL: none are wanted. */
static struct ulrpc_keys *load_keys(const struct options *o)
{
	char crt[1024], key[1024], authority[1024], revoked[1024], why[256];
	struct ulrpc_keys_conf files = { .certificate = crt,
					 .key = key,
					 .authority = authority,
					 .revoked = revoked };
	struct ulrpc_keys *keys;

	if (!o->folder)
		return NULL;
	snprintf(crt, sizeof(crt), "%s/%s.crt", o->folder, o->name);
	snprintf(key, sizeof(key), "%s/%s.key", o->folder, o->name);
	snprintf(authority, sizeof(authority), "%s/authority.crt", o->folder);
	snprintf(revoked, sizeof(revoked), "%s/revoked.crl", o->folder);
	if (ulrpc_keys_load(&files, &keys, why, sizeof(why)))
		errx(1, "%s", why);
	return keys;
}

/* A node with the NIDs @nids, or, if they are NULL, one that only calls. */
static struct ulrpc *open_node(const struct options *o, const char *nids,
			       struct lnet **node_p)
{
	struct ulnet_conf_error why = { "" };
	struct ulnet_conf conf = {
		.nids = nids,
		.port = o->port,
		.accept = nids ? LNET_ACCEPT_ALL : LNET_ACCEPT_NONE,
		.err = &why,
	};
	struct ulrpc_conf rpc_conf;
	struct ulrpc *rpc;

	check(lnet_open(&conf, node_p), why.what);
	ulrpc_conf_init(&rpc_conf);
	rpc_conf.keys = load_keys(o);
	check(ulrpc_open(*node_p, &rpc_conf, &rpc), "RPC");
	ulrpc_keys_put(rpc_conf.keys);
	return rpc;
}

/* ---- the service ---- */

static void on_say(void *arg, struct ulrpc_request *request, const void *body,
		   size_t length)
{
	char text[ULRPC_PEER_NAME_SIZE + 16];
	struct ulrpc_peer peer;

	(void)arg;
	ulrpc_request_peer(request, &peer);
	printf("%s says: %.*s\n", *peer.name ? peer.name : "somebody",
	       (int)length, (const char *)body);
	snprintf(text, sizeof(text), "welcome, %s",
		 *peer.name ? peer.name : "whoever you are");
	ulrpc_reply(request, text, strlen(text));
}

/* Until stdin ends. */
static int serve(const struct options *o, const char *nids)
{
	struct ulrpc_method_conf say = { .name = "say", .handler = on_say };
	struct ulrpc_service_conf conf = {
		.name = "doorman",
		.methods = &say,
		.nmethods = 1,
		.flavour = o->flavour,
	};
	struct lnet *node;
	struct ulrpc *rpc = open_node(o, nids, &node);

	check(ulrpc_service_start(rpc, &conf, NULL), "the service");
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready; the end of input ends it");
	while (getchar() != EOF)
		;
	lnet_close(node);
	return 0;
}

/* ---- the client ---- */

static int call(const struct options *o, const char *nid, const char *said)
{
	struct ulnet_nid server;
	struct ulrpc_client_conf to = {
		.nids = &server,
		.nnids = 1,
		.service = "doorman",
		.flavour = o->flavour,
		/* or another client could take its place */
		.server = o->folder ? "server" : NULL,
	};
	struct ulrpc_call_conf conf = { .deadline = 60000000 /* us */ };
	struct ulrpc_client *client;
	struct ulrpc_outcome end;
	struct lnet *node;
	struct ulrpc *rpc;
	char reply[512];
	size_t n;

	if (lnet_nid_parse(nid, &server))
		errx(2, "%s: no NID", nid);
	rpc = open_node(o, NULL, &node);
	check(ulrpc_client_open(rpc, &to, &client), "the client");
	check(ulrpc_call_wait(client, ulrpc_method("say"), said, strlen(said),
			      &conf, reply, sizeof(reply), &n, &end),
	      "the call");
	if (end.status)
		printf("%s: %s; %s\n", ulrpc_cause_name(end.cause), end.text,
		       ulrpc_execution_name(end.execution));
	else
		printf("%.*s\n", (int)n, reply);
	lnet_close(node);
	return end.status ? 1 : 0;
}

/* ---- the command line ---- */

static _Noreturn void usage(void)
{
	errx(2, "usage: [--port PORT] [--keys DIR --as NAME] [--flavour F] "
		"serve NID | call NID TEXT");
}

static enum ulrpc_flavour flavour_of(const char *name)
{
	enum ulrpc_flavour f = ULRPC_FLAVOUR_NONE;

	while (f < ULRPC_FLAVOUR_PRIVACY && strcmp(ulrpc_flavour_name(f), name))
		f++;
	if (strcmp(ulrpc_flavour_name(f), name) != 0)
		errx(2, "--flavour %s: none, auth, integrity or privacy", name);
	return f;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "keys", required_argument, NULL, 'k' },
		{ "as", required_argument, NULL, 'a' },
		{ "flavour", required_argument, NULL, 'f' },
		{ 0 },
	};
	struct options o = { .port = 9988 }; /* 988, the usual one, is root's */
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'p')
			o.port = (unsigned int)strtoul(optarg, NULL, 10);
		else if (option == 'k')
			o.folder = optarg;
		else if (option == 'a')
			o.name = optarg;
		else if (option == 'f')
			o.flavour = flavour_of(optarg);
		else
			usage();
	}
	argv += optind;
	argc -= optind;
	if (!o.folder != !o.name)
		usage();
	if (argc == 2 && !strcmp(argv[0], "serve"))
		return serve(&o, argv[1]);
	if (argc == 3 && !strcmp(argv[0], "call"))
		return call(&o, argv[1], argv[2]);
	usage();
}
