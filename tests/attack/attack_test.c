/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An attacker between two processes: he drops, repeats, delays, reorders,
 * splices, truncates, cuts and alters what they send each other, brings it back
 * later, also when the server has begun again, moves it to other connections,
 * turns it round, and tries to talk them into less. With keys, whatever he
 * does, nothing is executed that no client has asked for, nothing twice,
 * nothing that is altered is believed, each caller is told the truth, and
 * nobody waits in vain (requirements G12, I1).
 *
 * ATTACK_SEED repeats his choices, though not how processes and network met;
 * ATTACK_HARM, a part of a name in harm.c, is all that he does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/attack/attacker.h"
#include "tests/lnd/apart.h"
#include "tests/lnd/proofs.h"
#include "tests/port.h"

static uint64_t some_seed(void)
{
	const char *text = getenv("ATTACK_SEED");
	struct timespec ts;

	if (text)
		return strtoull(text, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec << 20 ^ (uint64_t)ts.tv_nsec;
}

static struct tally *tally_new(void)
{
	void *p = mmap(NULL, sizeof(struct tally), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	BUG_ON(p == MAP_FAILED);
	return p;
}

/* Clients of different CPTs of the server, if there are. */
static void choose_clients(struct victims *v)
{
	const uint8_t *cpt = v->tally->cpt;
	unsigned int second = 3;

	while (second < ADDRESSES - 1 && cpt[second] == cpt[1])
		second++;
	v->address[0] = 1;
	v->address[1] = (uint8_t)second;
}

static void begin(struct victims *v, enum ulrpc_flavour flavour, bool tls)
{
	char nid[32];

	*v = (struct victims){ .tally = tally_new(),
			       .flavour = flavour,
			       .tls = tls,
			       .at = free_port(),
			       .behind = free_port(),
			       .name = { "node1", "node2" } };
	v->keys[CLIENTS] = proofs_node("site", "127.0.0.2@tcp", 0);
	victims_serve(v);
	choose_clients(v);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		snprintf(nid, sizeof(nid), "127.0.0.%u@tcp", v->address[i]);
		v->keys[i] = proofs_node("site", nid, 0);
	}
}

struct play {
	struct victims v;
	struct attacker a;
	uint64_t seed;
	unsigned int bad;
};

static void check(struct play *p, bool good, const char *what)
{
	if (good)
		return;
	printf("  %s\n", what);
	p->bad++;
}

static bool is_wanted(const char *name)
{
	const char *only = getenv("ATTACK_HARM");

	return !only || strstr(name, only);
}

static void play(struct play *p, const struct harm *list, unsigned int n)
{
	for (unsigned int i = 0; i < n && !p->bad; i++) {
		if (!is_wanted(list[i].name))
			continue;
		check(p, attacker_play(&p->a, &list[i]), list[i].name);
	}
}

static void play_begin(struct play *p, enum ulrpc_flavour flavour, bool tls)
{
	p->bad = 0;
	p->seed = some_seed();
	begin(&p->v, flavour, tls);
	attacker_begin(&p->a, &p->v, p->seed);
	for (unsigned int i = 0; i < CLIENTS; i++)
		victims_call(&p->v, i);
}

/* The attacker goes, all that is left is done, and the sum is drawn. */
static void play_end(struct play *p)
{
	struct tally *t = p->v.tally;

	atomic_store(&t->over, true);
	check(p, attacker_play(&p->a, NULL), "the end");
	for (unsigned int i = 0; i < CLIENTS; i++)
		check(p, victims_end(&p->v, i), "a client");
	attacker_cut_all(&p->a);
	check(p, victims_end(&p->v, CLIENTS), "the server");
	for (unsigned int i = 0; i < CLIENTS; i++) {
		check(p, t->client[i].good > 0, "no call was good");
	}
	attacker_end(&p->a);
}

static int verdict(struct play *p)
{
	if (p->bad)
		printf("  again with: ATTACK_SEED=%llu\n",
		       (unsigned long long)p->seed);
	munmap(p->v.tally, sizeof(*p->v.tally));
	return p->bad ? 1 : 0;
}

static int attack(enum ulrpc_flavour flavour)
{
	static struct play p;

	play_begin(&p, flavour, false);
	play(&p, plain_harms, nplain_harms);
	play_end(&p);
	check(&p, !p.v.tally->forged, "something forged was believed");
	check(&p, !victims_audit(p.v.tally), "outcomes");
	check(&p, p.v.tally->seals > 0, "no seal was broken");
	check(&p, p.a.has_marker == (flavour < ULRPC_FLAVOUR_PRIVACY),
	      "what could be read");
	return verdict(&p);
}

static int auth(void)
{
	return attack(ULRPC_FLAVOUR_AUTH);
}

static int integrity(void)
{
	return attack(ULRPC_FLAVOUR_INTEGRITY);
}

static int privacy(void)
{
	return attack(ULRPC_FLAVOUR_PRIVACY);
}

/* Without keys he can do as he likes: else all of this would prove nothing. */
static int none(void)
{
	static struct play p;

	play_begin(&p, ULRPC_FLAVOUR_NONE, false);
	play(&p, &body_harm, 1);
	play_end(&p);
	check(&p, p.v.tally->forged > 0, "nothing forged was believed");
	check(&p, p.a.has_marker, "nothing could be read");
	return verdict(&p);
}

static int over_tls(void)
{
	static struct play p;

	play_begin(&p, ULRPC_FLAVOUR_NONE, true);
	play(&p, tls_harms, ntls_harms);
	play_end(&p);
	check(&p, !p.v.tally->forged, "something forged was believed");
	check(&p, !victims_audit(p.v.tally), "outcomes");
	check(&p, !p.a.has_marker, "something could be read");
	return verdict(&p);
}

static const struct apart_test tests[] = {
	{ "without keys", none },      { "auth", auth },
	{ "integrity", integrity },    { "privacy", privacy },
	{ "tls: required", over_tls },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
