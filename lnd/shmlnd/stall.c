/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/stall.h"

bool shm_stall_look(struct shm_stall *s, bool waits, uint32_t mark, bool late)
{
	if (!waits || !s->waits || s->mark != mark)
		s->looks = 0;
	else if (!late)
		s->looks++;
	s->waits = waits;
	s->mark = mark;
	return s->looks >= SHM_STALL_LOOKS;
}
