/* SPDX-License-Identifier: BSD-3-Clause */
/* Every LND that nets are configured by, for who opens nodes. */
#ifndef LND_LNDS_H
#define LND_LNDS_H

struct lnd;

extern const struct lnd lolnd;
extern const struct lnd socklnd;
extern const struct lnd o2iblnd;

#endif
