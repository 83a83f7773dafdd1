/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/silence.h"

#include "base/mutation.h"

#define TIMES 4

uint64_t silence_allowed(const struct silence_law *law,
			 const struct silence_tcp *tcp)
{
	uint64_t usual = TIMES * (tcp->srtt + 4 * tcp->rttvar);

	return MIN(MAX(usual, law->min), MAX(law->max, law->min));
}

bool silence_look(struct silence *s, const struct silence_law *law,
		  uint64_t now, const struct silence_tcp *tcp)
{
	uint64_t gap = now - s->looked;

	if (!law->min || !tcp->in_flight || !s->looked)
		s->quiet = 0;
	else if (tcp->ack_age < gap)
		s->quiet = MIN(tcp->ack_age, silence_period(law));
	else
		s->quiet += MIN(gap, silence_period(law));
	s->looked = now;
	return law->min && s->quiet >= silence_allowed(law, tcp) &&
	       !MUTATE(unit_silence);
}
