/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ping information changes in what is known of a peer.
 *
 * NIDs have short forms here: "4" is 10.0.0.4@tcp, and "L4" is fd00::4@tcp. "-"
 * before a NID: it is down; "=" after it: it is in use. A letter after ":" says
 * which peer has the NID now: o another peer, a another peer that agrees, as it
 * has itself claimed this one, c a configured peer, m this node.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "lnet/discovery/reconcile.h"

#define ROOM 512

/* Features of a node with discovery on, of one with discovery off, and of one
 * that is not multi-rail. */
#define FULL   0x1e
#define SILENT 0x0e
#define PLAIN  0x06

struct merge_case {
	const char *name;
	enum ulnet_discovery mode;
	/* c: configured, m: multi-rail, d: discovered */
	const char *flags;
	const char *known;
	enum merge_source source;
	uint32_t features;
	const char *came;
	const char *plan;
};

static struct merge_ni known[ROOM];
static struct ulnet_ping_ni came[ROOM];
static uint8_t fates[ROOM];

static struct ulnet_nid short_nid(const char *text)
{
	char whole[32];
	struct ulnet_nid nid;

	snprintf(whole, sizeof(whole), "%s%d@tcp",
		 *text == 'L' ? "fd00::" : "10.0.0.",
		 atoi(text + (*text == 'L')));
	cr_assert_eq(lnet_nid_parse(whole, &nid), 0, "%s", whole);
	return nid;
}

static const char *short_text(const struct ulnet_nid *nid)
{
	static char text[8];
	char whole[LNET_NIDSTR_SIZE];

	lnet_nid_format(nid, whole, sizeof(whole));
	snprintf(text, sizeof(text), "%s%d", nid->size ? "L" : "",
		 nid->size ? nid->addr[15] : atoi(strrchr(whole, '.') + 1));
	return text;
}

static uint8_t fate_of(const char *word)
{
	const char *colon = strchr(word, ':');

	switch (colon ? colon[1] : 0) {
	case 'o':
		return MERGE_CLAIM;
	case 'a':
		return MERGE_TAKE;
	case 'c':
	case 'm':
		return MERGE_LEAVE;
	}
	return MERGE_ADD;
}

/* Calls @fn with each word of @text and its number. Returns how many there are.
 */
static unsigned int words(const char *text, void (*fn)(unsigned, const char *))
{
	char copy[256], *at = NULL, *word;
	unsigned int n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, " ", &at); word;
	     word = strtok_r(NULL, " ", &at))
		fn(n++, word);
	return n;
}

static void add_known(unsigned int i, const char *word)
{
	bool down = *word == '-';

	known[i] = (struct merge_ni){ short_nid(word + down), down,
				      strchr(word, '=') != NULL };
}

static void add_came(unsigned int i, const char *word)
{
	bool down = *word == '-';

	came[i] = (struct ulnet_ping_ni){ short_nid(word + down), !down };
	fates[i] = fate_of(word);
}

/* ---- a plan as text ---- */

static char out[4096];

static void say(const char *mark, const struct ulnet_nid *nid)
{
	size_t n = strlen(out);

	snprintf(out + n, sizeof(out) - n, " %s%s", mark,
		 nid ? short_text(nid) : "");
}

static void say_theirs(const struct merge_plan *plan, unsigned int n)
{
	static const char *const marks[] = { [MERGE_ADD] = "+",
					     [MERGE_TAKE] = "<",
					     [MERGE_CLAIM] = "!",
					     [MERGE_LEAVE] = "~" };

	for (unsigned int i = 0; i < n; i++)
		if (plan->named[i] != MERGE_HAS)
			say(marks[plan->named[i]], &came[i].nid);
}

static void say_ours(const struct merge_plan *plan, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (plan->known[i] & MERGE_GOES)
			say("-", &known[i].nid);
		else if (plan->known[i] & MERGE_DOWN)
			say("v", &known[i].nid);
		else if (plan->known[i] & MERGE_UP)
			say("^", &known[i].nid);
	}
}

