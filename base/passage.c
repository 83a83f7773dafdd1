/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/passage.h"

void passage_init(struct passage *p, struct loop *home, work_fn closed)
{
	p->home = home;
	p->closed.fn = closed;
	atomic_init(&p->count, 1);
}

void passage_send(struct passage *p, struct loop *to, struct work *w)
{
	atomic_fetch_add(&p->count, 1);
	loop_post(to, w);
}

bool passage_hold(struct passage *p)
{
	unsigned int n = atomic_load(&p->count);

	while (n)
		if (atomic_compare_exchange_weak(&p->count, &n, n + 1))
			return true;
	return false;
}

void passage_arrived(struct passage *p)
{
	struct loop *home = p->home;

	if (atomic_fetch_sub(&p->count, 1) == 1)
		loop_post(home, &p->closed);
}

void passage_close(struct passage *p)
{
	passage_arrived(p);
}
