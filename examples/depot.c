/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with an LNet node. It keeps one document of 1 MiB, which other
 * nodes may GET, and replace with a PUT. Its nets are added over its control
 * socket:
 *
 *	lnetctl --socket a.sock net add --net tcp --if 127.0.0.1
 *
 * It reads commands from stdin: "put NID" sends a new document to the depot
 * with that NID, "get NID" gets the document of that depot, "quit" ends the
 * program. Its exit status is 1 if a command has failed.
 */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <ulnet/control.h>

#define PORTAL	 20
#define INBOX	 0x494e424f58 /* match bits of PUTs */
#define DOCUMENT 0x444f43     /* match bits of GETs */

struct depot {
	struct lnet *node;
	struct ulnet_eq_handle eq; /* events of commands, for main() */
	struct document *current;  /* belongs to the node's thread */
};

struct document {
	/* Big-endian; each word follows from the one before. */
	uint64_t words[LNET_MTU / 8];
	struct ulnet_md_handle md; /* while other nodes can reach it */
	struct depot *depot;
};

static bool verify(const struct document *doc, uint64_t seed)
{
	for (size_t i = 0; i < LNET_MTU / 8; i++, seed = seed * 5 + 3)
		if (doc->words[i] != htobe64(seed))
			return false;
	return true;
}

/* A document with random contents. */
static struct document *document_new(struct depot *depot)
{
	struct document *doc = malloc(sizeof(*doc));
	uint64_t seed = 0;

	if (!doc || getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		err(1, "cannot make a document");
	for (size_t i = 0; i < LNET_MTU / 8; i++, seed = seed * 5 + 3)
		doc->words[i] = htobe64(seed);
	doc->depot = depot;
	return doc;
}

/* ---- operations of others: on the node's thread ---- */

static void on_visit(const struct ulnet_event *ev);

/* Lets other nodes reach the document, by the match bits @bits, until an event
 * has "unlinked" set. An inbox takes one PUT; further PUTs wait for the next
 * inbox, because the portal is lazy. */
static int lend(struct document *doc, uint64_t bits)
{
	struct ulnet_id anybody = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_md md = {
		.start = doc->words,
		.length = sizeof(doc->words),
		.threshold = bits == INBOX ? 1 : LNET_MD_THRESH_INF,
		.options = LNET_MD_MANAGE_REMOTE |
			   (bits == INBOX ? LNET_MD_OP_PUT : LNET_MD_OP_GET),
		.user_ptr = doc,
		.handler = on_visit
	};
	struct ulnet_me_handle me;
	int rc = LNetMEAttach(doc->depot->node, PORTAL, anybody, bits, 0,
			      LNET_UNLINK, LNET_INS_BEFORE, &me);

	return rc ? rc : LNetMDAttach(me, &md, LNET_UNLINK, &doc->md);
}

/* Makes @doc the current document; GETs of the old one may go on. */
static int publish(struct document *doc)
{
	struct document *old = doc->depot->current;
	int rc = lend(doc, DOCUMENT);

	if (rc)
		return rc;
	doc->depot->current = doc;
	return old ? LNetMDUnlink(old->md) : 0;
}

static void on_visit(const struct ulnet_event *ev)
{
	struct document *doc = ev->user_ptr;
	char from[LNET_NIDSTR_SIZE];
	bool good;

	lnet_nid_format(&ev->initiator.nid, from, sizeof(from));
	if (ev->type == LNET_EVENT_GET)
		printf("%s got %u bytes: %s\n", from, ev->mlength,
		       ev->cause == LNET_CAUSE_CANCELED
			       ? "ok, the last one"
			       : lnet_cause_name(ev->cause));
	if (ev->type == LNET_EVENT_PUT) {
		/* LNet no longer uses the inbox; the ACK is sent after this. */
		good = !ev->status && verify(doc, ev->hdr_data);
		printf("%s put %u bytes, seed %016" PRIx64 ": %s\n", from,
		       ev->mlength, ev->hdr_data, good ? "verified" : "wrong");
		if (good && publish(doc) == 0)
			doc = document_new(doc->depot);
		if (lend(doc, INBOX) == 0)
			return; /* if it fails, the node is being closed */
	}
	if (ev->unlinked)
		free(doc);
}

static int open_doors(void *depot)
{
	int rc = publish(document_new(depot));

	return rc ? rc : lend(document_new(depot), INBOX);
}

/* ---- commands: on main()'s thread ---- */

/* PUTs @doc, or fills it by a GET, and waits until LNet no longer uses it.
 * *@end: the event that ended the operation. */
static int transfer(struct document *doc, bool put, struct ulnet_id to,
		    struct ulnet_event *end)
{
	struct ulnet_md md = { .start = doc->words,
			       .length = sizeof(doc->words),
			       .threshold = 2, /* the request, the answer */
			       .eq = doc->depot->eq,
			       .timeout = 10000000 /* us */ };
	struct ulnet_event ev = { 0 };
	struct ulnet_md_handle h;
	int rc = LNetMDBind(doc->depot->node, &md, LNET_UNLINK, &h);