static const char *plan_text(const struct merge_plan *plan,
			     const struct merge_known *k,
			     const struct ulnet_ping_info *info)
{
	static const char *const verdicts[] = { "none", "apply", "refuse",
						"ask", "drop" };

	snprintf(out, sizeof(out), "%s", verdicts[plan->verdict]);
	if (plan->verdict == MERGE_ASK || plan->verdict == MERGE_DROP)
		return out;
	say("", &plan->primary);
	say(plan->multi_rail ? "mr" : "single", NULL);
	if (plan->no_discovery)
		say("silent", NULL);
	say_theirs(plan, info->nnis);
	say_ours(plan, k->nnis);
	return out;
}

static struct merge_known known_of(const struct merge_case *c)
{
	struct merge_known k = {
		.mode = c->mode,
		.ni = known,
		.nnis = words(c->known, add_known),
		.configured = strchr(c->flags, 'c'),
		.multi_rail = strchr(c->flags, 'm'),
		.discovered = strchr(c->flags, 'd'),
		.sequence = 7,
	};

	k.primary = known[0].nid;
	return k;
}

static void check_with(const struct merge_case *c, uint32_t sequence,
		       size_t cut)
{
	struct merge_known k = known_of(c);
	struct ulnet_ping_info info = { .features = c->features,
					.sequence = sequence,
					.nnis = words(c->came, add_came),
					.ni = came };
	struct merge_came in = { .source = c->source,
				 .from = known[0].nid,
				 .info = &info,
				 .cut = cut,
				 .fate = fates };
	struct merge_plan plan;

	cr_assert_eq(merge_plan(&k, &in, &plan), 0);
	cr_assert_str_eq(plan_text(&plan, &k, &info), c->plan, "%s: %s",
			 c->name, out);
	cr_assert_eq(plan.sequence, sequence);
	cr_assert_eq(plan.ask, plan.verdict == MERGE_ASK ? cut : 0);
	cr_assert_eq(!plan.why, !merge_why_text(plan.why));
	cr_assert_eq(!plan.why, plan.verdict <= MERGE_APPLY, "%s", c->name);
	merge_plan_fini(&plan);
}

static void check(const struct merge_case *c)
{
	check_with(c, 7, 0);
}

#define CHECK(cases)                                           \
	do {                                                   \
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) \
			check(&(cases)[i]);                    \
	} while (0)

#define ON     LNET_DISCOVERY_ON
#define OFF    LNET_DISCOVERY_OFF
#define VERIFY LNET_DISCOVERY_VERIFY
#define REPLY  MERGE_REPLY
#define PUSH   MERGE_PUSH

/* ---- on ---- */

Test(merge, nids_come_and_go)
{
	static const struct merge_case cases[] = {
		{ "first answer, one NI", ON, "", "1", REPLY, FULL, "1",
		  "none 1 mr" },
		{ "first answer, two", ON, "", "1", REPLY, FULL, "1 2",
		  "apply 1 mr +2" },
		{ "a push is as good", ON, "", "1", PUSH, FULL, "1 2",
		  "apply 1 mr +2" },
		{ "nothing new", ON, "md", "1 2", REPLY, FULL, "1 2",
		  "none 1 mr" },
		{ "one went", ON, "md", "1 2 3", PUSH, FULL, "1 3",
		  "apply 1 mr -2" },
		{ "one came, one went", ON, "md", "1 2", PUSH, FULL, "1 3",
		  "apply 1 mr +3 -2" },
		{ "all are others", ON, "md", "1 2", PUSH, FULL, "3 4",
		  "apply 3 mr +3 +4 -1 -2" },
		{ "named twice", ON, "md", "1", PUSH, FULL, "1 2 2 1",
		  "apply 1 mr +2 ~2 ~1" },
		{ "a NID of ours", ON, "md", "1", PUSH, FULL, "1 2:m 3",
		  "apply 1 mr ~2 +3" },
	};

	CHECK(cases);
}

