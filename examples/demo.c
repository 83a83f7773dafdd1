/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first part of ./demo: explains LNet by a cluster of two nodes. The nodes
 * are real ones, in one process; the network between them and the clock are
 * simulated, so a minute passes in no time and a message can be lost on
 * purpose.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/sim.h>

#define PORTAL	     10
#define MAILBOX_BITS 0x4d41494c
#define LIBRARY_BITS 0x424f4f4b

static struct lnet_sim *sim;

static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "demo: %s: %s\n", what, strerror(-rc));
	exit(1);
}

/* ---- events ---- */

static const char *name_of(const struct ulnet_event *ev)
{
	return ev->md.node == lnet_sim_node(sim, 0) ? "alice" : "  bob";
}

static void print_event(const struct ulnet_event *ev)
{
	printf("  %10.3f ms  %s: %-6s", (double)lnet_sim_now(sim) / 1e6,
	       name_of(ev), lnet_event_name(ev->type));
	if (ev->status)
		printf(" failed: %s (%s)", strerror(-ev->status),
		       lnet_cause_name(ev->cause));
	else if (ev->type != LNET_EVENT_UNLINK)
		printf(" %u bytes", ev->mlength);
	if (ev->terminal)
		printf(", ends the operation: %s",
		       lnet_outcome_name(ev->outcome));
	if (ev->unlinked)
		printf(", memory is mine again");
	printf("\n");
	/* The operation has ended, but not used up its memory descriptor. */
	if (ev->terminal && !ev->unlinked)
		LNetMDUnlink(ev->md);
}

/* ---- the steps ---- */

static struct ulnet_id bob(void)
{
	struct ulnet_id id = { .pid = LNET_PID_LUSTRE };

	check(lnet_nid_parse("10.0.0.2@tcp", &id.nid), "NID of bob");
	return id;
}

/* Opens memory of bob to any node that uses its portal and match bits. */
static void open_memory(char *memory, uint32_t size, uint64_t bits,
			unsigned int operations)
{
	struct ulnet_id anybody = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;
	struct ulnet_md umd = { .start = memory,
				.length = size,
				.threshold = LNET_MD_THRESH_INF,
				.options = operations | LNET_MD_MANAGE_REMOTE |
					   LNET_MD_TRUNCATE,
				.handler = print_event };

	check(LNetMEAttach(lnet_sim_node(sim, 1), PORTAL, anybody, bits, 0,
			   LNET_UNLINK, LNET_INS_AFTER, &me),
	      "LNetMEAttach");
	check(LNetMDAttach(me, &umd, LNET_UNLINK, &md), "LNetMDAttach");
}

static struct ulnet_md_handle bind_memory(void *memory, uint32_t size)
{
	/* Two uses: the message, and its answer. */
	struct ulnet_md umd = { .start = memory,
				.length = size,
				.threshold = 2,
				.handler = print_event,
				.timeout = 5000000 };
	struct ulnet_md_handle md;

	check(LNetMDBind(lnet_sim_node(sim, 0), &umd, LNET_UNLINK, &md),
	      "LNetMDBind");
	return md;
}

static void set_loss(uint32_t loss)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct ulnet_sim_link link = { .latency = 50000,
					     .bandwidth = 1000000000,
					     .loss = loss };

	check(lnet_sim_link_set(sim, &any, &any, &link), "link");
}

static void put(char *text)
{
	check(LNetPut(LNET_NID_ANY,
		      bind_memory(text, (uint32_t)strlen(text) + 1),
		      LNET_ACK_REQ, bob(), PORTAL, MAILBOX_BITS, 0, 0),
	      "LNetPut");
	lnet_sim_run_all(sim);
}

static void on_ping(void *arg, int status, const struct ulnet_ping_info *info)
{
	char nid[LNET_NIDSTR_SIZE];

	(void)arg;
	check(status, "ping");
	printf("  %10.3f ms  alice: bob answers; his interfaces:",
	       (double)lnet_sim_now(sim) / 1e6);
	for (unsigned int i = 0; i < info->nnis; i++)
		printf(" %s (%s)",
		       lnet_nid_format(&info->ni[i].nid, nid, sizeof(nid)),
		       info->ni[i].up ? "up" : "down");
	printf("\n");
}

static void show_statistics(void)
{
	struct ulnet_stat stats[64];
	int n = lnet_stats(lnet_sim_node(sim, 0), stats, 64);

	for (int i = 0; i < n && i < 64; i++)
		if (stats[i].value)
			printf("  %-24s %6" PRIu64 "  %s\n", stats[i].name,
			       stats[i].value, stats[i].help);
}

static void tell(void)
{
	static char mailbox[64], page[64];
	static char library[] = "All happy networks are alike.";
	static char letter[] = "Hello, Bob!";

	say("Two nodes. alice is 10.0.0.1@tcp, bob is 10.0.0.2@tcp: a NID is "
	    "an address on a net.\n");

	say("1. PING. Every node answers pings, on portal 0.");
	check(lnet_ping(lnet_sim_node(sim, 0), bob(), 0, on_ping, NULL),
	      "lnet_ping");
	lnet_sim_run_all(sim);

	say("\n2. PUT with ACK. bob attaches a match entry (who may, which 64 "
	    "match\n   bits) with a memory descriptor (where) to portal %d. "
	    "alice binds her\n   letter to a memory descriptor, and puts it "
	    "where the bits match:\n   bob's program does nothing, he sees an "
	    "event.",
	    PORTAL);
	open_memory(mailbox, sizeof(mailbox), MAILBOX_BITS, LNET_MD_OP_PUT);
	put(letter);
	say("   bob's memory now holds: \"%s\"", mailbox);

	say("\n3. GET with REPLY. bob opens a page for reading; alice gets "
	    "it.");
	open_memory(library, sizeof(library), LIBRARY_BITS, LNET_MD_OP_GET);
	check(LNetGet(LNET_NID_ANY, bind_memory(page, sizeof(page)), bob(),
		      PORTAL, LIBRARY_BITS, 0),
	      "LNetGet");
	lnet_sim_run_all(sim);
	say("   alice's memory now holds: \"%s\"", page);

	say("\n4. A LOST MESSAGE. The network drops everything; alice gave her "
	    "operation\n   5 s. It was sent, nothing came back: whether bob "
	    "has it is unknown, and that\n   is what she is told, at her "
	    "deadline.");
	set_loss(LNET_SIM_ALWAYS);
	put(letter);

	say("\n5. A PEER THAT IS NOT THERE. bob crashes. His host refuses the "
	    "connection, so\n   the message was certainly not delivered, and "
	    "alice may send it again at once.");
	set_loss(0);
	check(lnet_sim_crash(sim, 1), "crash");
	put(letter);

	say("\n6. What alice counted:");
	show_statistics();
}

int main(int argc, char **argv)
{
	unsigned int violations;

	if (argc > 1) {
		fprintf(stderr, "demo: takes no arguments: %s\n", argv[1]);
		return 2;
	}
	check(lnet_sim_new(1, 1, &sim), "simulation");
	set_loss(0);
	check(lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, NULL, NULL),
	      "alice");
	check(lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, NULL, NULL), "bob");
	tell();
	violations = lnet_sim_free(sim);
	say("\nBoth nodes closed. Invariants violated: %u.", violations);
	return violations ? 1 : 0;
}
