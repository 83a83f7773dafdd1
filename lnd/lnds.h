/* SPDX-License-Identifier: BSD-3-Clause */
/* The LNDs that lnet_open() gives to nodes. */
#ifndef LND_LNDS_H
#define LND_LNDS_H

struct lnd;

extern const struct lnd lolnd;
extern const struct lnd socklnd;
extern const struct lnd o2iblnd;
extern const struct lnd shmlnd;

#endif