Test(merge, primary_nid)
{
	static const struct merge_case cases[] = {
		{ "met by its second", ON, "", "2", REPLY, FULL, "1 2",
		  "apply 1 mr +1" },
		{ "another order", ON, "md", "1 2", PUSH, FULL, "2 1",
		  "apply 2 mr" },
		{ "a large one", ON, "", "1", REPLY, FULL | 0x60, "L9 1",
		  "apply L9 mr +L9" },
		{ "another peer's", ON, "", "2", REPLY, FULL, "1:o 2",
		  "none 2 mr !1" },
		{ "another peer's, and more", ON, "md", "2 3", REPLY, FULL,
		  "1:o 2 4", "apply 2 mr !1 +4" },
		{ "of one that agrees", ON, "", "2", REPLY, FULL, "1:a 2",
		  "apply 1 mr <1" },
		{ "used and gone", ON, "md", "1 2=", PUSH, FULL, "1",
		  "none 1 mr v2" },
		{ "used primary and gone", ON, "md", "1= 2", PUSH, FULL, "2",
		  "apply 2 mr v1" },
		{ "used, gone, and back", ON, "md", "1 -2=", PUSH, FULL, "1 2",
		  "none 1 mr ^2" },
		{ "a configured peer's", ON, "", "2", REPLY, FULL, "1:c 2 3",
		  "refuse 2 mr ~1 ~3" },
		{ "ours", ON, "", "2", REPLY, FULL, "1:m 2 3",
		  "refuse 2 mr ~1 ~3" },
	};

	CHECK(cases);
}

Test(merge, claimed_by_two)
{
	static const struct merge_case cases[] = {
		{ "has not agreed", ON, "", "1", REPLY, FULL, "1 2:o",
		  "none 1 mr !2" },
		{ "has not agreed, others come and go", ON, "md", "1 3", PUSH,
		  FULL, "1 2:o 4", "apply 1 mr !2 +4 -3" },
		{ "agrees", ON, "", "1", REPLY, FULL, "1 2:a",
		  "apply 1 mr <2" },
		{ "configured", ON, "", "1", REPLY, FULL, "1 2:c 3:a 4:o",
		  "apply 1 mr ~2 <3 !4" },
	};

	CHECK(cases);
}

Test(merge, reduced_peers)
{
	static const struct merge_case cases[] = {
		{ "not multi-rail", ON, "", "1", REPLY, PLAIN, "1 2",
		  "none 1 single silent ~2" },
		{ "no more", ON, "md", "1 2 3", REPLY, PLAIN, "1 2",
		  "apply 1 single silent -2 -3" },
		{ "no discovery", ON, "", "1", REPLY, SILENT, "1 2",
		  "none 1 single silent ~2" },
		{ "turned off there", ON, "md", "1 2", PUSH, SILENT, "1 2",
		  "apply 1 single silent -2" },
		{ "found under another primary", ON, "", "2", REPLY, SILENT,
		  "1 2", "none 2 single silent ~1" },
		{ "not multi-rail, but pushes", ON, "md", "1 2", PUSH, PLAIN,
		  "1 2", "drop" },
	};

	CHECK(cases);
}

Test(merge, states_of_nids)
{
	static const struct merge_case cases[] = {
		{ "down", ON, "md", "1 2", PUSH, FULL, "1 -2", "none 1 mr v2" },
		{ "still down", ON, "md", "1 -2", PUSH, FULL, "1 -2",
		  "none 1 mr" },
		{ "up again", ON, "md", "1 -2", PUSH, FULL, "1 2",
		  "none 1 mr ^2" },
		{ "configured", ON, "cmd", "1 2", PUSH, FULL, "1 -2",
		  "none 1 mr v2" },
		{ "off", OFF, "", "1", PUSH, FULL, "-1", "none 1 single v1" },
	};

	CHECK(cases);
}

