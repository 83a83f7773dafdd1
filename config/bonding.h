/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bonding, as kernel nodes had it before multi-rail: one NI, whose LND spread
 * its traffic over several interfaces. Here each interface has an NI of its
 * own, and LNet uses all of them. What asked for bonding is accepted, with a
 * note that says so (requirement E6).
 */
#ifndef CONFIG_BONDING_H
#define CONFIG_BONDING_H

#include "config/answer.h"

/* Is @name that of the setting that switched bonding on? */
bool bonding_is_setting(const char *name);
/* That setting is to be @value. -EINVAL: neither 0 nor 1. */
int bonding_set(struct answer *a, int64_t value) must_check;
/* One NI with @n interfaces on @net has become @n NIs. */
void bonding_note_nis(struct answer *a, uint32_t net, unsigned int n);

#endif
