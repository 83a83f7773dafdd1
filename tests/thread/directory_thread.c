/* SPDX-License-Identifier: BSD-3-Clause */
/* CPTs read the directory in their turns, other threads at any time, and
 * several threads change it meanwhile: each reader sees whole entries, and only
 * such as a writer has made. */
#include <pthread.h>
#include <stdlib.h>

#include "lnet/core/directory.h"
#include "tests/thread/check.h"

#define CPTS	3
#define WRITERS 2
#define READERS 2
#define CHANGES 3000 /* of each writer */
#define NIDS	64   /* of each writer */
#define READS	50   /* in each turn */

static struct directory directory;
static struct loop *loops[CPTS];
static atomic_uint writing = WRITERS;
static atomic_uint turns[CPTS];
static const struct directory_users nobody = { NULL, NULL };

static struct ulnet_nid nth(unsigned int writer, unsigned int n)
{
	return (struct ulnet_nid){ .type = LNET_TYPE_SOCK,
				   .addr = { 10, (uint8_t)writer, 0,
					     (uint8_t)n } };
}

/* In step @step all NIDs of a writer have the same primary NID, and are on the
 * CPT that follows from it. */
static struct directory_entry entry(unsigned int writer, unsigned int n,
				    unsigned int step)
{
	struct directory_entry e = { .nid = nth(writer, n),
				     .cpt = step % CPTS };

	e.primary = e.nid;
	e.primary.addr[2] = (uint8_t)(1 + step % 200);
	if (step % 7 == 0)
		e = (struct directory_entry){
			e.nid, e.nid, directory_default_cpt(&directory, &e.nid),
			false
		};
	return e;
}

static void look(unsigned int i)
{
	unsigned int writer = i % WRITERS, n = i / WRITERS % NIDS;
	struct ulnet_nid nid = nth(writer, n);
	struct directory_entry e;

	if (!directory_find(&directory, &nid, &e))
		return;
	check(lnet_nid_eq(&e.nid, &nid));
	check(e.primary.addr[1] == writer && e.primary.addr[3] == n);
	for (unsigned int step = e.primary.addr[2] - 1u; step < CHANGES + 200;
	     step += 200)
		if (step % CPTS == e.cpt)
			return;
	check(!"what no writer has said");
}

struct reader {
	struct work work;
	unsigned int cpt;
	unsigned int next;
};

static void read_in_turn(struct work *w)
{
	struct reader *r = container_of(w, struct reader, work);

	for (unsigned int i = 0; i < READS; i++)
		look(r->next++);
	atomic_fetch_add(&turns[r->cpt], 1);
	if (atomic_load(&writing) || !directory_is_idle(&directory))
		loop_post(loops[r->cpt], &r->work);
	else
		loop_stop(loops[r->cpt]);
}

static void *run_cpt(void *arg)
{
	struct reader *r = arg;

	loop_run(loops[r->cpt]);
	return NULL;
}

static void *read_outside(void *arg)
{
	unsigned int next = *(unsigned int *)arg;

	while (atomic_load(&writing))
		look(next++);
	return NULL;
}

static void *write_all(void *arg)
{
	unsigned int writer = *(unsigned int *)arg;
	struct directory_entry e[4];

	for (unsigned int step = 0; step < CHANGES; step++) {
		for (unsigned int i = 0; i < 4; i++)
			e[i] = entry(writer, (step * 4 + i) % NIDS, step);
		check(directory_change(&directory, e, 4) == 0);
		for (unsigned int i = 0; i < 4; i++)
			check(directory_cpt(&directory, &e[i].nid) == e[i].cpt);
	}
	atomic_fetch_sub(&writing, 1);
	return NULL;
}

int main(void)
{
	pthread_t cpts[CPTS], readers[READERS], writers[WRITERS];
	unsigned int numbers[] = { 0, 1, 2, 3 };
	struct reader r[CPTS];

	for (unsigned int i = 0; i < CPTS; i++) {
		struct env *env;

		if (env_ev_new(NULL, &env) || loop_new(env, &loops[i]))
			return 1;
	}
	directory_init(&directory, CPTS, loops, 4711, &nobody);
	for (unsigned int i = 0; i < CPTS; i++) {
		r[i] = (struct reader){ .work.fn = read_in_turn, .cpt = i };
		loop_post(loops[i], &r[i].work);
		check(!pthread_create(&cpts[i], NULL, run_cpt, &r[i]));
	}
	for (unsigned int i = 0; i < READERS; i++)
		check(!pthread_create(&readers[i], NULL, read_outside,
				      &numbers[i]));
	for (unsigned int i = 0; i < WRITERS; i++)
		check(!pthread_create(&writers[i], NULL, write_all,
				      &numbers[i]));
	for (unsigned int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	for (unsigned int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	for (unsigned int i = 0; i < CPTS; i++) {
		pthread_join(cpts[i], NULL);
		check(atomic_load(&turns[i]) > 0);
		loop_take_over(loops[i]);
	}
	directory_fini(&directory);
	for (unsigned int i = 0; i < CPTS; i++)
		loop_free(loops[i]);
	printf("%u turns of CPT 0, %u failures\n", atomic_load(&turns[0]),
	       atomic_load(&failures));
	return atomic_load(&failures) ? 1 : 0;
}