/* ---- configured; off; verify ---- */

Test(merge, configured_wins)
{
	static const struct merge_case cases[] = {
		{ "as configured", ON, "cm", "1 2", REPLY, FULL, "1 2",
		  "none 1 mr" },
		{ "it has more", ON, "cm", "1 2", REPLY, FULL, "1 2 3:o",
		  "refuse 1 mr ~3" },
		{ "it has less", ON, "cm", "1 2", REPLY, FULL, "1",
		  "refuse 1 mr" },
		{ "another primary", ON, "cm", "1 2", REPLY, FULL, "2 1",
		  "refuse 1 mr" },
		{ "not multi-rail by intent", ON, "c", "1", REPLY, FULL, "1 2",
		  "none 1 single ~2" },
		{ "multi-rail by mistake", ON, "cm", "1 2", REPLY, PLAIN, "1",
		  "refuse 1 mr silent" },
		{ "off", OFF, "cm", "1 2", REPLY, FULL, "1 3",
		  "refuse 1 mr ~3" },
	};

	CHECK(cases);
}

Test(merge, other_modes_change_no_nid)
{
	static const struct merge_case cases[] = {
		{ "off: more", OFF, "", "1", PUSH, FULL, "1 2:o",
		  "none 1 single ~2" },
		{ "off: less", OFF, "md", "1 2", PUSH, FULL, "1", "none 1 mr" },
		{ "off: not multi-rail", OFF, "md", "1 2", REPLY, PLAIN, "1 2",
		  "none 1 single silent" },
		{ "verify: the same", VERIFY, "", "1", REPLY, FULL, "1",
		  "none 1 single" },
		{ "verify: more", VERIFY, "", "1", REPLY, FULL, "1 2",
		  "refuse 1 single ~2" },
		{ "verify: less", VERIFY, "md", "1 2", PUSH, FULL, "1",
		  "refuse 1 mr" },
		{ "verify: takes no part", VERIFY, "", "1", REPLY, SILENT,
		  "1 2", "none 1 single silent ~2" },
		{ "verify: configured", VERIFY, "cm", "1 2", REPLY, FULL, "1 3",
		  "refuse 1 mr ~3" },
	};

	CHECK(cases);
}

/* ---- old, truncated, empty ---- */

struct order_case {
	enum merge_source source;
	const char *flags;
	uint32_t sequence; /* of the information; 7 is the known one */
	const char *plan;
};