	if (rc)
		return rc;
	rc = put ? LNetPut(LNET_NID_ANY, h, LNET_ACK_REQ, to, PORTAL, INBOX, 0,
			   be64toh(doc->words[0]))
		 : LNetGet(LNET_NID_ANY, h, to, PORTAL, DOCUMENT, 0);
	if (rc)
		LNetMDUnlink(h);
	while (!ev.unlinked) {
		LNetEQPoll(&md.eq, 1, 1000000, &ev, NULL);
		if (ev.terminal) {
			*end = ev;
			LNetMDUnlink(h); /* after a failure it is still there */
		}
	}
	return rc ? rc : end->status;
}

static int obey(struct depot *d, const char *what, const char *name)
{
	struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
	struct ulnet_event end = { 0 };
	bool put = strcmp(what, "put") == 0;
	struct document *doc;
	int rc;

	if (!put && strcmp(what, "get") != 0) {
		warnx("%s: put NID, get NID or quit is expected", what);
		return -EINVAL;
	}
	if (lnet_nid_parse(name, &to.nid)) {
		warnx("%s %s: not a NID like 10.0.0.1@tcp", what, name);
		return -EINVAL;
	}
	doc = document_new(d);
	rc = transfer(doc, put, to, &end);
	if (!rc &&
	    (end.mlength != LNET_MTU || !verify(doc, be64toh(doc->words[0]))))
		rc = -EBADMSG;
	if (rc)
		warnx("%s %s: %s; %s, %s%s", what, name, strerror(-rc),
		      lnet_cause_name(end.cause),
		      lnet_outcome_name(end.outcome),
		      end.type == LNET_EVENT_REPLY && end.status
			      ? ", data lost"
			      : "");
	else
		printf("%s %s: %u bytes, seed %016" PRIx64 ": %s\n", what, name,
		       end.mlength, be64toh(doc->words[0]),
		       put ? "delivered" : "verified");
	free(doc);
	return rc;
}

static void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

static void parse(int argc, char **argv, uint16_t *port, const char **path)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "socket", required_argument, NULL, 's' },
		{ 0 },
	};
	unsigned int n = 988;
	char more;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 's')
			*path = optarg;
		else if (c != 'p' || sscanf(optarg, "%5u%c", &n, &more) != 1)
			n = 0;
	if (!n || n > 65535 || !*path || optind < argc)
		errx(2, "usage: depot [--port 1..65535] --socket PATH");
	*port = (uint16_t)n;
}

int main(int argc, char **argv)
{
	struct ulnet_control_conf where = { .path = NULL };
	struct lnet_control *control;
	struct ulnet_conf conf;
	struct depot d = { 0 };
	char line[256], what[9], name[65], more;
	int words, failed = 0;

	lnet_conf_init(&conf);
	parse(argc, argv, &conf.port, &where.path);
	setvbuf(stdout, NULL, _IOLBF, 0);
	check(lnet_open(&conf, &d.node), "node");
	check(LNetEQAlloc(d.node, 16, &d.eq), "event queue");
	check(LNetSetLazyPortal(d.node, PORTAL), "portal");
	check(lnet_call(d.node, 0, open_doors, &d), "portal");
	check(lnet_control_start(d.node, &where, &control), where.path);
	printf("depot: ready on port %u, socket %s\n", conf.port, where.path);
	while (fgets(line, sizeof(line), stdin)) {
		words = sscanf(line, "%8s %64s %c", what, name, &more);
		if (words == 1 && strcmp(what, "quit") == 0)
			break;
		failed |= words >= 1 && obey(&d, what, words == 2 ? name : "");
	}
	lnet_control_stop(control);
	lnet_close(d.node); /* the last events come, and free the documents */
	return failed;
}
