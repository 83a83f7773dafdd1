/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/silence.h"

#define TIMES_USUAL 4

uint64_t silence_allowed(const struct silence_law *law,
			 const struct silence_acks *acks)
{
	uint64_t ns = TIMES_USUAL * (acks->srtt + 4 * acks->rttvar);

	return MIN(MAX(ns, law->min), MAX(law->max, law->min));
}

void silence_measure(struct silence_acks *acks, uint64_t ns)
{
	uint64_t off = acks->srtt > ns ? acks->srtt - ns : ns - acks->srtt;

	if (!acks->srtt) {
		acks->srtt = ns;
		acks->rttvar = ns / 2;
		return;
	}
	acks->rttvar = acks->rttvar - acks->rttvar / 4 + off / 4;
	acks->srtt = acks->srtt - acks->srtt / 8 + ns / 8;
}

bool silence_look(struct silence *s, const struct silence_law *law,
		  uint64_t now, const struct silence_acks *acks)
{
	uint64_t gap = now - s->looked;

	if (!law->min || !acks->in_flight || !s->looked)
		s->quiet = 0;
	else if (acks->ack_age < gap)
		s->quiet = MIN(acks->ack_age, silence_period(law));
	else
		s->quiet += MIN(gap, silence_period(law));
	s->looked = now;
	return law->min && s->quiet >= silence_allowed(law, acks);
}