Test(merge, order_of_numbers)
{
	static const struct order_case cases[] = {
		{ PUSH, "md", 8, "apply 1 mr +2" },
		{ PUSH, "md", 7, "apply 1 mr +2" },
		{ PUSH, "md", 6, "ask" },
		{ PUSH, "md", 1, "ask" }, /* or the peer has restarted: ask */
		{ PUSH, "", 6, "apply 1 mr +2" },
		{ REPLY, "md", 6, "apply 1 mr +2" },
		{ REPLY, "md", 1, "apply 1 mr +2" },
		{ PUSH, "md", UINT32_C(0x80000006), "apply 1 mr +2" },
		{ PUSH, "md", UINT32_C(0x80000008), "ask" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct merge_case c = { "order",	 ON,
					cases[i].flags,	 "1",
					cases[i].source, FULL,
					"1 2",		 cases[i].plan };

		check_with(&c, cases[i].sequence, 0);
	}
}

Test(merge, cut_and_empty)
{
	static const struct merge_case cut = { "cut", ON,   "md", "1 2",
					       REPLY, FULL, "",	  "ask" };
	static const struct merge_case cut_push = { "cut push", ON,   "md",
						    "1 2",	PUSH, FULL,
						    "",		"ask" };
	static const struct merge_case plain = { "plain, cut", ON,    "md",
						 "1 2",	       PUSH,  PLAIN,
						 "",	       "drop" };
	static const struct merge_case empty = { "empty", ON,	"md", "1 2",
						 REPLY,	  FULL, "",   "drop" };

	check_with(&cut, 7, 400);
	check_with(&cut_push, 7, 400);
	check_with(&plain, 7, 400);
	check(&empty);
}

/* ---- many ---- */

static struct ulnet_nid nth(unsigned int i)
{
	struct ulnet_nid nid;
	char text[32];

	snprintf(text, sizeof(text), "10.1.%u.%u@tcp", i / 250, i % 250 + 1);
	cr_assert_eq(lnet_nid_parse(text, &nid), 0);
	return nid;
}

/* Of 400 NIDs the first 200 are known, of which every third one goes. The
 * others come in reverse order. */
Test(merge, hundreds)
{
	struct merge_known k = { .mode = ON, .ni = known, .nnis = 200 };
	struct ulnet_ping_info info = { .features = FULL, .ni = came };
	struct merge_came in = { .info = &info, .fate = fates };
	struct merge_plan plan;

	memset(fates, MERGE_ADD, sizeof(fates));
	for (unsigned int i = 0; i < k.nnis; i++)
		known[i].nid = nth(i);
	k.primary = in.from = known[0].nid;
	for (unsigned int i = 400; i-- > 0;)
		if (i >= 200 || i % 3)
			came[info.nnis++] =
				(struct ulnet_ping_ni){ nth(i), true };
	cr_assert_eq(merge_plan(&k, &in, &plan), 0);
	cr_assert_eq(plan.verdict, MERGE_APPLY);
	cr_assert_eq(plan.come, 200);
	cr_assert_eq(plan.go, 67);
	for (unsigned int i = 0; i < k.nnis; i++)
		cr_assert_eq(plan.known[i],
			     i % 3 ? 0 : MERGE_GOES | MERGE_UNNAMED, "%u", i);
	for (unsigned int i = 0; i < info.nnis; i++)
		cr_assert_eq(plan.named[i], i < 200 ? MERGE_ADD : MERGE_HAS,
			     "%u", i);
	merge_plan_fini(&plan);
}

/* ---- the order of announcements ---- */

struct announced_case {
	/* source, process and number of the new announcement; the one before is
	 * a push, with 1 and 7 */
	enum merge_source source;
	uint32_t pid, sequence;
	uint8_t byte; /* contents; they were 0 before */
	enum announcement_order order;
};

static struct announcement *told_with(enum merge_source source, uint32_t pid,
				      uint32_t sequence, uint8_t byte)
{
	struct announcement *told = calloc(1, sizeof(*told) + 1);

	cr_assert_not_null(told);
	told->source = source;
	told->info.pid = pid;
	told->info.sequence = sequence;
	told->length = 1;
	told->bytes[0] = byte;
	return told;
}

/* A push may overtake a REPLY, or another push; and a node that has restarted
 * begins to count anew. */
Test(merge, order_of_announcements)
{
	static const struct announced_case cases[] = {
		{ PUSH, 1, 8, 1, ANNOUNCED_LATER },
		{ REPLY, 1, 8, 1, ANNOUNCED_LATER },
		{ PUSH, 1, 7, 0, ANNOUNCED_LATER },
		{ PUSH, 1, 7, 1, ANNOUNCED_PERHAPS_LATER },
		{ REPLY, 1, 7, 1, ANNOUNCED_PERHAPS_LATER },
		{ REPLY, 1, 6, 1, ANNOUNCED_PERHAPS_LATER },
		{ PUSH, 1, 6, 1, ANNOUNCED_PERHAPS_EARLIER },
		{ PUSH, 2, 1, 1, ANNOUNCED_LATER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct announcement *was = told_with(PUSH, 1, 7, 0);
		struct announcement *is =
			told_with(cases[i].source, cases[i].pid,
				  cases[i].sequence, cases[i].byte);

		cr_assert_eq(announcement_order(was, is), cases[i].order, "%zu",
			     i);
		free(was);
		free(is);
	}
}
